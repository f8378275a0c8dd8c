package app

import (
	"fmt"
	"strings"
)

// greet tells a newcomer where everything is. It shows demo secrets, which are
// public anyway, and the administrator's one-time password, which a private
// development process generated; never anything of a configured deployment.
func (p *process) greet() {
	if p.o.Out == nil || !p.cfg.Demo.Enabled {
		return
	}
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("")
	line("  Versola is running. Stop it with Ctrl-C.")
	line("")
	if p.roles.edge {
		line("  Try it          %s/login/demo", p.cfg.Edge.PublicURL)
		line("                  a small bank behind the edge; sign in as one of:")
		line("                    +77000000001         code %s (also in the log)   role customer", p.cfg.Auth.OTP.FakeCode)
		line("                    alice@example.com    password wonderland-demo-1     role customer")
		line("                    bob@example.com      password builder-demo-1        role reader: may not pay")
		line("")
	}
	if p.roles.auth {
		line("  OpenID provider %s/.well-known/openid-configuration", p.cfg.Auth.Issuer)
		line("                    client demo-app, secret demo-app-secret, redirect http://localhost:9999/callback")
	}
	if p.roles.edge && p.adminPassword != "" {
		line("  Administrator   %s/login/admin", p.cfg.Edge.PublicURL)
		line("                    %s, one-time password %s", adminEmail, p.adminPassword)
	}
	line("  Diagnostics     http://%s/readyz and /metrics", p.diagnosticsAddr())
	if p.cluster != nil {
		line("  Data            %s (a private PostgreSQL; remove the folder to start afresh)", p.cfg.StateDir)
	}
	line("")
	_, _ = fmt.Fprint(p.o.Out, b.String())
}

// adminEmail is the first administrator, seeded with a one-time password.
const adminEmail = "admin@versola.local"

// diagnosticsAddr is where this process answers its operators.
func (p *process) diagnosticsAddr() string {
	switch {
	case p.roles.auth:
		return p.cfg.Diagnostics.Auth
	case p.roles.edge:
		return p.cfg.Diagnostics.Edge
	}
	return p.cfg.Diagnostics.Central
}
