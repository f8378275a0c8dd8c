package catalog

import (
	"encoding/json"
	"fmt"
	"time"

	"versola/platform/id"
)

// Duration is a time.Duration written as text, such as "5m" or "720h".
type Duration time.Duration

// D returns the duration, or def where none was set.
func (d Duration) D(def time.Duration) time.Duration {
	if d == 0 {
		return def
	}
	return time.Duration(d)
}

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("%q is not a duration such as 90s, 5m or 720h", text)
	}
	*d = Duration(v)
	return nil
}

// SecurityProfile is how strict a tenant's clients are held. It is fixed when
// the tenant is created.
type SecurityProfile string

// The profiles.
const (
	ProfileStandard SecurityProfile = "standard"
	ProfileFAPI2    SecurityProfile = "fapi2"
)

// Snapshot is the configuration as it is stored and sent, revision and all.
type Snapshot struct {
	Revision int64 `json:"revision"`
	// Issuer is auth's public URL, without a trailing slash. RootTenant is
	// the tenant served at it; any other tenant's issuer is Issuer + "/t/" + id.
	Issuer      string           `json:"issuer"`
	RootTenant  string           `json:"root_tenant"`
	Edges       []EdgeSpec       `json:"edges"`
	Tenants     []TenantSpec     `json:"tenants"`
	Scopes      []ScopeSpec      `json:"scopes"`
	Resources   []ResourceSpec   `json:"resources"`
	Permissions []PermissionSpec `json:"permissions"`
	Roles       []RoleSpec       `json:"roles"`
	Clients     []ClientSpec     `json:"clients"`
	Presets     []PresetSpec     `json:"presets"`
	Keys        []KeySpec        `json:"keys"`
}

// TenantSpec declares a tenant.
type TenantSpec struct {
	ID        string          `json:"id" yaml:"id"`
	Name      string          `json:"name" yaml:"name"`
	Profile   SecurityProfile `json:"security_profile" yaml:"security_profile"`
	Directory string          `json:"directory" yaml:"directory"` // user directory; default: the tenant's id
	Edge      string          `json:"edge,omitempty" yaml:"edge"` // the edge that serves it
	Settings  TenantSettings  `json:"settings" yaml:"settings"`
}

// TenantSettings are a tenant's defaults; zero means the product's default
// (see the methods of [Tenant]).
type TenantSettings struct {
	AccessTokenTTL  Duration `json:"access_token_ttl,omitempty" yaml:"access_token_ttl"`
	IDTokenTTL      Duration `json:"id_token_ttl,omitempty" yaml:"id_token_ttl"`
	CodeTTL         Duration `json:"code_ttl,omitempty" yaml:"code_ttl"`
	RefreshIdle     Duration `json:"refresh_idle_ttl,omitempty" yaml:"refresh_idle_ttl"`
	RefreshAbsolute Duration `json:"refresh_absolute_ttl,omitempty" yaml:"refresh_absolute_ttl"`
	RefreshGrace    Duration `json:"refresh_grace,omitempty" yaml:"refresh_grace"`
	SessionIdle     Duration `json:"session_idle_ttl,omitempty" yaml:"session_idle_ttl"`
	SessionAbsolute Duration `json:"session_absolute_ttl,omitempty" yaml:"session_absolute_ttl"`
	LoginTTL        Duration `json:"login_ttl,omitempty" yaml:"login_ttl"` // one login conversation
	// OfflineSurvivesLogout lets grants with offline_access outlive a sign-out
	// (OpenID Connect Back-Channel Logout section 2.7). They outlive the
	// session's natural end in any case.
	OfflineSurvivesLogout bool `json:"offline_survives_logout,omitempty" yaml:"offline_survives_logout"`
	// PhonePrefixes are the E.164 prefixes that may sign in; empty: any.
	PhonePrefixes []string `json:"phone_prefixes,omitempty" yaml:"phone_prefixes"`
}

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

// The methods of this version.
const (
	AuthNone  AuthMethod = "none"
	AuthBasic AuthMethod = "client_secret_basic"
	AuthPost  AuthMethod = "client_secret_post"
)

// Grant types (RFC 7591 section 2).
const (
	GrantCode              = "authorization_code"
	GrantRefreshToken      = "refresh_token"
	GrantClientCredentials = "client_credentials"
)

// ClientSpec declares a client of one tenant.
type ClientSpec struct {
	Tenant                 string         `json:"tenant" yaml:"tenant"`
	ID                     string         `json:"id" yaml:"id"`
	Name                   string         `json:"name" yaml:"name"`
	Kind                   ClientKind     `json:"client_kind" yaml:"client_kind"`
	AuthMethod             AuthMethod     `json:"auth_method" yaml:"auth_method"`
	GrantTypes             []string       `json:"grant_types" yaml:"grant_types"`
	RedirectURIs           []string       `json:"redirect_uris,omitempty" yaml:"redirect_uris"`
	PostLogoutRedirectURIs []string       `json:"post_logout_redirect_uris,omitempty" yaml:"post_logout_redirect_uris"`
	Scopes                 []string       `json:"scopes,omitempty" yaml:"scopes"`
	Permissions            []string       `json:"permissions,omitempty" yaml:"permissions"` // a service client's own
	Audiences              []string       `json:"audiences,omitempty" yaml:"audiences"`     // resources' audiences; default: the client's own id
	AccessTokenTTL         Duration       `json:"access_token_ttl,omitempty" yaml:"access_token_ttl"`
	AccessTokenAlg         string         `json:"access_token_alg,omitempty" yaml:"access_token_alg"` // default ES256
	IDTokenAlg             string         `json:"id_token_alg,omitempty" yaml:"id_token_alg"`         // default RS256 (OpenID Connect Registration section 2)
	RequirePKCE            *bool          `json:"require_pkce,omitempty" yaml:"require_pkce"`         // default true; a public client cannot turn it off
	CORSOrigins            []string       `json:"cors_origins,omitempty" yaml:"cors_origins"`
	BackchannelLogoutURI   string         `json:"backchannel_logout_uri,omitempty" yaml:"backchannel_logout_uri"`
	Login                  LoginFlow      `json:"login" yaml:"login"`
	Disabled               bool           `json:"disabled,omitempty" yaml:"disabled"`
	Secrets                []SealedSecret `json:"secrets,omitempty" yaml:"-"` // newest first
}

// LoginFlow is how people sign in for a client.
type LoginFlow struct {
	// Identifiers that may start a sign-in: "phone", "email". Default: both.
	Identifiers []string `json:"identifiers,omitempty" yaml:"identifiers"`
	// Factors that may prove it, in order of preference: "otp", "password".
	// Default: both; the person may choose where both apply.
	Factors []string `json:"factors,omitempty" yaml:"factors"`
}

// SealedSecret is a secret that only the holder of the right key opens: central
// and auth with the deployment's encryption key, an edge with its own.
type SealedSecret struct {
	ID     id.UUID `json:"id"`
	Sealed []byte  `json:"sealed"`
}

// ScopeSpec declares a scope and the claims that it releases at userinfo.
type ScopeSpec struct {
	Tenant      string   `json:"tenant" yaml:"tenant"`
	ID          string   `json:"id" yaml:"id"`
	Description string   `json:"description,omitempty" yaml:"description"`
	Claims      []string `json:"claims,omitempty" yaml:"claims"`
}

// ResourceSpec declares an API behind an edge.
type ResourceSpec struct {
	Tenant    string         `json:"tenant" yaml:"tenant"`
	ID        string         `json:"id" yaml:"id"` // the path segment under /resources/
	Name      string         `json:"name,omitempty" yaml:"name"`
	Audience  string         `json:"audience" yaml:"audience"` // default: the resource's id
	Upstream  UpstreamSpec   `json:"upstream" yaml:"upstream"`
	Endpoints []EndpointSpec `json:"endpoints" yaml:"endpoints"`
}

// UpstreamSpec says where and how a resource is reached.
type UpstreamSpec struct {
	URL             string   `json:"url" yaml:"url"` // scheme, host, optional base path
	ConnectTimeout  Duration `json:"connect_timeout,omitempty" yaml:"connect_timeout"`
	ResponseTimeout Duration `json:"response_timeout,omitempty" yaml:"response_timeout"` // to the first byte of the answer
	MaxBody         int64    `json:"max_body,omitempty" yaml:"max_body"`                 // bytes; 0: no limit
	ForwardToken    bool     `json:"forward_token,omitempty" yaml:"forward_token"`       // send the caller's access token on
}

// EndpointSpec declares one method and path of a resource.
type EndpointSpec struct {
	ID     string `json:"id" yaml:"id"`
	Method string `json:"method" yaml:"method"`
	// Path is a template: literal segments, {name} segments, and a last
	// {name...} that takes the rest.
	Path   string `json:"path" yaml:"path"`
	Public bool   `json:"public,omitempty" yaml:"public"` // needs no caller
}

// PermissionSpec names a set of endpoints, each as "resource:endpoint".
type PermissionSpec struct {
	Tenant    string   `json:"tenant" yaml:"tenant"`
	ID        string   `json:"id" yaml:"id"`
	Endpoints []string `json:"endpoints" yaml:"endpoints"`
}

// RoleSpec names a set of permissions that people are given.
type RoleSpec struct {
	Tenant      string   `json:"tenant" yaml:"tenant"`
	ID          string   `json:"id" yaml:"id"`
	Permissions []string `json:"permissions" yaml:"permissions"`
	// Within limits a role of the system tenant to the administration of one
	// tenant; empty: of all.
	Within string `json:"within,omitempty" yaml:"within"`
}

// SystemTenant is the tenant whose people administer the deployment.
const SystemTenant = "system"

// PresetSpec declares a browser login of an edge: GET /login/{id} there.
type PresetSpec struct {
	Tenant      string   `json:"tenant" yaml:"tenant"`
	ID          string   `json:"id" yaml:"id"`
	Edge        string   `json:"edge" yaml:"edge"`
	Client      string   `json:"client" yaml:"client"`
	RedirectURI string   `json:"redirect_uri" yaml:"redirect_uri"` // the edge's /complete, as registered with the client
	Scopes      []string `json:"scopes" yaml:"scopes"`
	AfterLogin  string   `json:"after_login" yaml:"after_login"` // URL or path on the edge
	AfterLogout string   `json:"after_logout" yaml:"after_logout"`
	AfterError  string   `json:"after_error,omitempty" yaml:"after_error"` // default: after_login, with ?error=
	// CookieName, default derived from the preset's id.
	CookieName string `json:"cookie_name,omitempty" yaml:"cookie_name"`
	// SessionTTL is the edge session's absolute lifetime (default 12h).
	SessionTTL Duration `json:"session_ttl,omitempty" yaml:"session_ttl"`
}

// EdgeSpec declares an edge by its public keys (a JSON Web Key Set): those with
// use "sig" authenticate it at the feeds, those with use "enc" are what secrets
// are encrypted to. Several of each overlap during a rotation.
type EdgeSpec struct {
	ID   string          `json:"id" yaml:"id"`
	JWKS json.RawMessage `json:"jwks" yaml:"jwks"`
}

// States of a signing key.
const (
	KeyNext     = "next"     // published, not yet signing
	KeyActive   = "active"   // signing; one per algorithm
	KeyRetiring = "retiring" // published until what it signed has expired
)

// KeySpec is a signing key of the deployment. An edge's snapshot has no Sealed.
type KeySpec struct {
	ID     string          `json:"id"`
	Alg    string          `json:"alg"`
	State  string          `json:"state"`
	Public json.RawMessage `json:"public_jwk"`
	Sealed []byte          `json:"sealed,omitempty"` // PKCS #8, sealed
}

// SealPurpose is the purpose of the keyring that seals what central's tables
// hold (secret.NewKeyring): client secrets and signing keys.
const SealPurpose = "catalog"

// Contexts under which secrets are sealed (see secret.Keyring.Seal): a sealed
// value moved to another row does not open.

// ClientSecretContext returns the context of a client's secret.
func ClientSecretContext(tenant, client string, secretID id.UUID) string {
	return "client_secret/" + tenant + "/" + client + "/" + secretID.String()
}

// SigningKeyContext returns the context of a signing key.
func SigningKeyContext(kid string) string { return "signing_key/" + kid }
