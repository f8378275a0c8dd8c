package central

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/keys"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var encryption = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}

// live is how soon a change must be in the catalog.
const live = time.Second

type process struct {
	*Module
	db *postgres.DB
}

// newProcess makes a module of its own on a database.
func newProcess(t testing.TB, url, listenURL, stateDir string, encryption []secret.Key) *process {
	t.Helper()
	dbx, err := postgres.Open(t.Context(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dbx.Close)
	m, err := New(Deps{DB: dbx, DatabaseURL: listenURL, Catalog: catalog.NewHolder(), Clock: clock.System{}, Random: rand.Reader,
		Encryption: encryption, Issuer: "http://localhost:8080", RootTenant: "demo", StateDir: stateDir,
		Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}})
	if err != nil {
		t.Fatal(err)
	}
	return &process{m, dbx}
}

// run starts following; it ends with the test.
func (p *process) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// keepCopy writes what waits to be copied to disk.
func (p *process) keepCopy(t testing.TB) {
	t.Helper()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := p.copy.Run(stopped, p.Log); err != nil {
		t.Fatal(err)
	}
}

// await waits until the catalog is as wanted.
func (p *process) await(t testing.TB, within time.Duration, want func(*catalog.Catalog) bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		changed := p.Catalog.Changed()
		if c := p.Catalog.Current(); c != nil && want(c) {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("not there within %s", within)
		}
	}
}

func named(name string) func(*catalog.Catalog) bool {
	return func(c *catalog.Catalog) bool {
		t, ok := c.Tenant("demo")
		return ok && t.Name == name
	}
}

// rename writes the demo tenant under a name.
func rename(t *testing.T, dbx *postgres.DB, name string) {
	t.Helper()
	engine, err := change.New(change.Deps{DB: dbx, Encryption: encryption, Clock: clock.System{}, Random: rand.Reader, Rules: validate.Rules{Development: true}})
	if err != nil {
		t.Fatal(err)
	}
	a := apply.New(apply.Deps{DB: dbx, Engine: engine, Users: user.NewStore(dbx, rand.Reader), Clock: clock.System{}, Random: rand.Reader})
	docs := &apply.Documents{}
	if err := docs.Add("t.yaml", strings.NewReader("kind: tenant\nid: demo\nname: "+name+"\nsecurity_profile: standard\n"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Apply(t.Context(), docs, apply.Options{}); err != nil {
		t.Fatal(err)
	}
}

func TestCatalog_AChangeIsLiveWithinASecond(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, url, t.TempDir(), encryption)
	p.interval = time.Hour // the notification alone
	p.run(t)
	rename(t, p.db, "one")
	p.await(t, live, named("one"))
	for _, name := range []string{"two", "three", "four"} {
		rename(t, p.db, name)
		p.await(t, live, named(name))
	}
	if p.Catalog.Age(clock.System{}) < 0 || p.Ready() != nil {
		t.Error("not ready, or never heard of its source")
	}
}

func TestCatalog_ABurstOfChangesEndsAtTheLast(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, url, t.TempDir(), encryption)
	p.interval = time.Hour
	p.run(t)
	for _, name := range strings.Fields("a b c d e f g h i j k l m n o p last") {
		rename(t, p.db, name)
	}
	p.await(t, live, named("last"))
}

func TestCatalog_WithoutNotificationsThePollFindsTheChange(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, "postgres://127.0.0.1:1/nowhere", t.TempDir(), encryption)
	p.interval = 50 * time.Millisecond
	p.run(t)
	rename(t, p.db, "polled")
	p.await(t, live, named("polled"))
}

func TestCatalog_WhatDoesNotReadLeavesTheLastGoodOne(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, url, t.TempDir(), encryption)
	rename(t, p.db, "good")
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := p.Catalog.Current()
	for name, statement := range map[string]string{
		"an unknown member":  `UPDATE central.tenant SET spec = spec || '{"surprise": 1}'`,
		"another row's key":  `UPDATE central.tenant SET spec = spec || '{"id": "else"}'`,
		"a dangling role":    `INSERT INTO central.role (tenant_id, id, spec, created_at, updated_at) VALUES ('demo', 'r', '{"tenant": "demo", "id": "r", "permissions": ["none"]}', now(), now())`,
		"an unreadable jwks": `INSERT INTO central.edge (id, spec, created_at, updated_at) VALUES ('e', '{"id": "e", "jwks": 5}', now(), now())`,
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := p.db.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
			if err := p.reload(t.Context()); err == nil {
				t.Error("loaded")
			}
			if p.Catalog.Current() != good || p.Ready() != nil {
				t.Error("the last good catalog is gone")
			}
			for _, undo := range []string{`UPDATE central.tenant SET spec = (spec - 'surprise') || '{"id": "demo"}'`, `DELETE FROM central.role`, `DELETE FROM central.edge`} {
				if _, err := p.db.Exec(t.Context(), undo); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	if err := p.reload(t.Context()); err != nil || p.Catalog.Current() == good {
		t.Errorf("after the repair: %v", err)
	}
}

// Neither a notification nor a poll is waited for.
func TestCatalog_WhoeverChangesSomethingFindsItAtWork(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, url, t.TempDir(), encryption)
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"one", "two"} {
		spec := &catalog.TenantSpec{ID: "demo", Name: name, Profile: catalog.ProfileStandard, Directory: "demo"}
		ops := []change.Op{change.Put{Spec: &catalog.DirectorySpec{ID: "demo"}}, change.Put{Spec: spec}}
		if _, err := p.Engine().Do(t.Context(), change.System("test"), ops, change.Options{}); err != nil {
			t.Fatal(err)
		}
		if !named(name)(p.Catalog.Current()) {
			t.Errorf("%s is not served yet", name)
		}
	}
	made, err := p.Keys().Rotate(t.Context(), keys.Caller{Actor: audit.Actor{Kind: audit.ActorSystem, ID: "test"}}, []string{"ES256"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	if signer, ok := p.Catalog.Current().Signer(jose.ES256); !ok || signer.Public().ID != made[0].ID {
		t.Error("the new signing key is not served yet")
	}
	// A database that is away fails the change and nothing else.
	p.db.Close()
	if _, err := p.Engine().Do(t.Context(), change.System("test"), []change.Op{change.Delete{Ref: catalog.Ref{Kind: catalog.KindNameTenant, ID: "demo"}}}, change.Options{}); err == nil {
		t.Error("changed without a database")
	}
	if !named("two")(p.Catalog.Current()) {
		t.Error("the catalog is gone")
	}
}

// These stop the cluster of all tests here, so they are not parallel.

func TestCatalog_AnOutageIsSurvivedAndThenCaughtUpWith(t *testing.T) {
	url := pgtest.New(t, db.Auth(), db.Central())
	p := newProcess(t, url, url, t.TempDir(), encryption)
	p.run(t)
	rename(t, p.db, "before")
	p.await(t, live, named("before"))
	pgtest.Stop(t)
	if !named("before")(p.Catalog.Current()) || p.Ready() != nil {
		t.Error("the outage took the catalog away")
	}
	pgtest.Start(t)
	// Whatever happened meanwhile was not notified to anyone.
	rename(t, newProcess(t, url, url, t.TempDir(), encryption).db, "after")
	p.await(t, 2*live, named("after"))
	// And the listener hears again: the poll would take longer.
	rename(t, p.db, "again")
	p.await(t, live, named("again"))
}

func TestLoad_StartsFromTheCopyOnDiskWithoutADatabase(t *testing.T) {
	url := pgtest.New(t, db.Auth(), db.Central())
	dir := filepath.Join(t.TempDir(), "state")
	first := newProcess(t, url, url, dir, encryption)
	rename(t, first.db, "kept")
	if err := first.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	first.keepCopy(t)
	file := filepath.Join(dir, "catalog.sealed")
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("copy: %v %v", info, err)
	}
	raw, err := os.ReadFile(file)
	if err != nil || strings.Contains(string(raw), "demo") {
		t.Errorf("the copy can be read by anyone (%v)", err)
	}
	pgtest.Stop(t)
	second := newProcess(t, url, url, dir, encryption)
	if err := second.Load(t.Context()); err != nil || !named("kept")(second.Catalog.Current()) || second.Ready() != nil {
		t.Fatalf("without a database: %v", err)
	}
	if second.Catalog.Age(clock.System{}) >= 0 {
		t.Error("a copy counts as having heard the source")
	}
	third := newProcess(t, url, url, t.TempDir(), encryption)
	if err := third.Load(t.Context()); !errors.Is(err, ErrNoCatalog) || third.Ready() == nil {
		t.Errorf("without database and copy: %v", err)
	}
	other := []secret.Key{{ID: "other", Value: []byte("fedcba9876543210fedcba9876543210")}}
	if err := newProcess(t, url, url, dir, other).Load(t.Context()); !errors.Is(err, secret.ErrOpen) {
		t.Errorf("with another key: %v", err)
	}
	if err := os.WriteFile(file, append(raw[:len(raw)-1], raw[len(raw)-1]^1), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := newProcess(t, url, url, dir, encryption).Load(t.Context()); !errors.Is(err, secret.ErrOpen) {
		t.Errorf("an altered copy: %v", err)
	}
	// Both go on trying, and find the database when it is back.
	second.run(t)
	third.run(t)
	pgtest.Start(t)
	third.await(t, 2*live, named("kept"))
}
