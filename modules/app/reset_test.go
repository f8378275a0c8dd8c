package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"versola/modules/app"
	"versola/modules/app/apptest"
)

// resetLink makes a link for a person of the demo.
func resetLink(t *testing.T, s *apptest.System, admin *apptest.Browser, person, body string) string {
	t.Helper()
	p := administer(t, s, admin, http.MethodPost, person+"/password-reset", "application/json", body)
	var answer struct {
		Link string `json:"link"`
	}
	if err := json.Unmarshal([]byte(p.Body), &answer); err != nil || p.Status != http.StatusOK || !strings.HasPrefix(answer.Link, s.Issuer+"/password/reset/") {
		t.Fatalf("make a link: %d %s", p.Status, p.Body)
	}
	return answer.Link
}

// reset sets a password by a link, in a browser of its own.
func reset(t *testing.T, link, chosen string) *apptest.Page {
	t.Helper()
	b := apptest.NewBrowser(t)
	if p := b.Open(link); p.Status != http.StatusOK {
		return p
	}
	return b.Submit(map[string]string{"new_password": chosen})
}

// refusesPassword tells whether a password no longer signs alice in.
func refusesPassword(t *testing.T, s *apptest.System, plain string) bool {
	t.Helper()
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	return b.Submit(map[string]string{"password": plain}).URL.String() != s.Edge+demoPage
}

func TestReset_LinkSetsThePasswordOnceAndEndsWhatTheOldOneGave(t *testing.T) {
	s := apptest.Start(t, func(c *app.Config) { c.Log.Level = "debug" })
	admin, alice := signInAdmin(t, s), apptest.NewBrowser(t)
	signInByPassword(t, s, alice, "alice@example.com", "wonderland-demo-1")
	person := find(t, s, admin, "alice@")
	link := resetLink(t, s, admin, person, "")

	// A mail scanner opens it, in its own way, and consumes nothing.
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		r, err := http.NewRequestWithContext(t.Context(), method, link, nil)
		if err != nil {
			t.Fatal(err)
		}
		apptest.NewBrowser(t).Do(r)
	}
	b := apptest.NewBrowser(t)
	page := b.Open(link)
	if page.Status != http.StatusOK || page.URL.String() != s.Issuer+"/password/reset" || page.Header.Get("Referrer-Policy") != "no-referrer" ||
		!strings.Contains(page.Header.Get("Cache-Control"), "no-store") || strings.Contains(page.Body, link[strings.LastIndexByte(link, '/')+1:]) || !strings.Contains(page.Body, "alice@example.com") {
		t.Errorf("%d at %s, %v", page.Status, page.URL, page.Header)
	}
	if p := call(t, s, alice, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
		t.Fatalf("opening the link ended the session: %d", p.Status)
	}
	if p := b.Submit(map[string]string{"new_password": "short"}); p.Status != http.StatusUnprocessableEntity || !strings.Contains(p.Body, "Use 8 to 256 characters") {
		t.Errorf("a short password: %d %s", p.Status, p.Body)
	}
	if p := b.Submit(map[string]string{"new_password": "chosen-by-alice-1"}); p.Status != http.StatusOK || p.URL.String() != s.Issuer+"/password/reset/done" {
		t.Fatalf("%d at %s\n%s", p.Status, p.URL, p.Body)
	}
	apptest.Eventually(t, time.Second, "the old session to end at the edge", func() bool {
		return call(t, s, alice, http.MethodGet, "/resources/bank/accounts", "").Status == http.StatusUnauthorized
	})
	if !refusesPassword(t, s, "wonderland-demo-1") {
		t.Error("the old password still signs in")
	}
	signInByPassword(t, s, apptest.NewBrowser(t), "alice@example.com", "chosen-by-alice-1")

	if p := reset(t, link, "chosen-by-somebody-2"); p.Status != http.StatusGone || !strings.Contains(p.Body, "This link cannot be used") {
		t.Errorf("used again: %d %s", p.Status, p.Body)
	}
	token := link[strings.LastIndexByte(link, '/')+1:]
	if strings.Contains(s.Logged(), token) {
		t.Error("the token is in the log")
	}
	apptest.Eventually(t, 2*time.Second, "the event", func() bool {
		p := administer(t, s, admin, http.MethodGet, person+"/events", "", "")
		return strings.Contains(p.Body, `"password.reset"`) && strings.Contains(p.Body, `"user.password_link_made"`) && !strings.Contains(p.Body, token)
	})
}

func TestReset_RefusesLinksThatDoNotWork(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	alice, bob := find(t, s, admin, "alice@"), find(t, s, admin, "bob@")
	gone := func(what, link string) {
		t.Helper()
		b := apptest.NewBrowser(t)
		if p := b.Open(link); p.Status != http.StatusGone || !strings.Contains(p.Body, "This link cannot be used") {
			t.Errorf("%s: %d %s", what, p.Status, p.Body)
		}
	}
	link := resetLink(t, s, admin, alice, "")
	for what, garbled := range map[string]string{
		"cut": link[:len(link)-1], "too long": link + "A", "another": link[:len(link)-4] + "AAAA", "not base64url": link[:len(link)-3] + "%20.", "NUL": link[:len(link)-3] + "%00",
		"empty": s.Issuer + "/password/reset/" + strings.Repeat("A", 43), "very long": s.Issuer + "/password/reset/" + strings.Repeat("A", 4000), "unicode": s.Issuer + "/password/reset/" + url.PathEscape(strings.Repeat("я", 43)),
	} {
		gone(what, garbled)
	}
	newer := resetLink(t, s, admin, alice, "")
	gone("replaced by a newer one", link)
	other := resetLink(t, s, admin, bob, "") // of somebody else, which leaves it alone

	if p := administer(t, s, admin, http.MethodPost, alice+"/password", "application/json", ""); p.Status != http.StatusOK {
		t.Fatal(p.Body)
	}
	gone("the password was changed meanwhile", newer)

	b := apptest.NewBrowser(t)
	b.Open(other)
	patch := func(document string) {
		t.Helper()
		if p := administer(t, s, admin, http.MethodPatch, bob, "application/merge-patch+json", document); p.Status != http.StatusOK {
			t.Fatal(p.Body)
		}
	}
	patch(`{"status":"disabled"}`)
	if p := b.Submit(map[string]string{"new_password": "chosen-by-bob-1"}); p.Status != http.StatusGone {
		t.Errorf("disabled meanwhile: %d", p.Status)
	}
	if p := administer(t, s, admin, http.MethodPost, bob+"/password-reset", "application/json", ""); p.Status != http.StatusConflict {
		t.Errorf("a link for a disabled person: %d %s", p.Status, p.Body)
	}
	patch(`{"status":"active"}`)

	short := resetLink(t, s, admin, bob, `{"expires_in":"10m"}`)
	b = apptest.NewBrowser(t)
	b.Open(short)
	s.Clock.Advance(10*time.Minute + time.Second)
	if p := b.Submit(map[string]string{"new_password": "chosen-by-bob-1"}); p.Status != http.StatusGone {
		t.Errorf("expired while the form was open: %d", p.Status)
	}
	gone("expired", short)
	admin = signInAgain(t, s)
	deleted := resetLink(t, s, admin, bob, "")
	if p := administer(t, s, admin, http.MethodDelete, bob, "", ""); p.Status != http.StatusNoContent {
		t.Fatal(p.Body)
	}
	gone("of a person who is no more", deleted)
	gone("at another tenant's address", strings.Replace(resetLink(t, s, admin, alice, ""), s.Issuer, s.Issuer+"/t/system", 1))
}

// signInAgain signs the administrator in with the password of signInAdmin.
func signInAgain(t *testing.T, s *apptest.System) *apptest.Browser {
	t.Helper()
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/admin")
	b.Submit(map[string]string{"identifier": "admin@versola.local"})
	b.Submit(map[string]string{"password": adminPassword})
	return b
}

func TestReset_FormIsOfItsLinkAndBrowser(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	link := resetLink(t, s, admin, find(t, s, admin, "alice@"), "")
	other := resetLink(t, s, admin, find(t, s, admin, "bob@"), "")
	form := func(link string) string {
		t.Helper()
		p := apptest.NewBrowser(t).Open(link)
		m := regexp.MustCompile(`name="csrf" value="([^"]+)"`).FindStringSubmatch(p.Body)
		if m == nil {
			t.Fatalf("no form: %d %s", p.Status, p.Body)
		}
		return m[1]
	}
	mine, theirs := form(link), form(other)
	post := func(b *apptest.Browser, contentType, body string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Issuer+"/password/reset", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", contentType)
		return b.Do(r).Status
	}
	const urlencoded = "application/x-www-form-urlencoded"
	b := apptest.NewBrowser(t)
	b.Open(link)
	for what, k := range map[string]struct {
		browser           *apptest.Browser
		contentType, body string
		want              int
	}{
		"no cookie":       {apptest.NewBrowser(t), urlencoded, "csrf=" + mine + "&new_password=chosen-by-alice-1", http.StatusBadRequest},
		"no token":        {b, urlencoded, "new_password=chosen-by-alice-1", http.StatusForbidden},
		"another link's":  {b, urlencoded, "csrf=" + theirs + "&new_password=chosen-by-alice-1", http.StatusForbidden},
		"two passwords":   {b, urlencoded, "csrf=" + mine + "&new_password=chosen-by-alice-1&new_password=chosen-by-alice-2", http.StatusForbidden},
		"JSON":            {b, "application/json", `{"csrf":"` + mine + `","new_password":"chosen-by-alice-1"}`, http.StatusBadRequest},
		"a large form":    {b, urlencoded, "csrf=" + mine + "&new_password=" + strings.Repeat("a", 20<<10), http.StatusRequestEntityTooLarge},
		"NUL":             {b, urlencoded, "csrf=" + mine + "&new_password=%00", http.StatusUnprocessableEntity},
		"a long password": {b, urlencoded, "csrf=" + mine + "&new_password=" + strings.Repeat("a", 2000), http.StatusUnprocessableEntity},
	} {
		if got := post(k.browser, k.contentType, k.body); got != k.want {
			t.Errorf("%s: %d, want %d", what, got, k.want)
		}
	}
	for method, want := range map[string]int{http.MethodPut: http.StatusMethodNotAllowed, http.MethodDelete: http.StatusMethodNotAllowed} {
		r, err := http.NewRequestWithContext(t.Context(), method, s.Issuer+"/password/reset", nil)
		if err != nil {
			t.Fatal(err)
		}
		if p := b.Do(r); p.Status != want || p.Header.Get("Allow") == "" {
			t.Errorf("%s: %d", method, p.Status)
		}
	}
	if refusesPassword(t, s, "wonderland-demo-1") {
		t.Error("one of these set a password")
	}
	// Who posts on and on is told to wait.
	status := 0
	for range 30 {
		if status = post(b, urlencoded, "csrf="+mine+"&new_password=short"); status == http.StatusTooManyRequests {
			break
		}
	}
	if status != http.StatusTooManyRequests {
		t.Errorf("nothing counts: %d", status)
	}
}

func TestReset_OfSeveralAtOnceSetsOnePassword(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	link := resetLink(t, s, admin, find(t, s, admin, "alice@"), "")
	const parallel = 4
	browsers := make([]*apptest.Browser, parallel)
	for i := range browsers {
		browsers[i] = apptest.NewBrowser(t)
		browsers[i].Open(link)
	}
	var won atomic.Int32
	var wg sync.WaitGroup
	for i, b := range browsers {
		wg.Go(func() {
			if p := b.Submit(map[string]string{"new_password": "chosen-in-parallel-" + string(rune('a'+i))}); p.Status == http.StatusOK {
				won.Add(1)
			} else if p.Status != http.StatusGone {
				t.Errorf("%d %s", p.Status, p.Body)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of them set a password", won.Load())
	}

	t.Run("a double click is one use", func(t *testing.T) {
		link := resetLink(t, s, admin, find(t, s, admin, "bob@"), "")
		first := apptest.NewBrowser(t)
		first.Open(link)
		second := apptest.NewBrowser(t)
		second.Client.Jar = first.Client.Jar
		second.Last = first.Last
		for _, b := range []*apptest.Browser{first, second} {
			wg.Go(func() {
				if p := b.Submit(map[string]string{"new_password": "chosen-by-bob-1"}); p.Status != http.StatusOK && p.Status != http.StatusBadRequest {
					t.Errorf("%d %s", p.Status, p.Body)
				}
			})
		}
		wg.Wait()
	})
}

func TestReset_SendsALinkInThePersonsLanguageAndNotTooOften(t *testing.T) {
	s := apptest.Start(t, func(c *app.Config) { c.Log.Level = "info" })
	admin := signInAdmin(t, s)
	alice := find(t, s, admin, "alice@")
	if p := administer(t, s, admin, http.MethodPatch, alice, "application/merge-patch+json", `{"claims":{"locale":"ru-RU"}}`); p.Status != http.StatusOK {
		t.Fatal(p.Body)
	}
	p := administer(t, s, admin, http.MethodPost, alice+"/password-reset:send", "application/json", `{"channel":"email","expires_in":"20m"}`)
	if p.Status != http.StatusAccepted || !strings.Contains(p.Body, `"a***@example.com"`) || strings.Contains(p.Body, "/password/reset/") {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	sent := regexp.MustCompile(`Задайте новый пароль[^"]*?(http://localhost:\d+/password/reset/[A-Za-z0-9_-]{43})[^"]*20 мин`)
	apptest.Eventually(t, 10*time.Second, "the message", func() bool { return sent.MatchString(s.Logged()) })
	if p := reset(t, sent.FindStringSubmatch(s.Logged())[1], "chosen-by-alice-1"); p.Status != http.StatusOK {
		t.Errorf("%d %s", p.Status, p.Body)
	}
	signInByPassword(t, s, apptest.NewBrowser(t), "alice@example.com", "chosen-by-alice-1")

	for range 10 {
		if p = administer(t, s, admin, http.MethodPost, alice+"/password-reset:send", "application/json", ""); p.Status != http.StatusAccepted {
			break
		}
	}
	if p.Status != http.StatusTooManyRequests || p.Header.Get("Retry-After") == "" {
		t.Errorf("nothing counts: %d %s", p.Status, p.Body)
	}
	for body, want := range map[string]int{
		`{"channel":"phone"}`: http.StatusConflict, `{"channel":"pigeon"}`: http.StatusUnprocessableEntity, `{"expires_in":"1m"}`: http.StatusUnprocessableEntity,
		`{"expires_in":"48h"}`: http.StatusUnprocessableEntity, `{"expires_in":"99999999999h"}`: http.StatusUnprocessableEntity, `{"tenant":"system"}`: http.StatusUnprocessableEntity,
		`{"link":"x"}`: http.StatusUnprocessableEntity, `[]`: http.StatusUnprocessableEntity, `{`: http.StatusBadRequest, `{"tenant":"demo","tenant":"demo"}`: http.StatusUnprocessableEntity,
	} {
		if p := administer(t, s, admin, http.MethodPost, find(t, s, admin, "bob@")+"/password-reset:send", "application/json", body); p.Status != want {
			t.Errorf("%s: %d %s", body, p.Status, p.Body)
		}
	}
}

func TestBrowser_ResetLinkOpenedInAnotherBrowser(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	link := resetLink(t, s, admin, find(t, s, admin, "alice@"), "")
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(link), chromedp.WaitVisible(css("#new-password")))
	if where, err := chromedp.Run(tab, chromedp.Location()); err != nil || where != s.Issuer+"/password/reset" {
		t.Errorf("the token stays in the address: %s, %v", where, err)
	}
	picture(t, tab, "reset")
	do(t, tab, chromedp.SendKeys(css("#new-password"), "short"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#error")))
	picture(t, tab, "reset-short")
	do(t, tab, chromedp.SendKeys(css("#new-password"), "chosen-by-alice-1"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#reset-done")))
	picture(t, tab, "reset-done")
	do(t, tab, chromedp.Navigate(link), chromedp.WaitVisible(css("#request-id")))
	waitForText(t, tab, "This link cannot be used")
	picture(t, tab, "reset-spent")
	do(t, tab, chromedp.Navigate(s.Edge+"/login/demo"), chromedp.WaitVisible(css("#identifier")),
		chromedp.SendKeys(css("#identifier"), "alice@example.com"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#password")),
		chromedp.SendKeys(css("#password"), "chosen-by-alice-1"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#accounts")))
}
