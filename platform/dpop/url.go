package dpop

import (
	"net/url"
	"strings"
)

// sameURL tells whether htu names one of the addresses (section 4.3, rule 9):
// without query and fragment, and after the normalization that RFC 3986
// section 6.2 calls syntax-based and scheme-based.
func sameURL(htu string, addresses []string) bool {
	for _, a := range addresses {
		if htu == a {
			return true
		}
	}
	got, ok := normal(htu)
	if !ok {
		return false
	}
	for _, a := range addresses {
		if want, ok := normal(a); ok && got == want {
			return true
		}
	}
	return false
}

// normal returns a URL in the form that is compared; false: it is no absolute
// http or https URL. Dot segments stay: no address of ours has any.
func normal(raw string) (string, bool) {
	u, err := url.Parse(raw)
	if err != nil || u.User != nil || u.Opaque != "" || u.Hostname() == "" {
		return "", false
	}
	var usual string // the scheme's port
	switch u.Scheme {
	case "http":
		usual = "80"
	case "https":
		usual = "443"
	default:
		return "", false
	}
	host := strings.ToLower(u.Host)
	if port := u.Port(); port == usual || port == "" {
		host = strings.TrimSuffix(host, ":"+port)
	}
	path := u.EscapedPath()
	if path == "" {
		path = "/"
	}
	return u.Scheme + "://" + host + unescape(path), true
}

// unescape writes a path's escapes in upper case, and none for characters that
// need none (RFC 3986 section 6.2.2).
func unescape(path string) string {
	if !strings.Contains(path, "%") {
		return path
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		if path[i] != '%' || i+2 >= len(path) {
			b.WriteByte(path[i])
			continue
		}
		c := fromHex(path[i+1])<<4 | fromHex(path[i+2])
		if unreserved(c) {
			b.WriteByte(c)
		} else {
			b.WriteString(strings.ToUpper(path[i : i+3]))
		}
		i += 2
	}
	return b.String()
}

// fromHex reads a digit that the URL's parser has found to be one.
func fromHex(c byte) byte {
	switch {
	case c <= '9':
		return c - '0'
	case c <= 'F':
		return c - 'A' + 10
	default:
		return c - 'a' + 10
	}
}

func unreserved(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0
}
