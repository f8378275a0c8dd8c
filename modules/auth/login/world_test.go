package login_test

import (
	"context"
	"crypto/rand"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/db"
	"versola/modules/auth/authorization"
	"versola/modules/auth/event"
	"versola/modules/auth/login"
	"versola/modules/auth/message"
	"versola/modules/auth/pages"
	"versola/modules/auth/password"
	"versola/modules/auth/session"
	"versola/modules/auth/tenant"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

const (
	phone      = "+77000000001"
	code       = "123456"
	email      = "alice@example.com"
	pass       = "wonderland-demo-1"
	disabled   = "mallory@example.com"
	noPassword = "carol@example.com"
	temporary  = "dave@example.com"
	tempPass   = "temporary-1234"
)

// ended is what the engine asked to be ended.
type ender struct {
	mu    sync.Mutex
	ended []id.UUID
	db    *postgres.DB
	clock clock.Clock
}

func (e *ender) End(ctx context.Context, _ tenant.At, userID, sessionID id.UUID) (bool, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended = append(e.ended, sessionID)
	_, err := e.db.Exec(ctx, "UPDATE auth.session SET ended_at = $3 WHERE user_id = $1 AND id = $2", userID, sessionID, e.clock.Now())
	return true, err
}

type outbox struct {
	mu   sync.Mutex
	sent []message.Message
	fail error
}

func (o *outbox) Send(_ context.Context, m message.Message) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.fail != nil {
		return o.fail
	}
	o.sent = append(o.sent, m)
	return nil
}

// eventLog keeps what was told.
type eventLog struct {
	mu   sync.Mutex
	told []event.Event
}

func (s *eventLog) Take(e event.Event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told = append(s.told, e)
}

// take returns what was told since the last time.
func (s *eventLog) take() []event.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	told := s.told
	s.told = nil
	return told
}

type world struct {
	t       testing.TB
	db      *postgres.DB
	clock   *clock.Fake
	engine  *login.Engine
	store   *session.Store
	hasher  *password.Hasher
	ender   *ender
	outbox  *outbox
	events  eventLog
	server  *httptest.Server
	catalog *catalog.Holder
	users   map[string]id.UUID
	request func(*authorization.Request) // changes the next request
}

func keys(t testing.TB) []secret.Key {
	t.Helper()
	text, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	k, err := secret.ParseKeys([]secret.Text{text})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldAt(t, "http://127.0.0.1")
}

func newWorldAt(t testing.TB, publicURL string) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.Open(t, db.Auth()), clock: clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), outbox: &outbox{}, users: map[string]id.UUID{}}
	w.ender = &ender{db: w.db, clock: w.clock}
	w.compile()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("LOGIN_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	renderer, err := pages.New(publicURL)
	if err != nil {
		t.Fatal(err)
	}
	if w.hasher, err = password.NewHasher("test pepper", rand.Reader); err != nil {
		t.Fatal(err)
	}
	w.store = session.NewStore(w.db, w.clock)
	w.engine, err = login.New(login.Deps{
		DB: w.db, Clock: w.clock, Random: rand.Reader, Log: log, PublicURL: publicURL, Encryption: keys(t), Tokens: keys(t),
		Pages: renderer, Hasher: w.hasher, Sessions: w.store, Ender: w.ender, Sender: w.outbox, FakeCode: code, Events: &w.events,
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(httpserver.Options{Name: "auth", Log: log})
	for _, prefix := range []string{"", "/t/:tenant"} {
		g := s.Echo.Group(prefix, tenant.Middleware(w.catalog, "demo"))
		w.engine.Mount(g)
		g.GET("/authorize", w.authorize)
	}
	w.server = httptest.NewServer(s.Echo)
	t.Cleanup(w.server.Close)
	w.seed()
	return w
}

func (w *world) compile() {
	w.catalog = catalog.NewHolder()
	client := func(tenantID, name string, flow catalog.LoginFlow) catalog.ClientSpec {
		return catalog.ClientSpec{Tenant: tenantID, ID: name, Name: catalog.Plain("Demo Bank"), RedirectURIs: []string{"http://app.test/cb"}, Login: flow}
	}
	c, err := (&catalog.Compiler{}).Compile(&catalog.Snapshot{
		Revision: 1, Issuer: "http://127.0.0.1", RootTenant: "demo",
		Tenants: []catalog.TenantSpec{{ID: "demo"}, {ID: "sister", Directory: "demo"}, {ID: "other", Settings: catalog.TenantSettings{PhonePrefixes: []string{"+7"}}}, strict},
		Clients: []catalog.ClientSpec{
			{Tenant: "strict", ID: "web", Name: catalog.Plain("Strict Bank"), RedirectURIs: []string{"http://app.test/cb"}, PolicyURI: policyURI, TermsURI: "https://bank.example/terms"},
			client("demo", "web", catalog.LoginFlow{}), client("sister", "web", catalog.LoginFlow{}), client("other", "web", catalog.LoginFlow{}),
			client("demo", "phone-only", catalog.LoginFlow{Identifiers: []string{"phone"}, Factors: []string{"otp"}}),
			client("demo", "email-only", catalog.LoginFlow{Identifiers: []string{"email"}, Factors: []string{"password"}}),
			client("demo", "code-first", catalog.LoginFlow{Factors: []string{"otp", "password"}}),
		},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.catalog.Set(c)
}

func (w *world) seed() {
	hash := func(plain string) string {
		h, err := w.hasher.Hash(w.t.Context(), plain)
		if err != nil {
			w.t.Fatal(err)
		}
		return h
	}
	store := user.NewStore(w.db, rand.Reader)
	ctx := context.Background()
	err := pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for _, n := range []user.New{
			{Directory: "demo", Phone: phone, PhoneVerified: true},
			{Directory: "demo", Email: email, EmailVerified: true, PasswordHash: hash(pass)},
			{Directory: "demo", Email: disabled, PasswordHash: hash(pass), Disabled: true},
			{Directory: "demo", Phone: "+77000000009", Disabled: true},
			{Directory: "demo", Email: noPassword},
			{Directory: "demo", Email: temporary, PasswordHash: hash("the-permanent-one"), TemporaryPasswordHash: hash(tempPass)},
		} {
			n.Now = w.clock.Now()
			created, err := store.Create(ctx, tx, n)
			if err != nil {
				return err
			}
			w.users[n.Phone+n.Email] = created
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// authorize stands in for the authorization endpoint.
func (w *world) authorize(c echo.Context) error {
	t := tenant.Of(c)
	name := c.QueryParam("client_id")
	if name == "" {
		name = "web"
	}
	cl, _ := t.Client(name)
	r := &authorization.Request{Tenant: t.ID, ClientID: name, RedirectURI: "http://app.test/cb", State: "st", Nonce: "n", Scopes: []string{"openid"}, CodeChallenge: "ch"}
	if w.request != nil {
		w.request(r)
	}
	return w.engine.Start(c, t, cl, r)
}

// browser is a browser that does not follow redirects.
type browser struct {
	w *world
	http.Client
}

func (w *world) browser() *browser {
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return &browser{w, http.Client{Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// response is an answer that was read to its end.
type response struct {
	status   int
	location string
	body     string
	header   http.Header
	url      string
}

func (b *browser) do(req *http.Request) response {
	b.w.t.Helper()
	res, err := b.Do(req)
	if err != nil {
		b.w.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return response{res.StatusCode, res.Header.Get("Location"), string(body), res.Header, req.URL.String()}
}

func (b *browser) get(path string) response {
	b.w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.w.server.URL + path
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, path, nil)
	if err != nil {
		b.w.t.Fatal(err)
	}
	return b.do(req)
}

func (b *browser) post(path string, form url.Values) response {
	b.w.t.Helper()
	if strings.HasPrefix(path, "/") {
		path = b.w.server.URL + path
	}
	req, err := http.NewRequestWithContext(context.Background(), http.MethodPost, path, strings.NewReader(form.Encode()))
	if err != nil {
		b.w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.do(req)
}

// follow follows redirects within the server.
func (b *browser) follow(r response) response {
	b.w.t.Helper()
	for r.status == http.StatusSeeOther && strings.HasPrefix(r.location, "/") {
		r = b.get(r.location)
	}
	return r
}

var (
	formPattern  = regexp.MustCompile(`(?s)<form method="post" action="([^"]*)"[^>]*>(.*?)</form>`)
	inputPattern = regexp.MustCompile(`<input[^>]*name="([^"]*)"[^>]*?(?:value="([^"]*)")?[^>]*>`)
	valuePattern = regexp.MustCompile(`value="([^"]*)"`)
)

// form returns the page's form that holds the element with an id.
func (b *browser) form(r response, element string) (action string, values url.Values) {
	b.w.t.Helper()
	for _, m := range formPattern.FindAllStringSubmatch(r.body, -1) {
		if !strings.Contains(m[2], `id="`+element+`"`) {
			continue
		}
		values = url.Values{}
		for _, in := range inputPattern.FindAllStringSubmatch(m[2], -1) {
			v := ""
			if x := valuePattern.FindStringSubmatch(in[0]); x != nil {
				v = html.UnescapeString(x[1])
			}
			values.Set(in[1], v)
		}
		return m[1], values
	}
	b.w.t.Fatalf("no form with #%s in %d %s\n%s", element, r.status, r.url, r.body)
	return "", nil
}

// submit fills the form of an element and sends it; pairs are names and values.
func (b *browser) submit(r response, element string, pairs ...string) response {
	b.w.t.Helper()
	action, values := b.form(r, element)
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	return b.post(action, values)
}

// start begins a sign-in and shows its first page.
func (b *browser) start(query string) response {
	b.w.t.Helper()
	return b.follow(b.get("/authorize" + query))
}

// identify goes from the start to the factor's page.
func (b *browser) identify(query, identifier string) response {
	b.w.t.Helper()
	return b.follow(b.submit(b.start(query), "identifier", "identifier", identifier))
}

// signIn signs in and returns the last answer.
func (b *browser) signIn(identifier, proof string) response {
	b.w.t.Helper()
	page := b.identify("", identifier)
	if strings.Contains(page.body, `id="code"`) {
		return b.submit(page, "code", "code", proof)
	}
	return b.submit(page, "password", "password", proof)
}

// codeOf returns the code that an answer takes to the client.
func (w *world) codeOf(r response) string {
	w.t.Helper()
	u, err := url.Parse(r.location)
	if err != nil || r.status != http.StatusSeeOther || !strings.HasPrefix(r.location, "http://app.test/cb?") || u.Query().Get("code") == "" {
		w.t.Fatalf("not signed in: %d %q\n%s", r.status, r.location, r.body)
	}
	return u.Query().Get("code")
}

// sessionOf returns the browser's living session, or nil.
func (b *browser) sessionOf(tenantID string) *session.Session {
	b.w.t.Helper()
	t, _ := b.w.catalog.Current().Tenant(tenantID)
	s, err := b.w.store.Read(context.Background(), t, b.cookie(session.CookieBase))
	if err != nil {
		b.w.t.Fatal(err)
	}
	return s
}

func (b *browser) cookie(name string) string {
	u, _ := url.Parse(b.w.server.URL)
	for _, c := range b.Jar.Cookies(u) {
		if c.Name == name {
			return c.Value
		}
	}
	return ""
}

func (b *browser) setCookie(name, value string) {
	u, _ := url.Parse(b.w.server.URL)
	b.Jar.SetCookies(u, []*http.Cookie{{Name: name, Value: value, Path: "/"}})
}

var errorPattern = regexp.MustCompile(`<p id="error"[^>]*>([^<]*)</p>`)

func errorOf(r response) string {
	if m := errorPattern.FindStringSubmatch(r.body); m != nil {
		return html.UnescapeString(m[1])
	}
	return ""
}
