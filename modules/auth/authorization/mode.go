package authorization

import (
	"net/url"
	"slices"
	"strings"

	"versola/modules/auth/oauth"
)

// Mode is how an answer travels to the client: in the query or the fragment of
// its redirect URI (OAuth 2.0 Multiple Response Type Encoding Practices section
// 2.1) or in a form that the browser posts there (OAuth 2.0 Form Post Response
// Mode), and as plain parameters or in a signed JWT (JARM section 2.3).
type Mode string

// The modes.
const (
	Query       Mode = "query"
	Fragment    Mode = "fragment"
	FormPost    Mode = "form_post"
	QueryJWT    Mode = "query.jwt"
	FragmentJWT Mode = "fragment.jwt"
	FormPostJWT Mode = "form_post.jwt"
	// modeJWT asks for the signed form of the response type's own mode (JARM
	// section 2.3.4).
	modeJWT Mode = "jwt"
)

// modes are what may be asked for.
var modes = []Mode{Query, Fragment, FormPost, QueryJWT, FragmentJWT, FormPostJWT, modeJWT}

// Modes returns the values of response_mode.
func Modes() []string {
	out := make([]string, len(modes))
	for i, m := range modes {
		out[i] = string(m)
	}
	return out
}

// ModeOf returns the mode that a response_mode asks for with response_type code;
// empty: the default. false: there is none of that name.
func ModeOf(name string) (Mode, bool) {
	switch m := Mode(name); {
	case m == "":
		return Query, true
	case m == modeJWT:
		return QueryJWT, true
	default:
		return m, slices.Contains(modes, m)
	}
}

// Signed tells whether the answer is a JWT.
func (m Mode) Signed() bool { return strings.HasSuffix(string(m), ".jwt") }

// Form tells whether the answer is posted by a form.
func (m Mode) Form() bool { return m == FormPost || m == FormPostJWT }

// address returns the redirect URI with the answer v. Its own query stays as it
// was registered (RFC 6749 section 3.1.2).
func (m Mode) address(redirectURI string, v url.Values) string {
	if m == Fragment || m == FragmentJWT {
		return redirectURI + "#" + v.Encode() // a registered redirect URI has none
	}
	return oauth.AddQuery(redirectURI, v)
}
