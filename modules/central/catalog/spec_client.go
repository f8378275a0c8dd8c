package catalog

import (
	"encoding/json"

	"versola/platform/jose"
)

// ClientKind says what runs the client, and with it whether it can keep a
// secret.
type ClientKind string

// The kinds of client.
const (
	KindWeb     ClientKind = "web"
	KindNative  ClientKind = "native"
	KindSPA     ClientKind = "single-page"
	KindService ClientKind = "service"
)

// AuthMethod is a token endpoint authentication method (RFC 7591 section 2).
type AuthMethod string

// The methods (RFC 7591 section 2, OpenID Connect Core section 9, RFC 8705
// section 2).
const (
	AuthNone          AuthMethod = "none"
	AuthBasic         AuthMethod = "client_secret_basic"
	AuthPost          AuthMethod = "client_secret_post"
	AuthSecretJWT     AuthMethod = "client_secret_jwt"
	AuthPrivateKeyJWT AuthMethod = "private_key_jwt"
	AuthTLS           AuthMethod = "tls_client_auth"
	AuthSelfSignedTLS AuthMethod = "self_signed_tls_client_auth"
)

// HasSecret tells whether a client of this method authenticates by a secret.
func (m AuthMethod) HasSecret() bool { return m == AuthBasic || m == AuthPost || m == AuthSecretJWT }

// AssertionAlgs is [Client.AssertionAlgs] of a declaration.
func (s *ClientSpec) AssertionAlgs(profile SecurityProfile) []jose.Algorithm {
	switch {
	case s.AuthSigningAlg != "":
		return []jose.Algorithm{jose.Algorithm(s.AuthSigningAlg)}
	case s.AuthMethod == AuthSecretJWT:
		return secretAlgs
	case s.AuthMethod == AuthPrivateKeyJWT:
		return profile.clientAlgs()
	}
	return nil
}

// clientAlgs are the algorithms that clients may sign with under a profile
// (FAPI 2.0 section 5.4).
func (p SecurityProfile) clientAlgs() []jose.Algorithm {
	if p == ProfileFAPI2 {
		return fapi2Algs
	}
	return standardAlgs
}

var (
	standardAlgs = jose.Algorithms()
	fapi2Algs    = []jose.Algorithm{jose.ES256, jose.PS256, jose.EdDSA}
	secretAlgs   = []jose.Algorithm{jose.HS256}
)

// Grant types (RFC 7591 section 2).
const (
	GrantCode              = "authorization_code"
	GrantRefreshToken      = "refresh_token"
	GrantClientCredentials = "client_credentials"
	GrantDevice            = "urn:ietf:params:oauth:grant-type:device_code"    // RFC 8628
	GrantTokenExchange     = "urn:ietf:params:oauth:grant-type:token-exchange" // RFC 8693
)

// Response types (RFC 6749 section 3.1.1, OAuth 2.0 Multiple Response Types).
const (
	ResponseCode        = "code"
	ResponseCodeIDToken = "code id_token"
)

// ClientSpec declares a client of one tenant.
type ClientSpec struct {
	Tenant                 string     `json:"tenant" yaml:"tenant"`
	ID                     string     `json:"id" yaml:"id"`
	Name                   Text       `json:"name" yaml:"name"`
	Kind                   ClientKind `json:"client_kind" yaml:"client_kind"`
	AuthMethod             AuthMethod `json:"auth_method" yaml:"auth_method"`
	GrantTypes             []string   `json:"grant_types" yaml:"grant_types"`
	RedirectURIs           []string   `json:"redirect_uris,omitempty" yaml:"redirect_uris"`
	PostLogoutRedirectURIs []string   `json:"post_logout_redirect_uris,omitempty" yaml:"post_logout_redirect_uris"`
	Scopes                 []string   `json:"scopes,omitempty" yaml:"scopes"`
	Permissions            []string   `json:"permissions,omitempty" yaml:"permissions"` // a service client's own
	Audiences              []string   `json:"audiences,omitempty" yaml:"audiences"`     // resources' audiences; default: the client's own id
	AccessTokenTTL         Duration   `json:"access_token_ttl,omitempty" yaml:"access_token_ttl"`
	AccessTokenAlg         string     `json:"access_token_alg,omitempty" yaml:"access_token_alg"` // default ES256
	IDTokenAlg             string     `json:"id_token_alg,omitempty" yaml:"id_token_alg"`         // default RS256 (OpenID Connect Registration section 2)
	RequirePKCE            *bool      `json:"require_pkce,omitempty" yaml:"require_pkce"`         // default true; a public client cannot turn it off
	CORSOrigins            []string   `json:"cors_origins,omitempty" yaml:"cors_origins"`
	BackchannelLogoutURI   string     `json:"backchannel_logout_uri,omitempty" yaml:"backchannel_logout_uri"`
	Login                  LoginFlow  `json:"login" yaml:"login"`
	Disabled               bool       `json:"disabled,omitempty" yaml:"disabled"`

	ResponseTypes []string `json:"response_types,omitempty" yaml:"response_types"` // default: code, with the grant authorization_code
	// JWKS or JWKSURI hold the client's public keys: of its assertions, request
	// objects and self-signed certificates.
	JWKS    json.RawMessage `json:"jwks,omitempty" yaml:"jwks"`
	JWKSURI string          `json:"jwks_uri,omitempty" yaml:"jwks_uri"`
	// TLS says which certificate is the client's, for tls_client_auth: exactly
	// one of its members is there (RFC 8705 section 2.1.2).
	TLS *ClientCertificate `json:"tls,omitempty" yaml:"tls"`

	AuthSigningAlg      string `json:"token_endpoint_auth_signing_alg,omitempty" yaml:"token_endpoint_auth_signing_alg"`
	RequestObjectAlg    string `json:"request_object_signing_alg,omitempty" yaml:"request_object_signing_alg"`
	UserinfoAlg         string `json:"userinfo_signed_response_alg,omitempty" yaml:"userinfo_signed_response_alg"`
	IntrospectionAlg    string `json:"introspection_signed_response_alg,omitempty" yaml:"introspection_signed_response_alg"`
	AuthorizationAlg    string `json:"authorization_signed_response_alg,omitempty" yaml:"authorization_signed_response_alg"` // JARM
	AccessTokenFormat   string `json:"access_token_format,omitempty" yaml:"access_token_format"`                             // "jwt" (the default) or "opaque"
	SubjectType         string `json:"subject_type,omitempty" yaml:"subject_type"`                                           // "public" (the default) or "pairwise"
	SectorIdentifierURI string `json:"sector_identifier_uri,omitempty" yaml:"sector_identifier_uri"`

	IDTokenTTL      Duration `json:"id_token_ttl,omitempty" yaml:"id_token_ttl"`
	RefreshIdle     Duration `json:"refresh_idle_ttl,omitempty" yaml:"refresh_idle_ttl"`
	RefreshAbsolute Duration `json:"refresh_absolute_ttl,omitempty" yaml:"refresh_absolute_ttl"`

	RequirePAR            bool           `json:"require_pushed_authorization_requests,omitempty" yaml:"require_pushed_authorization_requests"`
	RequireSignedRequest  bool           `json:"require_signed_request_object,omitempty" yaml:"require_signed_request_object"`
	DPoPBound             bool           `json:"dpop_bound_access_tokens,omitempty" yaml:"dpop_bound_access_tokens"`
	CertificateBound      bool           `json:"tls_client_certificate_bound_access_tokens,omitempty" yaml:"tls_client_certificate_bound_access_tokens"`
	DefaultMaxAge         Duration       `json:"default_max_age,omitempty" yaml:"default_max_age"`
	DefaultACR            []string       `json:"default_acr_values,omitempty" yaml:"default_acr_values"`
	AuthorizationDetails  []string       `json:"authorization_details_types,omitempty" yaml:"authorization_details_types"`
	FrontchannelLogoutURI string         `json:"frontchannel_logout_uri,omitempty" yaml:"frontchannel_logout_uri"`
	Consent               string         `json:"consent,omitempty" yaml:"consent"` // "none" (the default), "once" or "always"
	Registration          bool           `json:"registration,omitempty" yaml:"registration"`
	Theme                 string         `json:"theme,omitempty" yaml:"theme"`
	LogoURI               string         `json:"logo_uri,omitempty" yaml:"logo_uri"`
	PolicyURI             string         `json:"policy_uri,omitempty" yaml:"policy_uri"`
	TermsURI              string         `json:"tos_uri,omitempty" yaml:"tos_uri"`
	Secrets               []SealedSecret `json:"secrets,omitempty" yaml:"-"` // newest first
}

// LoginFlow is how people sign in for a client.
type LoginFlow struct {
	// Identifiers that may start a sign-in: "phone", "email". Default: both.
	Identifiers []string `json:"identifiers,omitempty" yaml:"identifiers"`
	// Factors that may prove it, in order of preference: "otp", "password".
	// Default: both; the person may choose where both apply.
	Factors []string `json:"factors,omitempty" yaml:"factors"`
}

// ClientCertificate names the subject of a client's certificate (RFC 8705
// section 2.1.2).
type ClientCertificate struct {
	SubjectDN string `json:"subject_dn,omitempty" yaml:"subject_dn"` // RFC 4514
	DNS       string `json:"san_dns,omitempty" yaml:"san_dns"`
	URI       string `json:"san_uri,omitempty" yaml:"san_uri"`
	IP        string `json:"san_ip,omitempty" yaml:"san_ip"`
	Email     string `json:"san_email,omitempty" yaml:"san_email"`
}
