package outbound

import (
	"errors"
	"fmt"
	"net/netip"
)

// ErrAddress reports a connection to an address that must not be reached.
var ErrAddress = errors.New("address is not allowed")

// private are the networks that AllowPrivate opens.
var private = prefixes(
	"127.0.0.0/8", "::1/128", // loopback
	"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", // RFC 1918
	"100.64.0.0/10", // shared address space, RFC 6598: carrier-grade NAT, also some clusters' pods
	"fc00::/7",      // unique local, RFC 4193
)

// never are the networks that nothing opens. The list holds the IPv4 part of
// the IANA special-purpose registry; of IPv6, what is not global unicast is
// refused as a whole.
var never = prefixes(
	"0.0.0.0/8",       // "this network": many systems take 0.0.0.0 for loopback
	"169.254.0.0/16",  // link-local: the metadata services of clouds
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved, and broadcast

	"fd00:ec2::/32",  // metadata service of a cloud, inside the unique local range
	"fd20:ce::/32",   // the same of another
	"2001::/23",      // protocol assignments, Teredo among them
	"2001:db8::/32",  // documentation
	"2002::/16",      // 6to4: an IPv4 address inside
	"3fff::/20",      // documentation
	"64:ff9b:1::/48", // local NAT64: an IPv4 address inside, where it says nothing about it
)

var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	nat64         = netip.MustParsePrefix("64:ff9b::/96")
)

// Allowed tells whether a connection to addr may be made. Errors: [ErrAddress].
func Allowed(addr netip.Addr, allowPrivate bool) error {
	// The name of an interface must not hide an address from a prefix.
	a := addr.WithZone("").Unmap()
	if nat64.Contains(a) {
		// The well-known NAT64 prefix leads to the IPv4 address in its last 32
		// bits (RFC 6052); an IPv6-only cluster reaches the internet that way.
		b := a.As16()
		a = netip.AddrFrom4([4]byte(b[12:]))
	}
	switch {
	case !a.IsValid(), contains(never, a):
	case contains(private, a):
		if allowPrivate {
			return nil
		}
	case a.Is4(), globalUnicast.Contains(a):
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAddress, addr)
}

func contains(networks []netip.Prefix, a netip.Addr) bool {
	for _, p := range networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

func prefixes(texts ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(texts))
	for i, t := range texts {
		out[i] = netip.MustParsePrefix(t)
	}
	return out
}
