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
	"github.com/lestrrat-go/jwx/v2/jwk"
	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/app"
	"versola/modules/central"
	"versola/modules/central/catalog"
	"versola/modules/central/scaletest"
	"versola/modules/edge/catalogfeed"
	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// BenchmarkChange_LiveInARemoteEdge is from the commit of one change to a
// client, among a thousand tenants, until an edge that is another process has
// it in its catalog.
func BenchmarkChange_LiveInARemoteEdge(b *testing.B) {
	key, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	keys, err := secret.ParseKeys([]secret.Text{key})
	if err != nil {
		b.Fatal(err)
	}
	private, err := app.GenerateEdgeKeys()
	if err != nil {
		b.Fatal(err)
	}
	who, err := identity.Parse(scaletest.Edge, secret.Text(private), clock.System{}, rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	url := pgtest.New(b, db.Auth(), db.Central())
	dbx, err := postgres.Open(b.Context(), postgres.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(dbx.Close)
	scaletest.Fill(b, dbx, keys, publicKeys(b, private))
	log := slog.New(slog.DiscardHandler)
	source, err := central.New(central.Deps{DB: dbx, DatabaseURL: url, Catalog: catalog.NewHolder(), Clock: clock.System{}, Random: rand.Reader,
		Encryption: keys, Issuer: "http://localhost:8080", RootTenant: "demo", StateDir: b.TempDir(), Log: log, Meter: noop.Meter{}})
	if err != nil {
		b.Fatal(err)
	}
	e := router.New()
	e.HTTPErrorHandler = func(err error, c router.Context) { httpserver.WriteProblem(c, err) }
	source.Mount(e.Group(""))
	server := httptest.NewServer(e)
	b.Cleanup(server.Close)
	holder := catalog.NewHolder()
	feed, err := catalogfeed.New(catalogfeed.Deps{Catalog: holder, Clock: clock.System{}, Log: log, Identity: who, CentralURL: server.URL,
		Transport: http.DefaultTransport, SessionKeys: keys, StateDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	for _, run := range []func(context.Context) error{source.Run, feed.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() { defer close(done); _ = run(ctx) }()
		b.Cleanup(func() { cancel(); <-done })
	}
	await := func(want func(*catalog.Catalog) bool) {
		deadline := time.NewTimer(time.Minute)
		defer deadline.Stop()
		for {
			changed := holder.Changed()
			if c := holder.Current(); c != nil && want(c) {
				return
			}
			select {
			case <-changed:
			case <-deadline.C:
				b.Fatal("not there within a minute")
			}
		}
	}
	await(func(*catalog.Catalog) bool { return true })
	for n := 0; b.Loop(); n++ {
		name := fmt.Sprintf("Name %d", n)
		scaletest.Rename(b, dbx, name)
		await(func(c *catalog.Catalog) bool { return scaletest.Named(c, name) })
	}
}

// publicKeys are the public keys of a private set.
func publicKeys(b *testing.B, private json.RawMessage) json.RawMessage {
	b.Helper()
	set, err := jwk.Parse(private)
	if err != nil {
		b.Fatal(err)
	}
	public, err := jwk.PublicSetOf(set)
	if err != nil {
		b.Fatal(err)
	}
	raw, err := json.Marshal(public)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}
