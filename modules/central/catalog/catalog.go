package catalog

import (
	"net/url"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"versola/modules/central/catalog/texts"
	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/secret"
)

// Catalog is the compiled configuration. It is immutable.
type Catalog struct {
	Revision   int64
	Issuer     string // auth's public URL
	rootTenant string
	tenants    map[string]*Tenant
	issuers    map[string]*Tenant
	edges      map[string]*Edge
	presets    map[presetKey]*Preset
	resource   map[string][]*Resource // by id, over all tenants
	keys       *jose.KeySet
	signers    map[jose.Algorithm]*jose.Signer
}

type presetKey struct{ edge, id string }

// Tenant returns a tenant by id.
func (c *Catalog) Tenant(id string) (*Tenant, bool) { t, ok := c.tenants[id]; return t, ok }

// TenantByIssuer returns the tenant of an issuer identifier, which is compared
// byte for byte.
func (c *Catalog) TenantByIssuer(iss string) (*Tenant, bool) { t, ok := c.issuers[iss]; return t, ok }

// Tenants returns all tenants, ordered by id.
func (c *Catalog) Tenants() []*Tenant {
	out := make([]*Tenant, 0, len(c.tenants))
	for _, t := range c.tenants {
		out = append(out, t)
	}
	slices.SortFunc(out, func(a, b *Tenant) int { return compare(a.ID, b.ID) })
	return out
}

// Edge returns an edge by id.
func (c *Catalog) Edge(id string) (*Edge, bool) { e, ok := c.edges[id]; return e, ok }

// Preset returns a login preset of an edge.
func (c *Catalog) Preset(edge, id string) (*Preset, bool) {
	p, ok := c.presets[presetKey{edge, id}]
	return p, ok
}

// ResourcesNamed returns the resources of that id, of every tenant that has
// one: what an edge knows before it knows the caller.
func (c *Catalog) ResourcesNamed(id string) []*Resource { return c.resource[id] }

// Keys returns every published signing key of the deployment.
func (c *Catalog) Keys() *jose.KeySet { return c.keys }

// Signer returns the active signer for alg; there is none in an edge.
func (c *Catalog) Signer(alg jose.Algorithm) (*jose.Signer, bool) {
	s, ok := c.signers[alg]
	return s, ok
}

// Tenant is a compiled tenant.
type Tenant struct {
	TenantSpec
	Issuer     string
	PathPrefix string // "" for the root tenant, else "/t/<id>"
	// PasswordPattern is what a chosen password has to match; nil: anything.
	PasswordPattern *regexp.Regexp
	// Texts are the words of the tenant's pages and messages.
	Texts *texts.Texts

	themes      map[string]*Theme
	clients     map[string]*Client
	scopes      map[string]ScopeSpec
	resources   map[string]*Resource
	permissions map[string]endpointSet
	roles       map[string]endpointSet
	within      map[string]string // of roles that are limited to one tenant
}

// Defaults of a tenant's lifetimes.
const (
	defaultAccessTokenTTL  = 5 * time.Minute
	defaultIDTokenTTL      = 5 * time.Minute
	defaultCodeTTL         = 60 * time.Second // the most that FAPI 2.0 section 5.3.2.1 allows
	defaultRefreshIdle     = 30 * 24 * time.Hour
	defaultRefreshAbsolute = 180 * 24 * time.Hour
	defaultRefreshGrace    = 10 * time.Second
	fapiRefreshGrace       = 60 * time.Second
	defaultSessionIdle     = 12 * time.Hour
	defaultSessionAbsolute = 7 * 24 * time.Hour
	defaultLoginTTL        = 15 * time.Minute
	defaultPushedTTL       = 60 * time.Second
)

// CodeTTL returns the lifetime of authorization codes.
func (t *Tenant) CodeTTL() time.Duration { return t.Settings.CodeTTL.D(defaultCodeTTL) }

// RefreshGrace returns how long a rotated refresh token still gives its
// successor, so that a lost response can be retried.
func (t *Tenant) RefreshGrace() time.Duration {
	if t.Profile == ProfileFAPI2 {
		return max(t.Settings.RefreshGrace.D(fapiRefreshGrace), fapiRefreshGrace)
	}
	return t.Settings.RefreshGrace.D(defaultRefreshGrace)
}

// SessionIdle returns how long a sign-in session lives unused.
func (t *Tenant) SessionIdle() time.Duration { return t.Settings.SessionIdle.D(defaultSessionIdle) }

// SessionAbsolute returns how long a sign-in session lives at the most.
func (t *Tenant) SessionAbsolute() time.Duration {
	return t.Settings.SessionAbsolute.D(defaultSessionAbsolute)
}

// LoginTTL returns how long a login conversation lives.
func (t *Tenant) LoginTTL() time.Duration { return t.Settings.LoginTTL.D(defaultLoginTTL) }

// PushedRequestTTL returns how long a pushed request can begin a sign-in.
func (t *Tenant) PushedRequestTTL() time.Duration {
	return t.Settings.PushedRequestTTL.D(defaultPushedTTL)
}

// ProofAlgs returns the algorithms that a DPoP proof may be signed with (RFC
// 9449 section 5.1, FAPI 2.0 section 5.4). They must not be changed.
func (t *Tenant) ProofAlgs() []jose.Algorithm { return t.Profile.clientAlgs() }

// RequiresPAR tells whether all clients' authorization requests must be pushed.
func (t *TenantSpec) RequiresPAR() bool {
	return t.Settings.RequirePAR || t.Profile == ProfileFAPI2
}

// MessageAlgs returns the algorithms that request objects and authorization
// responses may be signed with (FAPI 2.0 section 5.4). They must not be changed.
func (t *Tenant) MessageAlgs() []jose.Algorithm { return t.Profile.clientAlgs() }

// Client returns a client by id; a disabled one is returned too.
func (t *Tenant) Client(id string) (*Client, bool) { c, ok := t.clients[id]; return c, ok }

// Clients returns all clients, ordered by id.
func (t *Tenant) Clients() []*Client {
	out := make([]*Client, 0, len(t.clients))
	for _, c := range t.clients {
		out = append(out, c)
	}
	slices.SortFunc(out, func(a, b *Client) int { return compare(a.ID, b.ID) })
	return out
}

// Scope returns a scope by its name.
func (t *Tenant) Scope(id string) (ScopeSpec, bool) { s, ok := t.scopes[id]; return s, ok }

// ScopeIDs returns the names of all scopes, ordered.
func (t *Tenant) ScopeIDs() []string { return sortedKeys(t.scopes) }

// Resource returns a resource by id.
func (t *Tenant) Resource(id string) (*Resource, bool) { r, ok := t.resources[id]; return r, ok }

// HasRole tells whether the tenant declares a role of that name.
func (t *Tenant) HasRole(id string) bool { _, ok := t.roles[id]; return ok }

type endpointRef struct{ resource, endpoint string }

type endpointSet map[endpointRef]struct{}

// RolesAllow tells whether any of the roles reaches the endpoint. Unknown roles
// reach nothing.
func (t *Tenant) RolesAllow(roles []string, resource, endpoint string) bool {
	return anyAllows(t.roles, roles, resource, endpoint)
}

// RoleWithin returns the tenant that a role of the system tenant is limited to;
// empty: it is not limited.
func (t *Tenant) RoleWithin(role string) string { return t.within[role] }

// PermissionsAllow tells the same of permissions, which service clients hold
// directly.
func (t *Tenant) PermissionsAllow(permissions []string, resource, endpoint string) bool {
	return anyAllows(t.permissions, permissions, resource, endpoint)
}

func anyAllows(sets map[string]endpointSet, names []string, resource, endpoint string) bool {
	ref := endpointRef{resource, endpoint}
	for _, n := range names {
		if _, ok := sets[n][ref]; ok {
			return true
		}
	}
	return false
}

// Client is a compiled client.
type Client struct {
	ClientSpec
	Owner   *Tenant
	Secrets []secret.Text // newest first; in an edge only for its presets' clients
	// Keys are the public keys of "jwks"; those of a JWKSURI are elsewhere.
	Keys []jose.PublicKey
}

// Public tells whether the client cannot keep a secret (RFC 6749 section 2.1).
func (c *Client) Public() bool { return c.AuthMethod == AuthNone }

// PKCERequired tells whether an authorization request needs a code challenge.
func (c *Client) PKCERequired() bool {
	return c.Public() || c.Owner.Profile == ProfileFAPI2 || c.RequirePKCE == nil || *c.RequirePKCE
}

// PushedRequestRequired tells whether the client's authorization requests must be
// pushed (RFC 9126 sections 5 and 6, FAPI 2.0 section 5.3.2.2).
func (c *Client) PushedRequestRequired() bool {
	return c.RequirePAR || c.Owner.RequiresPAR()
}

// HasGrant tells whether the client may use a grant type.
func (c *Client) HasGrant(grant string) bool { return slices.Contains(c.GrantTypes, grant) }

// HearsOfLogout tells whether the client is told when a session ends in which it
// took part.
func (c *Client) HearsOfLogout() bool {
	return c.BackchannelLogoutURI != "" || c.FrontchannelLogoutURI != ""
}

// HasScope tells whether the client may ask for a scope.
func (c *Client) HasScope(scope string) bool { return slices.Contains(c.Scopes, scope) }

// TokenTTL returns the lifetime of the client's access tokens.
func (c *Client) TokenTTL() time.Duration {
	return c.AccessTokenTTL.D(c.Owner.Settings.AccessTokenTTL.D(defaultAccessTokenTTL))
}

// IDTTL returns the lifetime of the client's ID tokens.
func (c *Client) IDTTL() time.Duration {
	return c.IDTokenTTL.D(c.Owner.Settings.IDTokenTTL.D(defaultIDTokenTTL))
}

// RefreshIdleTTL returns how long the client's refresh token families live
// unused.
func (c *Client) RefreshIdleTTL() time.Duration {
	return c.RefreshIdle.D(c.Owner.Settings.RefreshIdle.D(defaultRefreshIdle))
}

// RefreshAbsoluteTTL returns how long the client's refresh token families live
// at the most, counted from the sign-in that began them.
func (c *Client) RefreshAbsoluteTTL() time.Duration {
	return c.RefreshAbsolute.D(c.Owner.Settings.RefreshAbsolute.D(defaultRefreshAbsolute))
}

// TokenAlg returns the algorithm of the client's access tokens.
func (c *Client) TokenAlg() jose.Algorithm {
	if c.AccessTokenAlg == "" {
		return jose.ES256
	}
	return jose.Algorithm(c.AccessTokenAlg)
}

// IDAlg returns the algorithm of the client's ID tokens.
func (c *Client) IDAlg() jose.Algorithm {
	switch {
	case c.IDTokenAlg != "":
		return jose.Algorithm(c.IDTokenAlg)
	case c.Owner.Profile == ProfileFAPI2:
		return jose.ES256
	default:
		return jose.RS256
	}
}

// ResponseAlg returns the algorithm of the client's signed authorization
// responses: where none is registered, that of JARM section 3, or the one that
// ID tokens have under fapi2.
func (c *Client) ResponseAlg() jose.Algorithm {
	switch {
	case c.AuthorizationAlg != "":
		return jose.Algorithm(c.AuthorizationAlg)
	case c.Owner.Profile == ProfileFAPI2:
		return jose.ES256
	default:
		return jose.RS256
	}
}

// AssertionAlgs returns the algorithms that the client's assertions may be
// signed with: the registered one, or else those of its method and profile. They
// must not be changed.
func (c *Client) AssertionAlgs() []jose.Algorithm {
	return c.ClientSpec.AssertionAlgs(c.Owner.Profile)
}

// TokenAudience returns the "aud" of the client's access tokens.
func (c *Client) TokenAudience() []string {
	if len(c.Audiences) > 0 {
		return c.Audiences
	}
	return []string{c.ID}
}

// Redirect tells whether uri is one of the client's redirect URIs: equal byte
// for byte, except that the port of a loopback address is free (RFC 8252
// section 7.3).
func (c *Client) Redirect(uri string) bool { return matchesRedirect(c.RedirectURIs, uri) }

// PostLogoutRedirect tells whether uri is registered for after a logout.
func (c *Client) PostLogoutRedirect(uri string) bool {
	return slices.Contains(c.PostLogoutRedirectURIs, uri)
}

// Resource is a compiled resource.
type Resource struct {
	ResourceSpec
	Owner       *Tenant
	UpstreamURL *url.URL
}

// Preset is a compiled login preset.
type Preset struct {
	PresetSpec
	Owner *Tenant
	Of    *Client
}

// Edge is a compiled edge.
type Edge struct {
	EdgeSpec
	SignatureKeys *jose.KeySet
}

// Holder holds the current catalog of a process.
type Holder struct {
	current atomic.Pointer[Catalog]
	synced  atomic.Int64 // unix microseconds of the last contact with the source
	mu      sync.Mutex
	changed chan struct{}
}

// NewHolder returns an empty holder.
func NewHolder() *Holder { return &Holder{changed: make(chan struct{})} }

// Current returns the catalog, or nil before the first one.
func (h *Holder) Current() *Catalog { return h.current.Load() }

// Set replaces the catalog and wakes who waits on [Holder.Changed].
func (h *Holder) Set(c *Catalog) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.current.Store(c)
	close(h.changed)
	h.changed = make(chan struct{})
}

// Changed returns a channel that is closed at the next Set. Take it before
// reading Current, and no change is missed.
func (h *Holder) Changed() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.changed
}

// Synced notes that the source was just heard and had nothing newer.
func (h *Holder) Synced(now time.Time) { h.synced.Store(now.UnixMicro()) }

// Age returns how long ago the source was last heard; negative: never.
func (h *Holder) Age(c clock.Clock) time.Duration {
	at := h.synced.Load()
	if at == 0 {
		return -1
	}
	return c.Now().Sub(time.UnixMicro(at))
}
