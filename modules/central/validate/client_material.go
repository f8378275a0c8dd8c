package validate

import (
	"errors"
	"fmt"
	"net/mail"
	"net/netip"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/jose"
)

// Bounds of what a client says of itself.
const (
	maxDN  = 1000
	maxACR = 200 // an ACR value stands in a URL, with others
)

// material checks what the client's authentication needs besides secrets.
func (c *check) material(p problems, s *catalog.ClientSpec) {
	hasKeys := len(s.JWKS) > 0 || s.JWKSURI != ""
	if len(s.JWKS) > 0 && s.JWKSURI != "" {
		p.add("jwks_uri", "jwks and jwks_uri exclude one another (RFC 7591 section 2)")
	}
	if len(s.JWKS) > 0 {
		p.err("jwks", ClientKeys(s.JWKS))
	}
	if s.JWKSURI != "" {
		p.err("jwks_uri", c.WebURL(s.JWKSURI))
	}
	usesKeys := s.AuthMethod == catalog.AuthPrivateKeyJWT || s.AuthMethod == catalog.AuthSelfSignedTLS
	if !usesKeys && s.RequestObjectAlg == "" {
		const use = "is for private_key_jwt, self_signed_tls_client_auth and request_object_signing_alg"
		if len(s.JWKS) > 0 {
			p.add("jwks", use)
		}
		if s.JWKSURI != "" {
			p.add("jwks_uri", use)
		}
	}
	switch s.AuthMethod {
	case catalog.AuthPrivateKeyJWT, catalog.AuthSelfSignedTLS:
		if !hasKeys {
			p.add("jwks", "is missing: %s needs jwks or jwks_uri", s.AuthMethod)
		}
	case catalog.AuthTLS:
		if s.TLS == nil {
			p.add("tls", "is missing: %s needs the certificate's subject", s.AuthMethod)
		}
	}
	if s.TLS != nil {
		if s.AuthMethod != catalog.AuthTLS {
			p.add("tls", "is for tls_client_auth")
		}
		certificate(p, s.TLS)
	}
	c.assertions(p, s)
}

// assertions checks what the client's assertions are signed with.
func (c *check) assertions(p problems, s *catalog.ClientSpec) {
	var profile catalog.SecurityProfile
	if t := c.tenants[s.Tenant]; t != nil {
		profile = t.Profile
	}
	if s.AuthMethod == catalog.AuthPrivateKeyJWT && len(s.JWKS) > 0 {
		keys, err := jose.SignatureKeys(s.JWKS)
		verifies := func(k jose.PublicKey) bool { return slices.Contains(s.AssertionAlgs(profile), k.Alg) }
		if err != nil || !slices.ContainsFunc(keys, verifies) {
			p.add("jwks", "has no key that could sign an assertion: one for an algorithm of %v is needed", s.AssertionAlgs(profile))
		}
	}
	if s.AuthSigningAlg == "" {
		return
	}
	switch s.AuthMethod {
	case catalog.AuthPrivateKeyJWT:
		c.algorithm(p, s.Tenant, "token_endpoint_auth_signing_alg", s.AuthSigningAlg)
	case catalog.AuthSecretJWT:
		p.err("token_endpoint_auth_signing_alg", oneOf(jose.Algorithm(s.AuthSigningAlg), jose.HS256))
	default:
		p.add("token_endpoint_auth_signing_alg", "is for private_key_jwt and client_secret_jwt")
	}
}

func certificate(p problems, s *catalog.ClientCertificate) {
	n := 0
	for _, m := range []struct {
		field, value string
		check        func(string) error
	}{
		{"subject_dn", s.SubjectDN, distinguishedName},
		{"san_dns", s.DNS, domain},
		{"san_uri", s.URI, func(v string) error { _, err := parseURI(v); return err }},
		{"san_ip", s.IP, func(v string) error {
			if a, err := netip.ParseAddr(v); err != nil || a.Zone() != "" || a.String() != v {
				return fmt.Errorf("%q is not an address in its canonical form", v)
			}
			return nil
		}},
		{"san_email", s.Email, func(v string) error {
			if a, err := mail.ParseAddress(v); err != nil || a.Address != v || len(v) > maxName {
				return errors.New("is not an e-mail address")
			}
			return nil
		}},
	} {
		if m.value == "" {
			continue
		}
		n++
		p.err("tls."+m.field, m.check(m.value))
	}
	if n != 1 {
		p.add("tls", "has %d of subject_dn, san_dns, san_uri, san_ip and san_email: exactly one is needed (RFC 8705 section 2.1.2)", n)
	}
}

func distinguishedName(s string) error {
	if len(s) > maxDN {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxDN)
	}
	if err := Name(s); err != nil && len(s) <= maxName {
		return err
	}
	for part := range strings.SplitSeq(strings.ReplaceAll(s, `\,`, ""), ",") {
		if name, value, ok := strings.Cut(part, "="); !ok || strings.TrimSpace(name) == "" || strings.TrimSpace(value) == "" {
			return errors.New("is not a distinguished name such as CN=client,O=Example (RFC 4514)")
		}
	}
	return nil
}

// domain checks a host name in ASCII without a wildcard.
func domain(s string) error {
	u, err := parseURI("https://" + s + "/")
	if err != nil || u.Host != s || u.Port() != "" || strings.ToLower(s) != s || authority(u) != nil {
		return fmt.Errorf("%q is not a domain name in lower case", s)
	}
	return nil
}

// protocol checks how the client speaks OAuth.
func (c *check) protocol(p problems, s *catalog.ClientSpec) {
	p.each("response_types", s.ResponseTypes, func(v string) error { return oneOf(v, catalog.ResponseCode, catalog.ResponseCodeIDToken) })
	if len(s.ResponseTypes) > 0 && !slices.Contains(s.GrantTypes, catalog.GrantCode) {
		p.add("response_types", "is for clients with authorization_code")
	}
	for _, a := range []struct{ field, alg string }{
		{"request_object_signing_alg", s.RequestObjectAlg}, {"userinfo_signed_response_alg", s.UserinfoAlg},
		{"introspection_signed_response_alg", s.IntrospectionAlg}, {"authorization_signed_response_alg", s.AuthorizationAlg},
	} {
		c.algorithm(p, s.Tenant, a.field, a.alg)
	}
	if s.AccessTokenFormat != "" {
		p.err("access_token_format", oneOf(s.AccessTokenFormat, "jwt", "opaque"))
	}
	if s.SubjectType != "" {
		p.err("subject_type", oneOf(s.SubjectType, "public", "pairwise"))
	}
	if s.SectorIdentifierURI != "" {
		p.err("sector_identifier_uri", c.WebURL(s.SectorIdentifierURI))
	}
	p.within("id_token_ttl", s.IDTokenTTL, minTTL, maxToken)
	p.within("refresh_idle_ttl", s.RefreshIdle, minTTL, maxLong)
	p.within("refresh_absolute_ttl", s.RefreshAbsolute, minTTL, maxLong)
	p.within("default_max_age", s.DefaultMaxAge, time.Second, maxLong)
	p.each("default_acr_values", s.DefaultACR, acrValue)
	p.each("authorization_details_types", s.AuthorizationDetails, c.known(KindDetailType, s.Tenant))
	if s.DPoPBound && s.CertificateBound {
		p.add("dpop_bound_access_tokens", "a token is bound to a key or to a certificate, not to both")
	}
	if s.AuthorizationAlg != "" && !slices.Contains(s.GrantTypes, catalog.GrantCode) {
		p.add("authorization_signed_response_alg", "is for clients with authorization_code")
	}
	if s.RequirePAR && !slices.Contains(s.GrantTypes, catalog.GrantCode) {
		p.add("require_pushed_authorization_requests", "is for clients with authorization_code")
	}
	if s.RequireSignedRequest && s.RequestObjectAlg == "" {
		p.add("require_signed_request_object", "needs request_object_signing_alg")
	}
	if s.RequestObjectAlg != "" {
		requestObjects(p, s)
	}
}

// requestObjects checks that there is something to verify request objects with,
// and somewhere to send them to.
func requestObjects(p problems, s *catalog.ClientSpec) {
	if !slices.Contains(s.GrantTypes, catalog.GrantCode) {
		p.add("request_object_signing_alg", "is for clients with authorization_code")
	}
	if len(s.JWKS) == 0 && s.JWKSURI == "" {
		p.add("jwks", "is missing: request_object_signing_alg needs jwks or jwks_uri")
	}
	if len(s.JWKS) == 0 || ClientKeys(s.JWKS) != nil {
		return
	}
	keys, err := jose.SignatureKeys(s.JWKS)
	verifies := func(k jose.PublicKey) bool { return string(k.Alg) == s.RequestObjectAlg }
	if err != nil || !slices.ContainsFunc(keys, verifies) {
		p.add("jwks", "has no key that could sign a request object: one for %s is needed", s.RequestObjectAlg)
	}
}

func acrValue(s string) error {
	if s == "" || len(s) > maxACR {
		return errors.New("is empty or too long")
	}
	return characters(s)
}

// presentation checks what people see of the client.
func (c *check) presentation(p problems, s *catalog.ClientSpec) {
	for _, u := range []struct{ field, url string }{
		{"logo_uri", s.LogoURI}, {"policy_uri", s.PolicyURI}, {"tos_uri", s.TermsURI},
	} {
		if u.url != "" {
			p.err(u.field, c.WebURL(u.url))
		}
	}
	if s.FrontchannelLogoutURI != "" {
		p.err("frontchannel_logout_uri", c.frameURL(s))
	}
	if s.Consent != "" {
		p.err("consent", oneOf(s.Consent, "none", "once", "always"))
	}
	if s.Theme != "" {
		p.err("theme", c.known(KindTheme, s.Tenant)(s.Theme))
	}
}

// frameURL checks the address that a browser opens at sign-out: scheme, host and
// port are those of a redirect URI (OpenID Connect Front-Channel Logout 1.0
// section 2), so that a client can show nobody a page of others.
func (c *check) frameURL(s *catalog.ClientSpec) error {
	if err := c.WebURL(s.FrontchannelLogoutURI); err != nil {
		return err
	}
	for _, r := range s.RedirectURIs {
		if sameOrigin(r, s.FrontchannelLogoutURI) {
			return nil
		}
	}
	return errors.New("has not the scheme, host and port of any of redirect_uris")
}

// sameOrigin compares two addresses by scheme, host and port.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	return errX == nil && errY == nil && strings.EqualFold(x.Scheme, y.Scheme) && strings.EqualFold(x.Hostname(), y.Hostname()) && port(x) == port(y)
}

// port returns the port of an address of the web, written or not.
func port(u *url.URL) string {
	switch p := u.Port(); {
	case p != "":
		return p
	case strings.EqualFold(u.Scheme, "https"):
		return "443"
	default:
		return "80"
	}
}

// headerName checks the name of an HTTP field (RFC 9110 section 5.1).
func headerName(s string) error {
	if s == "" || len(s) > maxID {
		return errors.New("is empty or too long")
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' {
			return fmt.Errorf("%q is not the name of a header: letters, digits and '-'", s)
		}
	}
	return nil
}

// ownHeaders are set by the proxy itself or say how the message is read; a rule
// cannot forge them.
var ownHeaders = []string{"Host", "Connection", "Te", "Trailer", "Upgrade", "Transfer-Encoding", "Keep-Alive", "Expect", "Proxy-Authorization",
	"Proxy-Connection", "Authorization", "Cookie", "Forwarded", "X-Request-Id"}

// ownPrefixes begin the names of more of them.
var ownPrefixes = []string{"Content-", "X-Forwarded-", "X-Versola-"}

func injectedHeader(s string) error {
	if err := headerName(s); err != nil {
		return err
	}
	name := textproto.CanonicalMIMEHeaderKey(s)
	if slices.Contains(ownHeaders, name) || slices.ContainsFunc(ownPrefixes, func(p string) bool { return strings.HasPrefix(name, p) }) {
		return fmt.Errorf("%q is set by the edge itself", s)
	}
	return nil
}
