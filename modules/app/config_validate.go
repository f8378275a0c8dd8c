package app

import (
	"crypto/rand"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"

	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/config"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Profiles.
const (
	profileDevelopment = "development"
	profileProduction  = "production"
)

// Providers of one-time codes.
const (
	otpFake = "fake"
	otpNone = "none"
)

// maxPool bounds a connection pool: PostgreSQL itself serves a few hundred
// connections well, to all processes together.
const maxPool = 1000

// DefaultConfig returns the configuration of a process that was given none,
// but for the demo, which is turned on where the configuration is loaded.
func DefaultConfig() *Config { return config.Default[Config]() }

// Default implements [config.Defaulter].
func (c *Config) Default(src *config.Source) {
	development := c.Profile == profileDevelopment
	if !src.Has("log.format") {
		c.Log.Format = "json"
		if development {
			c.Log.Format = "text"
		}
	}
	if !src.Has("auth.allow_private_networks") {
		c.Auth.AllowPrivateNetworks = development
	}
	if !src.Has("central.allow_private_networks") {
		c.Central.AllowPrivateNetworks = development
	}
	if !src.Has("demo.enabled") {
		c.Demo.Enabled = development && src.File == ""
	}
	if c.Demo.Enabled {
		// The demo's passwords are public, so it is for this machine alone
		// unless someone says otherwise.
		if !src.Has("auth.listen") {
			c.Auth.Listen = "127.0.0.1:8080"
		}
		if !src.Has("edge.listen") {
			c.Edge.Listen = "127.0.0.1:8095"
		}
	}
}

// rules collects what is wrong with one configuration.
type rules struct {
	*Config
	roles      roles
	production bool
	report     func(path, message string)
}

// Validate implements [config.Validator]. What a role does not use may be left
// out, but what is given must be right.
func (c *Config) Validate(report func(path, message string)) {
	r := rules{Config: c, production: c.Profile == profileProduction, report: report}
	if c.Role != "" { // it may still come from a flag
		parsed, err := parseRoles(c.Role, c.Auth.Central)
		if err != nil {
			report("role", err.Error())
		}
		r.roles = parsed
	}
	r.oneOf("profile", c.Profile, profileDevelopment, profileProduction)
	r.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	r.oneOf("log.format", c.Log.Format, "json", "text")
	if c.StateDir == "" {
		report("state_dir", "must not be empty")
	}
	if c.Telemetry.OTLPEndpoint != "" {
		r.url("telemetry.otlp_endpoint", c.Telemetry.OTLPEndpoint)
	}
	if !(c.Telemetry.SampleRatio >= 0 && c.Telemetry.SampleRatio <= 1) {
		report("telemetry.sample_ratio", "must be between 0 and 1")
	}
	if r.Central.URL != "" {
		r.url("central.url", r.Central.URL)
	}
	r.networks("central.trusted_proxies", c.Central.TrustedProxies)
	c.Central.Keys.policy().Check(func(setting, message string) { report("central.keys."+setting, message) })
	r.listeners()
	r.auth()
	r.edge()
	if r.production && c.Demo.Enabled {
		report("demo.enabled", "the demo is refused in production: its people and secrets are public")
	}
}

func (r rules) oneOf(at, value string, allowed ...string) {
	for _, a := range allowed {
		if value == a {
			return
		}
	}
	r.report(at, fmt.Sprintf("must be %s, not %q", strings.Join(allowed, " or "), value))
}

func (r rules) auth() {
	r.publicURL("auth.issuer", r.Auth.Issuer, r.roles.auth)
	if !tenantName.MatchString(r.Auth.RootTenant) {
		r.report("auth.root_tenant", "must be a tenant's id: lower-case letters, digits and dashes")
	}
	r.networks("auth.trusted_proxies", r.Auth.TrustedProxies)
	r.oneOf("auth.otp.provider", r.Auth.OTP.Provider, otpFake, otpNone)
	if r.Auth.OTP.Provider == otpFake {
		if !fakeCode.MatchString(r.Auth.OTP.FakeCode) {
			r.report("auth.otp.fake_code", "must be four to ten digits")
		}
		if r.production && r.roles.auth {
			r.report("auth.otp.provider", `"fake" is refused in production: anybody can sign in as anybody; this version has no provider that really sends codes, "none" turns them off`)
		}
	}
	r.database("database", r.Database, r.roles.usesDatabase())
	r.keys("keys.encryption", r.Keys.Encryption, r.roles.usesDatabase())
	r.keys("keys.tokens", r.Keys.Tokens, r.roles.auth)
	var pepper []secret.Text
	if !r.Keys.Pepper.Empty() {
		pepper = []secret.Text{r.Keys.Pepper}
	}
	r.keys("keys.pepper", pepper, r.roles.usesDatabase())
}

func (r rules) edge() {
	if !edgeName.MatchString(r.Edge.ID) {
		r.report("edge.id", "must be letters, digits, dots, dashes and underscores")
	}
	r.publicURL("edge.public_url", r.Edge.PublicURL, r.roles.edge)
	r.url("edge.central_url", r.Edge.CentralURL)
	if r.Edge.AuthURL != "" {
		r.url("edge.auth_url", r.Edge.AuthURL)
	}
	r.networks("edge.trusted_proxies", r.Edge.TrustedProxies)
	// One process that has auth's database may keep the edge's schema in it.
	r.database("edge.database", r.Edge.Database, r.roles.edge && !r.roles.usesDatabase())
	r.keys("edge.session_keys", r.Edge.SessionKeys, r.roles.edge)
	switch {
	case !r.Edge.PrivateKeys.Empty():
		if _, err := identity.Parse(r.Edge.ID, r.Edge.PrivateKeys, clock.System{}, rand.Reader); err != nil {
			r.report("edge.private_keys", err.Error())
		}
	case r.production && r.roles.edge:
		r.report("edge.private_keys", `is required in production; "versola config init --role=edge" generates one`)
	}
}

var (
	tenantName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,62}[a-z0-9])?$`)
	edgeName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	fakeCode   = regexp.MustCompile(`^[0-9]{4,10}$`)
)

// url checks an absolute http(s) URL that names a place to append paths to.
func (r rules) url(at, text string) *url.URL {
	u, err := url.Parse(text)
	var problem string
	switch {
	case text == "":
		problem = "must be an absolute http or https URL"
	case err != nil, u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.Opaque != "":
		problem = "must be an absolute http or https URL"
	case u.User != nil:
		problem = "must not contain a user or password"
	case u.RawQuery != "" || u.ForceQuery:
		problem = "must not have a query"
	case u.Fragment != "" || strings.Contains(text, "#"):
		problem = "must not have a fragment"
	case strings.HasSuffix(text, "/"):
		problem = "must not end with a slash"
	case u.Path != "" && (path.Clean(u.Path) != u.Path || u.RawPath != ""):
		problem = "must have a plain path"
	case u.Port() != "" && !port(u.Port()):
		problem = "must have a port between 1 and 65535"
	case strings.ToLower(u.Host) != u.Host:
		problem = "must have its host in lower case"
	default:
		return u
	}
	r.report(at, problem)
	return nil
}

// publicURL is a URL that browsers and relying parties use.
func (r rules) publicURL(at, text string, used bool) {
	if u := r.url(at, text); u != nil && r.production && used && u.Scheme != "https" {
		r.report(at, "must be an https URL in production")
	}
}

func (r rules) networks(at string, list []string) {
	for i, text := range list {
		network, err := netip.ParsePrefix(text)
		if err == nil && !network.Addr().Is4In6() {
			continue
		}
		message := "must be a network such as 10.0.0.0/8"
		if a, err := netip.ParseAddr(text); err == nil && a.Zone() == "" {
			message = fmt.Sprintf("must be a network: %s/%d is this address alone", a, a.BitLen())
		}
		r.report(fmt.Sprintf("%s[%d]", at, i), message)
	}
}

func (r rules) database(at string, d DatabaseConfig, used bool) {
	if d.MaxConnections < 1 || d.MaxConnections > maxPool {
		r.report(at+".max_connections", fmt.Sprintf("must be between 1 and %d", maxPool))
	}
	switch {
	case !d.URL.Empty():
		if err := postgres.CheckURL(d.URL.Reveal()); err != nil {
			r.report(at+".url", err.Error())
		}
	case used && r.production:
		r.report(at+".url", "is required in production: the private database is for development")
	}
}

func (r rules) keys(at string, keys []secret.Text, used bool) {
	if len(keys) == 0 && used && r.production {
		r.report(at, `is required in production: 32 random bytes in base64 ("versola config init" generates them, or: openssl rand -base64 32)`)
	}
	seen := map[string]bool{}
	for i, text := range keys {
		at := at
		if len(keys) > 1 {
			at = fmt.Sprintf("%s[%d]", at, i)
		}
		k, err := secret.ParseKey(text)
		switch {
		case err != nil:
			r.report(at, err.Error())
		case seen[k.ID]:
			r.report(at, "is the same as an earlier key")
		case r.production && weak(k.Value):
			r.report(at, "is a placeholder, not a random key")
		}
		seen[k.ID] = true
	}
}

// weak recognises keys that were typed or made up, not drawn: 32 random bytes
// have 30 different values on average, and under 20 practically never.
func weak(key []byte) bool {
	values := map[byte]bool{}
	for _, b := range key {
		values[b] = true
	}
	return len(values) < 20
}

// listener is an address that a role listens on.
type listener struct{ path, address string }

// listeners checks every address, and that the role's own differ.
func (r rules) listeners() {
	all := []struct {
		listener
		used bool
	}{
		{listener{"auth.listen", r.Auth.Listen}, r.roles.auth},
		{listener{"central.listen", r.Central.Listen}, r.roles.usesDatabase()},
		{listener{"edge.listen", r.Edge.Listen}, r.roles.edge},
		{listener{"diagnostics.auth", r.Diagnostics.Auth}, r.roles.auth},
		{listener{"diagnostics.edge", r.Diagnostics.Edge}, r.roles.edge && !r.roles.auth},
		{listener{"diagnostics.central", r.Diagnostics.Central}, r.roles.central && !r.roles.auth && !r.roles.edge},
		{listener{"demo.upstream_listen", r.Demo.UpstreamListen}, r.Demo.Enabled},
	}
	var used []listener
	for _, l := range all {
		if message := badAddress(l.address); message != "" {
			r.report(l.path, message)
			continue
		}
		if !l.used {
			continue
		}
		for _, other := range used {
			if collide(l.address, other.address) {
				r.report(l.path, "is the same address as "+other.path)
			}
		}
		used = append(used, l.listener)
	}
}

func badAddress(address string) string {
	host, p, err := net.SplitHostPort(address)
	if err != nil || !port(p) && p != "0" {
		return `must be host:port or :port, such as ":8080" or "127.0.0.1:8090"`
	}
	if host != "" && host != "localhost" {
		if _, err := netip.ParseAddr(host); err != nil {
			return "must name an IP address, localhost, or no host for every interface"
		}
	}
	return ""
}

func collide(a, b string) bool {
	hostA, portA, _ := net.SplitHostPort(a)
	hostB, portB, _ := net.SplitHostPort(b)
	if portA != portB || portA == "0" { // 0: any free port
		return false
	}
	every := func(host string) bool { return host == "" || host == "0.0.0.0" || host == "::" }
	return hostA == hostB || every(hostA) || every(hostB)
}

func port(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}
