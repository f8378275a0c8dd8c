package catalogfeed

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
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwe"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/secret"
)

// central scripts answers; each sees the request it was asked with.
type central struct {
	asked   chan *http.Request
	answers chan answer
}

type answer struct {
	status   int
	revision string
	body     string
	err      error
	base     string // of a difference
}

func (c *central) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case c.asked <- r:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	select {
	case a := <-c.answers:
		if a.err != nil {
			return nil, a.err
		}
		header := http.Header{"Etag": {`"` + a.revision + `"`}}
		if a.base != "" {
			header.Set("Delta-Base", `"`+a.base+`"`)
			header.Set("IM", catalog.DeltaIM)
		}
		return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body))}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

type fixture struct {
	deps    Deps
	central *central
	enc     *ecdsa.PublicKey
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	set := jwk.NewSet()
	f := &fixture{central: &central{make(chan *http.Request), make(chan answer)}}
	for _, use := range []string{"sig", "enc"} {
		raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		k, _ := jwk.FromRaw(raw)
		_ = k.Set(jwk.KeyUsageKey, use)
		_ = set.AddKey(k)
		f.enc = &raw.PublicKey
	}
	private, _ := json.Marshal(set)
	who, err := identity.Parse("local", secret.Text(private), clock.System{}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, _ := secret.GenerateKey(rand.Reader)
	keys, _ := secret.ParseKeys([]secret.Text{key})
	f.deps = Deps{Catalog: catalog.NewHolder(), Clock: clock.System{}, Log: slog.New(slog.DiscardHandler), Identity: who, CentralURL: "http://central.test/",
		Transport: f.central, SessionKeys: keys, StateDir: filepath.Join(t.TempDir(), "state")}
	return f
}

func (f *fixture) snapshot(t *testing.T, revision int64) string {
	t.Helper()
	secretID := id.UUID{1}
	plain, _ := json.Marshal(map[string]string{"ctx": catalog.ClientSecretContext("demo", "web", secretID), "secret": "s3cret"})
	sealed, err := jwe.Encrypt(plain, jwe.WithKey(jwa.ECDH_ES_A256KW, f.enc), jwe.WithContentEncryption(jwa.A256GCM))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(catalog.Snapshot{Revision: revision, Issuer: "http://auth.test", RootTenant: "demo", Tenants: []catalog.TenantSpec{{ID: "demo"}},
		Clients: []catalog.ClientSpec{
			{Tenant: "demo", ID: "web", Secrets: []catalog.SealedSecret{{ID: secretID, Sealed: sealed}}},
			{Tenant: "demo", ID: "moved", Secrets: []catalog.SealedSecret{{ID: secretID, Sealed: sealed}}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// start runs a feed until the test ends, and returns a stop.
func (f *fixture) start(t *testing.T) (stop func()) {
	t.Helper()
	feed, err := New(f.deps)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = feed.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func (f *fixture) expect(t *testing.T, etag string, a answer) {
	t.Helper()
	select {
	case r := <-f.central.asked:
		if got := r.Header.Get("If-None-Match"); got != etag || r.URL.String() != "http://central.test/internal/catalog" || !strings.HasPrefix(r.Header.Get("Authorization"), "Bearer ") {
			t.Errorf("asked %s with If-None-Match %q, want %q", r.URL, got, etag)
		}
		f.central.answers <- a
	case <-time.After(10 * time.Second):
		t.Fatal("central was not asked")
	}
}

func (f *fixture) revision() int64 {
	if c := f.deps.Catalog.Current(); c != nil {
		return c.Revision
	}
	return 0
}

func TestFeed_FollowsAndOpensOwnSecretsOnly(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	f.expect(t, `"7"`, answer{status: 304, revision: "7"})
	f.expect(t, `"7"`, answer{status: 200, revision: "8", body: f.snapshot(t, 8)})
	f.expect(t, `"8"`, answer{status: 304, revision: "8"})
	if f.revision() != 8 {
		t.Fatalf("revision %d", f.revision())
	}
	tenant, _ := f.deps.Catalog.Current().Tenant("demo")
	web, _ := tenant.Client("web")
	moved, _ := tenant.Client("moved")
	if len(web.Secrets) != 1 || web.Secrets[0].Reveal() != "s3cret" || len(moved.Secrets) != 0 {
		t.Errorf("%d secrets of the client, %d of the one that another's was moved to", len(web.Secrets), len(moved.Secrets))
	}
	if f.deps.Catalog.Age(f.deps.Clock) < 0 {
		t.Error("no age")
	}
}

func TestFeed_FailuresKeepTheCatalogAndAreRetried(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(t)
	f.expect(t, "", answer{err: errors.New("connection refused")})
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	f.expect(t, `"7"`, answer{status: 503})
	for _, a := range []answer{{status: 503}, {status: 401}, {status: 200, revision: "8", body: "<html>"}, {err: io.ErrUnexpectedEOF},
		{status: 200, revision: "9", body: strings.Replace(f.snapshot(t, 9), `"tenant":"demo"`, `"tenant":"lost"`, 1)}} {
		f.expect(t, "", a)
		if f.revision() != 7 {
			t.Errorf("revision %d", f.revision())
		}
	}
}

func (f *fixture) renamed(t *testing.T, revision int64, name string) string {
	t.Helper()
	d := catalog.Delta{Put: catalog.Snapshot{Revision: revision, Issuer: "http://auth.test", RootTenant: "demo", Tenants: []catalog.TenantSpec{{ID: "demo", Name: name}}}}
	raw, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func (f *fixture) name() string {
	t, _ := f.deps.Catalog.Current().Tenant("demo")
	return t.Name
}

func TestFeed_FollowsByDifferences(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	f.expect(t, `"7"`, answer{status: 226, base: "7", revision: "8", body: f.renamed(t, 8, "eight")})
	f.expect(t, `"8"`, answer{status: 226, base: "8", revision: "9", body: f.renamed(t, 9, "nine")})
	f.expect(t, `"9"`, answer{status: 304, revision: "9"})
	tenant, _ := f.deps.Catalog.Current().Tenant("demo")
	if web, ok := tenant.Client("web"); !ok || len(web.Secrets) != 1 || f.revision() != 9 || f.name() != "nine" {
		t.Errorf("revision %d, name %q, client %v", f.revision(), f.name(), ok)
	}
	<-f.central.asked
	stop()
	f.deps.Catalog = catalog.NewHolder()
	if _, err := New(f.deps); err != nil || f.revision() != 9 || f.name() != "nine" {
		t.Errorf("the copy is of revision %d, %v", f.revision(), err)
	}
}

// After any that cannot be used all is asked for, and nothing is half applied.
func TestFeed_ADifferenceThatDoesNotFitIsAnError(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	for name, a := range map[string]answer{
		"from another": {status: 226, base: "6", revision: "8", body: f.renamed(t, 8, "wrong")},
		"of no form":   {status: 226, revision: "8", body: f.renamed(t, 8, "wrong")},
		"no JSON":      {status: 226, base: "7", revision: "8", body: "<html>"},
		"a removal of something unknown": {status: 226, base: "7", revision: "8",
			body: strings.Replace(f.renamed(t, 8, "wrong"), `"remove":null`, `"remove":[{"kind":"nothing","id":"x"}]`, 1)},
		"what does not compile": {status: 226, base: "7", revision: "8",
			body: strings.Replace(f.renamed(t, 8, "wrong"), `"remove":null`, `"remove":[{"kind":"tenant","id":"demo"}]`, 1)},
	} {
		f.expect(t, `"7"`, a)
		f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
		if f.revision() != 7 || f.name() != "" {
			t.Errorf("%s: revision %d, name %q", name, f.revision(), f.name())
		}
	}
}

// A central that was away may have an older database, and count up to the
// revision that the edge has, with other contents.
func TestFeed_AnOlderCentralIsFollowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	f.expect(t, `"7"`, answer{err: io.ErrUnexpectedEOF})
	f.expect(t, "", answer{status: 200, revision: "5", body: f.snapshot(t, 5)})
	f.expect(t, `"5"`, answer{status: 304})
	if f.revision() != 5 {
		t.Errorf("revision %d", f.revision())
	}
}

func TestFeed_ACentralThatDoesNotHoldRequestsIsNotAskedWithoutPause(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	const polls = 3
	start := clock.Monotonic()
	for range polls {
		f.expect(t, `"7"`, answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	}
	if took := clock.Since(start); took < (polls-1)*retryFirst {
		t.Errorf("%d polls in %s", polls, took)
	}
}

func TestFeed_StartsFromItsSealedCopy(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stop := f.start(t)
	f.expect(t, "", answer{status: 200, revision: "7", body: f.snapshot(t, 7)})
	<-f.central.asked
	stop()
	name := filepath.Join(f.deps.StateDir, fileName)
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("copy: %v, %v", info, err)
	}
	raw, _ := os.ReadFile(name)
	if strings.Contains(string(raw), "auth.test") {
		t.Error("the copy is readable")
	}
	if left, _ := os.ReadDir(f.deps.StateDir); len(left) != 1 {
		t.Errorf("%d files are left", len(left))
	}
	f.deps.Catalog = catalog.NewHolder()
	if _, err := New(f.deps); err != nil || f.revision() != 7 {
		t.Fatalf("revision %d, %v", f.revision(), err)
	}
	for what, damage := range map[string]func(){
		"altered":   func() { raw[len(raw)/2] ^= 1; _ = os.WriteFile(name, raw, 0o600) },
		"truncated": func() { _ = os.WriteFile(name, raw[:10], 0o600) },
		"empty":     func() { _ = os.WriteFile(name, nil, 0o600) },
		"gone":      func() { _ = os.Remove(name) },
	} {
		damage()
		f.deps.Catalog = catalog.NewHolder()
		if _, err := New(f.deps); err != nil || f.revision() != 0 {
			t.Errorf("%s: revision %d, %v", what, f.revision(), err)
		}
	}
}
