package authorization

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
	"versola/platform/id"
)

// Request is a validated authorization request. The tags are those of its row.
type Request struct {
	Tenant        string   `json:"tenant"`
	ClientID      string   `json:"client_id"`
	RedirectURI   string   `json:"redirect_uri"`
	ResponseMode  string   `json:"response_mode"` // "query"; others come with their specifications
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

// RespondCode sends the browser back with a code.
func RespondCode(c echo.Context, issuer string, r *Request, code string) error {
	return respond(c, issuer, r, url.Values{"code": {code}})
}

// RespondError sends the browser back with a refusal.
func RespondError(c echo.Context, issuer string, r *Request, e *oauth.Error) error {
	v := url.Values{"error": {e.Code}}
	if e.Description != "" {
		v.Set("error_description", e.Description)
	}
	return respond(c, issuer, r, v)
}

func respond(c echo.Context, issuer string, r *Request, v url.Values) error {
	return c.Redirect(http.StatusSeeOther, ResponseURL(issuer, r, v, c.Response().Header()))
}

// ResponseURL returns the address that carries the answer v, and sets the
// headers that keep it from leaking. The redirect URI's own query stays as it
// was registered (RFC 6749 section 3.1.2).
func ResponseURL(issuer string, r *Request, v url.Values, h http.Header) string {
	if r.State != "" {
		v.Set("state", r.State)
	}
	v.Set("iss", issuer)
	oauth.NoStore(h)
	h.Set("Referrer-Policy", "no-referrer")
	separator := "?"
	if strings.Contains(r.RedirectURI, "?") {
		separator = "&"
		if strings.HasSuffix(r.RedirectURI, "?") {
			separator = ""
		}
	}
	return r.RedirectURI + separator + v.Encode()
}
