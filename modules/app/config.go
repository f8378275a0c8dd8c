package app

import (
	"time"

	"versola/modules/central/keys"
	"versola/platform/config"
	"versola/platform/secret"
)

// Config is the whole configuration file. Every key may be overridden by an
// environment variable: VERSOLA_ and the path in upper case, joined by "_"
// (VERSOLA_AUTH_ISSUER). A secret may be given as <key>_file instead, the path
// of a file that holds it. The doc tags are the reference page.
type Config struct {
	Role     string `yaml:"role" doc:"What this process runs: auth, edge, central, all, or a comma list."`
	Profile  string `yaml:"profile" default:"development" doc:"development or production. Production refuses what only a demo may do."`
	StateDir string `yaml:"state_dir" default:".versola" doc:"Where generated keys, the catalog copy and the private database are kept."`

	Log         LogConfig         `yaml:"log"`
	Database    DatabaseConfig    `yaml:"database" doc:"The database of auth and central."`
	Keys        KeysConfig        `yaml:"keys" doc:"Symmetric keys of auth and central: 32 bytes in base64 each, the active one first."`
	Auth        AuthConfig        `yaml:"auth"`
	Central     CentralConfig     `yaml:"central"`
	Edge        EdgeConfig        `yaml:"edge"`
	Diagnostics DiagnosticsConfig `yaml:"diagnostics" doc:"Listeners for /metrics, /livez, /readyz and /debug/pprof. Never public."`
	Telemetry   TelemetryConfig   `yaml:"telemetry"`
	Demo        DemoConfig        `yaml:"demo"`
}

// LogConfig says how the log is written.
type LogConfig struct {
	Level  string `yaml:"level" default:"info" doc:"debug, info, warn or error."`
	Format string `yaml:"format" doc:"json or text. Default: text in development, json in production."`
}

// DatabaseConfig says where PostgreSQL is.
type DatabaseConfig struct {
	URL            secret.Text `yaml:"url" doc:"postgres://... Empty in development: a private PostgreSQL is started in state_dir."`
	MaxConnections int         `yaml:"max_connections" default:"16" doc:"Size of the connection pool."`
}

// KeysConfig holds the symmetric keys of auth and central.
type KeysConfig struct {
	Encryption []secret.Text `yaml:"encryption" doc:"Seal client secrets and signing keys in the database."`
	Tokens     []secret.Text `yaml:"tokens" doc:"Authenticate refresh tokens, cookies and forms."`
	Pepper     secret.Text   `yaml:"pepper" doc:"Mixed into every password hash. Changing it makes every password wrong."`
}

// AuthConfig configures the OpenID provider.
type AuthConfig struct {
	Issuer         string    `yaml:"issuer" default:"http://localhost:8080" doc:"The public URL of auth, without a trailing slash."`
	Listen         string    `yaml:"listen" default:":8080" doc:"Address of the public listener."`
	RootTenant     string    `yaml:"root_tenant" default:"demo" doc:"The tenant whose issuer is auth.issuer itself; another tenant's is <issuer>/t/<tenant>."`
	Central        bool      `yaml:"central" default:"true" doc:"Run central in the auth process as well."`
	TrustedProxies []string  `yaml:"trusted_proxies" doc:"Networks (CIDR) whose X-Forwarded-For is believed."`
	OTP            OTPConfig `yaml:"otp"`
	// AllowPrivateNetworks lets outbound calls (back-channel logout, key sets) reach
	// loopback and private addresses.
	AllowPrivateNetworks bool `yaml:"allow_private_networks" doc:"Let back-channel logout and the key sets of clients (jwks_uri) reach private addresses. Default: true in development."`
}

// OTPConfig says how one-time codes are sent.
type OTPConfig struct {
	Provider string `yaml:"provider" default:"fake" doc:"fake: every code is fake_code and is written to the log; refused in production. none: no one-time codes, people sign in by password."`
	FakeCode string `yaml:"fake_code" default:"123456" doc:"The code of the fake provider."`
}

// CentralConfig configures the administrative plane.
type CentralConfig struct {
	Listen         string            `yaml:"listen" default:"127.0.0.1:8090" doc:"Address of the admin API and of the feeds for edges. Not public."`
	URL            string            `yaml:"url" doc:"Where the admin API is called, if not at http:// and central.listen: the proofs of DPoP-bound tokens name it."`
	TrustedProxies []string          `yaml:"trusted_proxies" doc:"Networks (CIDR) of the edges in front of the admin API: their X-Forwarded-For is believed, and the audit log has the address of the person."`
	Keys           SigningKeysConfig `yaml:"keys" doc:"The schedule of the signing keys, of the whole deployment."`
	// AllowPrivateNetworks lets webhooks reach loopback and private addresses.
	AllowPrivateNetworks bool `yaml:"allow_private_networks" doc:"Let webhooks reach private addresses. Default: true in development."`
}

// SigningKeysConfig is the schedule of the signing keys.
type SigningKeysConfig struct {
	RotateEvery time.Duration `yaml:"rotate_every" default:"2160h" doc:"How long a key signs, 24h to 17520h. 0: keys are rotated by hand alone."`
	PublishFor  time.Duration `yaml:"publish_for" default:"24h" doc:"How long the schedule publishes a key before it signs, 10m to 720h: longer than relying parties keep the key set."`
	RetireAfter time.Duration `yaml:"retire_after" default:"25h" doc:"How long a key is published after it signed last, 25h to 2160h: longer than any token lives."`
}

// policy is the schedule as central takes it.
func (c SigningKeysConfig) policy() keys.Policy {
	return keys.Policy{RotateEvery: c.RotateEvery, PublishFor: c.PublishFor, RetireAfter: c.RetireAfter}
}

// EdgeConfig configures an edge.
type EdgeConfig struct {
	ID          string         `yaml:"id" default:"local" doc:"The edge's id, as declared in central."`
	Listen      string         `yaml:"listen" default:":8095" doc:"Address of the public listener."`
	PublicURL   string         `yaml:"public_url" default:"http://localhost:8095" doc:"The public URL of this edge, without a trailing slash."`
	Database    DatabaseConfig `yaml:"database" doc:"The edge's own database."`
	CentralURL  string         `yaml:"central_url" default:"http://127.0.0.1:8090" doc:"Where the feeds of central and auth are."`
	AuthURL     string         `yaml:"auth_url" doc:"Where auth is reached from here, if not at its issuer."`
	PrivateKeys secret.Text    `yaml:"private_keys" doc:"JSON Web Key Set with the edge's private keys: one with use sig, one with use enc."`
	SessionKeys []secret.Text  `yaml:"session_keys" doc:"Seal the tokens in the edge's database: 32 bytes in base64 each, the active one first."`

	TrustedProxies []string `yaml:"trusted_proxies" doc:"Networks (CIDR) whose forwarded headers are believed."`
}

// DiagnosticsConfig holds one listener per role.
type DiagnosticsConfig struct {
	Auth    string `yaml:"auth" default:"127.0.0.1:8081" doc:"Listener of role auth and of role all."`
	Edge    string `yaml:"edge" default:"127.0.0.1:8096" doc:"Listener of role edge."`
	Central string `yaml:"central" default:"127.0.0.1:8091" doc:"Listener of role central."`
}

// TelemetryConfig says where traces go.
type TelemetryConfig struct {
	OTLPEndpoint string  `yaml:"otlp_endpoint" doc:"URL of an OTLP/HTTP collector. Empty: no traces, at no cost."`
	SampleRatio  float64 `yaml:"sample_ratio" default:"0.01" doc:"Share of the requests that are traced, 0 to 1."`
}

// DemoConfig seeds the demo tenant and runs its upstream.
type DemoConfig struct {
	Enabled        bool   `yaml:"enabled" doc:"Seed the demo tenant and run the demo bank. Default: true without a configuration file. Refused in production."`
	UpstreamListen string `yaml:"upstream_listen" default:"127.0.0.1:8100" doc:"Address of the demo bank."`
}

var _ config.Validator = (*Config)(nil)
