package auth

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/modules/auth/session"
	"versola/modules/central/catalog"
	"versola/platform/jose"
)

const bye = "http://localhost:9999/bye"

func cleared(a answer) bool {
	for _, c := range a.Cookies() {
		if c.Name == session.CookieBase && c.MaxAge < 0 {
			return true
		}
	}
	return false
}

func TestLogout_SureEndsTheSessionInTwoStatements(t *testing.T) {
	t.Parallel()
	for name, method := range map[string]string{"get": http.MethodGet, "post": http.MethodPost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t, func(s *catalog.Snapshot) { s.Tenants[0].Settings.OfflineSurvivesLogout = true })
			got, cookie, sid := g.signInAndExchange("openid")
			offline := g.tokensOf(g.post("/token", exchange(g.code(cookie, with(authRequest(), "scope", "openid offline_access"))), basic("app")))
			g.clock.Advance(10 * time.Minute) // the hint has expired
			v := form("id_token_hint", got.id, "post_logout_redirect_uri", bye, "state", "a b")
			var a answer
			g.statements(2, func() {
				if method == http.MethodGet {
					a = g.get("/logout", v, cookied(cookie))
				} else {
					a = g.post("/logout", v, cookied(cookie))
				}
			})
			if to, q := a.location(t); to != bye || q.Get("state") != "a b" || !cleared(a) {
				t.Errorf("went to %s %v, cookies %v", to, q, a.Cookies())
			}
			g.refreshRefused(got.refresh)
			g.refresh(offline.refresh) // survives
			if n := g.count("SELECT count(*) FROM auth.revocation WHERE kind = 'session' AND subject = $1", sid.String()); n != 1 {
				t.Errorf("%d entries in the log", n)
			}
			if _, q := g.get("/authorize", with(authRequest(), "prompt", "none"), cookied(cookie)).location(t); q.Get("error") != "login_required" {
				t.Errorf("the session lives on: %v", q)
			}
			// A second time there is nothing to end; the way on is the same.
			if to, _ := g.get("/logout", v, cookied(cookie)).location(t); to != bye {
				t.Errorf("went to %s", to)
			}
		})
	}
}

func TestLogout_EndsOfflineAccessUnlessTheTenantLetsItSurvive(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid offline_access")
	g.get("/logout", form("id_token_hint", got.id, "post_logout_redirect_uri", bye), cookied(cookie)).location(t)
	g.refreshRefused(got.refresh)
}

func TestLogout_WithoutCookieAHintEndsItsSession(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, sid := g.signInAndExchange("openid")
	for name, v := range map[string]url.Values{
		"no hint":      form("client_id", "app", "post_logout_redirect_uri", bye),
		"doubtful":     form("id_token_hint", got.id, "post_logout_redirect_uri", "https://evil.test/"),
		"access token": form("id_token_hint", got.access, "client_id", "app"),
	} {
		g.get("/logout", v)
		if n := g.count("SELECT count(*) FROM auth.session WHERE ended_at IS NOT NULL"); n != 0 {
			t.Fatalf("%s ended a session", name)
		}
	}
	// From another site a POST has no cookie, and the GET that it becomes does.
	to, q := g.post("/logout", form("client_id", "app", "post_logout_redirect_uri", bye, "state", "s")).location(t)
	if to != "/logout" || q.Get("client_id") != "app" || q.Get("state") != "s" || q.Get("post_logout_redirect_uri") != bye {
		t.Errorf("went to %s %v", to, q)
	}
	var a answer
	g.statements(1, func() { a = g.post("/logout", form("id_token_hint", got.id)) })
	if p := a.page(t); p.Page != "signed-out" {
		t.Errorf("%+v", p)
	}
	if n := g.count("SELECT count(*) FROM auth.session WHERE ended_at IS NOT NULL AND id = $1", sid); n != 1 {
		t.Error("the session lives on")
	}
	g.refreshRefused(got.refresh)
}

func TestLogout_ACookieThatNamesNoSessionIsAsNone(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	_, endedCookie, ended := g.signInAndExchange("openid")
	g.exec("UPDATE auth.session SET ended_at = $2 WHERE id = $1", ended, g.clock.Now())
	_, foreignCookie, foreign := g.signInAndExchange("openid")
	g.exec("UPDATE auth.session SET directory = 'other' WHERE id = $1", foreign)
	for name, cookie := range map[string]string{
		"garbage": "x", "planted": strings.Repeat("A", 86), "of an ended session": endedCookie, "of another directory": foreignCookie,
	} {
		got, _, sid := g.signInAndExchange("openid")
		v := form("id_token_hint", got.id, "post_logout_redirect_uri", bye)
		if a := g.get("/logout", with(v, "post_logout_redirect_uri", "https://evil.test/"), cookied(cookie)); a.page(t).Page != "signed-out" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		g.refresh(got.refresh) // what was in doubt ended nothing
		if to, _ := g.get("/logout", v, cookied(cookie)).location(t); to != bye {
			t.Errorf("%s: went to %s", name, to)
		}
		if n := g.count("SELECT count(*) FROM auth.session WHERE id = $1 AND ended_at IS NOT NULL", sid); n != 1 {
			t.Errorf("%s: the session that the hint names lives on", name)
		}
		g.refused(g.get("/userinfo", nil, bearer(got.access)), 401, "invalid_token")
	}
}

func TestLogout_APostComesBackOnlyWithWhatAnAddressHolds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, name := range []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "logout_hint", "ui_locales"} {
		if a := g.post("/logout", form(name, strings.Repeat("x", 100_000))); a.StatusCode != 400 || a.page(t).Page != "error" || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d, %d bytes of Location", name, a.StatusCode, len(a.Header.Get("Location")))
		}
	}
}

func TestLogout_WinsAgainstRefreshesThatRunMeanwhile(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid")
	var mu sync.Mutex
	known := []string{got.refresh}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				mu.Lock()
				last := known[len(known)-1]
				mu.Unlock()
				a := g.post("/token", refreshing(last), basic("app"))
				if a.StatusCode != http.StatusOK {
					return
				}
				next := g.tokensOf(a).refresh
				mu.Lock()
				known = append(known, next)
				mu.Unlock()
			}
		})
	}
	g.get("/logout", form("id_token_hint", got.id, "post_logout_redirect_uri", bye), cookied(cookie)).location(t)
	wg.Wait()
	for _, token := range known {
		g.refreshRefused(token)
	}
}

func TestLogout_DoubtAsksThePerson(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Clients[2].PostLogoutRedirectURIs = []string{"https://native.test/bye"}
	})
	got, cookie, sid := g.signInAndExchange("openid")
	other, _, _ := g.signInAndExchange("openid") // another session of the same person
	signer, _ := g.holder.Current().Signer(jose.RS256)
	forged, err := signer.Sign("JWT", []byte(`{"iss":"https://evil.test","sub":"`+g.user.String()+`","aud":"app","sid":"`+sid.String()+`"}`))
	must(t, err)
	for name, x := range map[string]struct {
		v        url.Values
		redirect string // that the confirmation may lead to
	}{
		"nothing":                      {nil, ""},
		"client_id alone":              {form("client_id", "app"), ""},
		"client_id and redirect":       {form("client_id", "app", "post_logout_redirect_uri", bye), bye},
		"unregistered redirect":        {form("id_token_hint", got.id, "post_logout_redirect_uri", bye+"/"), ""},
		"another client's redirect":    {form("id_token_hint", got.id, "post_logout_redirect_uri", "https://native.test/bye"), ""},
		"redirect without a client":    {form("post_logout_redirect_uri", bye), ""},
		"unknown client":               {form("client_id", "nobody", "post_logout_redirect_uri", bye), ""},
		"hint of another session":      {form("id_token_hint", other.id, "post_logout_redirect_uri", bye), bye},
		"forged hint":                  {form("id_token_hint", forged), ""},
		"forged hint with a client_id": {form("id_token_hint", forged, "client_id", "app", "post_logout_redirect_uri", bye), bye},
		"access token as hint":         {form("id_token_hint", got.access, "post_logout_redirect_uri", bye), ""},
		"wrong csrf":                   {form("csrf", "AAAA"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.get("/logout", x.v, cookied(cookie))
			if p := a.page(t); a.StatusCode != 200 || p.Page != "confirm" || p.Hidden.Get("post_logout_redirect_uri") != x.redirect || cleared(a) {
				t.Errorf("%d %+v", a.StatusCode, p)
			}
		})
	}
	if n := g.count("SELECT count(*) FROM auth.session WHERE ended_at IS NOT NULL"); n != 0 {
		t.Fatal("a session ended without asking")
	}
	// Only the session's own cookie confirms.
	page := g.get("/logout", form("client_id", "app", "post_logout_redirect_uri", bye, "state", "s"), cookied(cookie)).page(t)
	confirm := with(page.Hidden, "csrf", page.CSRF)
	theirs, _ := g.signIn()
	if p := g.post("/logout", confirm, cookied(theirs)).page(t); p.Page != "confirm" {
		t.Errorf("another session's csrf counts: %+v", p)
	}
	if to, q := g.post("/logout", confirm, cookied(cookie)).location(t); to != bye || q.Get("state") != "s" {
		t.Errorf("went to %s %v", to, q)
	}
	if n := g.count("SELECT count(*) FROM auth.session WHERE ended_at IS NOT NULL AND id = $1", sid); n != 1 {
		t.Error("the confirmation ended nothing")
	}
}

func TestLogout_WithoutSessionAndErrors(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	if p := g.get("/logout", nil).page(t); p.Page != "signed-out" {
		t.Errorf("%+v", p)
	}
	if to, _ := g.get("/logout", form("client_id", "app", "post_logout_redirect_uri", bye)).location(t); to != bye {
		t.Errorf("went to %s", to)
	}
	for _, v := range []url.Values{form("client_id", "app", "post_logout_redirect_uri", "https://evil.test/"), form("post_logout_redirect_uri", "https://evil.test/")} {
		if p := g.get("/logout", v).page(t); p.Page != "signed-out" {
			t.Errorf("%+v", p)
		}
	}
	got, _, _ := g.signInAndExchange("openid")
	for name, v := range map[string]url.Values{
		"doubled hint":   form("id_token_hint", "x", "id_token_hint", "x"),
		"long state":     form("state", strings.Repeat("s", 2049)),
		"other client":   form("id_token_hint", got.id, "client_id", "native"),
		"doubled target": form("post_logout_redirect_uri", bye, "post_logout_redirect_uri", bye),
	} {
		if a := g.get("/logout", v); a.StatusCode != 400 || a.page(t).Page != "error" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestBackchannelLogout_ToldUntilAccepted(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var heard []string
	status := http.StatusInternalServerError
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, r.PostFormValue("logout_token"))
		w.WriteHeader(status)
	}))
	defer client.Close()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Clients[0].BackchannelLogoutURI = client.URL + "/backchannel"
		s.Clients[1].BackchannelLogoutURI = client.URL + "/did-not-take-part"
	})
	got, cookie, sid := g.signInAndExchange("openid")
	g.get("/logout", form("id_token_hint", got.id, "post_logout_redirect_uri", bye), cookied(cookie)).location(t)
	once := func(want int) {
		t.Helper()
		n, err := g.module.notifier.Once(context.Background())
		must(t, err)
		if n != want {
			t.Errorf("%d notices were due, want %d", n, want)
		}
	}
	once(1)
	once(0) // not before its pause
	g.clock.Advance(10 * time.Second)
	once(1)
	g.clock.Advance(10 * time.Second)
	once(0) // the pause has doubled
	g.clock.Advance(10 * time.Second)
	mu.Lock()
	status = http.StatusOK
	mu.Unlock()
	once(1)
	if len(heard) != 3 || g.count("SELECT count(*) FROM auth.logout_notice") != 0 {
		t.Fatalf("heard %d times, %d notices left", len(heard), g.count("SELECT count(*) FROM auth.logout_notice"))
	}
	_, payload, err := g.holder.Current().Keys().Verify(heard[2], "logout+jwt")
	must(t, err)
	c := claims(t, heard[2])
	if c["iss"] != issuer || c["aud"] != "app" || c["sub"] != g.user.String() || c["sid"] != sid.String() || c["nonce"] != nil || c["jti"] == "" || c["exp"] == nil ||
		!strings.Contains(string(payload), `"http://schemas.openid.net/event/backchannel-logout":{}`) {
		t.Errorf("logout token: %s", payload)
	}
	if c["jti"] == claims(t, heard[1])["jti"] {
		t.Error("two attempts share a jti")
	}
	// It passes for nothing else.
	g.refused(g.get("/userinfo", nil, bearer(heard[2])), 401, "invalid_token")
}

func TestBackchannelLogout_AClientThatDoesNotAnswerHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	heard := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		heard[r.URL.Path]++
		if r.URL.Path == "/dead" {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Clients[0].BackchannelLogoutURI = server.URL + "/dead"
		s.Clients[1].BackchannelLogoutURI = server.URL + "/alive"
	})
	now := g.clock.Now()
	wait := func(client string, count int, since time.Time) {
		g.exec(`INSERT INTO auth.logout_notice (id, tenant_id, client_id, subject, session_id, next_at, expires_at)
			SELECT gen_random_uuid(), 'demo', $1, $2, gen_random_uuid(), $3, $4 FROM generate_series(1, $5)`,
			client, g.user.String(), since, now.Add(time.Hour), count)
	}
	wait("app", 500, now.Add(-time.Minute))
	wait("post", 3, now)
	for range 2 {
		_, err := g.module.notifier.Once(context.Background())
		must(t, err)
	}
	if heard["/alive"] != 3 || heard["/dead"] > 32 {
		t.Errorf("heard: %v", heard)
	}
	if n := g.count("SELECT count(*) FROM auth.logout_notice WHERE client_id = 'app'"); n != 500 {
		t.Errorf("%d of 500 notices wait for the client to come back", n)
	}
}
