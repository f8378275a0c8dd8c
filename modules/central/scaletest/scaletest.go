package scaletest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// The size that a deployment may have: a thousand tenants on one edge, each
// with ten clients and five resources of ten endpoints.
const (
	Tenants = 1000

	clientsEach, resourcesEach, endpointsEach = 10, 5, 10
)

// Edge is the edge of all tenants.
const Edge = "scale"

// Client is somewhere in the middle.
var Client = catalog.Ref{Kind: catalog.KindNameClient, Tenant: "tenant-0500", ID: "client-3"} //nolint:gochecknoglobals // a constant

// Fill writes that configuration, as rows, which is what a long life leaves.
// edgeJWKS are the public keys of the edge.
func Fill(b *testing.B, dbx *postgres.DB, encryption []secret.Key, edgeJWKS json.RawMessage) {
	b.Helper()
	ring, err := secret.NewKeyring(encryption, catalog.SealPurpose)
	if err != nil {
		b.Fatal(err)
	}
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
	add(&catalog.EdgeSpec{ID: Edge, JWKS: edgeJWKS})
	for n := range Tenants {
		t := fmt.Sprintf("tenant-%04d", n)
		add(&catalog.TenantSpec{ID: t, Name: t, Profile: catalog.ProfileStandard, Directory: t, Edge: Edge})
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
		add(&catalog.PresetSpec{Tenant: t, ID: "login-" + t, Edge: Edge, Client: "client-0", RedirectURI: "https://app.example/complete", AfterLogin: "/", AfterLogout: "/"})
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

// Rename gives [Client] another name.
func Rename(b *testing.B, dbx *postgres.DB, name string) {
	b.Helper()
	_, err := dbx.Exec(b.Context(), `UPDATE central.client SET spec = spec || jsonb_build_object('name', jsonb_build_object('en', $1::text)) WHERE tenant_id = $2 AND id = $3`, name, Client.Tenant, Client.ID)
	if err != nil {
		b.Fatal(err)
	}
}

// Named tells whether [Client] has that name in a catalog.
func Named(c *catalog.Catalog, name string) bool {
	t, ok := c.Tenant(Client.Tenant)
	if !ok {
		return false
	}
	client, ok := t.Client(Client.ID)
	return ok && client.Name.Default() == name
}

// EdgeKeys is an edge's public key set.
func EdgeKeys(b *testing.B) json.RawMessage {
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
