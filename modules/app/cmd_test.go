package app

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"versola/platform/config"
	"versola/platform/pgtest"
	"versola/platform/secret"
)

var update = flag.Bool("update", false, "rewrite the generated documents and examples")

// run runs a command as the program would.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	root := &cobra.Command{Use: "versola", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(MigrateCommand(), ConfigCommand(), VersionCommand())
	var out, errs bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&errs)
	root.SetArgs(args)
	err := root.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(&errs, err)
	}
	return out.String(), errs.String(), ExitCode(err)
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCommands_ExitCodes(t *testing.T) {
	t.Setenv("VERSOLA_CONFIG", "")
	empty := writeFile(t, filepath.Join(t.TempDir(), "empty.yaml"), "")
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"version", 0, "versola "},
		{"version extra", 2, `takes no argument "extra"`},
		{"version --nope", 2, "unknown flag"},
		{"nope", 2, "unknown command"},
		{"--nope", 2, "unknown flag"},
		{"config", 2, "init, check, print"},
		{"config nope", 2, "unknown command"},
		{"config check " + empty, 0, "ok"},
		{"config check a b", 2, "at most 1 arg"},
		{"config check /nowhere.yaml", 1, "/nowhere.yaml: cannot read the file"},
		{"config check --config a b", 2, "two files"},
		{"config check --role=nope " + empty, 1, `--role: role: unknown role "nope"`},
		{"config print " + empty, 0, "issuer: http://localhost:8080"},
		{"config init --role=nope --out -", 2, "unknown role"},
		{"config init --profile=nope --out -", 2, "unknown profile"},
		{"config init extra", 2, `takes no argument "extra"`},
		{"migrate", 2, "up, status"},
		{"migrate nope", 2, "unknown command"},
		{"migrate up --role", 2, "flag needs an argument"},
		{"migrate up", 1, "no role given"},
		{"migrate up --role=auth", 1, "set database.url (VERSOLA_DATABASE_URL)"},
		{"migrate up --role=edge", 1, "set edge.database.url (VERSOLA_EDGE_DATABASE_URL)"},
		{"migrate status --role=all --config /nowhere.yaml", 1, "cannot read the file"},
	} {
		stdout, stderr, code := run(t, strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout+stderr, tt.says) {
			t.Errorf("%s: code %d, want %d with %q:\n%s%s", tt.args, code, tt.code, tt.says, stdout, stderr)
		}
	}
}

// problemsOf loads content for role production and returns what is wrong.
func problemsOf(t *testing.T, content string, env ...string) []string {
	t.Helper()
	file := writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), content)
	_, _, problems := config.Load[Config](file, env)
	var lines []string
	for _, p := range problems {
		lines = append(lines, strings.ReplaceAll(p.String(), file, "FILE"))
	}
	return lines
}

func TestValidate_ProductionRequiresWhatTheRoleUses(t *testing.T) {
	t.Parallel()
	for role, want := range map[string][]string{
		"auth": {"auth.issuer", "auth.otp.provider", "database.url", "keys.encryption", "keys.pepper", "keys.tokens"},
		// central may run without the key of auth's tokens.
		"central": {"database.url", "keys.encryption", "keys.pepper"},
		"edge":    {"edge.database.url", "edge.private_keys", "edge.public_url", "edge.session_keys"},
		"all": {"auth.issuer", "auth.otp.provider", "database.url", "edge.private_keys", "edge.public_url", "edge.session_keys",
			"keys.encryption", "keys.pepper", "keys.tokens"},
	} {
		var got []string
		for _, line := range problemsOf(t, "role: "+role+"\nprofile: production\n") {
			got = append(got, strings.Split(line, ": ")[1])
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s:\n%s", role, diff)
		}
	}
}

func TestValidate_Values(t *testing.T) {
	t.Parallel()
	good, err := secret.GenerateKey(strings.NewReader("0123456789abcdefghijklmnopqrstuvwxyz"))
	if err != nil {
		t.Fatal(err)
	}
	key := good.Reveal()
	zero := "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	for name, tt := range map[string]struct {
		yaml string
		want []string // a part of each problem
	}{
		"nothing":              {"", nil},
		"role":                 {"role: auth,nope", []string{`FILE:1: role: unknown role "nope"`}},
		"profile":              {"profile: prod", []string{`FILE:1: profile: must be development or production, not "prod"`}},
		"log":                  {"log: {level: loud, format: xml}", []string{"log.format", "log.level"}},
		"issuer slash":         {"auth: {issuer: 'http://a/'}", []string{"FILE:1: auth.issuer: must not end with a slash"}},
		"issuer query":         {"auth: {issuer: 'http://a?b'}", []string{"must not have a query"}},
		"issuer empty query":   {"auth: {issuer: 'http://a?'}", []string{"must not have a query"}},
		"issuer fragment":      {"auth: {issuer: 'http://a#'}", []string{"must not have a fragment"}},
		"issuer user":          {"auth: {issuer: 'http://u:p@a'}", []string{"must not contain a user or password"}},
		"issuer relative":      {"auth: {issuer: '//a'}", []string{"must be an absolute http or https URL"}},
		"issuer scheme":        {"auth: {issuer: 'ftp://a'}", []string{"must be an absolute http or https URL"}},
		"issuer opaque":        {"auth: {issuer: 'http:a'}", []string{"must be an absolute http or https URL"}},
		"issuer host":          {"auth: {issuer: 'http://:80'}", []string{"must be an absolute http or https URL"}},
		"issuer empty":         {"auth: {issuer: ''}", []string{"must be an absolute http or https URL"}},
		"issuer port":          {"auth: {issuer: 'http://a:99999'}", []string{"must have a port"}},
		"issuer dots":          {"auth: {issuer: 'http://a/b/../c'}", []string{"must have a plain path"}},
		"issuer case":          {"auth: {issuer: 'http://LocalHost'}", []string{"must have its host in lower case"}},
		"root tenant":          {"auth: {root_tenant: 'a/b'}", []string{"auth.root_tenant"}},
		"networks of central":  {"central:\n  trusted_proxies:\n    - fd00::/8\n    - ::ffff:10.0.0.0/104\n    - fe80::1%x/64\n", []string{"FILE:4: central.trusted_proxies[1]: must be a network such as", "FILE:5: central.trusted_proxies[2]: must be a network such as"}},
		"signing keys":         {"central:\n  keys:\n    rotate_every: 23h\n    publish_for: 9m\n    retire_after: 24h\n", []string{"FILE:3: central.keys.rotate_every: must be 0 (only by hand), or from 24h0m0s", "FILE:4: central.keys.publish_for: must be from 10m0s", "FILE:5: central.keys.retire_after: must be from 25h0m0s"}},
		"keys published long":  {"central: {keys: {rotate_every: 48h, publish_for: 48h}}", []string{"central.keys.publish_for: must be shorter than rotate_every"}},
		"keys by hand":         {"central: {keys: {rotate_every: 0, publish_for: 48h}}", nil},
		"keys for ever":        {"central: {keys: {rotate_every: 99999999h}}", []string{"central.keys.rotate_every: must be "}},
		"keys of no unit":      {"central: {keys: {rotate_every: 90}}", []string{`central.keys.rotate_every: must be a duration such as 90s, 10m or 24h, not "90"`}},
		"keys of days":         {"central: {keys: {rotate_every: 90d}}", []string{`must be a duration such as 90s, 10m or 24h, not "90d"`}},
		"keys of nothing":      {"central: {keys: {rotate_every: -24h}}", []string{"central.keys.rotate_every: must be 0"}},
		"networks":             {"auth:\n  trusted_proxies:\n    - 10.0.0.0/8\n    - 10.0.0.1\n    - x\n", []string{"FILE:4: auth.trusted_proxies[1]: must be a network: 10.0.0.1/32", "FILE:5: auth.trusted_proxies[2]: must be a network such as"}},
		"otp":                  {"auth: {otp: {provider: sms}}", []string{"auth.otp.provider: must be fake or none"}},
		"fake code":            {"auth: {otp: {fake_code: abc}}", []string{"must be four to ten digits"}},
		"no otp":               {"auth: {otp: {provider: none}}", nil},
		"listen":               {"auth: {listen: '8080'}\nedge: {listen: 'example.com:80'}\ncentral: {listen: ':70000'}", []string{"auth.listen: must be host:port", "edge.listen: must name an IP address", "central.listen: must be host:port"}},
		"any free port":        {"role: all\nauth: {listen: '127.0.0.1:0'}\nedge: {listen: '127.0.0.1:0'}", nil},
		"same address":         {"role: all\nedge: {listen: '127.0.0.1:8080'}", []string{"edge.listen: is the same address as auth.listen"}},
		"same address, unused": {"role: edge\nedge: {listen: '127.0.0.1:8080'}", nil},
		"pool":                 {"database: {max_connections: 0}\nedge: {database: {max_connections: 1001}}", []string{"database.max_connections", "edge.database.max_connections"}},
		"ratio":                {"telemetry: {sample_ratio: 1.5}", []string{"telemetry.sample_ratio: must be between 0 and 1"}},
		"collector":            {"telemetry: {otlp_endpoint: 'collector:4318'}", []string{"telemetry.otlp_endpoint"}},
		"keys":                 {"keys:\n  encryption:\n    - " + key + "\n    - nonsense\n  tokens: [" + key + ", " + key + "]\n  pepper: short\n", []string{"FILE:4: keys.encryption[1]: a key must be 32 bytes in base64", "keys.tokens[1]: is the same as an earlier key", "keys.pepper: a key must be 32 bytes"}},
		"a zero key":           {"keys: {encryption: [" + zero + "]}", nil},
		"edge keys":            {"edge: {private_keys: '{\"keys\":[]}'}", []string{"edge.private_keys: unusable private key set"}},
		"edge keys no JSON":    {"edge: {private_keys: s3cr3t-canary}", []string{"edge.private_keys: unusable private key set"}},
		"database url":         {"database: {url: 'postgres://u:s3cr3t-canary%zz@h/d'}\nedge: {database: {url: nonsense}}", []string{"database.url: malformed connection string", "edge.database.url: malformed connection string"}},
		"database tls":         {"database: {url: 'postgres://h/d?sslmode=nope'}", []string{"database.url: connection string: TLS"}},
		"production, central": {"role: central\nprofile: production\ndatabase: {url: 'postgres://h/d'}\nkeys: {encryption: [" + zero + "], pepper: " + key + "}\ndemo: {enabled: true}\nauth: {allow_private_networks: true}",
			[]string{"keys.encryption: is a placeholder", "demo.enabled: the demo is refused"}},
		"production, plain http": {"role: auth\nprofile: production\ndatabase: {url: 'postgres://h/d'}\nkeys: {encryption: [" + key + "], tokens: [" + key + "], pepper: " + key + "}\nauth: {issuer: 'http://a', otp: {provider: none}}",
			[]string{"auth.issuer: must be an https URL in production"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := problemsOf(t, tt.yaml)
			if len(got) != len(tt.want) {
				t.Fatalf("want %d problems:\n%s", len(tt.want), strings.Join(got, "\n"))
			}
			for _, w := range tt.want {
				if !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, w) }) {
					t.Errorf("no problem says %q:\n%s", w, strings.Join(got, "\n"))
				}
			}
			if strings.Contains(strings.Join(got, "\n"), "canary") {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestDefault_DependsOnProfileAndFile(t *testing.T) {
	t.Parallel()
	file := writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), "")
	for name, tt := range map[string]struct {
		file       string
		env        []string
		demo       bool
		format     string
		allPrivate bool
	}{
		"nothing at all":       {"", nil, true, "text", true},
		"a file":               {file, nil, false, "text", true},
		"production":           {"", []string{"VERSOLA_PROFILE=production"}, false, "json", false},
		"said otherwise":       {file, []string{"VERSOLA_DEMO_ENABLED=true", "VERSOLA_LOG_FORMAT=json", "VERSOLA_AUTH_ALLOW_PRIVATE_NETWORKS=false"}, true, "json", false},
		"private nets on prod": {"", []string{"VERSOLA_PROFILE=production", "VERSOLA_AUTH_ALLOW_PRIVATE_NETWORKS=true"}, false, "json", true},
	} {
		cfg, _, problems := config.Load[Config](tt.file, tt.env)
		if problems.Err() != nil {
			t.Errorf("%s: %v", name, problems)
		}
		if cfg.Demo.Enabled != tt.demo || cfg.Log.Format != tt.format || cfg.Auth.AllowPrivateNetworks != tt.allPrivate {
			t.Errorf("%s: demo %v, log %s, private networks %v", name, cfg.Demo.Enabled, cfg.Log.Format, cfg.Auth.AllowPrivateNetworks)
		}
	}
}

func TestConfigInit_WhatItWritesIsValidAndPrivate(t *testing.T) {
	for _, role := range []string{"auth", "edge", "central", "all", "auth,edge"} {
		for _, profile := range []string{"production", "development"} {
			for _, secrets := range []bool{false, true} {
				dir := t.TempDir()
				t.Chdir(dir)
				args := []string{"config", "init", "--role", role, "--profile", profile, "--out", "sub/c.yaml"}
				if secrets {
					args = append(args, "--secrets-dir", "secrets")
				}
				if err := os.Mkdir("sub", 0o755); err != nil {
					t.Fatal(err)
				}
				if _, stderr, code := run(t, args...); code != 0 {
					t.Fatalf("%v: %s", args, stderr)
				}
				if stdout, stderr, code := run(t, "config", "check", "sub/c.yaml"); code != 0 || stdout != "ok\n" {
					t.Errorf("%v: %s", args, stderr)
				}
				_ = filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
					if info, e := d.Info(); err == nil && e == nil && d.Type().IsRegular() && info.Mode().Perm() != 0o600 {
						t.Errorf("%s has mode %v", path, info.Mode())
					}
					return err
				})
				first, _ := os.ReadFile("sub/c.yaml")
				if _, _, code := run(t, args...); code != 1 {
					t.Errorf("%v: a file that exists is overwritten", args)
				}
				if again, _ := os.ReadFile("sub/c.yaml"); !bytes.Equal(first, again) {
					t.Errorf("%v: changed", args)
				}
				if _, stderr, code := run(t, append(args, "--force")...); code != 0 {
					t.Errorf("%v --force: %s", args, stderr)
				}
			}
		}
	}
}

func TestConfigInit_NeverReplacesASecretUnforced(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("s", 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "s/keys-pepper", "precious")
	if _, stderr, code := run(t, "config", "init", "--role=auth", "--secrets-dir=s"); code != 1 || !strings.Contains(stderr, "s/keys-pepper exists already") {
		t.Fatal(code, stderr)
	}
	if exists("versola.yaml") || exists("s/keys-tokens") {
		t.Fatal("something was written")
	}
}

func TestConfigPrint_EffectiveAndRedacted(t *testing.T) {
	file := writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), "database:\n  url: postgres://u:s3cr3t-canary@h/d\n")
	t.Setenv("VERSOLA_AUTH_ISSUER", "https://env.example.com")
	stdout, stderr, code := run(t, "config", "print", "--role=auth", file)
	for _, want := range []string{"issuer: https://env.example.com # VERSOLA_AUTH_ISSUER", "role: auth # --role", "url: '[redacted]' # " + file + ":2", "listen: :8080\n"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("lacks %q", want)
		}
	}
	if code != 0 || strings.Contains(stdout+stderr, "canary") {
		t.Errorf("%d\n%s%s", code, stdout, stderr)
	}
}

// The examples in configs/ are what "config init" writes for production, with
// every secret in a file of its own.
func TestExamples_AreCurrentAndValid(t *testing.T) {
	for _, role := range []string{"auth", "edge", "central", "all"} {
		r, err := parseRoles(role, true)
		if err != nil {
			t.Fatal(err)
		}
		secrets, err := newSecrets(r)
		if err != nil {
			t.Fatal(err)
		}
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "secrets"), 0o700); err != nil {
			t.Fatal(err)
		}
		blank := make([]newSecret, len(secrets))
		for i, s := range secrets {
			writeFile(t, filepath.Join(dir, "secrets", s.file()), s.value)
			blank[i] = newSecret{key: s.key, list: s.list}
		}
		header := fmt.Sprintf("# An example. This file and the secrets that it names are made by:\n#   versola config init --role=%s --out %s.yaml --secrets-dir secrets\n\n", role, role)
		want := header + configText(role, r, profileProduction, blank, inFiles("secrets"))
		path := filepath.Join("..", "..", "configs", role+".yaml")
		if *update {
			if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is out of date (go test ./modules/app -run Examples -update):\n%s", path, diff)
		}
		if stdout, stderr, code := run(t, "config", "check", writeFile(t, filepath.Join(dir, "c.yaml"), string(got))); code != 0 {
			t.Errorf("%s is not valid: %s%s", path, stdout, stderr)
		}
	}
}

func TestReference_IsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "configuration.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	table := regexp.MustCompile(`(?s)(<!-- reference -->\n).*(<!-- end of reference -->)`)
	want := table.ReplaceAllString(string(page), "${1}"+strings.ReplaceAll(config.Reference[Config](), "$", "$$")+"${2}")
	if !table.Match(page) {
		t.Fatal("the page has no place for the table")
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s is out of date (go test ./modules/app -run Reference -update):\n%s", path, diff)
	}
}

func TestMigrate_DryRunShowsAndUpApplies(t *testing.T) {
	url := pgtest.New(t)
	t.Setenv("VERSOLA_DATABASE_URL", url)
	tables := func() (n int) {
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if err := conn.QueryRow(context.Background(), "SELECT count(*) FROM pg_namespace WHERE nspname IN ('auth', 'central', 'edge')").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, args := range []string{"migrate status --role=all", "migrate up --dry-run --role=all", "migrate status --dry-run --role=all"} {
		stdout, stderr, code := run(t, strings.Fields(args)...)
		if code != 0 || strings.Count(stdout, "pending") < 3 || strings.Contains(stdout, "applied") || tables() != 0 {
			t.Fatalf("%s: %d, %d schemas\n%s%s", args, code, tables(), stdout, stderr)
		}
	}
	// auth's role brings central's schema and leaves edge's.
	if stdout, stderr, code := run(t, "migrate", "up", "--role=auth"); code != 0 || !strings.Contains(stdout, "central") || tables() != 2 {
		t.Fatalf("%d schemas: %s%s", tables(), stdout, stderr)
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Go(func() {
			if _, stderr, code := run(t, "migrate", "up", "--role=all"); code != 0 {
				t.Errorf("several at once: %s", stderr)
			}
		})
	}
	wait.Wait()
	if stdout, _, _ := run(t, "migrate", "up", "--role=all"); stdout != "nothing to apply\n" {
		t.Error(stdout)
	}
	if stdout, _, code := run(t, "migrate", "status", "--role=all"); code != 0 || strings.Contains(stdout, "pending") || tables() != 3 {
		t.Error(stdout)
	}
}

func TestMigrate_RefusesANewerSchemaAndNeedsNoKeys(t *testing.T) {
	url := pgtest.New(t)
	file := writeFile(t, filepath.Join(t.TempDir(), "c.yaml"), "role: central\nprofile: production\nkeys: {pepper_file: /nowhere}\ndatabase: {url: '"+url+"'}\n")
	if _, stderr, code := run(t, "migrate", "up", "--config", file); code != 0 {
		t.Fatal(stderr)
	}
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(context.Background(), "INSERT INTO auth.schema_history (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "migrate", "up", "--config", file); code != 1 || !strings.Contains(stderr, "newer than this program") {
		t.Error(code, stderr)
	}
	if stdout, _, _ := run(t, "migrate", "status", "--config", file); !strings.Contains(stdout, "9999") {
		t.Error(stdout)
	}
}

func TestMigrate_UnreachableDatabaseIsAClearError(t *testing.T) {
	t.Setenv("VERSOLA_DATABASE_URL", "postgres://u:s3cr3t-canary@127.0.0.1:1/d")
	for _, args := range []string{"migrate up --role=auth", "migrate status --role=auth"} {
		_, stderr, code := run(t, strings.Fields(args)...)
		if code != 1 || !strings.Contains(stderr, "database.url") || !strings.Contains(stderr, "connection refused") || strings.Contains(stderr, "canary") {
			t.Errorf("%s: %d %s", args, code, stderr)
		}
	}
}
