package validate

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"versola/modules/central/catalog"
)

// maxURI is what every browser and proxy on the way carries.
const maxURI = 2000

// ownParameters are added to a redirect URI by the server; one that is
// registered already would be there twice (RFC 6749 section 3.1).
var ownParameters = []string{"code", "state", "iss", "error", "error_description", "error_uri", "response", "session_state"}

// RedirectURI checks a redirect URI (also one for after a logout).
func (r Rules) RedirectURI(s string, kind catalog.ClientKind) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	switch {
	case u.Scheme == "https":
		err = authority(u)
	case u.Scheme == "http":
		if err = authority(u); err == nil && !loopback(u.Hostname()) && (!r.Development || u.Hostname() != "localhost") {
			err = errors.New("plain http is for 127.0.0.1 and [::1] (RFC 8252), and for localhost in development")
		}
	case !strings.Contains(u.Scheme, "."):
		err = fmt.Errorf("scheme %q is not allowed: https, http on a loopback address, or a private-use scheme with a dot such as com.example.app", u.Scheme)
	case kind != catalog.KindNative:
		err = errors.New("a private-use scheme is for native clients")
	case u.Opaque != "":
		err = errors.New("a private-use scheme is followed by a path: " + u.Scheme + ":/callback")
	case u.User != nil:
		err = errors.New("has user information")
	}
	if err != nil {
		return err
	}
	for name := range u.Query() {
		if slices.Contains(ownParameters, name) {
			return fmt.Errorf("has the parameter %q, which the server adds", name)
		}
	}
	return nil
}

// WebURL checks the address of something that is called by http or https.
func (r Rules) WebURL(s string) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !r.Development && !loopback(u.Hostname())) {
		return errors.New("is not an https URL")
	}
	return authority(u)
}

// UpstreamURL checks the address of a resource: scheme, host, base path.
func UpstreamURL(s string) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	if u.Scheme != "https" && u.Scheme != "http" {
		return errors.New("is not an http or https URL")
	}
	if u.RawQuery != "" || u.ForceQuery {
		return errors.New("has a query")
	}
	return authority(u)
}

// Origin checks a web origin as browsers send it (RFC 6454 section 6.2).
func (r Rules) Origin(s string) error {
	u, err := parseURI(s)
	if err != nil {
		return err
	}
	if err := authority(u); err != nil {
		return err
	}
	if u.Scheme+"://"+u.Host != s || strings.ToLower(s) != s {
		return errors.New("is not an origin: scheme://host[:port] in lower case, nothing after")
	}
	if (u.Scheme == "https" && u.Port() == "443") || (u.Scheme == "http" && u.Port() == "80") {
		return errors.New("names the default port, which browsers leave out")
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname()) && (!r.Development || u.Hostname() != "localhost")) {
		return errors.New("is not an https origin")
	}
	return nil
}

// PageURL checks where a browser is sent by an edge: a path on the edge's own
// origin, or an http(s) URL.
func (r Rules) PageURL(s string) error {
	if !strings.HasPrefix(s, "/") {
		return r.WebURL(s)
	}
	// Two slashes, or a backslash that a browser reads as one, begin a host.
	if strings.HasPrefix(s, "//") {
		return errors.New("is not a path: it begins with two slashes")
	}
	if err := characters(s); err != nil {
		return err
	}
	u, err := url.Parse(s)
	if err != nil {
		return errors.New("is not a path")
	}
	return dotSegments(u.EscapedPath())
}

// parseURI reads an absolute URI of plain characters without a fragment.
func parseURI(s string) (*url.URL, error) {
	if s == "" {
		return nil, errors.New("is missing")
	}
	if len(s) > maxURI {
		return nil, fmt.Errorf("has %d characters, more than %d", len(s), maxURI)
	}
	if err := characters(s); err != nil {
		return nil, err
	}
	if strings.Contains(s, "#") {
		return nil, errors.New("has a fragment")
	}
	u, err := url.Parse(s)
	if err != nil || u.Scheme == "" {
		return nil, errors.New("is not an absolute URI")
	}
	if !strings.HasPrefix(s, u.Scheme+":") {
		return nil, errors.New("has a scheme with upper-case letters")
	}
	if err := dotSegments(u.EscapedPath()); err != nil {
		return nil, err
	}
	return u, nil
}

// characters refuses what RFC 3986 does not allow in a URI; some of it
// (backslash, tab, line break) browsers read as something else.
func characters(s string) error {
	for i := range len(s) {
		if c := s[i]; c <= 0x20 || c >= 0x7f || strings.IndexByte("\"<>\\^`{|}", c) >= 0 {
			return fmt.Errorf("has the character %q, which a URI cannot have", rune(c))
		}
	}
	return nil
}

// dotSegments refuses "." and ".." in a path, also percent-encoded: who
// normalises it arrives elsewhere.
func dotSegments(path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		switch strings.ReplaceAll(strings.ToLower(segment), "%2e", ".") {
		case ".", "..":
			return errors.New("has a dot segment")
		}
	}
	return nil
}

// authority checks host and port.
func authority(u *url.URL) error {
	host := u.Hostname()
	switch {
	case u.Opaque != "" || host == "":
		return errors.New("has no host")
	case u.User != nil || strings.Contains(u.Host, "@"):
		return errors.New("has user information")
	case strings.HasPrefix(u.Host, "["):
		if a, err := netip.ParseAddr(host); err != nil || a.Zone() != "" {
			return errors.New("has a malformed IPv6 address")
		}
	case strings.Trim(strings.ToLower(host), "abcdefghijklmnopqrstuvwxyz0123456789-.") != "" ||
		strings.HasPrefix(host, ".") || strings.HasSuffix(host, ".") || strings.Contains(host, ".."):
		return fmt.Errorf("has the host %q: a name in ASCII without wildcards is needed", host)
	}
	if port := u.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return errors.New("has an impossible port")
		}
	} else if strings.HasSuffix(u.Host, ":") {
		return errors.New("has an empty port")
	}
	return nil
}

// loopback tells whether host is a literal loopback address.
func loopback(host string) bool { return host == "127.0.0.1" || host == "::1" }
