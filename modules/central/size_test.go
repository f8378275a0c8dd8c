package central

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// The size that a deployment may have: a thousand tenants on one edge, each
// with ten clients and five resources of ten endpoints.
const (
	manyTenants, clientsEach, resourcesEach, endpointsEach = 1000, 10, 5, 10
)

// fill writes that configuration, as rows, which is what a long life leaves.
func fill(b *testing.B, url string, edgeJWKS json.RawMessage) {
	b.Helper()
	ring, err := secret.NewKeyring(encryption, catalog.SealPurpose)
	if err != nil {
		b.Fatal(err)
	}
	dbx, err := postgres.Open(b.Context(), postgres.Options{URL: url})
	if err != nil {
		b.Fatal(err)
	}
	defer dbx.Close()
	now := clock.System{}.Now()
	tables := map[string][][]any{}
	add := func(e catalog.Entity) {
		raw, err := json.Marshal(e)
		if err != nil {
			b.Fatal(err)
		}
		ref := e.Ref()
		tables[ref.Kind] = append(tables[ref.Kind], []any{ref.Tenant, ref.ID, raw, now, now})
	}
	var secrets [][]any
	add(&catalog.EdgeSpec{ID: "edge", JWKS: edgeJWKS})
	for n := range manyTenants {
		t := fmt.Sprintf("tenant-%04d", n)
		add(&catalog.TenantSpec{ID: t, Name: t, Profile: catalog.ProfileStandard, Directory: t, Edge: "edge"})
		for _, s := range []string{"openid", "profile", "email"} {
			add(&catalog.ScopeSpec{Tenant: t, ID: s, Claims: []string{"name", "email"}})
		}
		var all []string
		for r := range resourcesEach {
			spec := &catalog.ResourceSpec{Tenant: t, ID: fmt.Sprintf("api-%d", r), Upstream: catalog.UpstreamSpec{URL: "https://upstream.example/base"}}
			for e := range endpointsEach {
				endpoint := catalog.EndpointSpec{ID: fmt.Sprintf("read-%d", e), Method: "GET", Path: fmt.Sprintf("/things/{id}/parts/%d", e)}
				spec.Endpoints = append(spec.Endpoints, endpoint)
				all = append(all, spec.ID+":"+endpoint.ID)
			}
			add(spec)
		}
		add(&catalog.PermissionSpec{Tenant: t, ID: "read", Endpoints: all[:len(all)/2]})
		add(&catalog.PermissionSpec{Tenant: t, ID: "all", Endpoints: all})
		add(&catalog.RoleSpec{Tenant: t, ID: "reader", Permissions: []string{"read"}})
		add(&catalog.RoleSpec{Tenant: t, ID: "owner", Permissions: []string{"all"}})
		for c := range clientsEach {
			spec := &catalog.ClientSpec{Tenant: t, ID: fmt.Sprintf("client-%d", c), Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic,
				GrantTypes: []string{catalog.GrantCode, catalog.GrantRefreshToken}, RedirectURIs: []string{"https://app.example/complete"}, Scopes: []string{"openid", "profile"}}
			add(spec)
			secretID := id.NewUUID(now, rand.Reader)
			secrets = append(secrets, []any{t, spec.ID, secretID, ring.Seal([]byte("a-secret-of-a-client"), catalog.ClientSecretContext(t, spec.ID, secretID)), now})
		}
		add(&catalog.PresetSpec{Tenant: t, ID: "login-" + t, Edge: "edge", Client: "client-0", RedirectURI: "https://app.example/complete", AfterLogin: "/", AfterLogout: "/"})
	}
	err = pgx.BeginFunc(b.Context(), dbx, func(tx pgx.Tx) error {
		for _, k := range catalog.Kinds {
			columns := []string{"tenant_id", "id", "spec", "created_at", "updated_at"}
			rows := tables[k.Name]
			if k.Global {
				columns = columns[1:]
				for i := range rows {
					rows[i] = rows[i][1:]
				}
			}
			if _, err := tx.CopyFrom(b.Context(), pgx.Identifier{"central", k.Name}, columns, pgx.CopyFromRows(rows)); err != nil {
				return fmt.Errorf("%s: %w", k.Name, err)
			}
		}
		_, err := tx.CopyFrom(b.Context(), pgx.Identifier{"central", "client_secret"}, []string{"tenant_id", "client_id", "id", "sealed", "created_at"}, pgx.CopyFromRows(secrets))
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkCatalog_AtScale(b *testing.B) {
	url := pgtest.New(b, db.Auth(), db.Central())
	fill(b, url, edgeKeys(b))
	p := newProcess(b, url, url, b.TempDir(), encryption)
	var s *catalog.Snapshot
	var err error
	b.Run("read", func(b *testing.B) {
		for b.Loop() {
			if s, err = store.Load(b.Context(), p.db); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read one change", func(b *testing.B) {
		state, err := store.LoadState(b.Context(), p.db, nil)
		if err != nil {
			b.Fatal(err)
		}
		for n := 0; b.Loop(); n++ {
			b.StopTimer()
			p.renameClient(b, fmt.Sprintf("Name %d", n))
			b.StartTimer()
			before := state.Mark
			if state, err = store.LoadState(b.Context(), p.db, state); err != nil {
				b.Fatal(err)
			}
			if _, known := state.Since(before); !known {
				b.Fatal("read whole")
			}
		}
	})
	b.Run("compile", func(b *testing.B) {
		for b.Loop() {
			if _, err := p.compiler.Compile(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("compile one change", func(b *testing.B) {
		c, err := p.compiler.Compile(s)
		if err != nil {
			b.Fatal(err)
		}
		for b.Loop() {
			if c, err = p.compiler.Advance(c, s, []catalog.Ref{aClient}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("copy on disk", func(b *testing.B) {
		for b.Loop() {
			if err := p.copy.Write(s); err != nil {
				b.Fatal(err)
			}
		}
	})
	s = nil
	b.Run("memory", func(b *testing.B) {
		before := heap()
		for b.Loop() {
			if err := p.Load(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
		runtime.KeepAlive(p)
	})
	b.Run("a change is live", func(b *testing.B) {
		p.run(b)
		p.await(b, 10*live, func(*catalog.Catalog) bool { return true })
		for n := 0; b.Loop(); n++ {
			name := fmt.Sprintf("Other name %d", n)
			p.renameClient(b, name)
			p.await(b, 10*live, hasClient(name))
		}
	})
}

// aClient is somewhere in the middle.
var aClient = catalog.Ref{Kind: catalog.KindNameClient, Tenant: "tenant-0500", ID: "client-3"}

func (p *process) renameClient(b *testing.B, name string) {
	b.Helper()
	_, err := p.db.Exec(b.Context(), `UPDATE central.client SET spec = spec || jsonb_build_object('name', jsonb_build_object('en', $1::text)) WHERE tenant_id = $2 AND id = $3`, name, aClient.Tenant, aClient.ID)
	if err != nil {
		b.Fatal(err)
	}
}

func hasClient(name string) func(*catalog.Catalog) bool {
	return func(c *catalog.Catalog) bool {
		t, ok := c.Tenant(aClient.Tenant)
		if !ok {
			return false
		}
		client, ok := t.Client(aClient.ID)
		return ok && client.Name.Default() == name
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// edgeKeys is an edge's public key set.
func edgeKeys(b *testing.B) json.RawMessage {
	b.Helper()
	set := jwk.NewSet()
	for _, use := range []string{"sig", "enc"} {
		private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			b.Fatal(err)
		}
		k, err := jwk.FromRaw(private.Public())
		if err != nil {
			b.Fatal(err)
		}
		if err := errors.Join(k.Set(jwk.KeyUsageKey, use), k.Set(jwk.KeyIDKey, use), set.AddKey(k)); err != nil {
			b.Fatal(err)
		}
	}
	raw, err := json.Marshal(set)
	if err != nil {
		b.Fatal(err)
	}
	return raw
}
