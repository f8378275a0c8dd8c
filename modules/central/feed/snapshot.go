package feed

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwe"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/platform/id"
)

// SealedFor is the plaintext of a secret that is encrypted to an edge.
type SealedFor struct {
	Context string `json:"ctx"` // catalog.ClientSecretContext
	Secret  string `json:"secret"`
}

// errNoKey reports an edge without an encryption key; validation does not let
// one in.
var errNoKey = errors.New("no encryption key")

// sealFunc encrypts a secret to an edge.
type sealFunc func(id.UUID, SealedFor) ([]catalog.SealedSecret, error)

// cut returns the part of a revision's snapshot that an edge may see.
func cut(r *revision, edgeID string, seal sealFunc) (*catalog.Snapshot, error) {
	s, tenants := r.snapshot, r.placement.tenants
	mine := func(tenant string) bool { return tenants[tenant] == edgeID }
	out := heading(r, edgeID)
	out.Edges = pick(s.Edges, func(e *catalog.EdgeSpec) bool { return e.ID == edgeID })
	out.Tenants = pick(s.Tenants, func(t *catalog.TenantSpec) bool { return mine(t.ID) })
	out.Scopes = pick(s.Scopes, func(e *catalog.ScopeSpec) bool { return mine(e.Tenant) })
	out.Resources = pick(s.Resources, func(e *catalog.ResourceSpec) bool { return mine(e.Tenant) })
	out.Permissions = pick(s.Permissions, func(e *catalog.PermissionSpec) bool { return mine(e.Tenant) })
	out.Roles = pick(s.Roles, func(e *catalog.RoleSpec) bool { return mine(e.Tenant) })
	out.Clients = pick(s.Clients, func(e *catalog.ClientSpec) bool { return mine(e.Tenant) })
	out.Presets = pick(s.Presets, func(e *catalog.PresetSpec) bool { return mine(e.Tenant) && e.Edge == edgeID })
	out.Keys = published(s.Keys)
	if err := resealAll(r, edgeID, out.Clients, seal); err != nil {
		return nil, err
	}
	return out, nil
}

// heading returns an edge's snapshot without any entity.
func heading(r *revision, edgeID string) *catalog.Snapshot {
	out := &catalog.Snapshot{Revision: r.snapshot.Revision, Issuer: r.snapshot.Issuer, RootTenant: r.snapshot.RootTenant}
	if r.placement.tenants[out.RootTenant] != edgeID {
		out.RootTenant = "" // a tenant of someone else
	}
	return out
}

// published are signing keys without their private part.
func published(keys []catalog.KeySpec) []catalog.KeySpec {
	out := pick(keys, func(*catalog.KeySpec) bool { return true })
	for i := range out {
		out[i].Sealed = nil
	}
	return out
}

// resealAll leaves, of the secrets of an edge's clients, those that it needs,
// encrypted to it.
func resealAll(r *revision, edgeID string, clients []catalog.ClientSpec, seal sealFunc) error {
	used := r.placement.used(edgeID)
	for i := range clients {
		c := &clients[i]
		stored := c.Secrets
		c.Secrets = nil
		if !used[c.Ref()] {
			continue
		}
		if err := reseal(c, stored, r.catalog, seal); err != nil {
			return err
		}
	}
	return nil
}

// reseal encrypts a client's secrets to the edge; the compiled client has them
// open, in the same order.
func reseal(c *catalog.ClientSpec, stored []catalog.SealedSecret, cat *catalog.Catalog, seal sealFunc) error {
	t, ok := cat.Tenant(c.Tenant)
	if !ok {
		return fmt.Errorf("client %s/%s: no such tenant", c.Tenant, c.ID)
	}
	compiled, ok := t.Client(c.ID)
	if !ok || len(compiled.Secrets) != len(stored) {
		return fmt.Errorf("client %s/%s: compiled with other secrets", c.Tenant, c.ID)
	}
	for n, plain := range compiled.Secrets {
		sealed, err := seal(stored[n].ID, SealedFor{catalog.ClientSecretContext(c.Tenant, c.ID, stored[n].ID), plain.Reveal()})
		if err != nil {
			return fmt.Errorf("client %s/%s: encrypt secret: %w", c.Tenant, c.ID, err)
		}
		c.Secrets = append(c.Secrets, sealed...)
	}
	return nil
}

func pick[T any](list []T, want func(*T) bool) []T {
	out := []T{}
	for i := range list {
		if want(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// encryptionKeys reads the keys of a JSON Web Key Set that are to encrypt to.
func encryptionKeys(raw json.RawMessage) ([]jwk.Key, error) {
	set, err := jwk.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("read jwks: %w", err)
	}
	var keys []jwk.Key
	for i := range set.Len() {
		if k, ok := set.Key(i); ok && k.KeyUsage() == "enc" {
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, errNoKey
	}
	return keys, nil
}

// encrypt makes one sealed secret for each key.
func encrypt(keys []jwk.Key, secretID id.UUID, content SealedFor) ([]catalog.SealedSecret, error) {
	plain, err := json.Marshal(content)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	var out []catalog.SealedSecret
	for _, k := range keys {
		sealed, err := jwe.Encrypt(plain, jwe.WithKey(jwa.ECDH_ES_A256KW, k), jwe.WithContentEncryption(jwa.A256GCM), jwe.WithCompress(jwa.NoCompress))
		if err != nil {
			return nil, fmt.Errorf("encrypt to key %q: %w", k.KeyID(), err)
		}
		out = append(out, catalog.SealedSecret{ID: secretID, Sealed: sealed})
	}
	return out, nil
}
