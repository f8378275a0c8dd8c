package login_test

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/auth/session"
)

func TestForm_WithoutItsTokenIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.start("")
	action, good := b.form(page, "identifier")
	other := w.browser()
	_, foreign := other.form(other.start(""), "identifier")
	_, second := b.form(b.start(""), "identifier")
	change := func(f func(url.Values)) url.Values {
		v := url.Values{}
		for k, x := range good {
			v[k] = append([]string{}, x...)
		}
		v.Set("identifier", phone)
		f(v)
		return v
	}
	before := w.db.Statements()
	for name, form := range map[string]url.Values{
		"missing":                    change(func(v url.Values) { v.Del("csrf") }),
		"empty":                      change(func(v url.Values) { v.Set("csrf", "") }),
		"altered":                    change(func(v url.Values) { v.Set("csrf", "A"+v.Get("csrf")[1:]) }),
		"not base64":                 change(func(v url.Values) { v.Set("csrf", "\xff\x00%") }),
		"of another browser":         change(func(v url.Values) { v.Set("csrf", foreign.Get("csrf")) }),
		"of another tab":             change(func(v url.Values) { v.Set("csrf", second.Get("csrf")) }),
		"sent twice":                 change(func(v url.Values) { v.Add("csrf", v.Get("csrf")) }),
		"identifier sent twice":      change(func(v url.Values) { v.Add("identifier", email) }),
		"without a version":          change(func(v url.Values) { v.Del("v") }),
		"with a negative version":    change(func(v url.Values) { v.Set("v", "-1") }),
		"with a version that is not": change(func(v url.Values) { v.Set("v", "1e9") }),
		"with a huge version":        change(func(v url.Values) { v.Set("v", strings.Repeat("9", 400)) }),
	} {
		if r := b.post(action, form); r.status != http.StatusForbidden || !strings.Contains(r.body, `id="request-id"`) {
			t.Errorf("%s: status %d", name, r.status)
		}
	}
	if got := w.db.Statements() - before; got != 0 {
		t.Errorf("refused forms took %d statements", got)
	}
	if r := b.follow(b.post(action, change(func(url.Values) {}))); !strings.HasSuffix(r.url, "/otp") {
		t.Errorf("the good form: at %s", r.url)
	}
}

func TestForm_MalformedBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	action, good := b.form(b.start(""), "identifier")
	good.Set("identifier", phone)
	send := func(contentType, body string) response {
		req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, w.server.URL+action, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if contentType != "" {
			req.Header.Set("Content-Type", contentType)
		}
		return b.do(req)
	}
	const form = "application/x-www-form-urlencoded"
	for name, r := range map[string]response{
		"no content type": send("", good.Encode()),
		"json":            send("application/json", `{"identifier":"x"}`),
		"multipart":       send("multipart/form-data; boundary=x", "--x--"),
		"bad escape":      send(form, good.Encode()+"&x=%zz"),
		"empty":           send(form, ""),
		"garbage":         send(form, "\x00\xff\xfe"),
		"too large":       send(form, good.Encode()+"&x="+strings.Repeat("x", 20<<10)),
		"far too large":   send(form, strings.Repeat("x", 1<<20)),
	} {
		if r.status < 400 || r.status >= 500 || !strings.Contains(r.header.Get("Content-Type"), "text/html") && name != "far too large" {
			t.Errorf("%s: status %d, %s", name, r.status, r.header.Get("Content-Type"))
		}
	}
}

func TestIdentifier_BadInputIsExplainedAndShownAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	for _, typed := range []string{"", " ", "87000000001", "nobody", "a@", "\x00\xff", "<script>alert(1)</script>", "+7700000000'; DROP TABLE auth.users;--",
		strings.Repeat("9", 5000), "a@b\r\nBcc: c@d.e", "\u202e+77000000001", "ж@" + strings.Repeat("ж", 300)} {
		page := b.follow(b.submit(b.start(""), "identifier", "identifier", typed))
		if page.status != http.StatusOK || !strings.HasSuffix(page.url, "/identifier") || errorOf(page) == "" || !strings.Contains(page.body, `aria-invalid="true"`) {
			t.Errorf("%.30q: %d %s %q", typed, page.status, page.url, errorOf(page))
		}
		if strings.Contains(page.body, "<script>alert") {
			t.Errorf("%q is not escaped", typed)
		}
	}
	page := b.follow(b.submit(b.start("?client_id=web"), "identifier", "identifier", "not a number"))
	if _, form := b.form(page, "identifier"); form.Get("identifier") != "not a number" {
		t.Errorf("what was typed is lost: %q", form.Get("identifier"))
	}
	page = b.follow(b.get("/t/other/authorize"))
	page = b.follow(b.submit(page, "identifier", "identifier", "+15551234567"))
	if errorOf(page) != "Phone numbers of this country cannot be used here." {
		t.Errorf("a foreign prefix: %q at %s", errorOf(page), page.url)
	}
}

func TestConversation_OfAnotherBrowserIsClosed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	_, form := b.form(page, "code")
	form.Set("code", code)
	thief := w.browser()
	thief.start("")
	r := thief.get(page.url)
	if r.status != http.StatusForbidden || strings.Contains(r.body, "7700") {
		t.Errorf("GET: %d\n%s", r.status, r.body)
	}
	if r := thief.post(page.url, form); r.status != http.StatusForbidden || r.location != "" {
		t.Errorf("POST: %d %s", r.status, r.location)
	}
	naked := w.browser()
	if r := naked.get(page.url); r.status != http.StatusBadRequest || !strings.Contains(r.body, "Cookies are needed") || strings.Contains(r.body, "7700") {
		t.Errorf("without cookies: %d", r.status)
	}
	if r := naked.post(page.url, form); r.status != http.StatusBadRequest || !strings.Contains(r.body, "Cookies are needed") {
		t.Errorf("POST without cookies: %d", r.status)
	}
	// Under another tenant's address there is nothing.
	if r := b.get("/t/sister" + strings.TrimPrefix(page.url, w.server.URL)); r.status != http.StatusNotFound {
		t.Errorf("under another tenant: %d", r.status)
	}
	w.codeOf(b.submit(page, "code", "code", code))
}

func TestConversation_UnknownHandles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	b.start("")
	for _, h := range []string{"x", strings.Repeat("a", 24), strings.Repeat("a", 5000), "%00", "%ff%fe", "..%2f..%2fetc", "'%20or%201=1"} {
		for _, step := range []string{"", "/identifier", "/otp", "/password", "/password/change"} {
			if r := b.get("/login/" + h + step); r.status != http.StatusNotFound {
				t.Errorf("%.20s%s: %d", h, step, r.status)
			}
		}
	}
}

func TestConversation_TabsAreIndependent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	first := b.identify("", phone)
	cookie := b.cookie("versola_auth_browser")
	second := b.identify("", email)
	if b.cookie("versola_auth_browser") != cookie {
		t.Error("the second tab replaced the browser's cookie")
	}
	w.codeOf(b.submit(second, "password", "password", pass))
	w.codeOf(b.submit(first, "code", "code", code))
	var tabs []response
	for range 20 {
		tabs = append(tabs, b.start(""))
	}
	u, _ := url.Parse(w.server.URL)
	if n := len(b.Jar.Cookies(u)); n != 2 {
		t.Errorf("%d cookies after twenty tabs", n)
	}
	if page := b.follow(b.submit(tabs[0], "identifier", "identifier", email)); !strings.HasSuffix(page.url, "/password") {
		t.Errorf("the first tab: %s", page.url)
	}
}

func TestConversation_BackButtonCorrectsTheIdentifier(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	first := b.start("")
	page := b.follow(b.submit(first, "identifier", "identifier", "+77000000005"))
	if !strings.HasSuffix(page.url, "/otp") {
		t.Fatal(page.url)
	}
	// The page as the browser's cache still shows it, with an old version.
	page = b.follow(b.submit(first, "identifier", "identifier", phone))
	if !strings.Contains(page.body, "77000000001") {
		t.Fatalf("the old number stayed: %s", page.body)
	}
	// The page freshly loaded, and the same number: the code stays good.
	back := b.get(strings.TrimSuffix(page.url, "otp") + "identifier")
	page = b.follow(b.submit(back, "identifier", "identifier", phone))
	if n, _ := w.engineMessages(t); n != 1 {
		t.Errorf("%d messages", n)
	}
	w.codeOf(b.submit(page, "code", "code", code))
	if r := b.get(page.url); r.status != http.StatusGone {
		t.Errorf("back after the end: %d", r.status)
	}
}

func TestConversation_StepsOutOfOrderLeadToWhatIsNext(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.start("")
	root := strings.TrimSuffix(page.url, "/identifier")
	for _, step := range []string{"", "/otp", "/password", "/password/change"} {
		if r := b.follow(b.get(root + step)); r.url != page.url {
			t.Errorf("GET %s leads to %s", step, r.url)
		}
	}
	_, form := b.form(page, "identifier")
	form.Set("code", code)
	form.Set("password", pass)
	form.Set("new_password", "a new password")
	form.Set("factor", "otp")
	for _, step := range []string{"/otp", "/password", "/password/change", "/choose"} {
		if r := b.follow(b.post(root+step, form)); r.url != page.url {
			t.Errorf("POST %s leads to %d %s", step, r.status, r.url)
		}
	}
	page = b.follow(b.submit(page, "identifier", "identifier", phone))
	// Not proven yet: a new password cannot be set, whatever the form says.
	_, form = b.form(page, "code")
	form.Set("new_password", "a new password")
	if r := b.follow(b.post(root+"/password/change", form)); r.url != page.url {
		t.Errorf("password/change leads to %s", r.url)
	}
	form.Set("password", pass)
	if r := b.follow(b.post(root+"/password", form)); r.url != page.url {
		t.Errorf("a factor that was not chosen leads to %s", r.url)
	}
	for _, name := range []string{"", "totp", "../otp", strings.Repeat("x", 3000)} {
		form.Set("factor", name)
		if r := b.follow(b.post(root+"/choose", form)); r.url != page.url {
			t.Errorf("factor %.10q leads to %s", name, r.url)
		}
	}
	w.codeOf(b.submit(page, "code", "code", code))
}

func TestConversation_ExpiredStartsTheRequestAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	w.clock.Advance(16 * time.Minute)
	for name, r := range map[string]response{"GET": b.get(page.url), "POST": b.submit(page, "code", "code", code)} {
		again := b.follow(r)
		if again.url == page.url || !strings.HasSuffix(again.url, "/identifier") || errorOf(again) == "" {
			t.Fatalf("%s: %d %s %q", name, again.status, again.url, errorOf(again))
		}
		w.codeOf(b.submit(b.follow(b.submit(again, "identifier", "identifier", phone)), "code", "code", code))
	}
	if r := w.browser().get(page.url); r.status != http.StatusBadRequest {
		t.Errorf("another browser restarts it: %d", r.status)
	}
}

func TestFinish_DoubleClickIsOneSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, k := range []struct{ identifier, element, field, proof string }{
		{phone, "code", "code", code}, {email, "password", "password", pass}, {temporary, "new-password", "new_password", "my own words"},
	} {
		b := w.browser()
		page := b.identify("", k.identifier)
		if k.identifier == temporary {
			page = b.follow(b.submit(page, "password", "password", tempPass))
		}
		action, form := b.form(page, k.element)
		form.Set(k.field, k.proof)
		answers := make([]response, 2)
		var wg sync.WaitGroup
		for i := range answers {
			wg.Go(func() { answers[i] = b.post(action, form) })
		}
		wg.Wait()
		var codes, sessions int
		if err := w.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM auth.authorization_code WHERE user_id = $1),
			(SELECT count(*) FROM auth.session WHERE user_id = $1)`, w.users[k.identifier]).Scan(&codes, &sessions); err != nil {
			t.Fatal(err)
		}
		if codes != 1 || sessions != 1 {
			t.Errorf("%s: %d codes, %d sessions", k.element, codes, sessions)
		}
		w.codeOf(answers[0])
		if answers[0].location != answers[1].location || b.sessionOf("demo") == nil {
			t.Errorf("%s: %s and %s", k.element, answers[0].location, answers[1].location)
		}
	}
}

func TestProve_DoubleClickOnAWrongProofShowsTheError(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", email)
	action, form := b.form(page, "password")
	form.Set("password", "wrong-password")
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if r := b.follow(b.post(action, form)); errorOf(r) == "" {
				t.Errorf("at %s without the error", r.url)
			}
		})
	}
	wg.Wait()
	if r := b.follow(b.submit(b.get(page.url), "password", "password", pass)); r.status != http.StatusSeeOther {
		t.Errorf("one click counted twice: %d %s", r.status, r.url)
	}
}

func TestFinish_SecondClickGetsTheSameAnswerOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	first := b.submit(page, "code", "code", code)
	w.codeOf(first)
	// The browser threw the first answer away, with its cookie.
	b.setCookie(session.CookieBase, "")
	second := b.submit(page, "code", "code", code)
	if second.location != first.location || b.sessionOf("demo") == nil {
		t.Errorf("first %s, second %d %s", first.location, second.status, second.location)
	}
	if third := b.submit(page, "code", "code", code); third.status != http.StatusGone {
		t.Errorf("third: %d %s", third.status, third.location)
	}

	// Who does not know the proof gets nothing, and has one guess.
	page = b.identify("", phone)
	w.codeOf(b.submit(page, "code", "code", code))
	if r := b.submit(page, "code", "code", "000000"); r.status != http.StatusGone {
		t.Errorf("a wrong proof: %d %s", r.status, r.location)
	}
	if r := b.submit(page, "code", "code", code); r.status != http.StatusGone {
		t.Errorf("after a wrong proof: %d %s", r.status, r.location)
	}

	// Too late.
	page = b.identify("", phone)
	w.codeOf(b.submit(page, "code", "code", code))
	w.clock.Advance(16 * time.Second)
	if r := b.submit(page, "code", "code", code); r.status != http.StatusGone {
		t.Errorf("too late: %d %s", r.status, r.location)
	}
}

func TestStart_PlantedCookiesAreWorthless(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	attacker, victim := w.browser(), w.browser()
	w.codeOf(attacker.signIn(email, pass))
	planted := attacker.cookie(session.CookieBase)
	victim.setCookie(session.CookieBase, planted)
	w.codeOf(victim.signIn(phone, code))
	if s := attacker.sessionOf("demo"); s != nil {
		t.Errorf("the planted cookie names a session of %s", s.UserID)
	}
	if s := victim.sessionOf("demo"); s == nil || s.UserID != w.users[phone] {
		t.Errorf("the victim's session: %+v", s)
	}
}

func TestStart_RefusesWhatCannotBeStored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, state := range []string{"a\x00b", "\xff\xfe"} {
		w.request = func(r *authorization.Request) { r.State = state }
		if r := w.browser().get("/authorize"); r.status != http.StatusSeeOther || !strings.Contains(r.location, "error=invalid_request") {
			t.Errorf("%q: %d %s", state, r.status, r.location)
		}
	}
	w.request = func(r *authorization.Request) { r.LoginHint, r.UILocales = "\x00\xff", []string{"\xff"} }
	if r := w.browser().start(""); r.status != http.StatusOK {
		t.Errorf("login_hint: %d", r.status)
	}
}

func TestPages_SecurityHeaders(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", phone)
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "X-Frame-Options": "DENY",
		"Content-Type": "text/html; charset=UTF-8",
	} {
		if got := page.header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if csp := page.header.Get("Content-Security-Policy"); !strings.Contains(csp, "form-action 'self' http: https:") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	r := b.get("/authorize")
	if cc := r.header.Get("Cache-Control"); cc != "no-store" {
		t.Errorf("a redirect's Cache-Control is %q", cc)
	}
}

func TestRoutes_OtherMethodsAreNotAllowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.start("")
	root := strings.TrimSuffix(page.url, "/identifier")
	for _, k := range []struct{ method, step, allow string }{
		{http.MethodPut, "/otp", "GET, POST"}, {http.MethodDelete, "/identifier", "GET, POST"}, {http.MethodGet, "/choose", "POST"},
		{http.MethodGet, "/cancel", "POST"}, {http.MethodPost, "", "GET"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), k.method, root+k.step, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r := b.do(req); r.status != http.StatusMethodNotAllowed || r.header.Get("Allow") != k.allow || !strings.Contains(r.body, "request-id") {
			t.Errorf("%s %s: %d, Allow %q", k.method, k.step, r.status, r.header.Get("Allow"))
		}
	}
}

func TestCookies_OnHTTPSAreBoundToTheHost(t *testing.T) {
	t.Parallel()
	w := newWorldAt(t, "https://id.example")
	r := w.browser().get("/authorize")
	cookie := r.header.Get("Set-Cookie")
	for _, want := range []string{"__Host-versola_auth_browser=", "; Path=/", "; HttpOnly", "; Secure", "; SameSite=Lax"} {
		if !strings.Contains(cookie, want) {
			t.Errorf("cookie %q lacks %q", cookie, want)
		}
	}
	if strings.Contains(cookie, "Domain") {
		t.Errorf("cookie %q has a domain", cookie)
	}
}

func TestPages_OutOfTheirTurnSayNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	// People of one directory do not exist in another.
	page := b.follow(b.get("/t/other/authorize"))
	page = b.follow(b.submit(page, "identifier", "identifier", email))
	if !strings.Contains(page.url, "/t/other/login/") || !strings.HasSuffix(page.url, "/password") {
		t.Fatalf("at %s", page.url)
	}
	if page = b.follow(b.submit(page, "password", "password", pass)); errorOf(page) == "" {
		t.Errorf("signed in to another directory: %s", page.url)
	}
	// Tenants of one directory share the limits and the sign-in.
	page = b.follow(b.get("/t/sister/authorize"))
	page = b.follow(b.submit(page, "identifier", "identifier", email))
	res := b.submit(page, "password", "password", pass)
	w.codeOf(res)
	if !strings.Contains(res.location, url.QueryEscape("http://127.0.0.1/t/sister")) {
		t.Errorf("issuer in %s", res.location)
	}
	if b.sessionOf("demo") == nil || b.sessionOf("other") != nil {
		t.Error("the session is not the directory's")
	}
}
