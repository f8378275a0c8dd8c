package feed

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwe"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/edgeauth"
	"versola/modules/central/store"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/secret"
)

var keys = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}

// edge is an edge with its private keys.
type edge struct {
	id     string
	signer *jose.Signer
	enc    []*ecdsa.PrivateKey
	public json.RawMessage
}

func newEdge(t *testing.T, name string, encryptionKeys int) *edge {
	t.Helper()
	e := &edge{id: name}
	set := jwk.NewSet()
	add := func(key *ecdsa.PrivateKey, use string) string {
		k, err := jwk.FromRaw(key.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(jwk.AssignKeyID(k), k.Set(jwk.KeyUsageKey, use), set.AddKey(k)); err != nil {
			t.Fatal(err)
		}
		return k.KeyID()
	}
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	sig := key()
	var err error
	if e.signer, err = jose.NewSigner(add(sig, "sig"), jose.ES256, sig); err != nil {
		t.Fatal(err)
	}
	for range encryptionKeys {
		k := key()
		add(k, "enc")
		e.enc = append(e.enc, k)
	}
	if e.public, err = json.Marshal(set); err != nil {
		t.Fatal(err)
	}
	return e
}

// world is two tenants with the same ids throughout, each on its own edge.
func world(t *testing.T, edges ...*edge) *catalog.Snapshot {
	t.Helper()
	ring, err := secret.NewKeyring(keys, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	signing, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	public, err := jose.NewPublicKey("", jose.ES256, signing.Public())
	if err != nil {
		t.Fatal(err)
	}
	publicJWK, err := public.JWK()
	if err != nil {
		t.Fatal(err)
	}
	der, err := jose.MarshalPrivate(signing)
	if err != nil {
		t.Fatal(err)
	}
	s := &catalog.Snapshot{Revision: 7, Issuer: "http://localhost:8080", RootTenant: "t-" + edges[0].id, Keys: []catalog.KeySpec{
		{ID: public.ID, Alg: "ES256", State: catalog.KeyActive, Public: publicJWK, Sealed: ring.Seal(der, catalog.SigningKeyContext(public.ID))},
	}}
	for n, e := range edges {
		tenant := "t-" + e.id
		s.Edges = append(s.Edges, catalog.EdgeSpec{ID: e.id, JWKS: e.public})
		s.Tenants = append(s.Tenants, catalog.TenantSpec{ID: tenant, Name: "Tenant of " + e.id, Profile: catalog.ProfileStandard, Edge: e.id})
		s.Scopes = append(s.Scopes, catalog.ScopeSpec{Tenant: tenant, ID: "openid"})
		s.Resources = append(s.Resources, catalog.ResourceSpec{Tenant: tenant, ID: "bank", Upstream: catalog.UpstreamSpec{URL: "http://" + e.id + ".internal"},
			Endpoints: []catalog.EndpointSpec{{ID: "list", Method: "GET", Path: "/"}}})
		s.Permissions = append(s.Permissions, catalog.PermissionSpec{Tenant: tenant, ID: "read", Endpoints: []string{"bank:list"}})
		s.Roles = append(s.Roles, catalog.RoleSpec{Tenant: tenant, ID: "customer", Permissions: []string{"read"}})
		for _, client := range []string{"service", "web"} {
			secretID := id.NewUUID(time.Unix(int64(n), 0), rand.Reader)
			s.Clients = append(s.Clients, catalog.ClientSpec{Tenant: tenant, ID: client, Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic,
				Secrets: []catalog.SealedSecret{{ID: secretID, Sealed: ring.Seal([]byte("secret of "+tenant+"/"+client), catalog.ClientSecretContext(tenant, client, secretID))}}})
		}
		s.Presets = append(s.Presets, catalog.PresetSpec{Tenant: tenant, ID: "login", Edge: e.id, Client: "web"})
	}
	return s
}

type server struct {
	*httptest.Server
	feed   *Feed
	holder *catalog.Holder
	clock  *clock.Fake
}

func serve(t *testing.T, wait time.Duration) *server {
	t.Helper()
	s := &server{holder: catalog.NewHolder(), clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	s.feed = New(s.holder, s.clock, wait)
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { httpserver.WriteProblem(c, err) }
	e.GET("/internal/catalog", s.feed.Handle)
	s.Server = httptest.NewServer(e)
	t.Cleanup(s.Close)
	return s
}

// of is a state that nobody knows how it came about.
func of(s *catalog.Snapshot) *store.State {
	return &store.State{Mark: store.Mark{Revision: s.Revision}, Snapshot: s}
}

func tag(s *catalog.Snapshot) string { return tagOf(s, of(s).Mark) }

func (s *server) set(t *testing.T, snap *catalog.Snapshot) {
	t.Helper()
	s.setState(t, snap, of(snap))
}

func (s *server) setState(t *testing.T, snap *catalog.Snapshot, state *store.State) {
	t.Helper()
	ring, err := secret.NewKeyring(keys, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&catalog.Compiler{Open: ring.Open}).Compile(snap)
	if err != nil {
		t.Fatal(err)
	}
	s.feed.Set(snap, c, state)
	s.holder.Set(c)
}

type answer struct {
	status int
	tag    string
	body   string
	header http.Header
}

func (s *server) get(ctx context.Context, t *testing.T, e *edge, tag string) answer {
	t.Helper()
	return s.ask(ctx, t, e, tag, "")
}

// ask is get with a form (A-IM) in which differences are wanted.
func (s *server) ask(ctx context.Context, t *testing.T, e *edge, tag, form string) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/internal/catalog", nil)
	if err != nil {
		t.Fatal(err)
	}
	token, err := edgeauth.Sign(e.signer, e.id, s.clock.Now(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if tag != "" {
		r.Header.Set("If-None-Match", tag)
	}
	if form != "" {
		r.Header.Set("A-IM", form)
	}
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header.Get("ETag"), string(body), resp.Header}
}

// open decrypts as an edge does.
func (e *edge) open(sealed []byte, context string) ([]byte, error) {
	for _, k := range e.enc {
		plain, err := jwe.Decrypt(sealed, jwe.WithKey(jwa.ECDH_ES_A256KW, k))
		if err != nil {
			continue
		}
		var content SealedFor
		if err := json.Unmarshal(plain, &content); err != nil {
			return nil, err
		}
		if content.Context != context {
			return nil, errors.New("moved")
		}
		return []byte(content.Secret), nil
	}
	return nil, errors.New("no key opens it")
}

func TestFeed_AnEdgeSeesItsOwnTenantsAndNotEvenANameOfOthers(t *testing.T) {
	t.Parallel()
	a, b := newEdge(t, "alpha", 1), newEdge(t, "beta", 1)
	s := serve(t, time.Minute)
	s.set(t, world(t, a, b))
	for _, c := range []struct{ mine, other *edge }{{a, b}, {b, a}} {
		got := s.get(t.Context(), t, c.mine, "")
		if got.status != http.StatusOK || !strings.HasPrefix(got.tag, `"7-`) {
			t.Fatalf("%s: %d, ETag %s: %s", c.mine.id, got.status, got.tag, got.body)
		}
		if strings.Contains(got.body, c.other.id) {
			t.Errorf("%s is shown something of %s:\n%s", c.mine.id, c.other.id, got.body)
		}
		var snap catalog.Snapshot
		if err := json.Unmarshal([]byte(got.body), &snap); err != nil {
			t.Fatal(err)
		}
		if len(snap.Keys) != 1 || len(snap.Keys[0].Sealed) != 0 {
			t.Errorf("%s: keys %v", c.mine.id, snap.Keys)
		}
		compiled, err := (&catalog.Compiler{Open: c.mine.open}).Compile(&snap)
		if err != nil {
			t.Fatalf("%s: %v", c.mine.id, err)
		}
		preset, ok := compiled.Preset(c.mine.id, "login")
		if !ok || len(preset.Of.Secrets) != 1 || preset.Of.Secrets[0].Reveal() != "secret of t-"+c.mine.id+"/web" {
			t.Errorf("%s: preset %v", c.mine.id, ok)
		}
		service, _ := preset.Owner.Client("service")
		if len(service.Secrets) != 0 {
			t.Errorf("%s is sent the secret of a client that it does not act for", c.mine.id)
		}
		if !preset.Owner.RolesAllow([]string{"customer"}, "bank", "list") {
			t.Errorf("%s: roles are missing", c.mine.id)
		}
		if _, err := (&catalog.Compiler{Open: c.other.open}).Compile(&snap); err == nil {
			t.Errorf("the secret of %s opens with the key of %s", c.mine.id, c.other.id)
		}
	}
}

func TestFeed_SecretsOpenWithEitherKeyDuringARotation(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 2)
	s := serve(t, time.Minute)
	s.set(t, world(t, e))
	var snap catalog.Snapshot
	if err := json.Unmarshal([]byte(s.get(t.Context(), t, e, "").body), &snap); err != nil {
		t.Fatal(err)
	}
	for n := range e.enc {
		one := &edge{enc: e.enc[n : n+1]}
		c, err := (&catalog.Compiler{Open: one.open, SecretsOptional: true}).Compile(&snap)
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := c.Preset("alpha", "login"); len(p.Of.Secrets) != 1 {
			t.Errorf("key %d opens %d secrets", n, len(p.Of.Secrets))
		}
	}
}

func TestFeed_TheSameRevisionIsMadeOnceAndSecretsAreKeptAcrossRevisions(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	s := serve(t, time.Minute)
	first := world(t, e)
	s.set(t, first)
	one, two := s.get(t.Context(), t, e, ""), s.get(t.Context(), t, e, "")
	if one.body != two.body {
		t.Error("the snapshot was made twice")
	}
	next := *first
	next.Revision = 8
	s.set(t, &next)
	three := s.get(t.Context(), t, e, one.tag)
	if diff := cmp.Diff(strings.Replace(one.body, `"revision":7`, `"revision":8`, 1), three.body); diff != "" {
		t.Errorf("nothing but the revision should differ:\n%s", diff)
	}
}

func TestFeed_WaitsForAChange(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	s := serve(t, time.Minute)
	first := world(t, e)
	s.set(t, first)
	got := make(chan answer, 1)
	go func() { got <- s.get(context.WithoutCancel(t.Context()), t, e, tag(first)) }()
	next := *first
	next.Revision = 8
	s.set(t, &next)
	if a := <-got; a.status != http.StatusOK || a.tag != tag(&next) {
		t.Errorf("%d %s", a.status, a.tag)
	}
}

func TestFeed_AnswersNotModifiedWhenNothingHappens(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	s := serve(t, time.Millisecond)
	w := world(t, e)
	s.set(t, w)
	if a := s.get(t.Context(), t, e, tag(w)); a.status != http.StatusNotModified || a.body != "" || a.tag != tag(w) {
		t.Errorf("%d %q", a.status, a.body)
	}
}

func TestFeed_SendsAnewWhenOnlyTheIssuerOrTheRootTenantChanged(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	s := serve(t, time.Millisecond)
	before := world(t, e)
	s.set(t, before)
	moved, rooted := *before, *before
	moved.Issuer, rooted.RootTenant = "https://moved.example", ""
	for _, next := range []*catalog.Snapshot{&moved, &rooted} {
		s.set(t, next)
		if a := s.get(t.Context(), t, e, tag(before)); a.status != http.StatusOK || a.tag != tag(next) || a.tag == tag(before) {
			t.Errorf("%d %s", a.status, a.tag)
		}
	}
}

func TestFeed_RefusesWhoIsNoEdge(t *testing.T) {
	t.Parallel()
	e, stranger := newEdge(t, "alpha", 1), newEdge(t, "alpha", 1)
	s := serve(t, time.Minute)
	if a := s.get(t.Context(), t, e, ""); a.status != http.StatusServiceUnavailable {
		t.Errorf("before the first catalog: %d %s", a.status, a.body)
	}
	s.set(t, world(t, e))
	if a := s.get(t.Context(), t, stranger, ""); a.status != http.StatusUnauthorized {
		t.Errorf("another key: %d %s", a.status, a.body)
	}
}

func TestFeed_AnEdgeThatIsRemovedWhileItWaitsIsRefused(t *testing.T) {
	t.Parallel()
	a, b := newEdge(t, "alpha", 1), newEdge(t, "beta", 1)
	s := serve(t, time.Minute)
	first := world(t, a, b)
	s.set(t, first)
	got := make(chan answer, 1)
	go func() { got <- s.get(context.WithoutCancel(t.Context()), t, b, tag(first)) }()
	only := world(t, a)
	only.Revision = 8
	s.set(t, only)
	if x := <-got; x.status != http.StatusUnauthorized {
		t.Errorf("%d %s", x.status, x.body)
	}
}

func TestFeed_WaitingRequestsDoNotHoldUpADrain(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	s := serve(t, time.Minute)
	first := world(t, e)
	s.set(t, first)
	listener := httpserver.New(httpserver.Options{Name: "internal", Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	entered := make(chan struct{})
	listener.Echo.GET("/internal/catalog", func(c echo.Context) error {
		close(entered)
		return s.feed.Handle(c)
	})
	if err := listener.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- listener.Serve() }()
	s.URL = "http://" + listener.Addr().String()
	got := make(chan answer, 1)
	go func() { got <- s.get(context.WithoutCancel(t.Context()), t, e, tag(first)) }()
	<-entered
	if err := listener.Shutdown(t.Context()); err != nil {
		t.Errorf("drain: %v", err)
	}
	if a := <-got; a.status != http.StatusNotModified {
		t.Errorf("%d", a.status)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
}
