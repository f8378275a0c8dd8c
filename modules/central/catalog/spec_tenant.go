package catalog

import (
	"encoding/json"
	"time"
)

// DefaultOTPTTL is the life of a one-time code: long enough to fetch a phone.
const DefaultOTPTTL = 5 * time.Minute

// OTPSettings are how one-time codes are made and sent.
type OTPSettings struct {
	Length   int64    `json:"length,omitempty" yaml:"length"` // digits
	TTL      Duration `json:"ttl,omitempty" yaml:"ttl"`
	Attempts int64    `json:"attempts,omitempty" yaml:"attempts"` // of one code
	Resend   Duration `json:"resend_after,omitempty" yaml:"resend_after"`
	PerDay   int64    `json:"per_day,omitempty" yaml:"per_day"`   // to one address
	Channels []string `json:"channels,omitempty" yaml:"channels"` // "sms", "email", "voice", in order of preference
}

// SignInLimits bound failed sign-ins.
type SignInLimits struct {
	FailuresPerAccount int64    `json:"failures_per_account,omitempty" yaml:"failures_per_account"`
	FailuresPerAddress int64    `json:"failures_per_address,omitempty" yaml:"failures_per_address"`
	Window             Duration `json:"window,omitempty" yaml:"window"`
}

// PasswordPolicy is what people's passwords have to be (NIST SP 800-63B
// section 3.1.1).
type PasswordPolicy struct {
	MinLength int64    `json:"min_length,omitempty" yaml:"min_length"`
	History   int64    `json:"history,omitempty" yaml:"history"` // how many earlier ones are refused
	MaxAge    Duration `json:"max_age,omitempty" yaml:"max_age"` // 0: a password does not end
	// Pattern is a regular expression (RE2) that a password has to match.
	Pattern string `json:"pattern,omitempty" yaml:"pattern"`
}

// RelyingParty is what passkeys are bound to (WebAuthn Level 2 section 5.4.2).
type RelyingParty struct {
	ID      string   `json:"id" yaml:"id"` // a domain name
	Name    string   `json:"name,omitempty" yaml:"name"`
	Origins []string `json:"origins" yaml:"origins"`
}

// ACRSpec is an authentication context class: what it takes.
type ACRSpec struct {
	Value   string   `json:"value" yaml:"value"`
	Factors []string `json:"factors" yaml:"factors"` // all of them
}

// CertificateHeader says where a trusted terminator of mutual TLS puts the
// client's certificate.
type CertificateHeader struct {
	Name   string `json:"name" yaml:"name"`
	Format string `json:"format" yaml:"format"` // "pem-urlencoded", "der-base64" or "rfc9440"
}

// DirectorySpec describes a user directory. A tenant's directory need not be
// described.
type DirectorySpec struct {
	ID   string `json:"id" yaml:"id"`
	Name Text   `json:"name,omitempty" yaml:"name"`
}

// ClaimSpec describes a claim to people, in their language.
type ClaimSpec struct {
	Tenant      string `json:"tenant" yaml:"tenant"`
	ID          string `json:"id" yaml:"id"` // the claim's name
	Name        Text   `json:"name,omitempty" yaml:"name"`
	Description Text   `json:"description,omitempty" yaml:"description"`
}

// AuthorizationDetailType declares a type of authorization details (RFC 9396
// section 2) by the JSON Schema (2020-12) of its objects.
type AuthorizationDetailType struct {
	Tenant      string          `json:"tenant" yaml:"tenant"`
	ID          string          `json:"id" yaml:"id"` // the value of "type"
	Name        Text            `json:"name,omitempty" yaml:"name"`
	Description Text            `json:"description,omitempty" yaml:"description"`
	Schema      json.RawMessage `json:"schema" yaml:"schema"`
}

// ThemeSpec is the look of a tenant's pages.
type ThemeSpec struct {
	Tenant string            `json:"tenant" yaml:"tenant"`
	ID     string            `json:"id" yaml:"id"`
	Tokens map[string]string `json:"tokens,omitempty" yaml:"tokens"` // name of a design token -> colour, length or font
	CSS    string            `json:"css,omitempty" yaml:"css"`
	Logo   string            `json:"logo_uri,omitempty" yaml:"logo_uri"`
}

// TextsSpec overrides texts of pages and messages in one language, which is
// its id.
type TextsSpec struct {
	Tenant string            `json:"tenant" yaml:"tenant"`
	ID     string            `json:"id" yaml:"id"`
	Texts  map[string]string `json:"texts" yaml:"texts"` // key -> text
}

// TemplateSpec is what a message says.
type TemplateSpec struct {
	Tenant  string `json:"tenant" yaml:"tenant"`
	ID      string `json:"id" yaml:"id"`
	Message string `json:"message" yaml:"message"` // of [texts.Messages]
	Channel string `json:"channel" yaml:"channel"` // "sms" or "email"
	Subject Text   `json:"subject,omitempty" yaml:"subject"`
	Body    Text   `json:"body" yaml:"body"`
}

// WebhookSpec is an address that is told of events.
type WebhookSpec struct {
	Tenant   string   `json:"tenant" yaml:"tenant"`
	ID       string   `json:"id" yaml:"id"`
	URL      string   `json:"url" yaml:"url"`
	Events   []string `json:"events" yaml:"events"`
	Disabled bool     `json:"disabled,omitempty" yaml:"disabled"`
}
