package admin_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/lestrrat-go/jwx/v2/jwk"
	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/admin"
	"versola/modules/central/admin/idempotency"
	"versola/modules/central/apply"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/keys"
	"versola/modules/central/openapi"
	"versola/modules/central/openapi/openapitest"
	"versola/modules/central/seed"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/modules/central/webhook"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/replay"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var (
	now        = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	encryption = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}
)

// fixture is the API over a database that has the system and the demo tenant,
// and a tenant "other".
type fixture struct {
	handler http.Handler
	db      *postgres.DB
	engine  *change.Engine
	holder  *catalog.Holder
	signer  *jose.Signer
	clock   *clock.Fake
	revoked func(sid, gid, jti, sub string, issued time.Time) bool
}

// apiURL is where the API is called, as configured.
const apiURL = "http://central.test"

type plainHasher struct{}

func (plainHasher) Hash(_ context.Context, plain string) (string, error) {
	return "hash of " + plain, nil
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	f := &fixture{db: pgtest.Open(t, db.Auth(), db.Central()), holder: catalog.NewHolder(), signer: newSigner(t), clock: clock.NewFake(now)}
	log, err := audit.New(audit.Deps{DB: f.db, Clock: f.clock, Encryption: encryption})
	must(t, err)
	f.engine, err = change.New(change.Deps{DB: f.db, Encryption: encryption, Clock: f.clock, Random: rand.Reader,
		Rules: validate.Rules{Development: true}, Auditor: log, People: user.NewStore(f.db, rand.Reader)})
	must(t, err)
	f.seed(t)
	once, err := idempotency.New(f.db, encryption, f.clock)
	must(t, err)
	rotator, err := keys.New(keys.Deps{DB: f.db, Encryption: encryption, Clock: f.clock, Log: slog.New(slog.DiscardHandler), Audit: log})
	must(t, err)
	handlers := admin.AuditHandlers(log)
	for id, h := range admin.KeyHandlers(rotator) {
		handlers[id] = h
	}
	hooks, err := webhook.New(webhook.Deps{DB: f.db, Clock: f.clock, Random: rand.Reader, Encryption: encryption, Audit: log, Client: http.DefaultClient,
		Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}})
	must(t, err)
	for id, h := range hooks.Handlers() {
		handlers[id] = h
	}
	operations, err := openapi.Operations()
	must(t, err)
	for _, op := range operations {
		if strings.Contains(op.Path, "/users") { // another package's
			handlers[op.ID] = func(c echo.Context) error { return c.NoContent(http.StatusNoContent) }
		}
	}
	api, err := admin.New(admin.Deps{Catalog: f.holder, Engine: f.engine, Clock: f.clock, Once: once, Handlers: handlers, SigningSecret: hooks.FirstSecret, URL: apiURL,
		Proofs: dpop.Guard{Replay: replay.New(replay.Options{DB: f.db, Schema: "auth", Clock: f.clock, Longest: dpop.Longest})},
		Revoked: func(sid, gid, jti, sub string, issued time.Time) bool {
			return f.revoked != nil && f.revoked(sid, gid, jti, sub, issued)
		}})
	must(t, err)
	if missing := api.Unserved(); len(missing) > 0 {
		t.Errorf("operations without a handler: %v", missing)
	}
	s := httpserver.New(httpserver.Options{Name: "internal", Log: slog.New(slog.DiscardHandler)})
	api.Mount(s.Echo.Group(""))
	f.handler = s.Echo
	return f
}

func (f *fixture) seed(t testing.TB) {
	t.Helper()
	applier := apply.New(apply.Deps{DB: f.db, Engine: f.engine, Users: user.NewStore(f.db, rand.Reader), Hasher: plainHasher{}, Clock: f.clock, Random: rand.Reader})
	deps := seed.Deps{DB: f.db, Applier: applier, Clock: f.clock}
	params := seed.Params{EdgeID: "edge", EdgeURL: "http://localhost:8095", EdgeJWKS: edgeKeys(t), CentralURL: "http://127.0.0.1:8090",
		BankURL: "http://127.0.0.1:8100", AdminPassword: "a-first-password"}
	_, err := seed.System(t.Context(), deps, params)
	must(t, err)
	_, err = seed.Demo(t.Context(), deps, params)
	must(t, err)
	f.put(t, &catalog.TenantSpec{ID: "other", Name: "Other", Profile: catalog.ProfileStandard, Directory: "other"},
		&catalog.RoleSpec{Tenant: "other", ID: "customer"})
}

// put changes the configuration and shows it to the API.
func (f *fixture) put(t testing.TB, specs ...catalog.Entity) {
	t.Helper()
	var ops []change.Op
	for _, s := range specs {
		ops = append(ops, change.Put{Spec: s})
	}
	_, err := f.engine.Do(t.Context(), change.System("test"), ops, change.Options{})
	must(t, err)
	f.sync(t)
}

// sync makes the database's configuration the process's catalog.
func (f *fixture) sync(t testing.TB) {
	t.Helper()
	s, err := store.Load(t.Context(), f.db)
	must(t, err)
	public, err := f.signer.Public().JWK()
	must(t, err)
	s.Issuer, s.RootTenant = "http://localhost:8080", "demo"
	s.Keys = []catalog.KeySpec{{ID: f.signer.Public().ID, Alg: "ES256", State: catalog.KeyActive, Public: public}}
	keyring, err := secret.NewKeyring(encryption, catalog.SealPurpose)
	must(t, err)
	c, err := (&catalog.Compiler{Open: keyring.Open}).Compile(s)
	must(t, err)
	f.holder.Set(c)
}

// token makes an administrator's token with some claims changed; nil removes.
func (f *fixture) token(t testing.TB, typ string, change map[string]any) string {
	t.Helper()
	claims := map[string]any{"iss": "http://localhost:8080/t/system", "sub": "0198a000-0000-7000-8000-000000000001", "aud": "central", "client_id": "console",
		"tenant": "system", "roles": []string{"admin"}, "iat": now.Unix(), "exp": now.Unix() + 300, "jti": "j", "sid": "s", "gid": "g"}
	for k, v := range change {
		if v == nil {
			delete(claims, k)
		} else {
			claims[k] = v
		}
	}
	payload, err := json.Marshal(claims)
	must(t, err)
	token, err := f.signer.Sign(typ, payload)
	must(t, err)
	return "Bearer " + token
}

// as returns the token of somebody with roles.
func (f *fixture) as(t testing.TB, roles ...string) string {
	t.Helper()
	return f.token(t, "at+jwt", map[string]any{"roles": roles})
}

// answer is an answer and its document.
type answer struct {
	*httptest.ResponseRecorder
	doc map[string]any
}

func (a answer) text(name string) string { s, _ := a.doc[name].(string); return s }

// call sends a request: body is a document, or a string as it is. Headers are
// name, value, name, value.
func (f *fixture) call(t *testing.T, authorization, method, path string, body any, headers ...string) answer {
	t.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		raw, err = json.Marshal(b)
		must(t, err)
	}
	r := httptest.NewRequest(method, path, bytes.NewReader(raw))
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
		if method == http.MethodPatch {
			r.Header.Set("Content-Type", "application/merge-patch+json")
		}
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	a := answer{ResponseRecorder: w}
	if strings.HasSuffix(strings.Split(w.Header().Get("Content-Type"), ";")[0], "json") && !strings.HasSuffix(path, ":export") {
		if err := json.Unmarshal(w.Body.Bytes(), &a.doc); err != nil {
			t.Errorf("%s %s: %v: %s", method, path, err, w.Body)
		}
	}
	if !strings.Contains(path, "/users") { // another package's
		document, err := contract()
		must(t, err)
		document.Check(t, r, raw, w.Code, w.Header(), w.Body.Bytes())
	}
	return a
}

// contract holds every exchange of these tests to the OpenAPI document.
var contract = sync.OnceValues(openapitest.New)

func newSigner(t testing.TB) *jose.Signer {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	must(t, err)
	signer, err := jose.NewSigner("", jose.ES256, key)
	must(t, err)
	return signer
}

func edgeKeys(t testing.TB) json.RawMessage {
	t.Helper()
	set := jwk.NewSet()
	for _, use := range []string{"sig", "enc"} {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		must(t, err)
		k, err := jwk.FromRaw(private.Public())
		must(t, err)
		must(t, errors.Join(jwk.AssignKeyID(k), k.Set(jwk.KeyUsageKey, use), set.AddKey(k)))
	}
	raw, err := json.Marshal(set)
	must(t, err)
	return raw
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
