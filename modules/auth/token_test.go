package auth

import (
	"context"
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/central/catalog"
	"versola/platform/pgtest"
)

func TestExchange_GivesTokensInOneStatement(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, sid := g.signIn()
	var code string
	g.statements(2, func() { code = g.code(cookie, authRequest()) })
	var got tokens
	g.statements(1, func() { got = g.tokensOf(g.post("/token", exchange(code), basic("app"))) })
	access, idToken := claims(t, got.access), claims(t, got.id)
	for name, want := range map[string]any{"iss": issuer, "sub": g.user.String(), "aud": "app", "client_id": "app", "tenant": "demo",
		"sid": sid.String(), "scope": "openid profile email"} {
		if access[name] != want {
			t.Errorf("access token: %s is %v, want %v", name, access[name], want)
		}
	}
	if roles, _ := access["roles"].([]any); len(roles) != 1 || roles[0] != "customer" {
		t.Errorf("roles are %v", access["roles"])
	}
	for name, want := range map[string]any{"iss": issuer, "sub": g.user.String(), "aud": "app", "nonce": "n-1", "sid": sid.String(),
		"auth_time": float64(g.clock.Now().Unix())} {
		if idToken[name] != want {
			t.Errorf("ID token: %s is %v, want %v", name, idToken[name], want)
		}
	}
	if idToken["at_hash"] == nil || idToken["email"] != nil {
		t.Errorf("ID token: %v", idToken)
	}
	if got.refresh == "" {
		t.Error("no refresh token")
	}
}

func TestExchange_WithoutRolesTheListIsEmpty(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, roles := range []string{`{}`, `{"demo":null}`, `{"demo":[]}`, `{"other":["customer"]}`} {
		g.exec("UPDATE auth.users SET roles = $1", roles)
		got, _, _ := g.signInAndExchange("openid")
		for _, access := range []string{got.access, g.refresh(got.refresh).access} {
			if list, ok := claims(t, access)["roles"].([]any); !ok || len(list) != 0 {
				t.Errorf("%s: roles are %v", roles, claims(t, access)["roles"])
			}
		}
	}
}

func TestExchange_Refusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	for name, x := range map[string]struct {
		request url.Values // of authorize, on top of the usual
		change  []string
		client  string
		code    string
	}{
		"wrong verifier":                  {change: []string{"code_verifier", strings.Repeat("x", 43)}, code: "invalid_grant"},
		"no verifier":                     {change: []string{"code_verifier", ""}, code: "invalid_grant"},
		"short verifier":                  {change: []string{"code_verifier", strings.Repeat("x", 42)}, code: "invalid_grant"},
		"long verifier":                   {change: []string{"code_verifier", strings.Repeat("x", 129)}, code: "invalid_grant"},
		"verifier of other characters":    {change: []string{"code_verifier", strings.Repeat("x", 42) + "!"}, code: "invalid_grant"},
		"the challenge as verifier":       {change: []string{"code_verifier", challenge}, code: "invalid_grant"},
		"no redirect_uri":                 {change: []string{"redirect_uri", ""}, code: "invalid_request"},
		"another registered redirect_uri": {change: []string{"redirect_uri", callback + "?x=1"}, code: "invalid_grant"},
		"foreign redirect_uri":            {change: []string{"redirect_uri", "http://evil.test/"}, code: "invalid_grant"},
		"NUL in redirect_uri":             {change: []string{"redirect_uri", callback + "\x00"}, code: "invalid_grant"},
		"no code":                         {change: []string{"code", ""}, code: "invalid_request"},
		"unknown code":                    {change: []string{"code", strings.Repeat("A", 43)}, code: "invalid_grant"},
		"garbage code":                    {change: []string{"code", "\x00\xff"}, code: "invalid_grant"},
		"another client":                  {client: "post", code: "invalid_grant"},
	} {
		t.Run(name, func(t *testing.T) {
			g := &rig{TB: t, db: g.db, clock: g.clock, module: g.module, login: g.login, holder: g.holder, server: g.server, user: g.user}
			code := g.code(cookie, authRequest())
			v := with(exchange(code), x.change...)
			if x.client == "post" {
				g.refused(g.post("/token", with(v, "client_id", "post", "client_secret", "post-secret")), http.StatusBadRequest, x.code)
			} else {
				g.refused(g.post("/token", v, basic("app")), http.StatusBadRequest, x.code)
			}
			// What did not fit burned nothing for the rightful client.
			g.tokensOf(g.post("/token", exchange(code), basic("app")))
		})
	}
}

func TestExchange_VerifierWithoutChallengeIsRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	request := form("response_type", "code", "client_id", "loose", "redirect_uri", callback, "scope", "openid")
	code := g.code(cookie, request)
	g.refused(g.post("/token", exchange(code), basic("loose")), http.StatusBadRequest, "invalid_grant")
	got := g.tokensOf(g.post("/token", with(exchange(code), "code_verifier", ""), basic("loose")))
	if got.refresh != "" {
		t.Error("a client without the grant was given a refresh token")
	}
	if _, ok := claims(t, got.id)["nonce"]; ok {
		t.Error("a nonce that was not sent is in the ID token")
	}
}

func TestExchange_ExpiredCodeAndEndedSessionAndDisabledUserAreRefused(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, sid := g.signIn()
	code := g.code(cookie, authRequest())
	g.clock.Advance(60 * time.Second)
	g.refused(g.post("/token", exchange(code), basic("app")), http.StatusBadRequest, "invalid_grant")
	code = g.code(cookie, authRequest())
	g.exec("UPDATE auth.users SET status = 'disabled'")
	g.refused(g.post("/token", exchange(code), basic("app")), http.StatusBadRequest, "invalid_grant")
	g.exec("UPDATE auth.users SET status = 'active'")
	g.exec("UPDATE auth.session SET ended_at = now() WHERE id = $1", sid)
	g.refused(g.post("/token", exchange(code), basic("app")), http.StatusBadRequest, "invalid_grant")
}

func TestExchange_SecondUseOfACodeKillsTheFirstsTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	code := g.code(cookie, authRequest())
	got := g.tokensOf(g.post("/token", exchange(code), basic("app")))
	if a := g.get("/userinfo", nil, bearer(got.access)); a.StatusCode != http.StatusOK {
		t.Fatalf("userinfo: %d %s", a.StatusCode, a.body)
	}
	// Another client that presents the used code changes nothing.
	g.refused(g.post("/token", with(exchange(code), "client_id", "post", "client_secret", "post-secret")), http.StatusBadRequest, "invalid_grant")
	if a := g.get("/userinfo", nil, bearer(got.access)); a.StatusCode != http.StatusOK {
		t.Fatalf("a foreign client killed the tokens: %d %s", a.StatusCode, a.body)
	}
	g.clock.Advance(4 * time.Minute)
	g.refused(g.post("/token", exchange(code), basic("app")), http.StatusBadRequest, "invalid_grant")
	g.refused(g.get("/userinfo", nil, bearer(got.access)), http.StatusUnauthorized, "invalid_token")
	g.refused(g.post("/token", form("grant_type", "refresh_token", "refresh_token", got.refresh), basic("app")), http.StatusBadRequest, "invalid_grant")
	if n := g.count("SELECT count(*) FROM auth.revocation WHERE kind = 'grant' AND subject = $1", claims(t, got.access)["gid"]); n != 1 {
		t.Errorf("%d entries in the revocation log", n)
	}
}

func TestExchange_OfTwoAtOnceOneWins(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	code := g.code(cookie, authRequest())
	var wg sync.WaitGroup
	statuses := make([]int, 8)
	for i := range statuses {
		wg.Go(func() { statuses[i] = g.post("/token", exchange(code), basic("app")).StatusCode })
	}
	wg.Wait()
	won := 0
	for _, s := range statuses {
		if s == http.StatusOK {
			won++
		}
	}
	if won != 1 {
		t.Errorf("%d exchanges of one code succeeded: %v", won, statuses)
	}
}

func TestClientCredentials_NeedNoDatabase(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	v := form("grant_type", "client_credentials", "scope", "read")
	var got tokens
	g.statements(0, func() { got = g.tokensOf(g.post("/token", v, basic("service"))) })
	c := claims(t, got.access)
	if c["sub"] != "service" || c["client_id"] != "service" || c["scope"] != "read" || c["sid"] != nil || c["gid"] != nil || c["roles"] != nil {
		t.Errorf("claims: %v", c)
	}
	if aud, _ := c["aud"].([]any); len(aud) != 2 {
		t.Errorf("aud is %v", c["aud"])
	}
	if got.refresh != "" || got.id != "" {
		t.Error("more than an access token was given")
	}
	if all := g.tokensOf(g.post("/token", form("grant_type", "client_credentials"), basic("service"))); all.scope != "read write" {
		t.Errorf("default scope is %q", all.scope)
	}
	for _, scope := range []string{"openid", "read openid", "admin", "read  write", "re\"ad"} {
		g.refused(g.post("/token", with(v, "scope", scope), basic("service")), http.StatusBadRequest, "invalid_scope")
	}
	g.refused(g.get("/userinfo", nil, bearer(got.access)), http.StatusUnauthorized, "invalid_token")
}

func TestToken_ClientAuthentication(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	v := form("grant_type", "client_credentials")
	header := func(h string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", h) }
	}
	encoded := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	for name, x := range map[string]struct {
		v         url.Values
		change    []func(*http.Request)
		status    int
		code      string
		challenge bool
	}{
		"right secret":             {v: v, change: []func(*http.Request){basic("service")}, status: 200},
		"older secret":             {v: v, change: []func(*http.Request){header(encoded("service:service-old"))}, status: 200},
		"form-encoded inside":      {v: v, change: []func(*http.Request){header(encoded("s%65rvice:service%2Dsecret"))}, status: 200},
		"scheme in another case":   {v: v, change: []func(*http.Request){header(strings.Replace(encoded("service:service-secret"), "Basic", "bASIC", 1))}, status: 200},
		"the same client_id twice": {v: with(v, "client_id", "service"), change: []func(*http.Request){basic("service")}, status: 200},

		"wrong secret":         {v, []func(*http.Request){header(encoded("service:nope"))}, 401, "invalid_client", true},
		"empty secret":         {v, []func(*http.Request){header(encoded("service:"))}, 401, "invalid_client", true},
		"unknown client":       {v, []func(*http.Request){header(encoded("nobody:service-secret"))}, 401, "invalid_client", true},
		"disabled client":      {v, []func(*http.Request){basic("gone")}, 401, "invalid_client", true},
		"bad percent encoding": {v, []func(*http.Request){header(encoded("service:%zz"))}, 401, "invalid_client", true},
		"no colon":             {v, []func(*http.Request){header(encoded("service"))}, 401, "invalid_client", true},
		"not base64":           {v, []func(*http.Request){header("Basic !!!!")}, 401, "invalid_client", true},
		"unpadded base64":      {v, []func(*http.Request){header("Basic c2VydmljZTpzZXJ2aWNlLXNlY3JldA")}, 401, "invalid_client", true},
		"control characters":   {v, []func(*http.Request){header(encoded("service:service-secret\n"))}, 401, "invalid_client", true},
		"another scheme":       {v, []func(*http.Request){header("Bearer abc")}, 401, "invalid_client", true},
		"post for a basic one": {with(v, "client_id", "service", "client_secret", "service-secret"), nil, 401, "invalid_client", false},
		"none for a basic one": {with(v, "client_id", "service"), nil, 401, "invalid_client", false},
		"nothing":              {v, nil, 401, "invalid_client", false},
		"basic for a post one": {v, []func(*http.Request){basic("post")}, 401, "invalid_client", true},
		"secret of a public":   {with(v, "client_id", "native", "client_secret", "x"), nil, 401, "invalid_client", false},
		"basic and post":       {with(v, "client_secret", "service-secret"), []func(*http.Request){basic("service")}, 400, "invalid_request", false},
		"another client_id":    {with(v, "client_id", "app"), []func(*http.Request){basic("service")}, 400, "invalid_request", false},
		"two headers": {v, []func(*http.Request){basic("service"), func(r *http.Request) { r.Header.Add("Authorization", "Basic x") }},
			400, "invalid_request", false},
		"assertion of no type": {with(v, "client_assertion", "x"), nil, 400, "invalid_request", false},
		"assertion and basic":  {with(v, "client_assertion", "x"), []func(*http.Request){basic("service")}, 400, "invalid_request", false},
		"doubled client_id":    {url.Values{"grant_type": {"client_credentials"}, "client_id": {"native", "native"}}, nil, 400, "invalid_request", false},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.post("/token", x.v, x.change...)
			if a.StatusCode != x.status {
				t.Fatalf("got %d %s", a.StatusCode, a.body)
			}
			if x.code != "" && a.json(t)["error"] != x.code {
				t.Errorf("got %s", a.body)
			}
			if got := a.Header.Get("WWW-Authenticate") != ""; got != x.challenge {
				t.Errorf("WWW-Authenticate: %q", a.Header.Get("WWW-Authenticate"))
			}
		})
	}
	unknown := g.post("/token", v, header(encoded("nobody:x")))
	wrong := g.post("/token", v, header(encoded("service:x")))
	if string(unknown.body) != string(wrong.body) {
		t.Errorf("an unknown client shows: %s, %s", unknown.body, wrong.body)
	}
}

func TestToken_RequestRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	service, app := basic("service"), basic("app")
	g.refused(g.post("/token", form(), service), 400, "invalid_request")
	g.refused(g.post("/token", form("grant_type", "password"), service), 400, "unsupported_grant_type")
	g.refused(g.post("/token", form("grant_type", "client_credentials"), app), 400, "unauthorized_client")
	g.refused(g.post("/token", form("grant_type", "refresh_token", "refresh_token", "x"), basic("loose")), 400, "unauthorized_client")
	for _, name := range []string{"grant_type", "scope", "client_secret"} {
		v := form("grant_type", "client_credentials", "scope", "read")
		v[name] = []string{"read", "read"}
		g.refused(g.post("/token", v, service), 400, "invalid_request")
	}
	for _, name := range []string{"code", "redirect_uri", "code_verifier"} {
		v := exchange("x")
		v[name] = []string{"a", "a"}
		g.refused(g.post("/token", v, app), 400, "invalid_request")
	}
	g.refused(g.post("/token", form("grant_type", "refresh_token"), app), 400, "invalid_request")
	json := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	g.refused(g.post("/token", form("grant_type", "client_credentials"), service, json), 400, "invalid_request")
	g.refused(g.do(http.MethodPost, "/token", strings.NewReader("a=%zz"), service), 400, "invalid_request")
	big := strings.NewReader("a=" + strings.Repeat("x", 1<<20))
	if a := g.do(http.MethodPost, "/token", big, service); a.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %s", a.StatusCode, a.body)
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete} {
		a := g.do(method, "/token", nil)
		if a.StatusCode != http.StatusMethodNotAllowed || !strings.Contains(a.Header.Get("Allow"), "POST") {
			t.Errorf("%s: %d, Allow %q", method, a.StatusCode, a.Header.Get("Allow"))
		}
		a.json(t)
	}
}

func TestToken_TenantsAreApart(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid")
	// The same client id and secret exist in the other tenant.
	g.refused(g.post("/t/other/token", form("grant_type", "refresh_token", "refresh_token", got.refresh), basic("app")), 400, "invalid_grant")
	g.refused(g.get("/t/other/userinfo", nil, bearer(got.access)), 401, "invalid_token")
	g.get("/t/other/authorize", with(authRequest(), "prompt", "none"), cookied(cookie)).location(t)
	_, q := g.get("/t/other/authorize", with(authRequest(), "prompt", "none"), cookied(cookie)).location(t)
	if q.Get("error") != "login_required" || q.Get("iss") != issuer+"/t/other" {
		t.Errorf("another tenant answered %v", q)
	}
	code := g.code(cookie, authRequest())
	g.refused(g.post("/t/other/token", exchange(code), basic("app")), 400, "invalid_grant")
	g.tokensOf(g.post("/token", exchange(code), basic("app")))
	g.tokensOf(g.post("/token", form("grant_type", "refresh_token", "refresh_token", got.refresh), basic("app")))
}

func TestToken_CodeLifeIsBoundedWhateverTheTenantSays(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) { s.Tenants[0].Settings.CodeTTL = catalog.Duration(time.Hour) })
	cookie, _ := g.signIn()
	code := g.code(cookie, authRequest())
	g.clock.Advance(authorization.MaxCodeTTL)
	g.refused(g.post("/token", exchange(code), basic("app")), 400, "invalid_grant")
}

func TestToken_DatabaseAwayIs503WithRetryAfter(t *testing.T) {
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid")
	refresh := form("grant_type", "refresh_token", "refresh_token", got.refresh)
	pgtest.Stop(t)
	for name, a := range map[string]answer{
		"token":     g.post("/token", refresh, basic("app")),
		"userinfo":  g.get("/userinfo", nil, bearer(got.access)),
		"revoke":    g.post("/revoke", form("token", got.refresh), basic("app")),
		"authorize": g.get("/authorize", authRequest(), cookied(cookie)),
		"logout":    g.get("/logout", nil, cookied(cookie)),
	} {
		if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || !strings.Contains(string(a.body), "temporarily_unavailable") {
			t.Errorf("%s: %d %q %s", name, a.StatusCode, a.Header.Get("Retry-After"), a.body)
		}
	}
	g.tokensOf(g.post("/token", form("grant_type", "client_credentials"), basic("service")))
	g.refused(g.post("/token", with(refresh, "refresh_token", "forged"), basic("app")), 400, "invalid_grant")
	pgtest.Start(t)
	deadline, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for g.db.Ping(deadline) != nil && deadline.Err() == nil {
		continue
	}
	g.tokensOf(g.post("/token", refresh, basic("app")))
}
