package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"versola/modules/central/catalog/texts"
	"versola/platform/jose"
	"versola/platform/secret"
)

// Opener opens a sealed secret; context says what it belongs to.
type Opener func(sealed []byte, context string) ([]byte, error)

// Compiler turns snapshots into catalogs. It keeps the signers that it has
// parsed, since preparing an RSA key costs milliseconds.
type Compiler struct {
	Open Opener
	// SecretsOptional makes a client's secret that does not open no error: an
	// edge is sent only those it needs.
	SecretsOptional bool

	mu      sync.Mutex
	signers map[string]*jose.Signer
}

// Compile resolves a snapshot. It reports every dangling reference and
// unreadable value it finds, joined; what validation on the way in lets
// through compiles, so an error means damaged data.
func (k *Compiler) Compile(s *Snapshot) (*Catalog, error) { return k.compile(s, nil, nil) }

// Advance is [Compiler.Compile] of a snapshot of which only the changed
// entities differ from the one that gave before: tenants of which nothing
// changed are taken over from there.
func (k *Compiler) Advance(before *Catalog, s *Snapshot, changed []Ref) (*Catalog, error) {
	if before.Issuer != s.Issuer || before.rootTenant != s.RootTenant {
		return k.Compile(s)
	}
	stale := make(map[string]bool, len(changed))
	for _, r := range changed {
		if r.Kind == KindNameTenant {
			stale[r.ID] = true
		} else if r.Tenant != "" {
			stale[r.Tenant] = true
		}
	}
	return k.compile(s, before, stale)
}

// compile takes the tenants that are not stale from before, if that is given.
func (k *Compiler) compile(s *Snapshot, before *Catalog, stale map[string]bool) (*Catalog, error) {
	b := &build{compiler: k, before: before, stale: stale, catalog: &Catalog{
		Revision:   s.Revision,
		Issuer:     s.Issuer,
		rootTenant: s.RootTenant,
		tenants:    make(map[string]*Tenant, len(s.Tenants)),
		issuers:    make(map[string]*Tenant, len(s.Tenants)),
		edges:      make(map[string]*Edge, len(s.Edges)),
		presets:    make(map[presetKey]*Preset, len(s.Presets)),
		resource:   make(map[string][]*Resource, len(s.Resources)),
		signers:    map[jose.Algorithm]*jose.Signer{},
	}}
	b.edges(s.Edges)
	b.tenants(s)
	b.words(s)
	b.looks(s.Themes)
	b.scopes(s.Scopes)
	b.resources(s.Resources)
	b.permissions(s.Permissions)
	b.roles(s.Roles)
	b.clients(s.Clients)
	b.presets(s.Presets)
	b.named(s.Tenants)
	b.keys(s.Keys)
	if err := errors.Join(b.errs...); err != nil {
		return nil, fmt.Errorf("compile catalog revision %d: %w", s.Revision, err)
	}
	return b.catalog, nil
}

type build struct {
	compiler *Compiler
	catalog  *Catalog
	errs     []error

	before *Catalog        // nil: there is none
	stale  map[string]bool // tenants that cannot be taken from before
}

// kept returns a tenant as it was compiled before, if it is the same still.
func (b *build) kept(id string) (*Tenant, bool) {
	if b.before == nil || b.stale[id] {
		return nil, false
	}
	t, ok := b.before.tenants[id]
	return t, ok
}

func (b *build) fail(format string, args ...any) {
	b.errs = append(b.errs, fmt.Errorf(format, args...))
}

func (b *build) edges(specs []EdgeSpec) {
	for _, s := range specs {
		keys, err := jose.ParseJWKS(s.JWKS)
		if err != nil {
			b.fail("edge %s: jwks: %w", s.ID, err)
			continue
		}
		b.catalog.edges[s.ID] = &Edge{EdgeSpec: s, SignatureKeys: jose.NewKeySet(keys...)}
	}
}

func (b *build) tenants(s *Snapshot) {
	for _, spec := range s.Tenants {
		if t, ok := b.kept(spec.ID); ok {
			b.catalog.tenants[t.ID], b.catalog.issuers[t.Issuer] = t, t
			continue
		}
		t := &Tenant{
			TenantSpec: spec, Issuer: s.Issuer,
			clients: map[string]*Client{}, scopes: map[string]ScopeSpec{}, resources: map[string]*Resource{},
			permissions: map[string]endpointSet{}, roles: map[string]endpointSet{}, within: map[string]string{},
		}
		if t.Directory == "" {
			t.Directory = t.ID
		}
		if spec.ID != s.RootTenant {
			t.PathPrefix = "/t/" + spec.ID
			t.Issuer += t.PathPrefix
		}
		if p := spec.Settings.PasswordPolicy; p != nil && p.Pattern != "" {
			pattern, err := regexp.Compile(p.Pattern)
			if err != nil {
				b.fail("tenant %s: pattern of passwords: %w", spec.ID, err)
			}
			t.PasswordPattern = pattern
		}
		b.catalog.tenants[t.ID] = t
		b.catalog.issuers[t.Issuer] = t
	}
}

// words gives each tenant the texts of its pages and messages.
func (b *build) words(s *Snapshot) {
	own, templates := map[string]map[string]map[string]string{}, map[string][]texts.Template{}
	for _, e := range s.Texts {
		if _, ok := b.tenant(KindNameTexts, e.Tenant, e.ID); !ok {
			continue
		}
		if own[e.Tenant] == nil {
			own[e.Tenant] = map[string]map[string]string{}
		}
		own[e.Tenant][e.ID] = e.Texts
	}
	for _, e := range s.Templates {
		if _, ok := b.tenant(KindNameTemplate, e.Tenant, e.ID); ok {
			templates[e.Tenant] = append(templates[e.Tenant], texts.Template{Message: e.Message, Channel: e.Channel, Subject: e.Subject, Body: e.Body})
		}
	}
	for id, t := range b.catalog.tenants {
		if _, ok := b.kept(id); ok {
			continue
		}
		t.Texts = texts.Product().With(t.Settings.Languages, own[id], templates[id])
	}
}

// tenant finds the tenant that an entity is to be compiled for, or notes that
// there is none; false also for one that is compiled already.
func (b *build) tenant(kind, tenant, id string) (*Tenant, bool) {
	if _, ok := b.kept(tenant); ok {
		return nil, false
	}
	t, ok := b.catalog.tenants[tenant]
	if !ok {
		b.fail("%s %s/%s: no such tenant", kind, tenant, id)
	}
	return t, ok
}

func (b *build) scopes(specs []ScopeSpec) {
	for _, s := range specs {
		if t, ok := b.tenant("scope", s.Tenant, s.ID); ok {
			t.scopes[s.ID] = s
		}
	}
}

func (b *build) resources(specs []ResourceSpec) {
	for _, s := range specs {
		t, ok := b.tenant("resource", s.Tenant, s.ID)
		if !ok {
			continue
		}
		u, err := url.Parse(s.Upstream.URL)
		if err != nil {
			b.fail("resource %s/%s: upstream url: %w", s.Tenant, s.ID, err)
			continue
		}
		if s.Audience == "" {
			s.Audience = s.ID
		}
		r := &Resource{ResourceSpec: s, Owner: t, UpstreamURL: u}
		t.resources[s.ID] = r
	}
}

// named collects the resources of one name, in the order of their tenants.
func (b *build) named(tenants []TenantSpec) {
	for i := range tenants {
		for id, r := range b.catalog.tenants[tenants[i].ID].resources {
			b.catalog.resource[id] = append(b.catalog.resource[id], r)
		}
	}
}

func (b *build) permissions(specs []PermissionSpec) {
	for _, s := range specs {
		t, ok := b.tenant("permission", s.Tenant, s.ID)
		if !ok {
			continue
		}
		set := make(endpointSet, len(s.Endpoints))
		for _, ref := range s.Endpoints {
			resource, endpoint, _ := strings.Cut(ref, ":")
			r, ok := t.resources[resource]
			if !ok || !slices.ContainsFunc(r.Endpoints, func(e EndpointSpec) bool { return e.ID == endpoint }) {
				b.fail("permission %s/%s: no endpoint %q", s.Tenant, s.ID, ref)
				continue
			}
			set[endpointRef{resource, endpoint}] = struct{}{}
		}
		t.permissions[s.ID] = set
	}
}

func (b *build) roles(specs []RoleSpec) {
	for _, s := range specs {
		t, ok := b.tenant("role", s.Tenant, s.ID)
		if !ok {
			continue
		}
		set := endpointSet{}
		for _, p := range s.Permissions {
			endpoints, ok := t.permissions[p]
			if !ok {
				b.fail("role %s/%s: no permission %q", s.Tenant, s.ID, p)
			}
			maps.Copy(set, endpoints)
		}
		t.roles[s.ID] = set
		if s.Within != "" {
			t.within[s.ID] = s.Within
		}
	}
}

func (b *build) clients(specs []ClientSpec) {
	for _, s := range specs {
		t, ok := b.tenant("client", s.Tenant, s.ID)
		if !ok {
			continue
		}
		c := &Client{ClientSpec: s, Owner: t}
		for _, sealed := range s.Secrets {
			plain, err := b.compiler.Open(sealed.Sealed, ClientSecretContext(s.Tenant, s.ID, sealed.ID))
			if err != nil {
				if !b.compiler.SecretsOptional {
					b.fail("client %s/%s: secret %s: %w", s.Tenant, s.ID, sealed.ID, err)
				}
				continue
			}
			c.Secrets = append(c.Secrets, secret.Text(plain))
		}
		if len(s.JWKS) > 0 {
			keys, err := jose.SignatureKeys(s.JWKS)
			if err != nil {
				b.fail("client %s/%s: jwks: %w", s.Tenant, s.ID, err)
			}
			c.Keys = keys
		}
		t.clients[s.ID] = c
	}
}

func (b *build) presets(specs []PresetSpec) {
	for _, s := range specs {
		if _, ok := b.kept(s.Tenant); ok {
			k := presetKey{s.Edge, s.ID}
			b.catalog.presets[k] = b.before.presets[k]
			continue
		}
		t, ok := b.tenant("preset", s.Tenant, s.ID)
		if !ok {
			continue
		}
		c, ok := t.clients[s.Client]
		if !ok {
			b.fail("preset %s/%s: no client %q", s.Tenant, s.ID, s.Client)
			continue
		}
		b.catalog.presets[presetKey{s.Edge, s.ID}] = &Preset{PresetSpec: s, Owner: t, Of: c}
	}
}

func (b *build) keys(specs []KeySpec) {
	b.compiler.mu.Lock()
	defer b.compiler.mu.Unlock()
	if b.compiler.signers == nil {
		b.compiler.signers = map[string]*jose.Signer{}
	}
	var public []jose.PublicKey
	for _, s := range specs {
		p, err := jose.ParseJWK(s.Public)
		if err == nil && (p.ID != s.ID || string(p.Alg) != s.Alg) {
			err = errors.New("kid or alg differs from the row's")
		}
		if err != nil {
			b.fail("signing key %s: public key: %w", s.ID, err)
			continue
		}
		public = append(public, p)
		if s.State != KeyActive || len(s.Sealed) == 0 {
			continue
		}
		signer, ok := b.compiler.signers[s.ID]
		if !ok {
			if signer, err = b.signer(s); err != nil {
				b.fail("signing key %s: %w", s.ID, err)
				continue
			}
			b.compiler.signers[s.ID] = signer
		}
		b.catalog.signers[p.Alg] = signer
	}
	b.catalog.keys = jose.NewKeySet(public...)
}

func (b *build) signer(s KeySpec) (*jose.Signer, error) {
	der, err := b.compiler.Open(s.Sealed, SigningKeyContext(s.ID))
	if err != nil {
		return nil, err
	}
	key, err := jose.ParsePrivate(der)
	if err != nil {
		return nil, err
	}
	return jose.NewSigner(s.ID, jose.Algorithm(s.Alg), key)
}

// matchesRedirect compares byte for byte, and for a registered loopback
// address without the port.
func matchesRedirect(registered []string, uri string) bool {
	if slices.Contains(registered, uri) {
		return true
	}
	bare, ok := withoutLoopbackPort(uri)
	if !ok {
		return false
	}
	return slices.ContainsFunc(registered, func(r string) bool {
		b, ok := withoutLoopbackPort(r)
		return ok && b == bare
	})
}

// withoutLoopbackPort removes the port of an http URI on a literal loopback
// address, character by character, so that nothing else is normalised on the
// way. "localhost" is not a literal address (RFC 8252 section 8.3).
func withoutLoopbackPort(uri string) (string, bool) {
	for _, host := range []string{"http://127.0.0.1", "http://[::1]"} {
		rest, ok := strings.CutPrefix(uri, host)
		if !ok {
			continue
		}
		if port, isPort := strings.CutPrefix(rest, ":"); isPort {
			n := 0
			for n < len(port) && port[n] >= '0' && port[n] <= '9' {
				n++
			}
			if v, err := strconv.ParseUint(port[:n], 10, 16); err != nil || v == 0 {
				return "", false
			}
			rest = port[n:]
		}
		if rest != "" && rest[0] != '/' && rest[0] != '?' {
			return "", false
		}
		return host + rest, true
	}
	return "", false
}

func compare(a, b string) int { return cmp.Compare(a, b) }

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
