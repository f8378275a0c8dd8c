package seed_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/seed"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var key = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}

type plainHasher struct{}

func (plainHasher) Hash(_ context.Context, plain string) (string, error) {
	return "hash of " + plain, nil
}

func edgeJWKS(t *testing.T) json.RawMessage {
	t.Helper()
	set := jwk.NewSet()
	for _, use := range []string{"sig", "enc"} {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		k, err := jwk.FromRaw(private.Public())
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(jwk.AssignKeyID(k), k.Set(jwk.KeyUsageKey, use), set.AddKey(k)); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func deps(t *testing.T, dbx *postgres.DB) seed.Deps {
	t.Helper()
	engine, err := change.New(change.Deps{DB: dbx, Encryption: key, Clock: clock.System{}, Random: rand.Reader, Rules: validate.Rules{Development: true}})
	if err != nil {
		t.Fatal(err)
	}
	a := apply.New(apply.Deps{DB: dbx, Engine: engine, Users: user.NewStore(dbx, rand.Reader), Hasher: plainHasher{}, Clock: clock.System{}, Random: rand.Reader})
	return seed.Deps{DB: dbx, Applier: a, Clock: clock.System{}}
}

func params(t *testing.T) seed.Params {
	t.Helper()
	return seed.Params{EdgeID: "local", EdgeURL: "http://localhost:8095", EdgeJWKS: edgeJWKS(t), CentralURL: "http://127.0.0.1:8090",
		BankURL: "http://127.0.0.1:8100", AdminPassword: "one-time-password"}
}

func load(t *testing.T, dbx *postgres.DB) (*catalog.Snapshot, *catalog.Catalog) {
	t.Helper()
	s, err := store.Load(t.Context(), dbx)
	if err != nil {
		t.Fatal(err)
	}
	s.Issuer, s.RootTenant = "http://localhost:8080", "demo"
	ring, err := secret.NewKeyring(key, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&catalog.Compiler{Open: ring.Open}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

func TestSeed_DeclaresWhatTheDocumentationPromises(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	d, p := deps(t, dbx), params(t)
	for name, f := range map[string]func(context.Context, seed.Deps, seed.Params) (bool, error){"system": seed.System} {
		if did, err := f(t.Context(), d, p); err != nil || !did {
			t.Fatalf("%s: %v, %v", name, did, err)
		}
	}
	if did, err := seed.Demo(t.Context(), d, p); err != nil || !did {
		t.Fatalf("demo: %v, %v", did, err)
	}
	_, cat := load(t, dbx)
	demo, ok := cat.Tenant("demo")
	if !ok || demo.Issuer != "http://localhost:8080" {
		t.Fatalf("tenant demo: %v %v", demo, ok)
	}
	for id, want := range map[string]string{"demo-web": "demo-web-secret", "demo-app": "demo-app-secret", "demo-service": "demo-service-secret", "demo-native": ""} {
		c, ok := demo.Client(id)
		if !ok {
			t.Errorf("no client %s", id)
			continue
		}
		got := ""
		if len(c.Secrets) > 0 {
			got = c.Secrets[0].Reveal()
		}
		if got != want || c.Public() != (want == "") {
			t.Errorf("client %s: secret %q, public %v", id, got, c.Public())
		}
	}
	native, _ := demo.Client("demo-native")
	if !native.Redirect("http://127.0.0.1:51234/callback") || native.Redirect("http://127.0.0.1.example.com/callback") {
		t.Error("demo-native: loopback redirect")
	}
	if !demo.RolesAllow([]string{"customer"}, "bank", "create-payment") || demo.RolesAllow([]string{"reader"}, "bank", "create-payment") ||
		!demo.RolesAllow([]string{"reader"}, "bank", "get-profile") || !demo.PermissionsAllow([]string{"read-accounts"}, "bank", "list-accounts") {
		t.Error("roles of the demo")
	}
	for _, preset := range []string{"demo", "admin"} {
		if _, ok := cat.Preset("local", preset); !ok {
			t.Errorf("no preset %s", preset)
		}
	}
	console, ok := cat.Preset("local", "admin")
	if !ok || len(console.Of.Secrets) != 1 || len(console.Of.Secrets[0].Reveal()) < 43 {
		t.Error("the console's secret is not generated")
	}
	users := user.NewStore(dbx, rand.Reader)
	for directory, ids := range map[string][]user.Identifier{
		"demo":   {{Kind: user.KindPhone, Value: "+77000000001"}, {Kind: user.KindEmail, Value: "alice@example.com"}, {Kind: user.KindEmail, Value: "bob@example.com"}},
		"system": {{Kind: user.KindEmail, Value: "admin@versola.local"}},
	} {
		for _, i := range ids {
			if _, err := users.Find(t.Context(), directory, i); err != nil {
				t.Errorf("%s: %v", i.Value, err)
			}
		}
	}
}

func TestSeed_HappensOnceAndLeavesAnOperatorsEditsAlone(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	d, p := deps(t, dbx), params(t)
	for range 2 {
		if _, err := seed.System(t.Context(), d, p); err != nil {
			t.Fatal(err)
		}
		if _, err := seed.Demo(t.Context(), d, p); err != nil {
			t.Fatal(err)
		}
	}
	edit := &apply.Documents{}
	if err := edit.Add("edit.yaml", strings.NewReader("kind: tenant\nid: demo\nname: Renamed\nsecurity_profile: standard\ndirectory: demo\nedge: local\n"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Applier.Apply(t.Context(), edit, apply.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := dbx.Exec(t.Context(), "DELETE FROM central.preset WHERE id = 'demo'"); err != nil {
		t.Fatal(err)
	}
	before, _ := load(t, dbx)
	p.EdgeURL = "http://localhost:9999"
	for _, f := range []func(context.Context, seed.Deps, seed.Params) (bool, error){seed.System, seed.Demo} {
		if did, err := f(t.Context(), d, p); did || err != nil {
			t.Errorf("seeded again: %v, %v", did, err)
		}
	}
	after, cat := load(t, dbx)
	if after.Revision != before.Revision {
		t.Errorf("revision went from %d to %d", before.Revision, after.Revision)
	}
	if demo, _ := cat.Tenant("demo"); demo.Name != "Renamed" {
		t.Errorf("the operator's name is gone: %q", demo.Name)
	}
	if _, ok := cat.Preset("local", "demo"); ok {
		t.Error("what the operator removed is back")
	}
}

func TestSeed_SeveralProcessesAtOnceSeedOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t, db.Auth(), db.Central())
	p := params(t)
	const processes = 8
	var group sync.WaitGroup
	did := make([]int, processes)
	errs := make([]error, processes)
	for i := range processes {
		group.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
			defer cancel()
			dbx, err := postgres.Open(ctx, postgres.Options{URL: url, MaxConns: 3})
			if err != nil {
				errs[i] = err
				return
			}
			defer dbx.Close()
			d := deps(t, dbx)
			for _, f := range []func(context.Context, seed.Deps, seed.Params) (bool, error){seed.System, seed.Demo} {
				ok, err := f(ctx, d, p)
				errs[i] = errors.Join(errs[i], err)
				if ok {
					did[i]++
				}
			}
		})
	}
	group.Wait()
	total := 0
	for i := range processes {
		if errs[i] != nil {
			t.Errorf("process %d: %v", i, errs[i])
		}
		total += did[i]
	}
	if total != 2 {
		t.Errorf("%d seedings happened, want 2", total)
	}
}

func TestSeed_WithoutAnEdgeStillMakesTheSystemTenant(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	p := params(t)
	p.EdgeJWKS = nil
	if did, err := seed.System(t.Context(), deps(t, dbx), p); err != nil || !did {
		t.Fatalf("%v, %v", did, err)
	}
	_, cat := load(t, dbx)
	if _, ok := cat.Tenant("system"); !ok {
		t.Error("no tenant system")
	}
}
