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

	Directories []DirectorySpec           `json:"directories,omitempty"`
	Claims      []ClaimSpec               `json:"claims,omitempty"`
	DetailTypes []AuthorizationDetailType `json:"authorization_detail_types,omitempty"`
	Themes      []ThemeSpec               `json:"themes,omitempty"`
	Texts       []TextsSpec               `json:"texts,omitempty"`
	Templates   []TemplateSpec            `json:"templates,omitempty"`
	Webhooks    []WebhookSpec             `json:"webhooks,omitempty"`
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
	// PushedRequestTTL is how long a pushed authorization request can begin a
	// sign-in (RFC 9126 section 2.2, "expires_in").
	PushedRequestTTL Duration `json:"pushed_request_ttl,omitempty" yaml:"pushed_request_ttl"`
	// OfflineSurvivesLogout lets grants with offline_access outlive a sign-out
	// (OpenID Connect Back-Channel Logout section 2.7). They outlive the
	// session's natural end in any case.
	OfflineSurvivesLogout bool `json:"offline_survives_logout,omitempty" yaml:"offline_survives_logout"`
	// PhonePrefixes are the E.164 prefixes that may sign in; empty: any.
	PhonePrefixes []string `json:"phone_prefixes,omitempty" yaml:"phone_prefixes"`

	Languages      []string        `json:"languages,omitempty" yaml:"languages"` // of pages and messages, the default first
	OTP            *OTPSettings    `json:"otp,omitempty" yaml:"otp"`
	Limits         *SignInLimits   `json:"limits,omitempty" yaml:"limits"`
	PasswordPolicy *PasswordPolicy `json:"password_policy,omitempty" yaml:"password_policy"`
	Passkeys       *RelyingParty   `json:"passkeys,omitempty" yaml:"passkeys"`
	// ACR are the authentication context classes, weakest first.
	ACR               []ACRSpec          `json:"acr,omitempty" yaml:"acr"`
	CertificateHeader *CertificateHeader `json:"certificate_header,omitempty" yaml:"certificate_header"`
	RequirePAR        bool               `json:"require_pushed_authorization_requests,omitempty" yaml:"require_pushed_authorization_requests"`
	Theme             string             `json:"theme,omitempty" yaml:"theme"`
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
	Description Text     `json:"description,omitempty" yaml:"description"`
	Claims      []string `json:"claims,omitempty" yaml:"claims"`
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
