package validate

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog"
	"versola/platform/jose"
)

// Bounds of durations.
const (
	minTTL = 10 * time.Second
	// maxToken: a token cannot be taken back everywhere, so it ends within a
	// day.
	maxToken = 24 * time.Hour
	// maxCode is the most that FAPI 2.0 section 5.3.2.1 allows; RFC 6749
	// section 4.1.2 recommends ten minutes at the most.
	maxCode = 60 * time.Second
	minCode = time.Second
	maxLong = 5 * 365 * 24 * time.Hour // refresh families and sessions
	// maxGrace bounds how long a rotated refresh token may be retried.
	maxGrace    = 10 * time.Minute
	minLogin    = time.Minute
	maxLogin    = time.Hour
	minPushed   = 5 * time.Second // RFC 9126 section 2.2: 5 to 600 seconds
	maxPushed   = 599 * time.Second
	minTimeout  = 10 * time.Millisecond
	maxConnect  = 30 * time.Second
	maxResponse = 10 * time.Minute
)

// Snapshot checks a whole configuration.
func (r Rules) Snapshot(s *catalog.Snapshot) []Problem { return r.Part(s, nil) }

// Part checks what belongs to some tenants, those tenants, and what belongs to
// the deployment: all that a change of their entities can make wrong, provided
// that nothing is deleted that others refer to. No tenants: everything.
func (r Rules) Part(s *catalog.Snapshot, tenants map[string]bool) []Problem {
	c := newCheck(r, s, tenants)
	for i := range s.Edges {
		c.edge(&s.Edges[i])
	}
	each(c, s.Tenants, c.tenant)
	each(c, s.Scopes, c.scope)
	each(c, s.Resources, c.resource)
	each(c, s.Permissions, c.permission)
	each(c, s.Roles, c.role)
	each(c, s.Clients, c.client)
	each(c, s.Presets, c.preset)
	c.rest(s)
	return c.found
}

// each checks the entities that the check is of.
func each[T any, P interface {
	*T
	catalog.Entity
}](c *check, list []T, one func(P)) {
	for i := range list {
		if e := P(&list[i]); c.has(e.Ref()) {
			one(e)
		}
	}
}

// check is one pass over a snapshot, with what references look up.
type check struct {
	Rules
	only      map[string]bool // tenants; nil: all
	found     []Problem
	edges     map[string]bool
	tenants   map[string]*catalog.TenantSpec
	exists    map[Ref]bool // scopes, permissions; endpoints as "resource:endpoint"
	clients   map[Ref]*catalog.ClientSpec
	presets   map[[2]string]string // edge, id -> tenant
	cookies   map[[2]string]string // edge, cookie name -> preset
	templates map[[3]string]string // tenant, message, channel -> template
}

// has tells whether the check is of an entity.
func (c *check) has(r Ref) bool {
	tenant := r.Tenant
	if r.Kind == KindTenant {
		tenant = r.ID
	}
	return c.only == nil || c.only[tenant]
}

const kindEndpoint = "endpoint"

func newCheck(r Rules, s *catalog.Snapshot, only map[string]bool) *check {
	c := &check{Rules: r, only: only, edges: map[string]bool{}, tenants: map[string]*catalog.TenantSpec{}, exists: map[Ref]bool{},
		clients: map[Ref]*catalog.ClientSpec{}, presets: map[[2]string]string{}, cookies: map[[2]string]string{}, templates: map[[3]string]string{}}
	for _, e := range s.Edges {
		c.edges[e.ID] = true
	}
	for i := range s.Tenants {
		c.tenants[s.Tenants[i].ID] = &s.Tenants[i]
	}
	note(c, s.Scopes)
	note(c, s.DetailTypes)
	note(c, s.Themes)
	note(c, s.Texts)
	note(c, s.Permissions)
	for i := range s.Resources {
		r := &s.Resources[i]
		if !c.has(r.Ref()) {
			continue
		}
		for j := range r.Endpoints {
			c.exists[Ref{Kind: kindEndpoint, Tenant: r.Tenant, ID: r.ID + ":" + r.Endpoints[j].ID}] = true
		}
	}
	for i := range s.Clients {
		if ref := s.Clients[i].Ref(); c.has(ref) {
			c.clients[ref] = &s.Clients[i]
		}
	}
	// Names of presets are unique for an edge, over all tenants.
	for i := range s.Presets {
		if e := &s.Presets[i]; !c.has(e.Ref()) {
			c.presets[[2]string{e.Edge, e.ID}] = e.Tenant
			if e.CookieName != "" {
				c.cookies[[2]string{e.Edge, e.CookieName}] = e.Tenant + "/" + e.ID
			}
		}
	}
	return c
}

// note makes entities known to those that refer to them.
func note[T any, P interface {
	*T
	catalog.Entity
}](c *check, list []T) {
	each(c, list, func(e P) { c.exists[e.Ref()] = true })
}

func (c *check) of(kind, tenant, id string) problems {
	return problems{of: Ref{Kind: kind, Tenant: tenant, ID: id}, list: &c.found}
}

func (c *check) tenantExists(p problems, tenant string) {
	if tenant == "" {
		p.add("tenant", "is missing")
	} else if c.tenants[tenant] == nil {
		p.add("tenant", "there is no tenant %q", tenant)
	}
}

// known makes a check that a referred entity exists in the tenant.
func (c *check) known(kind, tenant string) func(string) error {
	return func(id string) error {
		if !c.exists[Ref{Kind: kind, Tenant: tenant, ID: id}] {
			return fmt.Errorf("there is no %s %q in tenant %q", kind, id, tenant)
		}
		return nil
	}
}

func (c *check) edge(s *catalog.EdgeSpec) {
	p := c.of(KindEdge, "", s.ID)
	p.err("id", ID(s.ID))
	p.err("jwks", EdgeKeys(s.JWKS))
}

// EdgeKeys checks the public keys of an edge: at least one to verify its
// signatures with and one to encrypt to, none of them private.
func EdgeKeys(raw json.RawMessage) error {
	set, err := jwk.Parse(raw)
	if err != nil {
		return errors.New("is not a JSON Web Key Set")
	}
	encryption := 0
	for i := range set.Len() {
		k, _ := set.Key(i)
		// A symmetric key is an error here.
		if private, err := jwk.IsPrivateKey(k); err != nil || private {
			return fmt.Errorf("key %d is private: only public keys belong here", i+1)
		}
		if k.KeyUsage() == "enc" {
			ec, ok := k.(jwk.ECDSAPublicKey)
			if !ok || ec.Crv() != jwa.P256 {
				return fmt.Errorf("key %d: an encryption key is EC P-256", i+1)
			}
			encryption++
		}
	}
	signature, err := jose.ParseJWKS(raw)
	switch {
	case err != nil:
		return err
	case len(signature) == 0:
		return errors.New("has no signature key (use: sig)")
	case encryption == 0:
		return errors.New("has no encryption key (use: enc)")
	}
	return nil
}

func (c *check) tenant(s *catalog.TenantSpec) {
	p := c.of(KindTenant, "", s.ID)
	p.err("id", ID(s.ID))
	p.err("name", Name(s.Name))
	p.err("security_profile", oneOf(s.Profile, catalog.ProfileStandard, catalog.ProfileFAPI2))
	if s.Directory != "" {
		p.err("directory", ID(s.Directory))
	}
	if s.Edge != "" && !c.edges[s.Edge] {
		p.add("edge", "there is no edge %q", s.Edge)
	}
	t := s.Settings
	p.within("settings.access_token_ttl", t.AccessTokenTTL, minTTL, maxToken)
	p.within("settings.id_token_ttl", t.IDTokenTTL, minTTL, maxToken)
	p.within("settings.code_ttl", t.CodeTTL, minCode, maxCode)
	p.within("settings.refresh_idle_ttl", t.RefreshIdle, minTTL, maxLong)
	p.within("settings.refresh_absolute_ttl", t.RefreshAbsolute, minTTL, maxLong)
	p.within("settings.refresh_grace", t.RefreshGrace, minCode, maxGrace)
	p.within("settings.session_idle_ttl", t.SessionIdle, minTTL, maxLong)
	p.within("settings.session_absolute_ttl", t.SessionAbsolute, minTTL, maxLong)
	p.within("settings.login_ttl", t.LoginTTL, minLogin, maxLogin)
	p.within("settings.pushed_request_ttl", t.PushedRequestTTL, minPushed, maxPushed)
	p.each("settings.phone_prefixes", t.PhonePrefixes, PhonePrefix)
	c.signIn(p, s.ID, &t)
	c.unsupported(p, s)
}

// reservedClaims are set by the server; a scope cannot release a person's own
// value under such a name.
var reservedClaims = []string{"iss", "sub", "aud", "exp", "iat", "nbf", "jti", "nonce", "acr", "amr", "azp", "auth_time",
	"at_hash", "c_hash", "s_hash", "sid", "cnf", "client_id", "scope", "act", "tenant", "roles", "gid"}

func (c *check) scope(s *catalog.ScopeSpec) {
	p := c.of(KindScope, s.Tenant, s.ID)
	p.err("id", ScopeID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.text("description", s.Description)
	p.each("claims", s.Claims, func(claim string) error {
		if slices.Contains(reservedClaims, claim) {
			return fmt.Errorf("%q is set by the server", claim)
		}
		return ScopeID(claim)
	})
}

func (c *check) permission(s *catalog.PermissionSpec) {
	p := c.of(KindPermission, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.each("endpoints", s.Endpoints, func(ref string) error {
		if !strings.Contains(ref, ":") {
			return fmt.Errorf("%q is not of the form resource:endpoint", ref)
		}
		return c.known(kindEndpoint, s.Tenant)(ref)
	})
}

func (c *check) role(s *catalog.RoleSpec) {
	p := c.of(KindRole, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.each("permissions", s.Permissions, c.known(KindPermission, s.Tenant))
	if s.Within == "" {
		return
	}
	if s.Tenant != catalog.SystemTenant {
		p.add("within", "is for roles of the tenant %q", catalog.SystemTenant)
	}
	if c.tenants[s.Within] == nil {
		p.add("within", "there is no tenant %q", s.Within)
	}
}

// audience checks a value of "aud": a StringOrURI (RFC 7519 section 2).
func audience(s string) error {
	if s == "" || len(s) > maxURI {
		return errors.New("is empty or too long")
	}
	return characters(s)
}

// Fixed checks what of an entity cannot be changed.
func Fixed(was, is catalog.Entity) []Problem {
	before, ok := was.(*catalog.TenantSpec)
	if !ok {
		return nil
	}
	after, ok := is.(*catalog.TenantSpec)
	if !ok || before.Profile == after.Profile {
		return nil
	}
	return []Problem{{Of: is.Ref(), Field: "security_profile", Message: fmt.Sprintf("is %q and cannot be changed", before.Profile)}}
}
