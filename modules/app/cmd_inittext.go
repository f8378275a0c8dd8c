package app

import (
	"bytes"
	"fmt"
	"strings"
	"text/template"

	"versola/platform/secret"
)

// configTemplate is the annotated configuration that "config init" writes and
// that the examples in configs/ are.
const configTemplate = `# Versola, role {{.Role}}. All keys: docs/configuration.md. Check with: versola config check FILE
# Every key can be overridden by an environment variable: auth.issuer by VERSOLA_AUTH_ISSUER.
# A secret can be given as <key>_file, the path of a file that holds it (relative to this file).

# What this process runs; --role and VERSOLA_ROLE win.
role: {{.Role}}

# production refuses what only a demo may do: fake codes, plain http, generated secrets, the private database.
profile: {{.Profile}}
{{- if .Production}}

# The last good catalog is kept here, so that a restart works while its source is away. May be an empty volume.
state_dir: /var/lib/versola
{{- end}}

log:
  level: info # debug, info, warn, error
  format: {{if .Production}}json{{else}}text{{end}}
{{- if .Data}}

# The database of auth and central.
database:
{{- if .Production}}
  {{secret "database.url"}}
{{- else}}
  # Without a url a private PostgreSQL is started in state_dir.
  # url: postgres://user:password@host:5432/database
{{- end}}
  max_connections: 16 # of this process; PostgreSQL's own limit is shared by all

# 32 random bytes in base64 each (openssl rand -base64 32). To rotate, put the new one first and keep the old.
keys:
  # Seal client secrets and signing keys in the database.
  {{secret "keys.encryption"}}
  # Authenticate refresh tokens, cookies and forms.
  {{secret "keys.tokens"}}
  # Mixed into every password hash: it cannot be changed.
  {{secret "keys.pepper"}}
{{- end}}
{{- if .Auth}}

# The OpenID provider.
auth:
  # The public address, as browsers and relying parties see it; it is in every token.
  issuer: {{if .Production}}https://id.example.com{{else}}http://localhost:8080{{end}}
  listen: ":8080"
  # The tenant whose issuer is the address above; another tenant's is <issuer>/t/<tenant>.
{{- if .Production}}
  # Put your own here before the first user signs in. "system", the administrators', is made by "versola bootstrap admin".
  root_tenant: system
{{- else}}
  root_tenant: demo
{{- end}}
  # Run central (the configuration store, its API and feeds) in this process as well.
  central: true
  # Networks of the load balancers in front; X-Forwarded-For of anybody else is ignored.
  trusted_proxies: [] # [10.0.0.0/8]
  # Let back-channel logout reach loopback and private addresses.
  allow_private_networks: {{not .Production}}
  otp:
    # Codes by SMS or e-mail. none: people sign in by password.{{if not .Production}} fake: every code is 123456.{{end}}
    provider: {{if .Production}}none{{else}}fake{{end}}
{{- end}}
{{- if .Data}}

# The administrative plane: admin API and the feeds that edges follow. Not public.
central:
  listen: {{if .Production}}":8090" # reachable by the edges, through the cluster's network alone{{else}}127.0.0.1:8090{{end}}
  # Networks of the edges that administrators come through: the audit log then has the administrator's address, not the edge's.
  trusted_proxies: {{if .Edge}}[127.0.0.0/8]{{else}}[] # [10.0.0.0/8]{{end}}
  # Signing keys: how long one signs (0: rotated by hand), is published before, and is published after.
  keys:
    rotate_every: 2160h
    publish_for: 24h
    retire_after: 25h
{{- end}}
{{- if .Edge}}

# The proxy in front of the APIs.
edge:
  # As declared in central, together with this edge's public keys.
  id: {{if .Production}}edge-1{{else}}local{{end}}
  listen: ":8095"
  # The public address, as browsers see it.
  public_url: {{if .Production}}https://app.example.com{{else}}http://localhost:8095{{end}}
  # Where the feeds of central and auth are.
  central_url: {{if and .Production (not .Data)}}http://auth.example.com:8090{{else}}http://127.0.0.1:8090{{end}}
  # Where auth is reached from here, if not at its issuer.
  # auth_url: http://auth.example.com:8080
  trusted_proxies: [] # [10.0.0.0/8]
  # The edge's own database.
  database:
{{- if .Production}}
    {{secret "edge.database.url"}}
{{- else}}
    # url: postgres://user:password@host:5432/database
{{- end}}
    max_connections: 16
  # Seal the tokens in the edge's database: 32 random bytes in base64 each.
  {{secret "edge.session_keys"}}
  # The edge's identity: a JSON Web Key Set with one private key of use sig and one of use enc (both P-256).
{{- if .PublicKeys}}
  # Its public half, to be declared in central:
  # {{.PublicKeys}}
{{- end}}
  {{secret "edge.private_keys"}}
{{- end}}

# /metrics, /livez, /readyz, /debug/pprof: for the orchestrator and the operators, never public.
diagnostics:
{{- if .Auth}}
  auth: {{.Every}}:8081"
{{- else if .Edge}}
  edge: {{.Every}}:8096"
{{- else}}
  central: {{.Every}}:8091"
{{- end}}

telemetry:
  # URL of an OTLP/HTTP collector. Without it there are no traces, at no cost.
  # otlp_endpoint: http://collector.example.com:4318
  sample_ratio: 0.01
{{- if and .Data (not .Production)}}

demo:
  enabled: true # the demo tenant and its bank
{{- end}}
`

// configText renders an annotated configuration.
func configText(role string, r roles, profile string, secrets []newSecret, ref reference) string {
	byKey := map[string]newSecret{}
	public := ""
	for _, s := range secrets {
		byKey[s.key] = s
		if s.key == "edge.private_keys" && s.value != "" {
			if keys, err := PublicEdgeKeys(secret.Text(s.value)); err == nil {
				public = string(keys)
			}
		}
	}
	every := `"`
	if profile != profileProduction {
		every = `"127.0.0.1`
	}
	line := func(key string) string { return ref(key[strings.LastIndexByte(key, '.')+1:], byKey[key]) }
	t := template.Must(template.New("configuration").Funcs(template.FuncMap{"secret": line}).Parse(configTemplate))
	var b bytes.Buffer
	err := t.Execute(&b, map[string]any{
		"Role": role, "Profile": profile, "Production": profile == profileProduction, "PublicKeys": public,
		"Data": r.usesDatabase(), "Auth": r.auth, "Edge": r.edge, "Every": every,
	})
	if err != nil {
		panic(fmt.Sprintf("configuration template: %v", err)) // found by its test
	}
	return b.String()
}
