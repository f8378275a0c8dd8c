package auth

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/dpop"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// proven adds a header to a request.
func proven(proof string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(dpop.Header, proof) }
}

// bound presents a token with a proof.
func bound(token, proof string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Set("Authorization", "DPoP "+token)
		r.Header.Add(dpop.Header, proof)
	}
}

// nonce asks for the nonce of the next proof.
func (g *rig) nonce(k *dpoptest.Key) string {
	g.Helper()
	a := g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(k.Proof("POST", issuer+"/token", g.clock.Now(), nil)))
	g.refused(a, http.StatusBadRequest, "use_dpop_nonce")
	if a.Header.Get(dpop.NonceHeader) == "" {
		g.Fatal("no nonce was given")
	}
	return a.Header.Get(dpop.NonceHeader)
}

// proof makes a right proof for a request to the token endpoint.
func (g *rig) proof(k *dpoptest.Key) string {
	g.Helper()
	return k.Proof("POST", issuer+"/token", g.clock.Now(), dpoptest.Claims{"nonce": g.nonce(k)})
}

// userinfoProof makes a right proof for userinfo.
func (g *rig) userinfoProof(k *dpoptest.Key, token string) string {
	g.Helper()
	return k.Proof("GET", issuer+"/userinfo", g.clock.Now(), dpoptest.Token(token).With("nonce", g.nonce(k)))
}

// nativeRequest and nativeExchange are those of the public client.
func nativeRequest() url.Values {
	return with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1/callback", "scope", "openid email")
}

func nativeExchange(code string) url.Values {
	return with(exchange(code), "redirect_uri", "http://127.0.0.1/callback", "client_id", "native")
}

func TestDPoP_TokensAreBoundToTheProvenKey(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for _, alg := range jose.Algorithms() {
		k := dpoptest.NewKey(t, alg)
		cookie, _ := g.signIn()
		code := g.code(cookie, authRequest())
		proof := g.proof(k)
		var a answer
		g.statements(2, func() { a = g.post("/token", exchange(code), basic("app"), proven(proof)) }) // the exchange and the proof's jti
		got := g.tokensOf(a)
		if a.json(t)["token_type"] != "DPoP" || a.Header.Get(dpop.NonceHeader) == "" {
			t.Errorf("%s: %s, nonce %q", alg, a.body, a.Header.Get(dpop.NonceHeader))
		}
		if cnf, _ := claims(t, got.access)["cnf"].(map[string]any); len(cnf) != 1 || cnf["jkt"] != k.Thumbprint {
			t.Errorf("%s: cnf is %v", alg, cnf)
		}
		if a := g.get("/userinfo", nil, bound(got.access, g.userinfoProof(k, got.access))); a.StatusCode != http.StatusOK {
			t.Errorf("%s: userinfo: %d %s", alg, a.StatusCode, a.body)
		}
	}
	plain, _, _ := g.signInAndExchange("openid")
	if cnf, there := claims(t, plain.access)["cnf"]; there {
		t.Errorf("a token without a proof has cnf %v", cnf)
	}
	k := dpoptest.NewKey(t, jose.ES256)
	proof := g.proof(k)
	g.statements(1, func() {
		a := g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(proof))
		if a.json(t)["token_type"] != "DPoP" {
			t.Errorf("client credentials: %s", a.body)
		}
	})
}

func TestDPoP_TokenEndpointRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k := dpoptest.NewKey(t, jose.ES256)
	nonce, url, now := g.nonce(k), issuer+"/token", g.clock.Now()
	make := func(changes dpoptest.Claims) string { return k.Proof("POST", url, now, changes.With("nonce", nonce)) }
	for name, proof := range map[string]string{
		"garbage":            "garbage",
		"GET":                make(dpoptest.Claims{"htm": "GET"}),
		"another endpoint":   make(dpoptest.Claims{"htu": issuer + "/userinfo"}),
		"another host":       make(dpoptest.Claims{"htu": "http://evil.test/token"}),
		"another tenant":     make(dpoptest.Claims{"htu": issuer + "/t/other/token"}),
		"an hour old":        make(dpoptest.Claims{"iat": now.Add(-time.Hour).Unix()}),
		"a minute early":     make(dpoptest.Claims{"iat": now.Add(time.Minute).Unix()}),
		"without jti":        make(dpoptest.Claims{"jti": nil}),
		"signed by somebody": strings.Join(slices.Concat(strings.Split(make(nil), ".")[:2], strings.Split(make(nil), ".")[2:]), "."),
	} {
		a := g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(proof))
		g.refused(a, http.StatusBadRequest, "invalid_dpop_proof")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	a := g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(make(nil)), proven(make(nil)))
	g.refused(a, http.StatusBadRequest, "invalid_dpop_proof")
	for _, wrong := range []any{"", "x", nonce[:len(nonce)-1] + "A", nil} {
		proof := k.Proof("POST", url, now, dpoptest.Claims{"nonce": wrong})
		g.refused(g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(proof)), http.StatusBadRequest, "use_dpop_nonce")
	}
	// The address is the configured one, whatever the request says.
	host := func(r *http.Request) { r.Host = "evil.test"; r.Header.Set("X-Forwarded-Host", "evil.test") }
	g.tokensOf(g.post("/token", form("grant_type", "client_credentials"), basic("service"), host, proven(make(nil))))
	g.refused(g.post("/token", form("grant_type", "client_credentials"), basic("service"), host, proven(make(dpoptest.Claims{"htu": "http://evil.test/token"}))),
		http.StatusBadRequest, "invalid_dpop_proof")
}

func TestDPoP_AProofWorksOnce(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k := dpoptest.NewKey(t, jose.ES256)
	proof := g.proof(k)
	grant := form("grant_type", "client_credentials")
	// A request that fails before does not use the proof up.
	g.refused(g.post("/token", grant, func(r *http.Request) { r.SetBasicAuth("service", "wrong") }, proven(proof)), http.StatusUnauthorized, "invalid_client")
	g.tokensOf(g.post("/token", grant, basic("service"), proven(proof)))
	g.refused(g.post("/token", grant, basic("service"), proven(proof)), http.StatusBadRequest, "invalid_dpop_proof")
	g.clock.Advance(dpop.MaxAge)
	g.refused(g.post("/token", grant, basic("service"), proven(proof)), http.StatusBadRequest, "invalid_dpop_proof")
	g.clock.Advance(time.Second) // and then it is stale
	g.refused(g.post("/token", grant, basic("service"), proven(proof)), http.StatusBadRequest, "invalid_dpop_proof")
}

func TestDPoP_NoncesAreRenewedByTheClock(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k := dpoptest.NewKey(t, jose.ES256)
	nonce := g.nonce(k)
	ask := func() answer {
		proof := k.Proof("POST", issuer+"/token", g.clock.Now(), dpoptest.Claims{"nonce": nonce})
		return g.post("/token", form("grant_type", "client_credentials"), basic("service"), proven(proof))
	}
	g.clock.Advance(2 * time.Minute)
	a := ask()
	g.tokensOf(a)
	if next := a.Header.Get(dpop.NonceHeader); next == nonce || next == "" {
		t.Errorf("the next nonce is %q", next)
	}
	g.clock.Advance(3 * time.Minute)
	a = ask()
	g.refused(a, http.StatusBadRequest, "use_dpop_nonce")
	nonce = a.Header.Get(dpop.NonceHeader)
	g.tokensOf(ask())
}

func TestDPoP_ACodeForAKeyIsExchangedWithThatKeyAlone(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	cookie, _ := g.signIn()
	code := g.code(cookie, with(authRequest(), "dpop_jkt", k.Thumbprint))
	g.refused(g.post("/token", exchange(code), basic("app")), http.StatusBadRequest, "invalid_grant")
	g.refused(g.post("/token", exchange(code), basic("app"), proven(g.proof(other))), http.StatusBadRequest, "invalid_grant")
	g.tokensOf(g.post("/token", exchange(code), basic("app"), proven(g.proof(k)))) // refused attempts leave it usable

	for _, wrong := range []string{"x", k.Thumbprint + "=", k.Thumbprint[:42], strings.Repeat("+", 43), strings.Repeat("x", 5000)} {
		_, q := g.get("/authorize", with(authRequest(), "dpop_jkt", wrong), cookied(cookie)).location(t)
		if q.Get("error") != "invalid_request" || !strings.Contains(q.Get("error_description"), "dpop_jkt") {
			t.Errorf("dpop_jkt %q: %v", wrong, q)
		}
	}
	twice := authRequest()
	twice["dpop_jkt"] = []string{k.Thumbprint, other.Thumbprint}
	if _, q := g.get("/authorize", twice, cookied(cookie)).location(t); q.Get("error") != "invalid_request" {
		t.Errorf("dpop_jkt twice: %v", q)
	}
}

func TestDPoP_RefreshTokensOfAPublicClientStayWithTheirKey(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.EdDSA)
	cookie, _ := g.signIn()
	got := g.tokensOf(g.post("/token", nativeExchange(g.code(cookie, nativeRequest())), proven(g.proof(k))))
	refresh := func(token string, change ...func(*http.Request)) answer {
		return g.post("/token", form("grant_type", "refresh_token", "refresh_token", token, "client_id", "native"), change...)
	}
	g.refused(refresh(got.refresh), http.StatusBadRequest, "invalid_grant")
	g.refused(refresh(got.refresh, proven(g.proof(other))), http.StatusBadRequest, "invalid_grant")
	proof := g.proof(k)
	var next tokens
	g.statements(2, func() { next = g.tokensOf(refresh(got.refresh, proven(proof))) })
	if cnf, _ := claims(t, next.access)["cnf"].(map[string]any); cnf["jkt"] != k.Thumbprint {
		t.Errorf("cnf is %v", cnf)
	}
	// Who stole an old token without the key cannot end the family by its reuse.
	g.clock.Advance(time.Hour)
	g.refused(refresh(got.refresh), http.StatusBadRequest, "invalid_grant")
	g.refused(refresh(got.refresh, proven(g.proof(other))), http.StatusBadRequest, "invalid_grant")
	last := g.tokensOf(refresh(next.refresh, proven(g.proof(k))))
	g.clock.Advance(time.Hour)
	g.refused(refresh(got.refresh, proven(g.proof(k))), http.StatusBadRequest, "invalid_grant") // its holder can
	g.refused(refresh(last.refresh, proven(g.proof(k))), http.StatusBadRequest, "invalid_grant")
}

func TestDPoP_AConfidentialClientMayChangeItsKeyAtARefresh(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	got := g.tokensOf(g.post("/token", exchange(g.code(cookie, authRequest())), basic("app"), proven(g.proof(dpoptest.NewKey(t, jose.ES256)))))
	for range 2 {
		k := dpoptest.NewKey(t, jose.ES256)
		got = g.tokensOf(g.post("/token", form("grant_type", "refresh_token", "refresh_token", got.refresh), basic("app"), proven(g.proof(k))))
		if cnf, _ := claims(t, got.access)["cnf"].(map[string]any); cnf["jkt"] != k.Thumbprint {
			t.Errorf("cnf is %v", cnf)
		}
	}
}

func TestDPoP_UserinfoAsksForTheKey(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	cookie, _ := g.signIn()
	got := g.tokensOf(g.post("/token", exchange(g.code(cookie, authRequest())), basic("app"), proven(g.proof(k))))
	plain, _, _ := g.signInAndExchange("openid")
	url, now, nonce := issuer+"/userinfo", g.clock.Now(), g.nonce(k)
	proof := func(k *dpoptest.Key, changes dpoptest.Claims) string {
		return k.Proof("GET", url, now, changes.With("nonce", nonce))
	}
	ath := dpoptest.Token(got.access)
	used := proof(k, ath)
	g.statements(2, func() { // the person, and the proof's jti
		if a := g.get("/userinfo", nil, bound(got.access, used)); a.StatusCode != http.StatusOK || a.Header.Get(dpop.NonceHeader) == "" {
			t.Errorf("right: %d %s", a.StatusCode, a.body)
		}
	})
	lower := func(r *http.Request) { r.Header.Set("Authorization", "dpop "+got.access) }
	if a := g.get("/userinfo", nil, proven(proof(k, ath)), lower); a.StatusCode != http.StatusOK {
		t.Errorf("scheme in lower case: %d %s", a.StatusCode, a.body)
	}
	post := k.Proof("POST", url, now, ath.With("nonce", nonce))
	if a := g.post("/userinfo", form(), bound(got.access, post)); a.StatusCode != http.StatusOK {
		t.Errorf("POST: %d %s", a.StatusCode, a.body)
	}
	for name, x := range map[string]struct {
		a    answer
		code string
	}{
		"as bearer":               {g.get("/userinfo", nil, bearer(got.access)), "invalid_token"},
		"as bearer with a proof":  {g.get("/userinfo", nil, bearer(got.access), proven(proof(k, ath))), "invalid_token"},
		"in the body":             {g.post("/userinfo", form("access_token", got.access), proven(post)), "invalid_token"},
		"without a proof":         {g.get("/userinfo", nil, func(r *http.Request) { r.Header.Set("Authorization", "DPoP "+got.access) }), "invalid_dpop_proof"},
		"two proofs":              {g.get("/userinfo", nil, bound(got.access, proof(k, ath)), proven(proof(k, ath))), "invalid_dpop_proof"},
		"used before":             {g.get("/userinfo", nil, bound(got.access, used)), "invalid_dpop_proof"},
		"another key":             {g.get("/userinfo", nil, bound(got.access, proof(other, ath))), "invalid_token"},
		"without ath":             {g.get("/userinfo", nil, bound(got.access, proof(k, nil))), "invalid_dpop_proof"},
		"ath of another token":    {g.get("/userinfo", nil, bound(got.access, proof(k, dpoptest.Token(plain.access)))), "invalid_dpop_proof"},
		"for the token endpoint":  {g.get("/userinfo", nil, bound(got.access, proof(k, ath.With("htu", issuer+"/token")))), "invalid_dpop_proof"},
		"without nonce":           {g.get("/userinfo", nil, bound(got.access, k.Proof("GET", url, now, ath))), "use_dpop_nonce"},
		"a plain token as bound":  {g.get("/userinfo", nil, bound(plain.access, proof(k, dpoptest.Token(plain.access)))), "invalid_token"},
		"garbage under DPoP":      {g.get("/userinfo", nil, bound("garbage", proof(k, nil))), "invalid_token"},
		"an empty token":          {g.get("/userinfo", nil, bound("", proof(k, nil))), "invalid_request"},
		"of another tenant":       {g.get("/t/other/userinfo", nil, bound(got.access, proof(k, ath))), "invalid_token"},
		"header and body at once": {g.post("/userinfo", form("access_token", got.access), bound(got.access, post)), "invalid_request"},
	} {
		challenge := x.a.Header.Get("WWW-Authenticate")
		want := http.StatusUnauthorized
		if x.code == "invalid_request" {
			want = http.StatusBadRequest
		}
		if x.a.StatusCode != want || !strings.Contains(challenge, `error="`+x.code+`"`) || !strings.Contains(challenge, "DPoP ") ||
			!strings.Contains(challenge, `algs="ES256 RS256 PS256 EdDSA"`) || x.a.json(t)["error"] != x.code {
			t.Errorf("%s: %d %q %s", name, x.a.StatusCode, challenge, x.a.body)
		}
	}
	if a := g.get("/userinfo", nil, bearer(plain.access), proven("garbage")); a.StatusCode != http.StatusOK {
		t.Errorf("a plain token beside a header that nobody asked for: %d %s", a.StatusCode, a.body)
	}
	if a := g.get("/userinfo", nil); a.Header.Get("WWW-Authenticate") != `Bearer realm="versola", DPoP realm="versola", algs="ES256 RS256 PS256 EdDSA"` {
		t.Errorf("the challenge without a token: %q", a.Header.Get("WWW-Authenticate"))
	}
}

func TestDPoP_WhereBoundTokensAreAskedForNoOtherIsGiven(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) {
		for i := range s.Clients {
			if c := &s.Clients[i]; c.ID == "app" && c.Tenant == "demo" {
				c.DPoPBound = true
			}
		}
		s.Tenants = append(s.Tenants, catalog.TenantSpec{ID: "strict", Profile: catalog.ProfileFAPI2})
		s.Clients = append(s.Clients, catalog.ClientSpec{Tenant: "strict", ID: "service", AuthMethod: catalog.AuthBasic, GrantTypes: []string{catalog.GrantClientCredentials}})
	})
	k := dpoptest.NewKey(t, jose.ES256)
	cookie, _ := g.signIn()
	code := g.code(cookie, authRequest())
	a := g.post("/token", exchange(code), basic("app"))
	g.refused(a, http.StatusBadRequest, "invalid_dpop_proof")
	if a.Header.Get(dpop.NonceHeader) == "" {
		t.Error("no nonce for the proof that is missing")
	}
	got := g.tokensOf(g.post("/token", exchange(code), basic("app"), proven(g.proof(k))))
	g.refused(g.post("/token", form("grant_type", "refresh_token", "refresh_token", got.refresh), basic("app")), http.StatusBadRequest, "invalid_dpop_proof")

	grant, url := form("grant_type", "client_credentials"), issuer+"/t/strict/token"
	g.refused(g.post("/t/strict/token", grant, basic("service")), http.StatusBadRequest, "invalid_dpop_proof")
	g.tokensOf(g.post("/t/strict/token", grant, basic("service"), proven(k.Proof("POST", url, g.clock.Now(), dpoptest.Claims{"nonce": g.nonce(k)}))))
	weak := dpoptest.NewKey(t, jose.RS256)
	g.refused(g.post("/t/strict/token", grant, basic("service"), proven(weak.Proof("POST", url, g.clock.Now(), dpoptest.Claims{"nonce": g.nonce(k)}))),
		http.StatusBadRequest, "invalid_dpop_proof")
}

func TestDPoP_IsAdvertisedAsItWorks(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Tenants = append(s.Tenants, catalog.TenantSpec{ID: "strict", Profile: catalog.ProfileFAPI2})
	})
	for path, want := range map[string][]any{"": {"ES256", "RS256", "PS256", "EdDSA"}, "/t/strict": {"ES256", "PS256", "EdDSA"}} {
		got, _ := g.get(path+"/.well-known/openid-configuration", nil).json(t)["dpop_signing_alg_values_supported"].([]any)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", path, got, want)
		}
	}
	origin := func(r *http.Request) { r.Header.Set("Origin", "https://spa.test") }
	a := g.do(http.MethodOptions, "/token", nil, origin)
	if !strings.Contains(a.Header.Get("Access-Control-Allow-Headers"), "DPoP") {
		t.Errorf("a page may send %q", a.Header.Get("Access-Control-Allow-Headers"))
	}
	a = g.post("/token", form("grant_type", "client_credentials"), basic("service"), origin)
	if !strings.Contains(a.Header.Get("Access-Control-Expose-Headers"), dpop.NonceHeader) {
		t.Errorf("a page may read %q", a.Header.Get("Access-Control-Expose-Headers"))
	}
}
