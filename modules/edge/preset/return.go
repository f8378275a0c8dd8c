package preset

import (
	"net/url"
	"strings"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
)

// maxReturn bounds a return_to: it travels in a row and in a Location.
const maxReturn = 2048

// ReturnPath checks a return_to. It is a path with optional query and
// fragment, in a spelling that every browser and server reads alike; it never
// names another origin.
func ReturnPath(s string) (string, bool) {
	if s == "" || len(s) > maxReturn {
		return "", false
	}
	path, fragment, hasFragment := strings.Cut(s, "#")
	target, reason := policy.Canonical(path)
	if reason != policy.Allowed {
		return "", false
	}
	out := target.Escaped
	if target.HasQuery {
		out += "?" + target.Query
	}
	if hasFragment {
		for i := range len(fragment) {
			if c := fragment[i]; c <= ' ' || c >= 0x7f || c == '\\' || c == '"' || c == '<' || c == '>' {
				return "", false
			}
		}
		out += "#" + fragment
	}
	return out, true
}

// destination is where a browser goes after signing in: the preset's page, or
// a path on that page's origin.
func destination(p *catalog.Preset, returnTo string) string {
	if returnTo == "" {
		return p.AfterLogin
	}
	u, err := url.Parse(p.AfterLogin)
	if err != nil || u.Host == "" {
		return returnTo
	}
	return u.Scheme + "://" + u.Host + returnTo
}

// failure is where a browser goes when signing in did not work.
func failure(p *catalog.Preset, code string) string {
	to := p.AfterError
	if to == "" {
		to = p.AfterLogin
	}
	u, err := url.Parse(to)
	if err != nil {
		return "/"
	}
	q := u.Query()
	q.Set("error", code)
	u.RawQuery = q.Encode()
	return u.String()
}
