package login_test

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// masked takes out what differs between any two sign-ins.
var masked = regexp.MustCompile(`/login/[A-Za-z0-9_-]{24}|name="csrf" value="[^"]*"`)

func TestEnumeration_EverybodyLooksTheSame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	type step struct {
		Status         int
		Location, Body string
	}
	run := func(identifier string, elements ...string) (steps []step) {
		b := w.browser()
		note := func(r response) response {
			r.body = strings.ReplaceAll(r.body, strings.ReplaceAll(identifier, "+", "&#43;"), "WHO")
			steps = append(steps, step{r.status, masked.ReplaceAllString(r.location, "X"), masked.ReplaceAllString(r.body, "X")})
			return r
		}
		page := b.start("")
		r := note(b.submit(page, "identifier", "identifier", identifier))
		page = b.follow(r)
		note(page)
		for i := 0; i+1 < len(elements); i += 2 {
			element, value := elements[i], elements[i+1]
			r = note(b.submit(page, element, element, value))
			if r.status == http.StatusSeeOther {
				page = b.follow(r)
			}
			note(page)
		}
		return steps
	}
	emails := []string{"password", "wrong-password-1", "password", "wrong", "use-code", "", "code", "999999", "use-password", "", "password", "\x00"}
	want := run(email, emails...)
	for _, who := range []string{"nobody@example.com", disabled, noPassword, temporary} {
		if diff := cmp.Diff(want, run(who, emails...)); diff != "" {
			t.Errorf("%s can be told from %s:\n%s", who, email, diff)
		}
	}
	phones := []string{"code", "999999", "code", "abc", "code", "", "code", code}
	want = run(phone, phones[:6]...)
	for _, who := range []string{"+77000000002", "+77000000009"} {
		if diff := cmp.Diff(want, run(who, phones[:6]...)); diff != "" {
			t.Errorf("%s can be told from %s:\n%s", who, phone, diff)
		}
	}
	// The right password of a disabled person is a wrong one; the demo's code
	// is wrong for nobody's number.
	right := run(disabled, "password", pass)
	if diff := cmp.Diff(run("nobody2@example.com", "password", pass), right); diff != "" {
		t.Errorf("a disabled person can be recognised:\n%s", diff)
	}
	for _, who := range []string{"+77000000003", "+77000000009"} {
		b := w.browser()
		if r := b.submit(b.identify("", who), "code", "code", code); strings.HasPrefix(r.location, "http://app.test") {
			t.Errorf("%s signed in", who)
		}
	}
}

func TestMessage_IsQueuedForActivePeopleOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, who := range []string{"+77000000002", "+77000000009", phone} {
		w.browser().identify("", who)
	}
	if n, err := w.engineMessages(t); n != 1 || err != nil {
		t.Errorf("%d messages, %v", n, err)
	}
}

func TestFinish_DisabledMeanwhileDoesNotFinish(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	if _, err := w.db.Exec(t.Context(), "UPDATE auth.users SET status = 'disabled' WHERE id = $1", w.users[phone]); err != nil {
		t.Fatal(err)
	}
	if r := b.submit(page, "code", "code", code); strings.HasPrefix(r.location, "http://app.test") {
		t.Errorf("signed in: %s", r.location)
	}
	var sessions int
	if err := w.db.QueryRow(t.Context(), "SELECT count(*) FROM auth.session").Scan(&sessions); err != nil || sessions != 0 {
		t.Errorf("%d sessions, %v", sessions, err)
	}
}

func TestPassword_GuessesInParallelStayWithinTheAllowance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const guesses = 100
	pages := make([]response, guesses)
	browsers := make([]*browser, guesses)
	for i := range pages {
		browsers[i] = w.browser()
		pages[i] = browsers[i].identify("", email)
	}
	var mu sync.Mutex
	statuses := map[int]int{}
	var wg sync.WaitGroup
	for i := range pages {
		wg.Go(func() {
			r := browsers[i].submit(pages[i], "password", "password", fmt.Sprintf("guess-number-%d", i))
			mu.Lock()
			defer mu.Unlock()
			statuses[r.status]++
			if r.status == http.StatusTooManyRequests && r.header.Get("Retry-After") != "1800" {
				t.Errorf("Retry-After %q", r.header.Get("Retry-After"))
			}
		})
	}
	wg.Wait()
	// An attempt that was allowed may still find the hasher busy on a slow
	// machine; it was counted all the same.
	if allowed := statuses[http.StatusSeeOther] + statuses[http.StatusServiceUnavailable]; allowed != 5 || statuses[http.StatusTooManyRequests] != 95 {
		t.Errorf("answers by status: %v", statuses)
	}
	r := browsers[0].submit(browsers[0].follow(browsers[0].get(pages[0].url)), "password", "password", pass)
	if r.status != http.StatusTooManyRequests || !strings.Contains(errorOf(r), "30 min") {
		t.Errorf("the right password during the rest: %d %q", r.status, errorOf(r))
	}
	w.clock.Advance(29 * time.Minute)
	fresh := w.browser()
	if r := fresh.submit(fresh.follow(fresh.identify("", email)), "password", "password", pass); r.status != http.StatusTooManyRequests {
		t.Errorf("a minute too early: %d", r.status)
	}
	w.clock.Advance(61 * time.Second)
	w.codeOf(fresh.signIn(email, pass))
}

func TestOTP_GuessesInParallelStayWithinTheAllowance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	action, form := b.form(page, "code")
	var wg sync.WaitGroup
	for i := range 100 {
		f := url.Values{"csrf": form["csrf"], "v": form["v"], "code": {fmt.Sprintf("%06d", i)}}
		wg.Go(func() { b.post(action, f) })
	}
	wg.Wait()
	var tries int
	err := w.db.QueryRow(t.Context(), "SELECT (state -> 'tries' ->> 'otp')::int FROM auth.conversation").Scan(&tries)
	if err != nil || tries != 1 {
		t.Errorf("one form gave %d tries, %v", tries, err)
	}
}

func TestOTP_WrongCodesRunIntoTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	for i, wrong := range []string{"000000", "12345", "1234567"} {
		page = b.follow(b.submit(page, "code", "code", wrong))
		if errorOf(page) == "" || page.status != http.StatusOK {
			t.Fatalf("try %d: %d %q", i+1, page.status, errorOf(page))
		}
	}
	r := b.submit(page, "code", "code", code)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1800" || !strings.Contains(errorOf(r), "30 min") {
		t.Errorf("the fourth within two minutes: %d %q", r.status, errorOf(r))
	}
	w.clock.Advance(30*time.Minute + time.Second)
	w.codeOf(w.browser().signIn(phone, code))
}

func TestOTP_CodeWorksFiveTimesAndFiveMinutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	w.clock.Advance(5 * time.Minute)
	page = b.follow(b.submit(page, "code", "code", code))
	if !strings.Contains(errorOf(page), "Ask for a new one") {
		t.Fatalf("an expired code: %q at %s", errorOf(page), page.url)
	}
	page = b.follow(b.submit(page, "resend"))
	if errorOf(page) != "" {
		t.Fatalf("resend: %q", errorOf(page))
	}
	w.codeOf(b.submit(page, "code", "code", code))

	// The limits of the account out of the way, the challenge has its own.
	page = b.identify("", phone)
	for range 5 {
		page = b.follow(b.submit(page, "code", "code", "000000"))
		if _, err := w.db.Exec(t.Context(), "DELETE FROM auth.throttle"); err != nil {
			t.Fatal(err)
		}
	}
	page = b.follow(b.submit(page, "code", "code", code))
	if !strings.Contains(errorOf(page), "Ask for a new one") {
		t.Errorf("the sixth try: %q at %s", errorOf(page), page.url)
	}
	for _, again := range []func() response{
		func() response { return b.follow(b.submit(b.follow(b.submit(page, "use-password")), "use-code")) },
		func() response {
			return b.follow(b.submit(b.get(strings.TrimSuffix(page.url, "otp")+"identifier"), "identifier", "identifier", phone))
		},
	} {
		page = again()
		if page = b.follow(b.submit(page, "code", "code", code)); !strings.Contains(errorOf(page), "Ask for a new one") {
			t.Errorf("after going back and forth: %q at %s", errorOf(page), page.url)
		}
	}
}

func TestOTP_CodeOfAnotherConversationIsWorthless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.identify("", phone)
	page := b.identify("", "+77000000002")
	if r := b.submit(page, "code", "code", code); r.location == "" || strings.HasPrefix(r.location, "http://app.test") {
		t.Errorf("%d %s", r.status, r.location)
	}
}

func TestOTP_ResendWaitsAMinute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	w.clock.Advance(20 * time.Second)
	if r := b.submit(page, "resend"); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "40" || !strings.Contains(errorOf(r), "40 s") {
		t.Errorf("too early: %d %s %q", r.status, r.header.Get("Retry-After"), errorOf(r))
	}
	w.clock.Advance(40 * time.Second)
	page = b.follow(b.submit(page, "resend"))
	if n, _ := w.engineMessages(t); n != 2 {
		t.Errorf("%d messages", n)
	}
	w.codeOf(b.submit(page, "code", "code", code))
}

func TestOTP_RequestsRunIntoTheLimitAndSuccessResetsIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for range 12 {
		w.codeOf(w.browser().signIn(phone, code))
		w.codeOf(w.browser().signIn(email, pass))
	}
	b := w.browser()
	b.identify("", phone)
	b.identify("", phone)
	r := b.submit(b.start(""), "identifier", "identifier", phone)
	if r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "1800" || !strings.HasSuffix(r.url, "/identifier") || errorOf(r) == "" {
		t.Errorf("the third within a minute: %d %s %q", r.status, r.url, errorOf(r))
	}
	// Somebody else goes on.
	w.codeOf(w.browser().signIn(email, pass))
}
