package authorization

import (
	"time"

	"versola/modules/auth/oauth"
	"versola/platform/id"
)

// Request is a validated authorization request. The tags are those of its row.
type Request struct {
	Tenant        string   `json:"tenant"`
	ClientID      string   `json:"client_id"`
	RedirectURI   string   `json:"redirect_uri"`
	ResponseMode  Mode     `json:"response_mode"`
	State         string   `json:"state,omitempty"`
	Nonce         string   `json:"nonce,omitempty"`
	Scopes        []string `json:"scopes"`
	CodeChallenge string   `json:"code_challenge,omitempty"` // S256
	DPoPKey       string   `json:"dpop_jkt,omitempty"`       // thumbprint that the code is bound to
	Prompt        []string `json:"prompt,omitempty"`
	MaxAge        *int     `json:"max_age,omitempty"` // seconds
	ACRValues     []string `json:"acr_values,omitempty"`
	LoginHint     string   `json:"login_hint,omitempty"`
	UILocales     []string `json:"ui_locales,omitempty"`
	// Subject, when set, is the only user who may answer (from id_token_hint).
	Subject string `json:"subject,omitempty"`
	// Pushed is the key of a pushed request's row, which answering the request
	// takes away; nil: the request was not pushed.
	Pushed []byte `json:"pushed,omitempty"`
}

// Spent is the refusal of a pushed request that is not there, or not any more.
// It is for the person: there is nobody to redirect to.
func Spent() *oauth.Error {
	return oauth.Refuse(oauth.InvalidRequestURI, "request_uri has expired, was used before, or is not the client's")
}

// Authentication states what a person has proven in a session: it goes into
// the code and from there into every token.
type Authentication struct {
	UserID    id.UUID
	SessionID id.UUID
	AuthTime  time.Time
	ACR       string
	AMR       []string // RFC 8176
}
