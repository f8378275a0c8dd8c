package proxy

import (
	"net/http"
	"net/netip"
	"slices"
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
	"authorization", "dpop", "proxy-authorization", "forwarded", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip",
	"x-original-url", "x-rewrite-url", "x-original-uri", "x-original-host", "x-host",
	"x-http-method-override", "x-http-method", "x-method-override", "x-original-method", "x-envoy-original-path", "x-request-id",
	"client-ip", "cf-connecting-ip", "cf-connecting-ipv6", "fastly-client-ip", "x-envoy-external-address", "x-original-forwarded-for",
	"x-original-for", "x-original-proto", "x-scheme", "remote-user", "x-remote-user", "remote-addr", "x-remote-addr", "x-remote-ip",
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

// fold writes a name as the loosest reader takes it: without case, and with
// anything but letters and digits taken for "-". odd tells that there was such
// a character. Of a longer name, the first part is folded.
func fold(buf *[longestName]byte, name string) (folded []byte, odd bool) {
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
	return buf[:n], odd
}

// passes tells whether a client's header may reach the upstream.
func passes(name string) bool {
	var buf [longestName]byte
	folded, odd := fold(&buf, name)
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

// sets tells whether a rule of the resource sets a header of that name, in any
// spelling.
func (r *route) sets(name string) bool {
	if len(r.injected) == 0 || len(name) > longestName {
		return false
	}
	var buf [longestName]byte
	folded, _ := fold(&buf, name)
	_, ok := r.injected[string(folded)]
	return ok
}

// filterHeaders removes what must not pass. What a rule of any of the
// resource's endpoints sets is removed at all of them: an upstream that trusts
// a name does so everywhere.
func (r *route) filterHeaders(h http.Header) {
	for name := range h {
		if !passes(name) || r.sets(name) {
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

// filterAnswer removes from an upstream's header what only the edge says.
func (r *routes) filterAnswer(h http.Header) {
	if len(h["Set-Cookie"]) > 0 {
		r.filterSetCookies(h)
	}
	delete(h, "X-Request-Id") // the edge has set its own
	// Who may read an answer that a cookie of the edge brought is the
	// resource's cors setting, not the upstream's word.
	delete(h, "Access-Control-Allow-Credentials")
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

// values backs the header values of one request, so that setting them costs
// no allocation each.
type values struct {
	texts [16]string // twelve are set at the most
	n     int
}

// set replaces a header, whose name must be in its canonical form.
func (v *values) set(h http.Header, name, value string) {
	if v.n == len(v.texts) {
		h[name] = []string{value}
		return
	}
	v.texts[v.n] = value
	h[name] = v.texts[v.n : v.n+1 : v.n+1]
	v.n++
}

// identity sets the headers that tell who calls.
func (c *caller) identity(v *values, h http.Header) {
	claims := c.claims
	if claims == nil {
		return
	}
	v.set(h, headerSubject, claims.Subject)
	v.set(h, headerTenant, claims.Tenant)
	v.set(h, headerClient, claims.ClientID)
	if claims.SessionID != "" {
		v.set(h, headerSession, claims.SessionID)
	}
	if len(claims.Roles) > 0 {
		v.set(h, headerRoles, strings.Join(claims.Roles, ","))
	}
	if claims.Scope != "" {
		v.set(h, headerScope, claims.Scope)
	}
}

// forwarded sets X-Forwarded-* and Forwarded (RFC 7239) as the edge knows them.
// Of what the client sent, only the hops that trusted proxies vouch for stay.
func (h *Handler) forwarded(v *values, in *http.Request, out http.Header) {
	peer, err := netip.ParseAddrPort(in.RemoteAddr)
	if err != nil {
		v.set(out, "X-Forwarded-For", "unknown")
		v.set(out, "Forwarded", "for=unknown"+h.forwardedTail)
	} else if addr := peer.Addr().Unmap().WithZone(""); len(h.d.TrustedProxies) == 0 {
		text := addr.String()
		v.set(out, "X-Forwarded-For", text)
		v.set(out, "Forwarded", node(addr, text)+h.forwardedTail)
	} else {
		var plain, nodes []string
		for hop := range httpserver.Hops(in, h.d.TrustedProxies) {
			text := hop.String()
			plain, nodes = append(plain, text), append(nodes, node(hop, text))
		}
		slices.Reverse(plain) // the client first
		slices.Reverse(nodes)
		v.set(out, "X-Forwarded-For", strings.Join(plain, ", "))
		v.set(out, "Forwarded", strings.Join(nodes, ", ")+h.forwardedTail)
	}
	v.set(out, "X-Forwarded-Host", h.host)
	v.set(out, "X-Forwarded-Proto", h.scheme)
}

// node writes an address as a forwarded element (RFC 7239 section 6).
func node(addr netip.Addr, text string) string {
	if addr.Is6() {
		return `for="[` + text + `]"`
	}
	return "for=" + text
}
