package userinfo

import (
	"net/http"
	"strings"

	"versola/modules/auth/oauth"
)

// Challenges of RFC 6750 section 3. A request without any token is told the
// scheme alone, with no error (section 3.1).
const (
	scheme       = `Bearer realm="versola"`
	withError    = scheme + `, error="`
	descriptionQ = `", error_description="`
)

// refuse makes a refusal whose challenge repeats its code and description.
func refuse(code, description string) *oauth.Error {
	e := oauth.Refuse(code, "%s", description)
	e.Scheme = withError + code + descriptionQ + description + `"`
	if code == oauth.InsufficientScope {
		e.Scheme += `, scope="openid"`
	}
	return e
}

// bearer finds the access token of a request. Errors: an [oauth.Error].
func bearer(r *http.Request) (string, error) {
	headers := r.Header.Values("Authorization")
	if len(headers) > 1 {
		return "", refuse(oauth.InvalidRequest, "the Authorization header was sent more than once")
	}
	body, err := fromBody(r)
	if err != nil {
		return "", err
	}
	if len(headers) == 0 {
		if body == "" {
			return "", missing()
		}
		return body, nil
	}
	name, value, ok := strings.Cut(headers[0], " ")
	if !strings.EqualFold(name, "Bearer") {
		return "", missing()
	}
	if body != "" {
		return "", refuse(oauth.InvalidRequest, "the access token was sent in more than one way")
	}
	if !ok || value == "" {
		return "", refuse(oauth.InvalidRequest, "the Authorization header has no access token")
	}
	return value, nil
}

func missing() error {
	return &oauth.Error{Code: oauth.InvalidToken, Description: "an access token is needed", Scheme: scheme}
}

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
		return "", refuse(oauth.InvalidRequest, "access_token was sent more than once")
	}
	return p.Get("access_token"), nil
}
