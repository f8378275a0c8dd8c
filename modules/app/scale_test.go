package app_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	router "github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/app"
	"versola/modules/app/apptest"
	"versola/modules/central"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/scaletest"
	"versola/modules/edge/catalogfeed"
	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// remote is central with its database, and an edge that is another process.
type remote struct {
	db      *postgres.DB
	keys    []secret.Key
	public  json.RawMessage // the edge's
	central *central.Module
	edge    *catalog.Holder
	run     func()
}

// newRemote makes both; run starts them, until the test ends.
func newRemote(t testing.TB) *remote {
	t.Helper()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := secret.GenerateKey(rand.Reader)
	check(err)
	w := &remote{edge: catalog.NewHolder()}
	w.keys, err = secret.ParseKeys([]secret.Text{key})
	check(err)
	private, err := app.GenerateEdgeKeys()
	check(err)
	who, err := identity.Parse(scaletest.Edge, secret.Text(private), clock.System{}, rand.Reader)
	check(err)
	w.public, err = app.PublicEdgeKeys(secret.Text(private))
	check(err)
	url := pgtest.New(t, db.Auth(), db.Central())
	w.db, err = postgres.Open(t.Context(), postgres.Options{URL: url})
	check(err)
	t.Cleanup(w.db.Close)
	log := slog.New(slog.DiscardHandler)
	w.central, err = central.New(central.Deps{DB: w.db, DatabaseURL: url, Catalog: catalog.NewHolder(), Clock: clock.System{}, Random: rand.Reader,
		Encryption: w.keys, Issuer: "http://localhost:8080", RootTenant: "demo", StateDir: t.TempDir(), Log: log, Meter: noop.Meter{}})
	check(err)
	e := router.New()
	e.HTTPErrorHandler = func(err error, c router.Context) { httpserver.WriteProblem(c, err) }
	w.central.Mount(e.Group(""))
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	feed, err := catalogfeed.New(catalogfeed.Deps{Catalog: w.edge, Clock: clock.System{}, Log: log, Identity: who, CentralURL: server.URL,
		Transport: http.DefaultTransport, SessionKeys: w.keys, StateDir: t.TempDir()})
	check(err)
	w.run = func() {
		for _, run := range []func(context.Context) error{w.central.Run, feed.Run} {
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() { defer close(done); _ = run(ctx) }()
			t.Cleanup(func() { cancel(); <-done })
		}
	}
	return w
}

// await waits until the edge's catalog is as wanted.
func (w *remote) await(t testing.TB, within time.Duration, want func(*catalog.Catalog) bool) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		changed := w.edge.Changed()
		if c := w.edge.Current(); c != nil && want(c) {
			return
		}
		select {
		case <-changed:
		case <-deadline.C:
			t.Fatalf("not there within %s", within)
		}
	}
}

// BenchmarkChange_LiveInARemoteEdge is from the commit of one change to a
// client, among a thousand tenants, until an edge that is another process has
// it in its catalog.
func BenchmarkChange_LiveInARemoteEdge(b *testing.B) {
	w := newRemote(b)
	scaletest.Fill(b, w.db, w.keys, w.public)
	w.run()
	w.await(b, time.Minute, func(*catalog.Catalog) bool { return true })
	for n := 0; b.Loop(); n++ {
		name := fmt.Sprintf("Name %d", n)
		scaletest.Rename(b, w.db, name)
		w.await(b, time.Minute, func(c *catalog.Catalog) bool { return scaletest.Named(c, name) })
	}
}

// The database is really stopped and started: the listener's connection is
// gone, and what is changed after is heard all the same.
func TestCatalog_AChangeAfterADatabaseRestartReachesARemoteEdge(t *testing.T) {
	w := newRemote(t)
	rename := func(name string) error {
		_, err := w.central.Engine().Do(t.Context(), change.System("test"), []change.Op{
			change.Put{Spec: &catalog.EdgeSpec{ID: scaletest.Edge, JWKS: w.public}},
			change.Put{Spec: &catalog.DirectorySpec{ID: "people"}},
			change.Put{Spec: &catalog.TenantSpec{ID: "people", Name: name, Profile: catalog.ProfileStandard, Directory: "people", Edge: scaletest.Edge}},
		}, change.Options{})
		return err
	}
	named := func(name string) func(*catalog.Catalog) bool {
		return func(c *catalog.Catalog) bool {
			tenant, ok := c.Tenant("people")
			return ok && tenant.Name == name
		}
	}
	if err := rename("before"); err != nil {
		t.Fatal(err)
	}
	w.run()
	w.await(t, 20*time.Second, named("before"))
	pgtest.Stop(t)
	if err := rename("meanwhile"); err == nil {
		t.Error("changed without a database")
	}
	if !named("before")(w.edge.Current()) {
		t.Error("the outage took the edge's catalog away")
	}
	pgtest.Start(t)
	apptest.Eventually(t, 20*time.Second, "the database to take a change", func() bool { return rename("after") == nil })
	w.await(t, 5*time.Second, named("after"))
	// By whom it is made does not matter: this one only notifies.
	apptest.Eventually(t, 20*time.Second, "a listener in the database", func() bool {
		var n int
		err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'LISTEN%'`).Scan(&n)
		return err == nil && n > 0
	})
	if _, err := w.db.Exec(t.Context(), `UPDATE central.tenant SET spec = spec || '{"name": "again"}'`); err != nil {
		t.Fatal(err)
	}
	w.await(t, 3*time.Second, named("again")) // the poll would take up to 5 s
}
