package proxy

import (
	"net/http"
	"net/netip"
	"strings"

	"versola/platform/httpserver"
)

// Headers that tell the upstream who calls.
const (
	headerSubject = "X-Versola-Subject"
	headerTenant  = "X-Versola-Tenant"
	headerClient  = "X-Versola-Client"
	headerSession = "X-Versola-Session"
	headerRoles   = "X-Versola-Roles"
	headerScope   = "X-Versola-Scope"
)

// ours are prefixes of header names that only the edge sets.
var ours = []string{"x-versola-", "x-forwarded-"}

// dropped are header names that never pass, in any spelling: they state what
// the edge states itself, carry credentials for the edge, or make frameworks
// see another path or method than the one that was decided on.
var dropped = set(
	"authorization", "proxy-authorization", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
	"x-original-url", "x-rewrite-url", "x-original-uri", "x-original-host", "x-host",
	"x-http-method-override", "x-http-method", "x-method-override", "x-request-id",
)

// framing are names that pass as they are, and not in a spelling that gateways
// to CGI, WSGI and the like take for the same ("Content_Length").
var framing = set(
	"content-length", "transfer-encoding", "content-type", "content-encoding", "host", "cookie", "connection", "keep-alive",
	"te", "trailer", "upgrade", "expect", "proxy-connection", "origin", "referer",
)

func set(names ...string) map[string]struct{} {
	m := make(map[string]struct{}, len(names))
	for _, n := range names {
		m[n] = struct{}{}
	}
	return m
}

// longestName is longer than any name above: what is longer is not one.
const longestName = 64

// passes tells whether a client's header may reach the upstream. Names are
// compared as the loosest reader does: without case, and with anything but
// letters and digits taken for "-".
func passes(name string) bool {
	var buf [longestName]byte
	odd := false
	n := min(len(name), longestName)
	for i := range n {
		c := name[i]
		switch {
		case c >= 'A' && c <= 'Z':
			c += 'a' - 'A'
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-':
		default:
			c, odd = '-', true
		}
		buf[i] = c
	}
	folded := buf[:n]
	for _, p := range ours {
		if len(folded) >= len(p) && string(folded[:len(p)]) == p {
			return false
		}
	}
	if len(name) > longestName {
		return true
	}
	if _, ok := dropped[string(folded)]; ok {
		return false
	}
	if odd {
		_, ok := framing[string(folded)]
		return !ok
	}
	return true
}

// filterHeaders removes what must not pass.
func filterHeaders(h http.Header) {
	for name := range h {
		if !passes(name) {
			delete(h, name)
		}
	}
}

// ownCookie tells whether a cookie name is the edge's or auth's.
func (r *routes) ownCookie(name string) bool {
	name = strings.ToLower(strings.Trim(name, " \t"))
	bare := strings.TrimPrefix(strings.TrimPrefix(name, "__host-"), "__secure-")
	if strings.HasPrefix(bare, "versola_") {
		return true
	}
	if len(r.sessions) == 0 {
		return false
	}
	_, full := r.sessions[name]
	_, short := r.sessions[bare]
	_, host := r.sessions["__host-"+bare]
	return full || short || host
}

// filterCookies removes the edge's cookies from the Cookie headers and keeps
// the rest as it came.
func (r *routes) filterCookies(h http.Header) {
	lines := h["Cookie"]
	if len(lines) == 0 {
		return
	}
	kept := make([]string, 0, len(lines))
	for _, line := range lines {
		parts := strings.Split(line, ";")
		n := 0
		for _, part := range parts {
			name, _, _ := strings.Cut(part, "=")
			if !r.ownCookie(name) {
				parts[n] = part
				n++
			}
		}
		if n == 0 {
			continue
		}
		parts[0] = strings.TrimLeft(parts[0], " ")
		if rest := strings.Join(parts[:n], ";"); strings.Trim(rest, " ;\t") != "" {
			kept = append(kept, rest)
		}
	}
	if len(kept) == 0 {
		delete(h, "Cookie")
		return
	}
	h["Cookie"] = kept
}

// filterSetCookies keeps an upstream from setting the edge's cookies.
func (r *routes) filterSetCookies(h http.Header) {
	lines := h["Set-Cookie"]
	kept := lines[:0]
	for _, line := range lines {
		pair, _, _ := strings.Cut(line, ";")
		name, _, _ := strings.Cut(pair, "=")
		if !r.ownCookie(name) {
			kept = append(kept, line)
		}
	}
	if len(kept) == 0 {
		delete(h, "Set-Cookie")
		return
	}
	h["Set-Cookie"] = kept
}

// identity sets the headers that tell who calls.
func (c *caller) identity(h http.Header) {
	claims := c.claims
	if claims == nil {
		return
	}
	h[headerSubject] = []string{claims.Subject}
	h[headerTenant] = []string{claims.Tenant}
	h[headerClient] = []string{claims.ClientID}
	if claims.SessionID != "" {
		h[headerSession] = []string{claims.SessionID}
	}
	if len(claims.Roles) > 0 {
		h[headerRoles] = []string{strings.Join(claims.Roles, ",")}
	}
	if claims.Scope != "" {
		h[headerScope] = []string{claims.Scope}
	}
}

// forwarded sets X-Forwarded-* and Forwarded (RFC 7239) as the edge knows them.
// Of what the client sent, only the hops that trusted proxies vouch for stay.
func (h *Handler) forwarded(in *http.Request, out http.Header) {
	hops := hops(in, h.d.TrustedProxies)
	out["X-Forwarded-For"] = []string{strings.Join(hops, ", ")}
	out["X-Forwarded-Host"] = []string{h.host}
	out["X-Forwarded-Proto"] = []string{h.scheme}
	var b strings.Builder
	for i, hop := range hops {
		if i > 0 {
			b.WriteString(", ")
		}
		if strings.Contains(hop, ":") {
			b.WriteString(`for="[` + hop + `]"`)
		} else {
			b.WriteString("for=" + hop)
		}
	}
	b.WriteString(`;host="` + h.host + `";proto=` + h.scheme)
	out["Forwarded"] = []string{b.String()}
}

// hops are the addresses that a request came through, the client's first and
// the peer's last.
func hops(r *http.Request, trusted []netip.Prefix) []string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return []string{"unknown"}
	}
	addr := peer.Addr().Unmap().WithZone("")
	if len(trusted) == 0 {
		return []string{addr.String()}
	}
	chain := []string{addr.String()}
	said := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
	for i := len(said) - 1; i >= 0 && httpserver.Trusted(trusted, addr); i-- {
		next, err := netip.ParseAddr(strings.TrimSpace(said[i]))
		if err != nil {
			break
		}
		addr = next.Unmap().WithZone("")
		chain = append([]string{addr.String()}, chain...)
	}
	return chain
}
