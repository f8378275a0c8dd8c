package edge_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	accounts      = "/resources/bank/accounts"
	sessionCookie = "versola_edge_demo"
)

func TestSession_SignInThenCallsReachTheUpstreamWithTheCallersIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	if res := b.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized || !strings.Contains(res.body, publicURL+"/login/demo") {
		t.Fatalf("before: %d %s", res.StatusCode, res.body)
	}
	b.signIn(w, e)
	got := b.get(e.URL + accounts).reached(t)
	for name, want := range map[string]string{"X-Versola-Subject": subject, "X-Versola-Tenant": "demo", "X-Versola-Roles": "customer",
		"X-Versola-Client": "web", "X-Versola-Session": "sid-1"} {
		if v := got.Header[name]; len(v) != 1 || v[0] != want {
			t.Errorf("%s is %q, want %q", name, v, want)
		}
	}
	for _, name := range []string{"Cookie", "Authorization"} {
		if v, ok := got.Header[name]; ok {
			t.Errorf("the upstream was sent %s: %q", name, v)
		}
	}
}

func TestSession_FirstSightCostsOneStatementAndRepeatedCallsNone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	count := func() int64 {
		before := e.db.Statements()
		b.get(e.URL + accounts).reached(t)
		return e.db.Statements() - before
	}
	if n := count(); n != 1 {
		t.Errorf("first sight: %d statements, want 1", n)
	}
	for range 3 {
		if n := count(); n != 0 {
			t.Errorf("repeated call: %d statements, want 0", n)
		}
	}
}

func TestRefresh_FiftyParallelCallsOnTwoEdgesMakeOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	edges := []*running{w.edge(), w.edge()}
	b := newBrowser(t)
	b.signIn(w, edges[0])
	for _, e := range edges {
		b.get(e.URL + accounts).reached(t)
	}
	w.clock.Advance(6 * time.Minute)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			own := &browser{t, map[string]string{sessionCookie: b.cookies[sessionCookie]}}
			if res := own.get(edges[i%2].URL + accounts); res.StatusCode != http.StatusOK {
				t.Errorf("call %d: %d %s", i, res.StatusCode, res.body)
			}
		}()
	}
	wg.Wait()
	if w.auth.refreshes != 1 {
		t.Errorf("%d refreshes, want 1", w.auth.refreshes)
	}
}

func TestRefresh_AheadOfTimeDoesNotHoldCallsUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	b.get(e.URL + accounts).reached(t)
	w.clock.Advance(4*time.Minute + 55*time.Second)
	w.auth.mu.Lock() // auth hangs
	b.get(e.URL + accounts).reached(t)
	w.auth.mu.Unlock()
	eventually(t, "the refresh in the background", func() bool {
		w.auth.mu.Lock()
		defer w.auth.mu.Unlock()
		return w.auth.refreshes == 1
	})
	w.clock.Advance(time.Minute)
	b.get(e.URL + accounts).reached(t)
	if w.auth.refreshes != 1 {
		t.Errorf("%d refreshes, want 1", w.auth.refreshes)
	}
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for range 500 {
		if ok() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("waited in vain for %s", what)
}

func TestRefresh_AuthDownKeepsTheSession(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]struct {
		status int
		code   string
	}{
		"500": {500, ""}, "503": {503, "temporarily_unavailable"}, "429": {429, ""}, "wrong client secret": {401, "invalid_client"},
		"a proxy's 400": {400, "invalid_request"}, "404": {404, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			e, b := w.edge(), newBrowser(t)
			b.signIn(w, e)
			b.get(e.URL + accounts).reached(t)
			w.auth.set(func() { w.auth.fail, w.auth.error = failure.status, failure.code })
			w.clock.Advance(4*time.Minute + 55*time.Second)
			b.get(e.URL + accounts).reached(t) // the token still lives
			w.clock.Advance(time.Minute)
			for range 2 {
				res := b.get(e.URL + accounts)
				if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" || res.reason() != "auth_unavailable" {
					t.Fatalf("auth down: %d %q %s", res.StatusCode, res.Header.Get("Retry-After"), res.body)
				}
			}
			w.auth.set(func() { w.auth.fail = 0 })
			b.get(e.URL + accounts).reached(t)
		})
	}
}

func TestRefresh_InvalidGrantEndsTheSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	w.auth.set(func() { clear(w.auth.refresh) })
	w.clock.Advance(6 * time.Minute)
	res := b.get(e.URL + accounts)
	if res.StatusCode != http.StatusUnauthorized || res.reason() != "session_ended" {
		t.Fatalf("%d %s", res.StatusCode, res.body)
	}
	if _, ok := b.cookies[sessionCookie]; ok {
		t.Error("the cookie is still there")
	}
	if n := w.rows(t, "edge.session"); n != 0 {
		t.Errorf("%d rows are left", n)
	}
}

func (w *world) rows(t testing.TB, table string) (n int) {
	t.Helper()
	e := w.edge()
	must(t, e.db.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n))
	return n
}

func TestSession_EndsAtItsAbsoluteLifetime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	w.auth.set(func() { w.auth.ttl = 24 * time.Hour })
	b.signIn(w, e)
	w.clock.Advance(11 * time.Hour)
	b.get(e.URL + accounts).reached(t)
	w.clock.Advance(61 * time.Minute)
	if res := b.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("after 12 h: %d", res.StatusCode)
	}
}

func TestSession_PlantedCookieIsWorthlessAfterSignIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, attacker, victim := w.edge(), newBrowser(t), newBrowser(t)
	attacker.signIn(w, e)
	planted := attacker.cookies[sessionCookie]
	victim.cookies[sessionCookie] = planted
	victim.signIn(w, e)
	if victim.cookies[sessionCookie] == planted {
		t.Fatal("the cookie did not change")
	}
	if res := attacker.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the planted session lives: %d", res.StatusCode)
	}
}

func TestSession_ForgedCookies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	good := b.cookies[sessionCookie]
	for name, header := range map[string]string{
		"garbage":          sessionCookie + "=" + strings.Repeat("A", 43),
		"short":            sessionCookie + "=x",
		"empty":            sessionCookie + "=",
		"sent twice":       sessionCookie + "=" + good + "; " + sessionCookie + "=" + strings.Repeat("A", 43),
		"other name":       "versola_edge_other=" + good,
		"upper-case":       strings.ToUpper(sessionCookie) + "=" + good,
		"changed one char": sessionCookie + "=" + flip(good),
	} {
		if res := newBrowser(t).get(e.URL+accounts, "Cookie", header); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
}

func flip(s string) string {
	if s[0] == 'A' {
		return "B" + s[1:]
	}
	return "A" + s[1:]
}
