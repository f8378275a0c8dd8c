package login_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/auth/session"
	"versola/platform/secret"
)

func TestLogin_ByPhoneAndCode(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", "+7 (700) 000-00-01")
	if !strings.Contains(page.url, "/otp") || !strings.Contains(page.body, "<bdi>&#43;77000000001</bdi>") {
		t.Fatalf("%s\n%s", page.url, page.body)
	}
	res := b.submit(page, "code", "code", "123 456")
	got := w.codeOf(res)
	u, _ := url.Parse(res.location)
	if u.Query().Get("state") != "st" || u.Query().Get("iss") != "http://127.0.0.1" {
		t.Errorf("answer %s", res.location)
	}
	s := b.sessionOf("demo")
	if s == nil || s.UserID != w.users[phone] || len(s.AMR) != 1 || s.AMR[0] != "otp" || !s.AuthTime.Equal(w.clock.Now()) {
		t.Fatalf("session %+v", s)
	}
	var client, challenge, scope, nonce string
	var validUntil time.Time
	err := w.db.QueryRow(t.Context(), `SELECT client_id, code_challenge, scope, nonce, valid_until FROM auth.authorization_code
		WHERE code_hash = $1 AND user_id = $2 AND session_id = $3`, authorization.CodeHash(got), s.UserID, s.ID).Scan(&client, &challenge, &scope, &nonce, &validUntil)
	if err != nil || client != "web" || challenge != "ch" || scope != "openid" || nonce != "n" || validUntil.Sub(w.clock.Now()) > time.Minute {
		t.Errorf("code row: %v %s %s %s %s %s", err, client, challenge, scope, nonce, validUntil)
	}
	if n, err := w.engineMessages(t); err != nil || n != 1 {
		t.Errorf("%d messages queued, %v", n, err)
	}
}

func (w *world) engineMessages(t *testing.T) (n int, err error) {
	t.Helper()
	err = w.db.QueryRow(t.Context(), "SELECT count(*) FROM auth.message").Scan(&n)
	return n, err
}

func TestLogin_ByEmailAndPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	res := b.signIn("Alice@Example.com", pass)
	w.codeOf(res)
	if s := b.sessionOf("demo"); s == nil || s.UserID != w.users[email] || s.AMR[0] != "pwd" {
		t.Fatalf("session %+v", s)
	}
}

func TestLogin_ChoosesBetweenCodeAndPassword(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", email)
	page = b.follow(b.submit(page, "use-code"))
	if !strings.HasSuffix(page.url, "/otp") {
		t.Fatalf("at %s", page.url)
	}
	page = b.follow(b.submit(page, "use-password"))
	if !strings.HasSuffix(page.url, "/password") {
		t.Fatalf("at %s", page.url)
	}
	page = b.follow(b.submit(page, "use-code"))
	w.codeOf(b.submit(page, "code", "code", code))
	if n, _ := w.engineMessages(t); n != 1 {
		t.Errorf("going back and forth sent %d codes", n)
	}
}

func TestLogin_FlowOfTheClientDecides(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	if page := b.identify("?client_id=phone-only", email); errorOf(page) == "" || !strings.Contains(page.body, `type="tel"`) {
		t.Errorf("phone-only took an e-mail: %s", page.url)
	}
	if page := b.identify("?client_id=email-only", phone); errorOf(page) == "" || strings.Contains(page.body, "hint") {
		t.Errorf("email-only took a phone number: %s", page.url)
	}
	if page := b.identify("?client_id=email-only", email); !strings.HasSuffix(page.url, "/password") || strings.Contains(page.body, "use-code") {
		t.Errorf("email-only: %s", page.url)
	}
	if page := b.identify("?client_id=code-first", email); !strings.HasSuffix(page.url, "/otp") || !strings.Contains(page.body, "use-password") {
		t.Errorf("code-first: %s", page.url)
	}
	w.request = func(r *authorization.Request) { r.LoginHint = `"><script>` + email }
	if page := b.start(""); strings.Contains(page.body, "<script>a") || !strings.Contains(page.body, `value="&#34;&gt;&lt;script&gt;alice@example.com"`) {
		t.Errorf("login_hint: %s", page.body)
	}
}

func TestLogin_TemporaryPasswordForcesANewOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.follow(b.submit(b.identify("", temporary), "password", "password", tempPass))
	if !strings.HasSuffix(page.url, "/password/change") {
		t.Fatalf("at %s\n%s", page.url, page.body)
	}
	if b.cookie(session.CookieBase) != "" {
		t.Fatal("signed in before the password was changed")
	}
	// Going elsewhere leads back.
	if back := b.follow(b.get(strings.TrimSuffix(page.url, "/change"))); !strings.HasSuffix(back.url, "/password/change") {
		t.Errorf("password page: at %s", back.url)
	}
	for _, bad := range []string{"", "short", strings.Repeat("x", 300), tempPass} {
		page = b.follow(b.submit(page, "new-password", "new_password", bad))
		if !strings.HasSuffix(page.url, "/password/change") || errorOf(page) == "" {
			t.Fatalf("%q was taken: %s", bad, page.url)
		}
	}
	w.codeOf(b.submit(page, "new-password", "new_password", "my own words"))
	if got := errorOf(w.browser().tryPassword(temporary, tempPass)); got == "" {
		t.Error("the temporary password still works")
	}
	w.codeOf(w.browser().signIn(temporary, "my own words"))
}

func TestLogin_ProofOfAPasswordThatWasReplacedHoldsNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	prove := func() (*browser, response) {
		b := w.browser()
		page := b.follow(b.submit(b.identify("", temporary), "password", "password", tempPass))
		if !strings.HasSuffix(page.url, "/password/change") {
			t.Fatalf("at %s\n%s", page.url, page.body)
		}
		return b, page
	}
	first, page := prove()
	second, stale := prove()
	third, older := prove()
	refused := func(b *browser, page response) {
		t.Helper()
		if at := b.follow(b.submit(page, "new-password", "new_password", "somebody else's words")); !strings.HasSuffix(at.url, "/password") || errorOf(at) == "" {
			t.Errorf("at %s: %s", at.url, at.body)
		}
		if got := errorOf(w.browser().tryPassword(temporary, "somebody else's words")); got == "" {
			t.Error("an old proof set the password")
		}
	}
	// Another temporary password in its place.
	if _, err := w.db.Exec(t.Context(), `UPDATE auth.password SET changed_at = changed_at + interval '1 second' WHERE temporary`); err != nil {
		t.Fatal(err)
	}
	refused(third, older)
	if _, err := w.db.Exec(t.Context(), `UPDATE auth.password SET changed_at = changed_at - interval '1 second' WHERE temporary`); err != nil {
		t.Fatal(err)
	}
	w.codeOf(first.submit(page, "new-password", "new_password", "my own words"))
	refused(second, stale)
	w.codeOf(w.browser().signIn(temporary, "my own words"))
	// Who proves anew goes on in the same conversation.
	again := second.follow(second.get(strings.TrimSuffix(stale.url, "/change")))
	w.codeOf(second.submit(again, "password", "password", "my own words"))
}

func (b *browser) tryPassword(identifier, proof string) response {
	return b.follow(b.submit(b.identify("", identifier), "password", "password", proof))
}

func TestLogin_TemporaryPasswordDoesNotLockOutThePermanentOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.codeOf(w.browser().signIn(temporary, "the-permanent-one"))
	w.codeOf(w.browser().signIn(temporary, "the-permanent-one"))
}

func TestLogin_CancelTellsTheClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	res := b.submit(page, "cancel")
	u, _ := url.Parse(res.location)
	if res.status != http.StatusSeeOther || u.Host != "app.test" || u.Query().Get("error") != "access_denied" || u.Query().Get("state") != "st" || u.Query().Get("iss") == "" {
		t.Errorf("%d %s", res.status, res.location)
	}
	if again := b.submit(page, "code", "code", code); again.status != http.StatusGone {
		t.Errorf("after cancelling: %d %s", again.status, again.location)
	}
}

func TestLogin_EveryStepKeepsItsStatementBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	count := func(name string, budget int64, f func() response) response {
		t.Helper()
		before := w.db.Statements()
		r := f()
		if got := w.db.Statements() - before; got > budget {
			t.Errorf("%s took %d statements, the budget is %d", name, got, budget)
		}
		return r
	}
	r := count("start", 1, func() response { return b.get("/authorize") })
	page := count("show identifier", 1, func() response { return b.get(r.location) })
	r = count("identify", 2, func() response { return b.submit(page, "identifier", "identifier", email) })
	page = count("show password", 1, func() response { return b.get(r.location) })
	r = count("wrong password", 2, func() response { return b.submit(page, "password", "password", "wrong-password") })
	page = b.follow(r)
	r = count("choose", 2, func() response { return b.submit(page, "use-code") })
	page = count("show otp", 1, func() response { return b.get(r.location) })
	r = count("wrong code", 2, func() response { return b.submit(page, "code", "code", "000000") })
	page = b.follow(r)
	count("resend too early", 1, func() response { return b.submit(page, "resend") })
	w.codeOf(count("right code, finish", 2, func() response { return b.submit(page, "code", "code", code) }))
	count("read session", 1, func() response { b.sessionOf("demo"); return response{} })
	w.clock.Advance(2 * time.Minute)
	count("read and touch session", 1, func() response { b.sessionOf("demo"); return response{} })
	b = w.browser() // without anybody's session
	page = b.identify("", temporary)
	r = count("temporary password", 2, func() response { return b.submit(page, "password", "password", tempPass) })
	page = b.follow(r)
	w.codeOf(count("change, finish", 2, func() response { return b.submit(page, "new-password", "new_password", "my own words") }))
}

func TestSession_SecretIsNewAfterEveryAuthentication(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	w.codeOf(b.signIn(phone, code))
	first := b.cookie(session.CookieBase)
	s := b.sessionOf("demo")
	w.clock.Advance(time.Hour)
	w.codeOf(b.signIn(phone, code))
	second := b.sessionOf("demo")
	if b.cookie(session.CookieBase) == first || second.ID != s.ID || !second.AuthTime.After(s.AuthTime) {
		t.Errorf("before %+v, after %+v", s, second)
	}
	stale := w.browser()
	stale.setCookie(session.CookieBase, first)
	if got := stale.sessionOf("demo"); got != nil {
		t.Error("the cookie from before the authentication still works")
	}
}

func TestSession_OfSomebodyElseIsEnded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	w.codeOf(b.signIn(phone, code))
	first, cookie := b.sessionOf("demo"), b.cookie(session.CookieBase)
	w.codeOf(b.signIn(email, pass))
	if s := b.sessionOf("demo"); s.UserID != w.users[email] {
		t.Errorf("session of %s", s.UserID)
	}
	if len(w.ender.ended) != 1 || w.ender.ended[0] != first.ID {
		t.Errorf("ended %v, want %s", w.ender.ended, first.ID)
	}
	b.setCookie(session.CookieBase, cookie)
	if b.sessionOf("demo") != nil {
		t.Error("the session of who was signed in before lives on")
	}
	// A forged cookie that names a session without its secret ends nothing.
	c, _ := session.ParseCookie(cookie)
	c.Secret = make([]byte, 32)
	w.codeOf(w.browser().signIn(phone, code))
	forger := w.browser()
	forger.setCookie(session.CookieBase, c.String())
	w.codeOf(forger.signIn(email, pass))
	if len(w.ender.ended) != 1 {
		t.Errorf("a forged cookie ended %v", w.ender.ended)
	}
}

func TestSession_ReadFindsOnlyTheLiving(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	w.codeOf(b.signIn(phone, code))
	good := b.cookie(session.CookieBase)
	if b.sessionOf("sister") == nil {
		t.Error("a tenant of the same directory does not know the session")
	}
	if b.sessionOf("other") != nil {
		t.Error("a tenant of another directory knows the session")
	}
	c, _ := session.ParseCookie(good)
	forged := c
	forged.Secret = secret.Hash("x")
	for name, value := range map[string]string{
		"empty": "", "garbage": "\xff\xfe", "short": good[:50], "long": good + "A", "wrong secret": forged.String(), "other alphabet": strings.Repeat("+", 86),
	} {
		b.setCookie(session.CookieBase, value)
		tn, _ := w.catalog.Current().Tenant("demo")
		if s, err := w.store.Read(t.Context(), tn, value); s != nil || err != nil {
			t.Errorf("%s: %v, %v", name, s, err)
		}
	}
	b.setCookie(session.CookieBase, good)
	// Used now and then it lives to its absolute end.
	for range 13 {
		w.clock.Advance(11 * time.Hour)
		if b.sessionOf("demo") == nil {
			t.Fatal("idle too early")
		}
	}
	w.clock.Advance(13 * time.Hour)
	if b.sessionOf("demo") != nil {
		t.Error("an idle session lives")
	}
	w.codeOf(b.signIn(phone, code))
	for range 15 {
		w.clock.Advance(11 * time.Hour)
		b.sessionOf("demo")
	}
	w.clock.Advance(4 * time.Hour)
	if b.sessionOf("demo") != nil {
		t.Error("a session lives beyond its absolute end")
	}
	w.codeOf(b.signIn(phone, code))
	if _, err := w.db.Exec(t.Context(), "UPDATE auth.users SET status = 'disabled' WHERE id = $1", w.users[phone]); err != nil {
		t.Fatal(err)
	}
	if b.sessionOf("demo") != nil {
		t.Error("a disabled person's session lives")
	}
}

func TestLogin_SubjectOfTheHintMustSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.request = func(r *authorization.Request) { r.Subject = w.users[phone].String() }
	b := w.browser()
	res := b.signIn(email, pass)
	if !strings.Contains(res.location, "error=login_required") || b.cookie(session.CookieBase) != "" {
		t.Errorf("%d %s", res.status, res.location)
	}
	w.codeOf(b.signIn(phone, code))
}
