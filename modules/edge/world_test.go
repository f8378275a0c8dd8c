package edge_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/edge"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	issuer    = "http://auth.test"
	publicURL = "http://edge.test"
	subject   = "0190aaaa-0000-7000-8000-000000000001"
)

// world is an auth, an upstream and a database, for one or more edges.
type world struct {
	t        testing.TB
	clock    *clock.Fake
	auth     *fakeAuth
	upstream *fakeUpstream
	catalog  *catalog.Holder
	snapshot catalog.Snapshot
	url      string // of the database
	jwks     secret.Text
	keys     []secret.Key
	edges    int // running
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewFake(clock.System{}.Now()), catalog: catalog.NewHolder(), url: pgtest.New(t, db.Edge())}
	w.auth = newFakeAuth(t, w.clock)
	w.upstream = newFakeUpstream(t)
	var public json.RawMessage
	w.jwks, public = edgeKeys(t)
	key, err := secret.GenerateKey(rand.Reader)
	must(t, err)
	w.keys, err = secret.ParseKeys([]secret.Text{key})
	must(t, err)
	w.snapshot = w.demo(public)
	w.compile()
	return w
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func edgeKeys(t testing.TB) (private secret.Text, public json.RawMessage) {
	t.Helper()
	set, pub := jwk.NewSet(), jwk.NewSet()
	for _, use := range []string{"sig", "enc"} {
		raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		k, err := jwk.FromRaw(raw)
		must(t, err)
		must(t, k.Set(jwk.KeyUsageKey, use))
		must(t, k.Set(jwk.KeyIDKey, use+"-1"))
		must(t, set.AddKey(k))
		p, err := k.PublicKey()
		must(t, err)
		must(t, pub.AddKey(p))
	}
	privateJSON, err := json.Marshal(set)
	must(t, err)
	public, err = json.Marshal(pub)
	must(t, err)
	return secret.Text(privateJSON), public
}

var secretID = id.UUID{1}

func (w *world) demo(edgeJWKS json.RawMessage) catalog.Snapshot {
	public, err := w.auth.signer.Public().JWK()
	must(w.t, err)
	endpoints := []catalog.EndpointSpec{
		{ID: "home", Method: "GET", Path: "/", Public: true},
		{ID: "list", Method: "GET", Path: "/accounts"},
		{ID: "read", Method: "GET", Path: "/accounts/{id}"},
		{ID: "pay", Method: "POST", Path: "/payments"},
		{ID: "files", Method: "GET", Path: "/files/{path...}"},
		{ID: "stream", Method: "GET", Path: "/stream"},
		{ID: "hold", Method: "GET", Path: "/hold"},
		{ID: "cut", Method: "GET", Path: "/cut"},
		{ID: "closed", Method: "GET", Path: "/closed"},
	}
	resource := func(id, url string) catalog.ResourceSpec {
		return catalog.ResourceSpec{Tenant: "demo", ID: id, Audience: "bank", Upstream: catalog.UpstreamSpec{URL: url, MaxBody: 1 << 10}, Endpoints: endpoints}
	}
	forwarding := resource("forwarding", w.upstream.URL+"/base")
	forwarding.Upstream.ForwardToken = true
	slow := resource("slow", w.upstream.URL)
	slow.Upstream.ResponseTimeout = catalog.Duration(100 * time.Millisecond)
	all := func(names ...string) (refs []string) {
		for _, r := range []string{"bank", "forwarding", "gone", "slow"} {
			for _, n := range names {
				refs = append(refs, r+":"+n)
			}
		}
		return refs
	}
	client := func(id string, perms ...string) catalog.ClientSpec {
		return catalog.ClientSpec{Tenant: "demo", ID: id, AuthMethod: catalog.AuthBasic, Audiences: []string{"bank"}, Permissions: perms,
			Secrets: []catalog.SealedSecret{{ID: secretID, Sealed: []byte(id + " secret")}}}
	}
	return catalog.Snapshot{
		Revision: 1, Issuer: issuer, RootTenant: "demo",
		Edges:     []catalog.EdgeSpec{{ID: "local", JWKS: edgeJWKS}},
		Tenants:   []catalog.TenantSpec{{ID: "demo", Edge: "local"}, {ID: "other", Edge: "local"}},
		Resources: []catalog.ResourceSpec{resource("bank", w.upstream.URL), forwarding, resource("gone", "http://127.0.0.1:1"), slow},
		Permissions: []catalog.PermissionSpec{
			{Tenant: "demo", ID: "read", Endpoints: all("list", "read", "files", "stream", "hold", "cut")},
			{Tenant: "demo", ID: "pay", Endpoints: all("pay")},
		},
		Roles:   []catalog.RoleSpec{{Tenant: "demo", ID: "customer", Permissions: []string{"read", "pay"}}, {Tenant: "demo", ID: "reader", Permissions: []string{"read"}}},
		Clients: []catalog.ClientSpec{client("web"), client("robot", "read"), {Tenant: "other", ID: "web"}},
		Presets: []catalog.PresetSpec{{Tenant: "demo", ID: "demo", Edge: "local", Client: "web", RedirectURI: publicURL + "/complete",
			Scopes: []string{"openid", "bank"}, AfterLogin: "/app", AfterLogout: "/bye"}},
		Keys: []catalog.KeySpec{{ID: w.auth.signer.Public().ID, Alg: "ES256", State: catalog.KeyActive, Public: public}},
	}
}

func (w *world) compile() {
	w.t.Helper()
	compiler := catalog.Compiler{Open: func(sealed []byte, _ string) ([]byte, error) { return sealed, nil }}
	c, err := compiler.Compile(&w.snapshot)
	must(w.t, err)
	w.catalog.Set(c)
}

// running is one edge process.
type running struct {
	*httptest.Server
	module *edge.Module
	db     *postgres.DB
}

// edge starts an edge on the world's database.
func (w *world) edge(options ...func(*edge.Deps)) *running {
	w.t.Helper()
	pool, err := postgres.Open(context.Background(), postgres.Options{URL: w.url})
	must(w.t, err)
	d := edge.Deps{
		DB: pool, Catalog: w.catalog, Clock: w.clock, Random: rand.Reader, Log: slog.New(slog.DiscardHandler), EdgeID: "local", PublicURL: publicURL,
		SessionKeys: w.keys, AuthURL: w.auth.URL, CentralURL: w.auth.URL, PrivateKeys: w.jwks,
	}
	for _, o := range options {
		o(&d)
	}
	m, err := edge.New(d)
	must(w.t, err)
	s := httpserver.New(httpserver.Options{Name: "edge", Log: d.Log, MaxBody: -1, TrustedProxies: d.TrustedProxies})
	m.Mount(s.Echo.Group(""))
	r := &running{httptest.NewServer(s.Echo), m, pool}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = m.Run(ctx)
	}()
	w.t.Cleanup(func() {
		cancel()
		<-done
		r.Close()
		pool.Close()
	})
	w.edges++
	eventually(w.t, "the edge to listen", func() bool {
		var n int
		must(w.t, pool.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
			AND application_name = 'versola listen versola_edge_session' AND query LIKE 'LISTEN%'`).Scan(&n))
		return n >= w.edges
	})
	return r
}

func trusted(prefixes ...string) func(*edge.Deps) {
	return func(d *edge.Deps) {
		for _, p := range prefixes {
			d.TrustedProxies = append(d.TrustedProxies, netip.MustParsePrefix(p))
		}
	}
}

// browser keeps cookies by hand, so that a test sees and moves them.
type browser struct {
	t       testing.TB
	cookies map[string]string
}

func newBrowser(t testing.TB) *browser { return &browser{t: t, cookies: map[string]string{}} }

type response struct {
	*http.Response
	body string
}

func (r *response) reason() string {
	var p struct {
		Reason string `json:"reason"`
	}
	_ = json.Unmarshal([]byte(r.body), &p)
	return p.Reason
}

var noRedirects = &http.Client{
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	Transport:     &http.Transport{MaxIdleConnsPerHost: 100},
}

func (b *browser) do(method, target string, body io.Reader, headers ...string) *response {
	b.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, target, body)
	must(b.t, err)
	var pairs []string
	for name, value := range b.cookies {
		pairs = append(pairs, name+"="+value)
	}
	if len(pairs) > 0 {
		r.Header.Set("Cookie", strings.Join(pairs, "; "))
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	res, err := noRedirects.Do(r)
	must(b.t, err)
	defer func() { _ = res.Body.Close() }()
	content, err := io.ReadAll(res.Body)
	must(b.t, err)
	for _, c := range res.Cookies() {
		if c.MaxAge < 0 {
			delete(b.cookies, c.Name)
		} else {
			b.cookies[c.Name] = c.Value
		}
	}
	return &response{res, string(content)}
}

func (b *browser) get(target string, headers ...string) *response {
	b.t.Helper()
	return b.do(http.MethodGet, target, nil, headers...)
}

// start begins a login and returns what auth was asked.
func (b *browser) start(e *running, query string) url.Values {
	b.t.Helper()
	res := b.get(e.URL + "/login/demo" + query)
	if res.StatusCode != http.StatusSeeOther {
		b.t.Fatalf("login: %d %s", res.StatusCode, res.body)
	}
	to, err := url.Parse(res.Header.Get("Location"))
	must(b.t, err)
	return to.Query()
}

// signIn walks a whole login.
func (b *browser) signIn(w *world, e *running) {
	b.t.Helper()
	asked := b.start(e, "")
	res := b.get(e.URL + "/complete?" + w.auth.answer(asked).Encode())
	if res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/app" {
		b.t.Fatalf("complete: %d to %q: %s", res.StatusCode, res.Header.Get("Location"), res.body)
	}
}

// fakeAuth is a token endpoint and a revocation feed.
type fakeAuth struct {
	*httptest.Server
	t      testing.TB
	clock  clock.Clock
	signer *jose.Signer

	mu        sync.Mutex
	codes     map[string]url.Values // what was asked for, by code
	refresh   map[string]bool       // live refresh tokens
	refreshes int
	sid       string
	roles     []string
	ttl       time.Duration
	fail      int // answer with this status
	error     string
	change    func(id, access map[string]any) // alters the claims
	revoked   []map[string]any
	wake      chan struct{}
}

func newFakeAuth(t testing.TB, c clock.Clock) *fakeAuth {
	key, err := jose.Generate(jose.ES256)
	must(t, err)
	signer, err := jose.NewSigner("auth-1", jose.ES256, key)
	must(t, err)
	a := &fakeAuth{t: t, clock: c, signer: signer, codes: map[string]url.Values{}, refresh: map[string]bool{}, sid: "sid-1",
		roles: []string{"customer"}, ttl: 5 * time.Minute, wake: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /token", a.token)
	mux.HandleFunc("POST /t/other/token", a.token)
	mux.HandleFunc("GET /internal/revocations", a.feed)
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// answer is the authorization response to what was asked.
func (a *fakeAuth) answer(asked url.Values) url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	code := id.NewHandle(rand.Reader)
	a.codes[code] = asked
	return url.Values{"code": {code}, "state": {asked.Get("state")}, "iss": {issuer}}
}

func (a *fakeAuth) set(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f()
}

func (a *fakeAuth) token(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
	}
	if user, pass, ok := r.BasicAuth(); !ok || user != "web" || pass != url.QueryEscape("web secret") {
		refuse(401, "invalid_client")
		return
	}
	if a.fail != 0 {
		refuse(a.fail, a.error)
		return
	}
	nonce := ""
	switch r.FormValue("grant_type") {
	case "authorization_code":
		asked, ok := a.codes[r.FormValue("code")]
		delete(a.codes, r.FormValue("code"))
		if !ok || challenge(r.FormValue("code_verifier")) != asked.Get("code_challenge") || r.FormValue("redirect_uri") != asked.Get("redirect_uri") {
			refuse(400, "invalid_grant")
			return
		}
		nonce = asked.Get("nonce")
	case "refresh_token":
		a.refreshes++
		if !a.refresh[r.FormValue("refresh_token")] {
			refuse(400, "invalid_grant")
			return
		}
		delete(a.refresh, r.FormValue("refresh_token")) // no grace: a second use shows
	}
	refresh := id.NewHandle(rand.Reader)
	a.refresh[refresh] = true
	idClaims, access := a.idClaims(nonce), a.accessClaims()
	if a.change != nil {
		a.change(idClaims, access)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"access_token": a.sign("at+jwt", access), "token_type": "Bearer", "expires_in": 300, "refresh_token": refresh, "id_token": a.sign("JWT", idClaims),
	})
}

func (a *fakeAuth) idClaims(nonce string) map[string]any {
	now := a.clock.Now().Unix()
	c := map[string]any{"iss": issuer, "sub": subject, "aud": "web", "iat": now, "exp": now + 300, "auth_time": now, "sid": a.sid}
	if nonce != "" {
		c["nonce"] = nonce
	}
	return c
}

func (a *fakeAuth) accessClaims() map[string]any {
	now := a.clock.Now()
	return map[string]any{
		"iss": issuer, "sub": subject, "aud": []string{"bank"}, "iat": now.Unix(), "exp": now.Add(a.ttl).Unix(), "jti": id.Short(rand.Reader, 16),
		"client_id": "web", "scope": "openid bank", "sid": a.sid, "gid": "gid-1", "tenant": "demo", "roles": a.roles,
	}
}

// bearer makes an access token, altered by change.
func (a *fakeAuth) bearer(change func(map[string]any)) string {
	a.mu.Lock()
	defer a.mu.Unlock()
	c := a.accessClaims()
	if change != nil {
		change(c)
	}
	return a.sign("at+jwt", c)
}

func (a *fakeAuth) sign(typ string, claims map[string]any) string {
	payload, err := json.Marshal(claims)
	must(a.t, err)
	token, err := a.signer.Sign(typ, payload)
	must(a.t, err)
	return token
}

// revoke puts an entry into the feed.
func (a *fakeAuth) revoke(kind, subject string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	a.revoked = append(a.revoked, map[string]any{"seq": len(a.revoked) + 1, "kind": kind, "subject": subject, "at": now, "expires_at": now.Add(time.Hour)})
	close(a.wake)
	a.wake = make(chan struct{})
}

func (a *fakeAuth) feed(w http.ResponseWriter, r *http.Request) {
	if !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	after := 0
	if v := r.URL.Query().Get("after"); v != "" {
		_ = json.Unmarshal([]byte(v), &after)
	}
	a.mu.Lock()
	wake, n := a.wake, len(a.revoked)
	a.mu.Unlock()
	if n <= after {
		select {
		case <-wake:
		case <-r.Context().Done():
		case <-time.After(2 * time.Second):
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	_ = json.NewEncoder(w).Encode(map[string]any{"entries": a.revoked[min(after, len(a.revoked)):], "head": len(a.revoked)})
}
