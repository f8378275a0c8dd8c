package validate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/jose"
)

// maxSecrets: a rotation overlaps by one; each is tried at a sign-in.
const maxSecrets = 5

// Scopes with a meaning of their own.
const (
	scopeOpenID  = "openid"
	scopeOffline = "offline_access"
)

func (c *check) client(s *catalog.ClientSpec) {
	p := c.of(KindClient, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.text("name", s.Name)
	p.err("client_kind", oneOf(s.Kind, catalog.KindWeb, catalog.KindNative, catalog.KindSPA, catalog.KindService))
	p.err("auth_method", oneOf(s.AuthMethod, catalog.AuthNone, catalog.AuthBasic, catalog.AuthPost, catalog.AuthSecretJWT,
		catalog.AuthPrivateKeyJWT, catalog.AuthTLS, catalog.AuthSelfSignedTLS))
	c.authentication(p, s)
	c.grants(p, s)
	p.each("scopes", s.Scopes, c.known(KindScope, s.Tenant))
	p.each("permissions", s.Permissions, c.known(KindPermission, s.Tenant))
	p.each("audiences", s.Audiences, audience)
	redirect := func(uri string) error { return c.RedirectURI(uri, s.Kind) }
	p.each("redirect_uris", s.RedirectURIs, redirect)
	p.each("post_logout_redirect_uris", s.PostLogoutRedirectURIs, redirect)
	p.each("cors_origins", s.CORSOrigins, c.Origin)
	if s.BackchannelLogoutURI != "" {
		p.err("backchannel_logout_uri", c.WebURL(s.BackchannelLogoutURI))
	}
	p.within("access_token_ttl", s.AccessTokenTTL, minTTL, maxToken)
	c.algorithm(p, s.Tenant, "access_token_alg", s.AccessTokenAlg)
	c.algorithm(p, s.Tenant, "id_token_alg", s.IDTokenAlg)
	p.each("login.identifiers", s.Login.Identifiers, func(v string) error { return oneOf(v, "phone", "email") })
	p.each("login.factors", s.Login.Factors, func(v string) error { return oneOf(v, "otp", "password") })
	c.material(p, s)
	c.protocol(p, s)
	c.presentation(p, s)
	c.unsupported(p, s)
}

// authentication holds kind, method, secrets and PKCE against one another.
func (c *check) authentication(p problems, s *catalog.ClientSpec) {
	public := s.AuthMethod == catalog.AuthNone
	keepsSecrets := s.Kind == catalog.KindWeb || s.Kind == catalog.KindService
	switch {
	case s.AuthMethod == "" || s.Kind == "":
		return // reported already
	case public && keepsSecrets:
		p.add("auth_method", "a client of kind %s authenticates itself", s.Kind)
	case !public && !keepsSecrets:
		p.add("auth_method", "a client of kind %s cannot keep a secret: none is needed (RFC 6749 section 2.1)", s.Kind)
	}
	if public && len(s.Secrets) > 0 {
		p.add("secret", "a public client has no secret")
	}
	if s.AuthMethod.HasSecret() && len(s.Secrets) == 0 {
		p.add("secret", "is missing")
	}
	if !public && !s.AuthMethod.HasSecret() && len(s.Secrets) > 0 {
		p.add("secret", "is not used by %s", s.AuthMethod)
	}
	if len(s.Secrets) > maxSecrets {
		p.add("secrets", "has %d entries, more than %d: drop old ones", len(s.Secrets), maxSecrets)
	}
	if s.RequirePKCE != nil && !*s.RequirePKCE {
		if t := c.tenants[s.Tenant]; public || t != nil && t.Profile == catalog.ProfileFAPI2 {
			p.add("require_pkce", "cannot be turned off for a public client, nor under the fapi2 profile")
		}
	}
}

func (c *check) grants(p problems, s *catalog.ClientSpec) {
	p.each("grant_types", s.GrantTypes, func(v string) error {
		return oneOf(v, catalog.GrantCode, catalog.GrantRefreshToken, catalog.GrantClientCredentials, catalog.GrantDevice, catalog.GrantTokenExchange)
	})
	has := func(grant string) bool { return slices.Contains(s.GrantTypes, grant) }
	switch {
	case len(s.GrantTypes) == 0:
		p.add("grant_types", "is missing")
	case s.Kind == catalog.KindService && (has(catalog.GrantCode) || has(catalog.GrantRefreshToken)):
		p.add("grant_types", "a service client has client_credentials alone")
	case s.AuthMethod == catalog.AuthNone && has(catalog.GrantClientCredentials):
		p.add("grant_types", "client_credentials needs a client that authenticates itself (RFC 6749 section 4.4)")
	case has(catalog.GrantRefreshToken) && !has(catalog.GrantCode):
		p.add("grant_types", "refresh_token needs authorization_code")
	}
	if has(catalog.GrantCode) && len(s.RedirectURIs) == 0 {
		p.add("redirect_uris", "is missing: authorization_code needs one")
	}
	if !has(catalog.GrantCode) && len(s.RedirectURIs) > 0 {
		p.add("redirect_uris", "is for clients with authorization_code")
	}
	if slices.Contains(s.Scopes, scopeOffline) && !has(catalog.GrantRefreshToken) {
		p.add("scopes", "offline_access needs the grant refresh_token")
	}
	if len(s.Permissions) > 0 && !has(catalog.GrantClientCredentials) {
		p.add("permissions", "is for clients with client_credentials; people have roles")
	}
}

func (c *check) algorithm(p problems, tenant, field, alg string) {
	if alg == "" {
		return
	}
	p.err(field, oneOf(jose.Algorithm(alg), jose.Algorithms()...))
	if t := c.tenants[tenant]; t != nil && t.Profile == catalog.ProfileFAPI2 && jose.Algorithm(alg) == jose.RS256 {
		p.add(field, "RS256 is not allowed under the fapi2 profile (FAPI 2.0 section 5.4)")
	}
}

func (c *check) preset(s *catalog.PresetSpec) {
	p := c.of(KindPreset, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	c.presetEdge(p, s)
	client := c.clients[Ref{Kind: KindClient, Tenant: s.Tenant, ID: s.Client}]
	if client == nil {
		p.add("client", "there is no client %q in tenant %q", s.Client, s.Tenant)
	} else {
		c.presetClient(p, s, client)
	}
	p.each("scopes", s.Scopes, nil)
	if !slices.Contains(s.Scopes, scopeOpenID) {
		p.add("scopes", "openid is needed: the edge checks the ID token")
	}
	p.err("after_login", c.PageURL(s.AfterLogin))
	p.err("after_logout", c.PageURL(s.AfterLogout))
	if s.AfterError != "" {
		p.err("after_error", c.PageURL(s.AfterError))
	}
	if s.CookieName != "" {
		p.err("cookie_name", cookieName(s.CookieName))
		key := [2]string{s.Edge, s.CookieName}
		if other, ok := c.cookies[key]; ok {
			p.add("cookie_name", "is that of preset %s too", other)
		}
		c.cookies[key] = s.Tenant + "/" + s.ID
	}
	p.within("session_ttl", s.SessionTTL, time.Minute, maxLong)
}

func (c *check) presetEdge(p problems, s *catalog.PresetSpec) {
	if !c.edges[s.Edge] {
		p.add("edge", "there is no edge %q", s.Edge)
		return
	}
	if t := c.tenants[s.Tenant]; t != nil && t.Edge != s.Edge {
		p.add("edge", "tenant %q is served by edge %q", s.Tenant, t.Edge)
	}
	key := [2]string{s.Edge, s.ID}
	if other, ok := c.presets[key]; ok {
		p.add("id", "edge %q has a preset of this name already, of tenant %q", s.Edge, other)
	}
	c.presets[key] = s.Tenant
}

func (c *check) presetClient(p problems, s *catalog.PresetSpec, client *catalog.ClientSpec) {
	if !slices.Contains(client.GrantTypes, catalog.GrantCode) {
		p.add("client", "%q has no grant authorization_code", s.Client)
	}
	if client.DPoPBound {
		p.add("client", "%q has dpop_bound_access_tokens: an edge proves no key when it signs people in", s.Client)
	}
	if t := c.tenants[s.Tenant]; client.RequirePAR || t != nil && t.RequiresPAR() {
		p.add("client", "%q has require_pushed_authorization_requests, itself or by its tenant: an edge does not push its requests", s.Client)
	}
	if client.RequireSignedRequest {
		p.add("client", "%q has require_signed_request_object: an edge does not sign its requests", s.Client)
	}
	if !slices.Contains(client.RedirectURIs, s.RedirectURI) {
		p.add("redirect_uri", "%q is not registered with client %q", s.RedirectURI, s.Client)
	}
	for i, scope := range s.Scopes {
		if !slices.Contains(client.Scopes, scope) {
			p.add(fmt.Sprintf("scopes[%d]", i), "client %q does not have the scope %q", s.Client, scope)
		}
	}
	if !strings.HasPrefix(s.AfterLogout, "/") && !slices.Contains(client.PostLogoutRedirectURIs, s.AfterLogout) {
		p.add("after_logout", "%q is not among the post_logout_redirect_uris of client %q", s.AfterLogout, s.Client)
	}
}

// cookieName checks a cookie's name without its prefix, which the edge adds.
func cookieName(s string) error {
	if len(s) > maxID || strings.HasPrefix(s, "__") {
		return errors.New("is too long, or begins with two underscores")
	}
	for _, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		if !letter && r != '_' && r != '-' && r != '.' {
			return errors.New("may only have letters, digits, '_', '-' and '.'")
		}
	}
	return nil
}
