package httpserver

import (
	"iter"
	"net/http"
	"net/netip"
	"strings"

	"github.com/labstack/echo/v4"
)

// ClientAddr returns the address of the client: the connection's, or what
// trusted proxies report. The zero Addr: none could be read.
func ClientAddr(c echo.Context) netip.Addr {
	a, _ := netip.ParseAddr(c.RealIP())
	return a
}

// clientAddr is the farthest address that is believed; "" where there is none.
func clientAddr(r *http.Request, trusted []netip.Prefix) string {
	var client netip.Addr
	for hop := range Hops(r, trusted) {
		client = hop
	}
	if !client.IsValid() {
		return ""
	}
	return client.String()
}

// Hops yields the addresses that a request came through, the nearest first: the
// connection's and then, for as long as the last one is a trusted proxy, what
// X-Forwarded-For has from its right end. What an untrusted one wrote is never
// believed. Addresses have no zone: it is free text, and means nothing on
// another machine. There are none where the connection has no address.
func Hops(r *http.Request, trusted []netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		peer, err := netip.ParseAddrPort(r.RemoteAddr)
		if err != nil {
			return
		}
		hop := peer.Addr().Unmap().WithZone("")
		if !yield(hop) || !Trusted(trusted, hop) {
			return
		}
		said := strings.Split(strings.Join(r.Header["X-Forwarded-For"], ","), ",")
		for i := len(said) - 1; i >= 0 && Trusted(trusted, hop); i-- {
			next, err := netip.ParseAddr(strings.TrimSpace(said[i]))
			if err != nil {
				return
			}
			if hop = next.Unmap().WithZone(""); !yield(hop) {
				return
			}
		}
	}
}

// Trusted tells whether addr is in one of the networks.
func Trusted(networks []netip.Prefix, addr netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(addr) {
			return true
		}
	}
	return false
}
