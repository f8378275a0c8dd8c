package edge_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/platform/id"
)

func TestLogout_EndsTheSessionOnEveryEdgeAndGoesToAuth(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two, b := w.edge(), w.edge(), newBrowser(t)
	b.signIn(w, one)
	cookie := b.cookies[sessionCookie]
	thief := &browser{t, map[string]string{sessionCookie: cookie}}
	thief.get(one.URL + accounts).reached(t)
	thief.get(two.URL + accounts).reached(t)
	res := b.get(one.URL+"/logout/demo", "Sec-Fetch-Site", "same-origin")
	to, err := url.Parse(res.Header.Get("Location"))
	must(t, err)
	if res.StatusCode != http.StatusSeeOther || to.Scheme+"://"+to.Host+to.Path != issuer+"/logout" {
		t.Fatalf("%d to %q", res.StatusCode, to)
	}
	q := to.Query()
	if q.Get("client_id") != "web" || q.Get("post_logout_redirect_uri") != publicURL+"/bye" || strings.Count(q.Get("id_token_hint"), ".") != 2 || q.Get("state") == "" {
		t.Errorf("asked auth %v", q)
	}
	if _, ok := b.cookies[sessionCookie]; ok {
		t.Error("the cookie is still there")
	}
	if res := thief.get(one.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the very next call on the same edge: %d", res.StatusCode)
	}
	eventually(t, "the other edge to drop the session", func() bool {
		thief.cookies[sessionCookie] = cookie
		return thief.get(two.URL+accounts).StatusCode == http.StatusUnauthorized
	})
	// Once more is no error.
	if res := b.get(one.URL + "/logout/demo"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("again: %d", res.StatusCode)
	}
}

func TestLogout_AnotherSiteHasToBeConfirmed(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		method  string
		headers []string
		ends    bool
	}{
		"own page":                 {"GET", []string{"Sec-Fetch-Site", "same-origin"}, true},
		"typed":                    {"GET", []string{"Sec-Fetch-Site", "none"}, true},
		"sibling site link":        {"GET", []string{"Sec-Fetch-Site", "same-site"}, true},
		"no headers":               {"GET", nil, true},
		"own referer":              {"GET", []string{"Referer", publicURL + "/app"}, true},
		"own form":                 {"POST", []string{"Sec-Fetch-Site", "same-origin", "Origin", publicURL}, true},
		"cross-site":               {"GET", []string{"Sec-Fetch-Site", "cross-site"}, false},
		"foreign referer":          {"GET", []string{"Referer", "http://evil.test/"}, false},
		"referer that looks alike": {"GET", []string{"Referer", publicURL + ".evil.test/"}, false},
		"foreign form":             {"POST", []string{"Origin", "http://evil.test"}, false},
		"null origin":              {"POST", []string{"Origin", "null"}, false},
		"page without referrer":    {"POST", []string{"Origin", "null", "Sec-Fetch-Site", "same-origin"}, true},
		"null and cross-site":      {"POST", []string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, false},
		"sibling site form":        {"POST", []string{"Sec-Fetch-Site", "same-site"}, false},
		"stated twice":             {"GET", []string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e, b := w.edge(), newBrowser(t)
			b.signIn(w, e)
			res := b.do(c.method, e.URL+"/logout/demo", nil, c.headers...)
			_, alive := b.cookies[sessionCookie]
			if alive == c.ends {
				t.Fatalf("%d: alive is %t", res.StatusCode, alive)
			}
			if !c.ends && (res.StatusCode != http.StatusOK || !strings.Contains(res.body, `method="post" action="/logout/demo"`)) {
				t.Errorf("no confirmation: %d %s", res.StatusCode, res.body)
			}
		})
	}
}

// logoutToken is a valid one for the session sid-1, altered by change.
func (w *world) logoutToken(typ string, change func(map[string]any)) string {
	now := w.clock.Now().Unix()
	c := map[string]any{"iss": issuer, "aud": "web", "iat": now, "exp": now + 120, "jti": id.NewHandle(zero{}), "sid": "sid-1", "sub": subject,
		"events": map[string]any{"http://schemas.openid.net/event/backchannel-logout": map[string]any{}}}
	if change != nil {
		change(c)
	}
	w.auth.mu.Lock()
	defer w.auth.mu.Unlock()
	return w.auth.sign(typ, c)
}

// head is a token without its signature, tail the signature.
func head(token string) string { return token[:strings.LastIndexByte(token, '.')] }
func tail(token string) string { return token[strings.LastIndexByte(token, '.'):] }

// zero is a reader of zeros: handles that repeat.
type zero struct{}

func (zero) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func (b *browser) backchannel(e *running, token string) *response {
	b.t.Helper()
	return b.do(http.MethodPost, e.URL+"/logout/backchannel", strings.NewReader(url.Values{"logout_token": {token}}.Encode()),
		"Content-Type", "application/x-www-form-urlencoded")
}

func TestBackChannel_EndsSessionsOnEveryEdge(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(map[string]any){
		"by sid and sub": nil,
		"by sid":         func(c map[string]any) { delete(c, "sub") },
		"by sub":         func(c map[string]any) { delete(c, "sid") },
		"aud array":      func(c map[string]any) { c["aud"] = []string{"web"} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			one, two, b, auth := w.edge(), w.edge(), newBrowser(t), newBrowser(t)
			b.signIn(w, one)
			b.get(one.URL + accounts).reached(t)
			b.get(two.URL + accounts).reached(t)
			token := w.logoutToken("logout+jwt", change)
			if res := auth.backchannel(one, token); res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "no-store" {
				t.Fatalf("%d %s", res.StatusCode, res.body)
			}
			cookie := b.cookies[sessionCookie]
			if res := b.get(one.URL + accounts); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("the same edge: %d", res.StatusCode)
			}
			eventually(t, "the other edge to drop the session", func() bool {
				b.cookies[sessionCookie] = cookie
				return b.get(two.URL+accounts).StatusCode == http.StatusUnauthorized
			})
			if res := auth.backchannel(two, token); res.StatusCode != http.StatusBadRequest {
				t.Errorf("replay: %d", res.StatusCode)
			}
		})
	}
}

func TestBackChannel_RefusedTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b, auth := w.edge(), newBrowser(t), newBrowser(t)
	b.signIn(w, e)
	const event = "http://schemas.openid.net/event/backchannel-logout"
	tokens := map[string]string{
		"access token":    w.auth.bearer(nil),
		"ID token type":   w.logoutToken("JWT", nil),
		"no type":         w.logoutToken("", nil),
		"garbage":         "x.y.z",
		"empty":           "",
		"bad signature":   head(w.logoutToken("logout+jwt", nil)) + tail(w.logoutToken("logout+jwt", func(c map[string]any) { c["jti"] = "2" })),
		"alg none":        "eyJhbGciOiJub25lIiwidHlwIjoibG9nb3V0K2p3dCJ9.e30.",
		"unknown issuer":  w.logoutToken("logout+jwt", func(c map[string]any) { c["iss"] = "http://evil.test" }),
		"other tenant":    w.logoutToken("logout+jwt", func(c map[string]any) { c["iss"] = issuer + "/t/other" }),
		"other client":    w.logoutToken("logout+jwt", func(c map[string]any) { c["aud"] = "robot" }),
		"no aud":          w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "aud") }),
		"no iat":          w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "iat") }),
		"old":             w.logoutToken("logout+jwt", func(c map[string]any) { c["iat"] = w.clock.Now().Unix() - 3600 }),
		"future":          w.logoutToken("logout+jwt", func(c map[string]any) { c["iat"] = w.clock.Now().Unix() + 60 }),
		"expired":         w.logoutToken("logout+jwt", func(c map[string]any) { c["exp"] = w.clock.Now().Unix() }),
		"no exp":          w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "exp") }),
		"no jti":          w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "jti") }),
		"nonce":           w.logoutToken("logout+jwt", func(c map[string]any) { c["nonce"] = "n" }),
		"no events":       w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "events") }),
		"other event":     w.logoutToken("logout+jwt", func(c map[string]any) { c["events"] = map[string]any{"x": map[string]any{}} }),
		"event no object": w.logoutToken("logout+jwt", func(c map[string]any) { c["events"] = map[string]any{event: true} }),
		"events array":    w.logoutToken("logout+jwt", func(c map[string]any) { c["events"] = []string{event} }),
		"nobody":          w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "sid"); delete(c, "sub") }),
	}
	for name, token := range tokens {
		if res := auth.backchannel(e, token); res.StatusCode != http.StatusBadRequest || !strings.Contains(res.body, "invalid_request") {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
	for name, res := range map[string]*response{
		"json":  auth.do(http.MethodPost, e.URL+"/logout/backchannel", strings.NewReader(`{}`), "Content-Type", "application/json"),
		"twice": auth.do(http.MethodPost, e.URL+"/logout/backchannel", strings.NewReader("logout_token=a&logout_token=b"), "Content-Type", "application/x-www-form-urlencoded"),
		"query": auth.do(http.MethodPost, e.URL+"/logout/backchannel?logout_token="+w.logoutToken("logout+jwt", nil), strings.NewReader(""), "Content-Type", "application/x-www-form-urlencoded"),
		"large": auth.do(http.MethodPost, e.URL+"/logout/backchannel", strings.NewReader("logout_token="+strings.Repeat("a", 100<<10)), "Content-Type", "application/x-www-form-urlencoded"),
	} {
		if res.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
	b.get(e.URL + accounts).reached(t)
}

// Other people's sessions stay in memory: their next call costs no statement. A
// late word of the listener may cost one now and then; a logout that empties the
// memory costs one every time.
func TestBackChannel_LeavesOtherSessionsAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, stays, auth := w.edge(), newBrowser(t), newBrowser(t)
	w.auth.set(func() { w.auth.sid = "sid-stays" })
	stays.signIn(w, e)
	cost := int64(-1)
	for round := 0; round < 3 && cost != 0; round++ {
		gone, sid := newBrowser(t), fmt.Sprintf("sid-gone-%d", round)
		w.auth.set(func() { w.auth.sid = sid })
		gone.signIn(w, e)
		stays.get(e.URL + accounts).reached(t)
		auth.backchannel(e, w.logoutToken("logout+jwt", func(c map[string]any) { delete(c, "sub"); c["sid"] = sid }))
		if res := gone.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("the session that ended: %d", res.StatusCode)
		}
		before := e.db.Statements()
		stays.get(e.URL + accounts).reached(t)
		cost = e.db.Statements() - before
	}
	if cost != 0 {
		t.Errorf("%d statements after every logout of somebody else", cost)
	}
}

func TestFrontChannel_NeedsNoRefresh(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	w.clock.Advance(6 * time.Minute)
	w.auth.set(func() { w.auth.fail = http.StatusServiceUnavailable })
	if res := b.get(e.URL + "/logout/frontchannel?" + url.Values{"iss": {issuer}, "sid": {"sid-1"}}.Encode()); res.StatusCode != http.StatusOK {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if n := w.rows(t, "edge.session"); n != 0 {
		t.Errorf("%d sessions are left", n)
	}
}

func TestFrontChannel_EndsOnlyTheNamedSessionOfThisBrowser(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b, other := w.edge(), newBrowser(t), newBrowser(t)
	b.signIn(w, e)
	frame := func(iss, sid string) string {
		return e.URL + "/logout/frontchannel?" + url.Values{"iss": {iss}, "sid": {sid}}.Encode()
	}
	b.get(frame(issuer, "sid-2"))
	b.get(frame(issuer+"/t/other", "sid-1"))
	other.get(frame(issuer, "sid-1"))
	if res := b.get(frame("http://evil.test", "sid-1")); res.StatusCode != http.StatusBadRequest {
		t.Errorf("unknown issuer: %d", res.StatusCode)
	}
	b.get(e.URL + accounts).reached(t)
	if res := b.get(frame(issuer, "sid-1")); res.StatusCode != http.StatusOK || res.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d", res.StatusCode)
	}
	if res := b.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("afterwards: %d", res.StatusCode)
	}
}

func TestRevocation_StopsSessionsAndUnexpiredTokens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, subject string }{{"session", "sid-1"}, {"grant", "gid-1"}, {"user", subject}, {"token", "jti-1"}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e, b, api := w.edge(), newBrowser(t), newBrowser(t)
			b.signIn(w, e)
			token := "Bearer " + w.auth.bearer(func(c map[string]any) { c["jti"] = "jti-1" })
			b.get(e.URL + accounts).reached(t)
			api.get(e.URL+accounts, "Authorization", token).reached(t)
			w.clock.Advance(2 * time.Second)
			w.auth.revoke(c.kind, c.subject)
			eventually(t, "the token to be refused", func() bool {
				return api.get(e.URL+accounts, "Authorization", token).reason() == "token_revoked"
			})
			if c.kind == "token" {
				return
			}
			if res := b.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
				t.Errorf("session: %d", res.StatusCode)
			}
			if n := w.rows(t, "edge.session"); n != 0 {
				t.Errorf("%d session rows are left", n)
			}
			// A user's later tokens are good.
			if c.kind == "user" {
				w.clock.Advance(2 * time.Second)
				b.signIn(w, e)
				b.get(e.URL + accounts).reached(t)
			}
		})
	}
}
