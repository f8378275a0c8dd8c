package auth

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"versola/modules/auth/par"
	"versola/modules/central/catalog"
	"versola/platform/dpop"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// pusher is a client whose requests must be pushed.
func pusher(s *catalog.Snapshot) {
	s.Clients = append(s.Clients, catalog.ClientSpec{Tenant: "demo", ID: "pusher", AuthMethod: catalog.AuthBasic, RequirePAR: true,
		GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{callback}, Scopes: []string{"openid"}})
}

// push pushes a request of client app and returns its request_uri.
func (g *rig) push(request url.Values, change ...func(*http.Request)) string {
	g.Helper()
	a := g.post("/par", request, append([]func(*http.Request){basic(request.Get("client_id"))}, change...)...)
	uri, _ := a.json(g)["request_uri"].(string)
	if a.StatusCode != http.StatusCreated || uri == "" {
		g.Fatalf("push: %d %s", a.StatusCode, a.body)
	}
	return uri
}

// pushed are the parameters of the authorization endpoint.
func pushed(client, uri string) url.Values { return form("client_id", client, "request_uri", uri) }

// unusable checks that a request_uri leads to a page and nowhere else.
func (g *rig) unusable(name string, v url.Values, change ...func(*http.Request)) {
	g.Helper()
	a := g.get("/authorize", v, change...)
	if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || a.page(g).Code != "invalid_request_uri" {
		g.Errorf("%s: %d %q %s", name, a.StatusCode, a.Header.Get("Location"), a.body)
	}
}

func TestPAR_AnswersWithARequestURIInOneStatement(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	var a answer
	g.statements(1, func() { a = g.post("/par", authRequest(), basic("app")) })
	m := a.json(t)
	uri, _ := m["request_uri"].(string)
	if a.StatusCode != http.StatusCreated || m["expires_in"] != 60.0 || len(m) != 2 || a.Header.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %v %s", a.StatusCode, a.Header, a.body)
	}
	// 43 characters of base64url are 256 bits.
	if !regexp.MustCompile(`^urn:ietf:params:oauth:request_uri:[A-Za-z0-9_-]{43}$`).MatchString(uri) {
		t.Errorf("request_uri is %q", uri)
	}
	if again := g.push(authRequest()); again == uri {
		t.Error("two requests have one request_uri")
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodHead} {
		if a := g.do(method, "/par", nil); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "POST, OPTIONS" {
			t.Errorf("%s: %d, Allow %q", method, a.StatusCode, a.Header.Get("Allow"))
		}
	}
}

func TestPAR_AnswersTheRequestSilentlyAndSpendsIt(t *testing.T) {
	t.Parallel()
	g := newRig(t, pusher)
	cookie, _ := g.signIn()
	for _, visit := range []func(string, url.Values, ...func(*http.Request)) answer{g.get, g.post} {
		uri := g.push(authRequest())
		// What is sent beside it does not count, not even twice.
		v := with(pushed("app", uri), "redirect_uri", "https://evil.test/", "scope", "openid admin", "state", "evil", "response_type", "token", "nonce", "\x00")
		v.Add("prompt", "none")
		v.Add("prompt", "login")
		var a answer
		g.statements(3, func() { a = visit("/authorize", v, cookied(cookie)) }) // the pushed request, the session, the code
		to, q := a.location(t)
		if to != callback || q.Get("code") == "" || q.Get("state") != "s t" || q.Get("iss") != issuer {
			t.Fatalf("went to %s with %v", to, q)
		}
		got := g.tokensOf(g.post("/token", exchange(q.Get("code")), basic("app")))
		if c := claims(t, got.id); c["nonce"] != "n-1" || got.scope != "openid profile email" {
			t.Errorf("tokens of another request: %v, scope %q", c, got.scope)
		}
		g.unusable("spent", pushed("app", uri), cookied(cookie))
		g.unusable("spent, signed out", pushed("app", uri))
	}
	uri := g.push(with(authRequest(), "client_id", "pusher", "scope", "openid"))
	if _, q := g.post("/authorize", pushed("pusher", uri), cookied(cookie)).location(t); q.Get("code") == "" {
		t.Errorf("of a client that must push: %v", q)
	}
	if n := g.count("SELECT count(*) FROM auth.pushed_request"); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

func TestPAR_OpensASignInAsOftenAsItTakesUntilItExpires(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	uri := g.push(with(authRequest(), "max_age", "7", "login_hint", "alice@example.com"))
	for range 3 {
		var a answer
		g.statements(1, func() { a = g.get("/authorize", pushed("app", uri)) })
		if to, _ := a.location(t); to != "/login/handle/start" {
			t.Fatalf("went to %s", to)
		}
		g.clock.Advance(19 * time.Second)
	}
	r := g.login.started[2]
	if len(g.login.started) != 3 || r.ClientID != "app" || r.State != "s t" || *r.MaxAge != 7 || r.CodeChallenge != challenge || r.LoginHint != "alice@example.com" || r.Pushed == nil {
		t.Errorf("%d sign-ins, the last with %+v", len(g.login.started), r)
	}
	g.clock.Advance(3 * time.Second)
	g.unusable("expired", pushed("app", uri))
}

func TestPAR_AnErrorSpendsTheRequest(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	uri := g.push(with(authRequest(), "prompt", "none"))
	if to, q := g.get("/authorize", pushed("app", uri)).location(t); to != callback || q.Get("error") != "login_required" || q.Get("state") != "s t" || q.Get("iss") != issuer {
		t.Errorf("went to %s with %v", to, q)
	}
	g.unusable("answered with an error", pushed("app", uri))
}

func TestPAR_ForeignAndForgedRequestURIs(t *testing.T) {
	t.Parallel()
	g := newRig(t, pusher)
	cookie, _ := g.signIn()
	uri := g.push(authRequest())
	for name, v := range map[string]url.Values{
		"another client": pushed("post", uri), "a public client": pushed("native", uri), "no handle": pushed("app", par.URIPrefix), "unknown": pushed("app", par.URIPrefix+strings.Repeat("A", 43)),
		"long": pushed("app", par.URIPrefix+strings.Repeat("A", 5000)), "NUL": pushed("app", uri+"\x00"), "not UTF-8": pushed("app", par.URIPrefix+"\xff\xfe"),
		"a letter less": pushed("app", uri[:len(uri)-1]), "a letter more": pushed("app", uri+"A"), "space": pushed("app", uri+" "), "SQL": pushed("app", par.URIPrefix+"' OR '1'='1"),
	} {
		g.unusable(name, v, cookied(cookie))
		g.unusable(name+", signed out", v)
	}
	if a := g.get("/t/other/authorize", pushed("app", uri), cookied(cookie)); a.StatusCode != http.StatusBadRequest || a.page(t).Code != "invalid_request_uri" {
		t.Errorf("the client of the same name of another tenant: %d %s", a.StatusCode, a.body)
	}
	twice := pushed("app", uri)
	twice.Add("request_uri", uri)
	client := pushed("app", uri)
	client.Add("client_id", "app")
	for name, v := range map[string]url.Values{
		"request_uri twice": twice, "client_id twice": client, "with a request object": with(pushed("app", uri), "request", "a.b.c"), "no client_id": form("request_uri", uri),
		"unknown client": pushed("nobody", uri), "disabled client": pushed("gone", uri),
	} {
		if a := g.get("/authorize", v, cookied(cookie)); a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || a.page(t).Code != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	for _, v := range []url.Values{with(authRequest(), "request_uri", "https://client.test/r.jwt"), with(authRequest(), "request_uri", "URN:IETF:PARAMS:OAUTH:REQUEST_URI:x")} {
		if _, q := g.get("/authorize", v, cookied(cookie)).location(t); q.Get("error") != "request_uri_not_supported" || q.Get("state") != "s t" {
			t.Errorf("a request by reference: %v", q)
		}
	}
	if _, q := g.get("/authorize", pushed("app", uri), cookied(cookie)).location(t); q.Get("code") == "" {
		t.Errorf("the client itself, after all that: %v", q)
	}
}

func TestPAR_ChangesOfTheClientHoldForWhatItPushed(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	uri := g.push(authRequest())
	g.spec.Clients[0].RedirectURIs = []string{callback + "/new"}
	g.compile()
	g.unusable("its redirect URI was taken away", pushed("app", uri))
	g.spec.Clients[0].RedirectURIs, g.spec.Clients[0].Disabled = []string{callback}, true
	g.compile()
	if a := g.get("/authorize", pushed("app", uri)); a.StatusCode != http.StatusBadRequest || a.page(t).Code != "invalid_request" {
		t.Errorf("it was disabled: %d %s", a.StatusCode, a.body)
	}
}

func TestPAR_OfManyParallelUsesOneIsAnswered(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	uri := g.push(with(authRequest(), "prompt", "login"))
	g.exec(`UPDATE auth.pushed_request SET request = request - 'prompt'`) // for the session to do, at once
	var codes, started atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			a := g.get("/authorize", pushed("app", uri), cookied(cookie))
			switch {
			case strings.Contains(a.Header.Get("Location"), "code="):
				codes.Add(1)
			case a.StatusCode == http.StatusSeeOther:
				started.Add(1) // by the login of this test, which does not look at the row
			case a.page(t).Code != "invalid_request_uri":
				t.Errorf("%d %s", a.StatusCode, a.body)
			}
		})
	}
	all.Wait()
	if codes.Load() != 1 {
		t.Errorf("%d codes, %d sign-ins", codes.Load(), started.Load())
	}
	if n := g.count("SELECT count(*) FROM auth.authorization_code"); n != 1 {
		t.Errorf("%d codes were stored", n)
	}
}

func TestPAR_TheWholeRequestIsValidated(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	doubled := func(name string) url.Values {
		v := authRequest()
		v[name] = []string{"x", "x"}
		return v
	}
	for name, x := range map[string]struct {
		v     url.Values
		code  string
		names string
	}{
		"no redirect_uri":          {with(authRequest(), "redirect_uri", ""), "invalid_request", "redirect_uri"},
		"foreign redirect_uri":     {with(authRequest(), "redirect_uri", "https://evil.test/"), "invalid_request", "redirect_uri"},
		"doubled redirect_uri":     {doubled("redirect_uri"), "invalid_request", "redirect_uri"},
		"no response_type":         {with(authRequest(), "response_type", ""), "invalid_request", "response_type"},
		"token":                    {with(authRequest(), "response_type", "token"), "unsupported_response_type", "response_type"},
		"scope beyond the client":  {with(authRequest(), "scope", "openid admin"), "invalid_scope", "scope"},
		"no PKCE":                  {with(authRequest(), "code_challenge", "", "code_challenge_method", ""), "invalid_request", "code_challenge"},
		"plain":                    {with(authRequest(), "code_challenge_method", "plain"), "invalid_request", "code_challenge_method"},
		"doubled scope":            {doubled("scope"), "invalid_request", "scope"},
		"doubled state":            {doubled("state"), "invalid_request", "state"},
		"NUL in state":             {with(authRequest(), "state", "\x00"), "invalid_request", "state"},
		"long state":               {with(authRequest(), "state", strings.Repeat("s", 2049)), "invalid_request", "state"},
		"NUL in nonce":             {with(authRequest(), "nonce", "\x00"), "invalid_request", "nonce"},
		"unknown prompt":           {with(authRequest(), "prompt", "magic"), "invalid_request", "prompt"},
		"hint that is no token":    {with(authRequest(), "id_token_hint", "x"), "invalid_request", "id_token_hint"},
		"a dpop_jkt that is none":  {with(authRequest(), "dpop_jkt", "x"), "invalid_request", "dpop_jkt"},
		"request_uri":              {with(authRequest(), "request_uri", "urn:x"), "invalid_request", "request_uri"},
		"a request_uri of ours":    {with(authRequest(), "request_uri", g.push(authRequest())), "invalid_request", "request_uri"},
		"an empty request_uri":     {doubledEmpty("request_uri"), "invalid_request", "request_uri"},
		"request":                  {with(authRequest(), "request", "a.b.c"), "request_not_supported", "request"},
		"no client_id":             {with(authRequest(), "client_id", ""), "invalid_request", "client_id"},
		"doubled client_id":        {doubled("client_id"), "invalid_request", "client_id"},
		"another client's id":      {with(authRequest(), "client_id", "post"), "invalid_request", "client_id"},
		"another client's id, too": {with(authRequest(), "client_id", "nobody"), "invalid_request", "client_id"},
	} {
		a := g.post("/par", x.v, basic("app"))
		g.refused(a, http.StatusBadRequest, x.code)
		if d, _ := a.json(t)["error_description"].(string); !strings.Contains(d, x.names) || a.Header.Get("Location") != "" {
			t.Errorf("%s: %s", name, a.body)
		}
	}
	if n := g.count("SELECT count(*) FROM auth.pushed_request"); n != 1 {
		t.Errorf("%d requests were kept", n)
	}
	if a := g.do(http.MethodPost, "/par?"+authRequest().Encode(), strings.NewReader(""), basic("app")); a.StatusCode != http.StatusBadRequest {
		t.Errorf("parameters in the query: %d %s", a.StatusCode, a.body)
	}
	g.refused(g.do(http.MethodPost, "/par", strings.NewReader(`{"client_id":"app"}`), basic("app"), func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }),
		http.StatusBadRequest, "invalid_request")
	g.refused(g.post("/par", with(authRequest(), "x", strings.Repeat("x", 300<<10)), basic("app")), http.StatusRequestEntityTooLarge, "invalid_request")
}

// doubledEmpty is a request with a parameter of no value.
func doubledEmpty(name string) url.Values {
	v := authRequest()
	v[name] = []string{""}
	return v
}

func TestPAR_ClientsAuthenticateAsAtTheTokenEndpoint(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	s.spec.Clients = append(s.spec.Clients, catalog.ClientSpec{Tenant: "demo", ID: "key", AuthMethod: catalog.AuthPrivateKeyJWT, JWKS: s.declared("signer").JWKS,
		GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{callback}, Scopes: []string{"openid", "profile", "email"}})
	s.compile()
	s.refused(s.post("/par", authRequest()), http.StatusUnauthorized, "invalid_client")
	s.refused(s.post("/par", authRequest(), func(r *http.Request) { r.SetBasicAuth("app", "wrong") }), http.StatusUnauthorized, "invalid_client")
	s.refused(s.post("/par", with(authRequest(), "client_secret", "app-secret"), basic("app")), http.StatusBadRequest, "invalid_request")
	native := with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:5000/callback")
	for name, a := range map[string]answer{
		"post":   s.post("/par", with(authRequest(), "client_id", "post", "client_secret", "post-secret")),
		"public": s.post("/par", native),
	} {
		if a.StatusCode != http.StatusCreated {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	push := func(aud any) answer {
		v := with(authRequest(), "client_id", "key")
		for k, x := range asking(s.assertion(jose.ES256, nil, s.claims("key", map[string]any{"aud": aud}))) {
			v[k] = x
		}
		v.Del("grant_type")
		return s.post("/par", v)
	}
	for _, aud := range []any{issuer, issuer + "/token", issuer + "/par", []string{issuer + "/par"}} {
		if a := push(aud); a.StatusCode != http.StatusCreated {
			t.Errorf("audience %v: %d %s", aud, a.StatusCode, a.body)
		}
	}
	s.refused(push(issuer+"/authorize"), http.StatusUnauthorized, "invalid_client")
	s.unauthorized("the endpoint as an audience at another", asking(s.assertion(jose.ES256, nil, s.claims("signer", map[string]any{"aud": issuer + "/par"}))))
}

func TestPAR_WhereItIsRequiredNothingElseIsAnswered(t *testing.T) {
	t.Parallel()
	g := newRig(t, pusher, func(s *catalog.Snapshot) {
		s.Tenants[1].Settings.RequirePAR = true
		s.Tenants = append(s.Tenants, catalog.TenantSpec{ID: "strict", Profile: catalog.ProfileFAPI2})
		strict := s.Clients[0]
		strict.Tenant = "strict"
		s.Clients = append(s.Clients, strict)
	})
	cookie, _ := g.signIn()
	for path, v := range map[string]url.Values{
		"":          with(authRequest(), "client_id", "pusher", "scope", "openid"),
		"/t/other":  authRequest(),
		"/t/strict": with(authRequest(), "scope", ""),
	} {
		to, q := g.get(path+"/authorize", v, cookied(cookie)).location(t)
		if to != callback || q.Get("error") != "invalid_request" && path != "/t/strict" || q.Get("code") != "" || q.Get("state") != "s t" {
			t.Errorf("%s: went to %s with %v", path, to, q)
		}
		m := g.get(path+"/.well-known/openid-configuration", nil).json(t)
		if m["require_pushed_authorization_requests"] != (path != "") || m["pushed_authorization_request_endpoint"] != issuer+path+"/par" {
			t.Errorf("%s advertises %v at %v", path, m["require_pushed_authorization_requests"], m["pushed_authorization_request_endpoint"])
		}
	}
	if a := g.post("/t/other/par", authRequest(), basic("app")); a.StatusCode != http.StatusCreated {
		t.Errorf("pushed there: %d %s", a.StatusCode, a.body)
	}
}

func TestPAR_ExpiresAsTheTenantSays(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) { s.Tenants[0].Settings.PushedRequestTTL = catalog.Duration(5 * time.Minute) })
	a := g.post("/par", authRequest(), basic("app"))
	if a.json(t)["expires_in"] != 300.0 {
		t.Errorf("%s", a.body)
	}
	uri, _ := a.json(t)["request_uri"].(string)
	g.clock.Advance(299 * time.Second)
	g.get("/authorize", pushed("app", uri)).location(t)
	g.clock.Advance(time.Second)
	g.unusable("expired", pushed("app", uri))
}

func TestPAR_AKeyThatIsProvenBindsTheCode(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	cookie, _ := g.signIn()
	proof := func(k *dpoptest.Key, url string) func(*http.Request) {
		return proven(k.Proof("POST", url, g.clock.Now(), dpoptest.Claims{"nonce": g.nonce(k)}))
	}
	code := func(v url.Values, change ...func(*http.Request)) string {
		_, q := g.get("/authorize", pushed("app", g.push(v, change...)), cookied(cookie)).location(t)
		return q.Get("code")
	}
	for name, c := range map[string]string{
		"by a proof": code(authRequest(), proof(k, issuer+"/par")), "by dpop_jkt": code(with(authRequest(), "dpop_jkt", k.Thumbprint)),
		"by both": code(with(authRequest(), "dpop_jkt", k.Thumbprint), proof(k, issuer+"/par")),
	} {
		if a := g.post("/token", exchange(c), basic("app"), proven(g.proof(other))); a.json(t)["error"] != "invalid_grant" {
			t.Errorf("%s, exchanged with another key: %d %s", name, a.StatusCode, a.body)
		}
		if a := g.post("/token", exchange(c), basic("app"), proven(g.proof(k))); a.StatusCode != http.StatusOK {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	a := g.post("/par", authRequest(), basic("app"), proven(k.Proof("POST", issuer+"/par", g.clock.Now(), nil)))
	g.refused(a, http.StatusBadRequest, "use_dpop_nonce")
	if a.Header.Get(dpop.NonceHeader) == "" {
		t.Error("no nonce for the next proof")
	}
	again := proof(k, issuer+"/par")
	g.push(authRequest(), again)
	for name, change := range map[string]func(*http.Request){
		"a proof for another endpoint": proof(k, issuer+"/token"), "garbage": proven("x"), "used before": again,
		"two proofs": func(r *http.Request) { again(r); again(r) },
	} {
		a := g.post("/par", authRequest(), basic("app"), change)
		if g.refused(a, http.StatusBadRequest, "invalid_dpop_proof"); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s", name)
		}
	}
	g.refused(g.post("/par", with(authRequest(), "dpop_jkt", other.Thumbprint), basic("app"), proof(k, issuer+"/par")), http.StatusBadRequest, "invalid_dpop_proof")
}

func TestPAR_WithoutItsTableItSaysThatItIsAFault(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	uri := g.push(authRequest())
	g.exec("ALTER TABLE auth.pushed_request RENAME TO away")
	if a := g.post("/par", authRequest(), basic("app")); a.StatusCode < 500 || a.json(t)["error"] != "server_error" {
		t.Errorf("push: %d %s", a.StatusCode, a.body)
	}
	if a := g.get("/authorize", pushed("app", uri)); a.StatusCode < 500 || a.page(t).Code != "server_error" {
		t.Errorf("authorize: %d %s", a.StatusCode, a.body)
	}
}
