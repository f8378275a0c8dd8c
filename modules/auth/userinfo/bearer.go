package userinfo

import (
	"net/http"
	"strings"

	"versola/modules/auth/oauth"
	"versola/platform/dpop"
	"versola/platform/jose"
)

// bearerScheme is the scheme of tokens that are bound to no key (RFC 6750).
const bearerScheme = "Bearer"

// presented is an access token as a request has it.
type presented struct {
	scheme string
	token  string
}

// challenge completes a refusal: what the caller is told in WWW-Authenticate
// (RFC 6750 section 3, RFC 9449 section 7.1). A request without any token is
// told the schemes alone, with no error.
func challenge(e *oauth.Error, scheme string, algs []jose.Algorithm) {
	switch e.Code {
	case oauth.InvalidDPoPProof, oauth.UseDPoPNonce:
		e.Status, scheme = http.StatusUnauthorized, dpop.Scheme
	case oauth.InvalidToken, oauth.InsufficientScope, oauth.InvalidRequest:
	default:
		return // no refusal of ours
	}
	const realm = ` realm="versola"`
	state := ""
	if e.Description != noToken {
		state = `, error="` + e.Code + `", error_description="` + e.Description + `"`
		if e.Code == oauth.InsufficientScope {
			state += `, scope="openid"`
		}
	}
	proofs := `, algs="` + dpop.List(algs) + `"`
	if dpop.IsScheme(scheme) {
		e.Scheme = dpop.Scheme + realm + state + proofs
		return
	}
	e.Scheme = bearerScheme + realm + state + `, ` + dpop.Scheme + realm + proofs
}

// find finds the access token of a request. Errors: an [oauth.Error].
func find(r *http.Request) (presented, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 {
		return presented{}, oauth.Refuse(oauth.InvalidRequest, "the Authorization header was sent more than once")
	}
	body, err := fromBody(r)
	if err != nil {
		return presented{}, err
	}
	if len(headers) == 0 {
		if body == "" {
			return presented{}, missing()
		}
		return presented{bearerScheme, body}, nil
	}
	scheme, value, ok := strings.Cut(headers[0], " ")
	if !strings.EqualFold(scheme, bearerScheme) && !dpop.IsScheme(scheme) {
		return presented{}, missing()
	}
	p := presented{scheme, value}
	if body != "" {
		return p, oauth.Refuse(oauth.InvalidRequest, "the access token was sent in more than one way")
	}
	if !ok || value == "" {
		return p, oauth.Refuse(oauth.InvalidRequest, "the Authorization header has no access token")
	}
	return p, nil
}

const noToken = "an access token is needed"

func missing() error { return oauth.Refuse(oauth.InvalidToken, noToken) }

// fromBody reads the access_token of a form body; any other body has none.
func fromBody(r *http.Request) (string, error) {
	if r.Method != http.MethodPost {
		return "", nil
	}
	ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(ct), "application/x-www-form-urlencoded") {
		return "", nil
	}
	p, err := oauth.ReadForm(r)
	if err != nil {
		return "", err
	}
	if _, twice := p.Duplicate("access_token"); twice {
		return "", oauth.Refuse(oauth.InvalidRequest, "access_token was sent more than once")
	}
	return p.Get("access_token"), nil
}
