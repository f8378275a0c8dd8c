package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/auth/authorization"
	"versola/modules/auth/keys"
	"versola/modules/auth/logout"
	"versola/modules/auth/session"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

const issuer = "http://auth.test"

// Redirect URI, verifier and challenge of most requests. The pair is that of
// RFC 7636 appendix B.
const (
	callback  = "http://localhost:9999/callback"
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// fakeLogin stands for the sign-in half: it remembers what it was asked, also by
// requests side by side; started is read when they are answered.
type fakeLogin struct {
	mu      sync.Mutex
	started []*authorization.Request
}

func (f *fakeLogin) Start(c echo.Context, _ tenant.At, _ *catalog.Client, r *authorization.Request) error {
	f.mu.Lock()
	f.started = append(f.started, r)
	f.mu.Unlock()
	return c.Redirect(http.StatusSeeOther, "/login/handle/start")
}
func (*fakeLogin) Mount(*echo.Group) {}
func (*fakeLogin) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

// fakePages shows pages as JSON, for tests to read.
type fakePages struct{}

type fakePage struct {
	Page, Code, Description, CSRF string
	Hidden                        url.Values
	Action                        string
	Frames                        []string
}

func (fakePages) Error(c echo.Context, status int, code, description string) error {
	return c.JSON(status, fakePage{Page: "error", Code: code, Description: description})
}
func (fakePages) Forward(c echo.Context, action string, fields url.Values, _ []string) error {
	return c.JSON(http.StatusOK, fakePage{Page: "forward", Action: action, Hidden: fields})
}
func (fakePages) SignedOut(c echo.Context) error {
	return c.JSON(http.StatusOK, fakePage{Page: "signed-out"})
}
func (fakePages) SigningOut(c echo.Context, frames []string, onward string) error {
	return c.JSON(http.StatusOK, fakePage{Page: "signing-out", Frames: frames, Action: onward})
}
func (fakePages) ConfirmLogout(c echo.Context, csrf string, hidden url.Values) error {
	return c.JSON(http.StatusOK, fakePage{Page: "confirm", CSRF: csrf, Hidden: hidden})
}

// rig is a whole provider on a database of its own, with a clock that stands
// still.
type rig struct {
	testing.TB
	db      *postgres.DB
	clock   *clock.Fake
	module  *Module
	login   *fakeLogin
	holder  *catalog.Holder
	keyring *secret.Keyring
	keys    []secret.Key
	server  *httpserver.Server
	spec    *catalog.Snapshot
	user    id.UUID
}

func newRig(t testing.TB, change ...func(*catalog.Snapshot)) *rig {
	t.Helper()
	ctx := context.Background()
	dbURL := pgtest.New(t, db.Auth(), db.Central())
	conn, err := postgres.Open(ctx, postgres.Options{URL: dbURL, MaxConns: 8})
	must(t, err)
	t.Cleanup(conn.Close)
	g := &rig{TB: t, db: conn, login: &fakeLogin{}, holder: catalog.NewHolder(),
		clock: clock.NewFake(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)), keys: []secret.Key{testKey(t, 1)}}
	g.keyring, err = secret.NewKeyring([]secret.Key{testKey(t, 2)}, "test")
	must(t, err)
	must(t, keys.Ensure(ctx, conn, g.keyring, g.clock.Now()))
	g.spec = g.snapshot()
	for _, f := range change {
		f(g.spec)
	}
	g.compile()
	log := slog.New(slog.DiscardHandler)
	g.module, err = assemble(Deps{
		DB: conn, DatabaseURL: dbURL, Catalog: g.holder, Clock: g.clock, Random: rand.Reader, TokenKeys: g.keys, Encryption: g.keyring,
		Log: log, Meter: noop.NewMeterProvider().Meter("test"), Outbound: http.DefaultClient, Issuer: issuer, RootTenant: "demo",
	}, func(Deps, *session.Store, *logout.Ender) (signIn, error) {
		return signIn{login: g.login, pages: fakePages{}}, nil
	})
	must(t, err)
	g.server = httpserver.New(httpserver.Options{Name: "auth", Log: log, HandleError: g.module.HandleError})
	g.module.Mount(g.server.Echo.Group(""))
	g.module.MountInternal(g.server.Echo.Group(""))
	must(t, g.module.follower.Pull(ctx))
	g.user = g.addUser("demo", "alice@example.com")
	return g
}

func testKey(t testing.TB, n byte) secret.Key {
	t.Helper()
	value := make([]byte, secret.KeyBytes)
	value[0] = n
	return secret.Key{ID: string('a' + rune(n)), Value: value}
}

func (g *rig) snapshot() *catalog.Snapshot {
	off := false
	all := []string{catalog.GrantCode, catalog.GrantRefreshToken}
	scopes := []string{"openid", "profile", "email", "phone", "offline_access"}
	s := &catalog.Snapshot{
		Revision: 1, Issuer: issuer, RootTenant: "demo",
		Tenants: []catalog.TenantSpec{{ID: "demo", Profile: catalog.ProfileStandard}, {ID: "other", Profile: catalog.ProfileStandard}},
		Roles:   []catalog.RoleSpec{{Tenant: "demo", ID: "customer"}},
		Clients: []catalog.ClientSpec{
			{Tenant: "demo", ID: "app", AuthMethod: catalog.AuthBasic, GrantTypes: all, RedirectURIs: []string{callback, callback + "?x=1"},
				Scopes: scopes, PostLogoutRedirectURIs: []string{"http://localhost:9999/bye"}, CORSOrigins: []string{"https://spa.test"}},
			{Tenant: "demo", ID: "post", AuthMethod: catalog.AuthPost, GrantTypes: all, RedirectURIs: []string{callback}, Scopes: scopes},
			{Tenant: "demo", ID: "native", AuthMethod: catalog.AuthNone, GrantTypes: all, RedirectURIs: []string{"http://127.0.0.1/callback"}, Scopes: scopes},
			{Tenant: "demo", ID: "loose", AuthMethod: catalog.AuthBasic, GrantTypes: []string{catalog.GrantCode}, RequirePKCE: &off,
				RedirectURIs: []string{callback}, Scopes: []string{"openid"}, IDTokenAlg: "ES256"},
			{Tenant: "demo", ID: "service", AuthMethod: catalog.AuthBasic, GrantTypes: []string{catalog.GrantClientCredentials},
				Scopes: []string{"openid", "read", "write"}, Audiences: []string{"bank", "vault"}},
			{Tenant: "demo", ID: "gone", AuthMethod: catalog.AuthBasic, GrantTypes: all, RedirectURIs: []string{callback}, Scopes: scopes, Disabled: true},
			{Tenant: "other", ID: "app", AuthMethod: catalog.AuthBasic, GrantTypes: all, RedirectURIs: []string{callback}, Scopes: scopes},
		},
	}
	for _, tenant := range []string{"demo", "other"} {
		s.Scopes = append(s.Scopes,
			catalog.ScopeSpec{Tenant: tenant, ID: "openid", Claims: []string{"sub"}},
			catalog.ScopeSpec{Tenant: tenant, ID: "profile", Claims: []string{"name", "birthdate", "preferred_username", "updated_at"}},
			catalog.ScopeSpec{Tenant: tenant, ID: "email", Claims: []string{"email", "email_verified"}},
			catalog.ScopeSpec{Tenant: tenant, ID: "phone", Claims: []string{"phone_number", "phone_number_verified"}},
			catalog.ScopeSpec{Tenant: tenant, ID: "offline_access"},
		)
	}
	return s
}

// declared returns the declaration of a client.
func (g *rig) declared(id string) catalog.ClientSpec {
	g.Helper()
	i := slices.IndexFunc(g.spec.Clients, func(c catalog.ClientSpec) bool { return c.ID == id })
	if i < 0 {
		g.Fatalf("no client %s", id)
	}
	return g.spec.Clients[i]
}

// compile puts the specification, with secrets and keys, into the holder. A
// confidential client's secret is "<id>-secret", and an older one "<id>-old".
func (g *rig) compile() {
	g.Helper()
	s := *g.spec
	s.Clients = append([]catalog.ClientSpec{}, g.spec.Clients...)
	for i := range s.Clients {
		c := &s.Clients[i]
		if c.AuthMethod == catalog.AuthNone {
			continue
		}
		for _, text := range []string{c.ID + "-secret", c.ID + "-old"} {
			sid := id.NewUUID(g.clock.Now(), rand.Reader)
			c.Secrets = append(c.Secrets, catalog.SealedSecret{ID: sid, Sealed: g.keyring.Seal([]byte(text), catalog.ClientSecretContext(c.Tenant, c.ID, sid))})
		}
	}
	rows, err := g.db.Query(context.Background(), "SELECT id, alg, state, public_jwk, sealed FROM central.signing_key ORDER BY id")
	must(g, err)
	for rows.Next() {
		var k catalog.KeySpec
		must(g, rows.Scan(&k.ID, &k.Alg, &k.State, &k.Public, &k.Sealed))
		s.Keys = append(s.Keys, k)
	}
	must(g, rows.Err())
	compiled, err := (&catalog.Compiler{Open: g.keyring.Open}).Compile(&s)
	must(g, err)
	g.holder.Set(compiled)
}

func (g *rig) addUser(directory, email string) id.UUID {
	g.Helper()
	u := id.NewUUID(g.clock.Now(), rand.Reader)
	_, err := g.db.Exec(context.Background(), `INSERT INTO auth.users (id, directory, email, email_verified, phone, claims, roles, created_at, updated_at)
		VALUES ($1, $2, $3, true, NULL, '{"name":"Alice","birthdate":null,"sub":"evil","secret":"hidden"}', '{"demo":["customer"]}', $4, $4)`,
		u, directory, email, g.clock.Now())
	must(g, err)
	return u
}

// signIn makes a session of the rig's user and returns its cookie.
func (g *rig) signIn() (cookie string, sessionID id.UUID) {
	g.Helper()
	raw, err := session.NewSecret(rand.Reader)
	must(g, err)
	c := session.Cookie{UserID: g.user, SessionID: id.NewUUID(g.clock.Now(), rand.Reader), Secret: raw}
	now := g.clock.Now()
	_, err = g.db.Exec(context.Background(), `INSERT INTO auth.session (user_id, id, directory, secret_hash, auth_time, acr, amr, created_at, seen_at, expires_at)
		VALUES ($1, $2, 'demo', $3, $4, '', '{pwd}', $4, $4, $5)`, c.UserID, c.SessionID, c.Hash(), now, now.Add(7*24*time.Hour))
	must(g, err)
	return c.String(), c.SessionID
}

// answer is a finished exchange.
type answer struct {
	*http.Response
	body []byte
}

func (a answer) json(t testing.TB) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.body, &m); err != nil {
		t.Fatalf("answer %d is not a JSON object: %q", a.StatusCode, a.body)
	}
	return m
}

func (a answer) page(t testing.TB) fakePage {
	t.Helper()
	var p fakePage
	if err := json.Unmarshal(a.body, &p); err != nil || p.Page == "" {
		t.Fatalf("answer %d is not a page: %q", a.StatusCode, a.body)
	}
	return p
}

// location is the address and the query that a redirect goes to.
func (a answer) location(t testing.TB) (string, url.Values) {
	t.Helper()
	if a.StatusCode != http.StatusSeeOther {
		t.Fatalf("status %d instead of a redirect: %s", a.StatusCode, a.body)
	}
	u, err := url.Parse(a.Header.Get("Location"))
	must(t, err)
	q := u.Query()
	u.RawQuery = ""
	return u.String(), q
}

func (g *rig) do(method, target string, body io.Reader, change ...func(*http.Request)) answer {
	g.Helper()
	r := httptest.NewRequest(method, target, body)
	if body != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	g.server.Echo.ServeHTTP(w, r)
	res := w.Result()
	raw, err := io.ReadAll(res.Body)
	must(g, err)
	return answer{res, raw}
}

func basic(client string) func(*http.Request) {
	return func(r *http.Request) { r.SetBasicAuth(client, client+"-secret") }
}

func bearer(token string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
}

func cookied(value string) func(*http.Request) {
	return func(r *http.Request) { r.AddCookie(&http.Cookie{Name: session.CookieBase, Value: value}) }
}

// form makes values from pairs; a name may come twice.
func form(pairs ...string) url.Values {
	v := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		v.Add(pairs[i], pairs[i+1])
	}
	return v
}

// with returns a copy of v with pairs set; an empty value removes the name.
func with(v url.Values, pairs ...string) url.Values {
	out := url.Values{}
	for k, vs := range v {
		out[k] = append([]string{}, vs...)
	}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			out.Del(pairs[i])
			continue
		}
		out.Set(pairs[i], pairs[i+1])
	}
	return out
}

func (g *rig) post(path string, v url.Values, change ...func(*http.Request)) answer {
	g.Helper()
	return g.do(http.MethodPost, path, strings.NewReader(v.Encode()), change...)
}

func (g *rig) get(path string, v url.Values, change ...func(*http.Request)) answer {
	g.Helper()
	return g.do(http.MethodGet, path+"?"+v.Encode(), nil, change...)
}

func authRequest() url.Values {
	return form("response_type", "code", "client_id", "app", "redirect_uri", callback, "scope", "openid profile email", "state", "s t",
		"nonce", "n-1", "code_challenge", challenge, "code_challenge_method", "S256")
}

// code gets a code for a session, silently.
func (g *rig) code(cookie string, request url.Values) string {
	g.Helper()
	_, q := g.get("/authorize", request, cookied(cookie)).location(g)
	if q.Get("code") == "" {
		g.Fatalf("no code: %v", q)
	}
	return q.Get("code")
}

func exchange(code string) url.Values {
	return form("grant_type", "authorization_code", "code", code, "redirect_uri", callback, "code_verifier", verifier)
}

// tokens are those of a successful answer of the token endpoint.
type tokens struct{ access, refresh, id, scope string }

func (g *rig) tokensOf(a answer) tokens {
	g.Helper()
	if a.StatusCode != http.StatusOK {
		g.Fatalf("status %d: %s", a.StatusCode, a.body)
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		g.Errorf("Cache-Control is %q", a.Header.Get("Cache-Control"))
	}
	m := a.json(g)
	text := func(k string) string { s, _ := m[k].(string); return s }
	return tokens{text("access_token"), text("refresh_token"), text("id_token"), text("scope")}
}

// signInAndExchange is the whole way to tokens for client app.
func (g *rig) signInAndExchange(scope string) (t tokens, cookie string, sessionID id.UUID) {
	g.Helper()
	cookie, sessionID = g.signIn()
	code := g.code(cookie, with(authRequest(), "scope", scope))
	return g.tokensOf(g.post("/token", exchange(code), basic("app"))), cookie, sessionID
}

// claims reads a token's payload, unverified.
func claims(t testing.TB, raw string) map[string]any {
	t.Helper()
	p, err := jose.Parse(raw)
	must(t, err)
	var m map[string]any
	must(t, json.Unmarshal(p.Payload, &m))
	return m
}

// refused checks an OAuth error answer.
func (g *rig) refused(a answer, status int, code string) {
	g.Helper()
	m := a.json(g)
	if a.StatusCode != status || m["error"] != code {
		g.Errorf("got %d %s, want %d %s", a.StatusCode, a.body, status, code)
	}
	if a.Header.Get("Cache-Control") != "no-store" {
		g.Errorf("Cache-Control is %q", a.Header.Get("Cache-Control"))
	}
}

// statements counts the round trips of f.
func (g *rig) statements(want int64, f func()) {
	g.Helper()
	before := g.db.Statements()
	f()
	if got := g.db.Statements() - before; got != want {
		g.Errorf("%d statements, want %d", got, want)
	}
}

func (g *rig) exec(sql string, args ...any) {
	g.Helper()
	_, err := g.db.Exec(context.Background(), sql, args...)
	must(g, err)
}

func (g *rig) count(sql string, args ...any) int {
	g.Helper()
	var n int
	must(g, g.db.QueryRow(context.Background(), sql, args...).Scan(&n))
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
