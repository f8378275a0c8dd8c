package app_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

// adminShell runs "versola admin" of the built binary with a profile.
type adminShell struct{ profiles string }

// newAdminShell writes a profile whose secret is beside it.
func newAdminShell(t *testing.T, s *apptest.System, client, secret string) adminShell {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"secret": secret + "\n",
		"profiles.yaml": "profiles:\n  here:\n    api: " + s.Internal + "\n    issuer: " + systemIssuer(s) + "\n    client_id: " + client +
			"\n    client_secret_file: secret\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return adminShell{profiles: filepath.Join(dir, "profiles.yaml")}
}

// run returns the exit code and what was written to both outputs.
func (a adminShell) run(t *testing.T, input string, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, versola(t), append([]string{"admin"}, append(args, "--profile-file", a.profiles)...)...) //nolint:gosec // our own binary
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

func TestAdmin_AdministersADeploymentFromTheCommandLine(t *testing.T) {
	s := apptest.Start(t, nil)
	browser := signInAdmin(t, s)
	sh := newAdminShell(t, s, "ops", operatorClient(t, s, browser, "ops", "use-api", "view-configuration", "manage-tenant", "view-users", "view-audit"))
	apptest.Eventually(t, 5*time.Second, "the new client", func() bool { code, _, _ := sh.run(t, "", "me"); return code == 0 })

	for _, step := range []struct {
		name  string
		input string
		args  string
		code  int
		out   []string // of standard output, or of errors when refused
	}{
		{"who calls", "", "me -o json", 0, []string{`"client_id": "ops"`, `"list-clients"`}},
		{"list", "", "scopes list --tenant demo", 0, []string{"ID", "openid"}},
		{"one page", "", "clients list --tenant demo --limit 1", 0, []string{"more: --after"}},
		{"all pages", "", "clients list --tenant demo --limit 1 --all -o yaml", 0, []string{"id: demo-web", "id: demo-service"}},
		{"a filter", "", "clients list --tenant demo --client-kind service -o json", 0, []string{`"demo-service"`}},
		{"singular", "", "client get demo-web --tenant demo", 0, []string{"id: demo-web\n"}},
		{"create from YAML", "id: reports\nclient_kind: service\nauth_method: client_secret_basic\ngrant_types: [client_credentials]\n",
			"clients create --tenant demo -f - --set name=Reports", 0, []string{"client_secret: ", "name: Reports"}},
		{"create again", "id: reports\n", "clients create --tenant demo -f -", 1, []string{"409"}},
		{"change", "", "clients update reports --tenant demo --set name=Figures", 0, []string{"name: Figures"}},
		{"change an old version", "", `clients update reports --tenant demo --set name=X --if-match "1"`, 1, []string{"412"}},
		{"wrong type", "", "clients update reports --tenant demo --set scopes=3", 1, []string{"/scopes"}},
		{"unknown member", "", "clients update reports --tenant demo --set wrong=3", 1, []string{"/wrong"}},
		{"add a secret", "", "clients create-secret reports --tenant demo", 0, []string{"\nsecret: "}},
		{"list secrets", "", "clients list-secrets reports --tenant demo", 0, []string{"ID"}},
		{"delete", "", "clients delete reports --tenant demo", 0, nil},
		{"what is gone", "", "clients get reports --tenant demo", 1, []string{"404"}},
		{"in use", "", "scopes delete bank --tenant demo", 1, []string{"409"}},
		{"people", "", "users list --directory demo --q alice", 0, []string{"alice"}},
		{"audit", "", "audit list --limit 5", 0, []string{"SEQ"}},
		{"not permitted", "", "keys rotate --set algorithms=[ES256]", 1, []string{"403"}},
		{"nothing to send", "", "clients replace demo-web --tenant demo", 2, []string{"nothing to send"}},
		{"nothing in a list", "", "themes list --tenant demo", 0, []string{"(none)"}},
		{"flags before the operation", "", "-o json scopes list --tenant demo", 0, []string{`"items"`}},
		{"no tenant", "", "clients list", 2, []string{"--tenant is needed"}},
		{"unknown command", "", "clients frobnicate", 2, nil},
		{"unknown flag", "", "clients list --tenant demo --wrong", 2, nil},
		{"a path for an id", "", "clients get .. --tenant demo", 2, []string{"cannot be"}},
		{"an id with a slash", "", "clients get ../../scopes --tenant demo", 1, nil},
		{"no object", "[1]", "clients create --tenant demo -f -", 2, []string{"read an object"}},
		{"unknown output", "", "clients list --tenant demo -o xml", 2, []string{"--output"}},
	} {
		code, out, errs := sh.run(t, step.input, strings.Fields(step.args)...)
		text := out
		if step.code != 0 {
			text = errs
		}
		if code != step.code {
			t.Errorf("%s: exit code %d, expected %d\n%s%s", step.name, code, step.code, out, errs)
		}
		for _, want := range step.out {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is not in\n%s", step.name, want, text)
			}
		}
	}
}

func TestAdmin_AProfileThatIsNotSafeOrDoesNotAnswer(t *testing.T) {
	s := apptest.Start(t, nil)
	browser := signInAdmin(t, s)
	mine := operatorClient(t, s, browser, "ops", "use-api")
	wrong := newAdminShell(t, s, "ops", "not-the-secret")
	if code, _, errs := wrong.run(t, "", "me"); code != 3 || strings.Contains(errs, "not-the-secret") {
		t.Errorf("a wrong secret: %d %s", code, errs)
	}
	if err := os.Chmod(filepath.Join(filepath.Dir(wrong.profiles), "secret"), 0o644); err != nil { //nolint:gosec // what is refused
		t.Fatal(err)
	}
	if code, _, errs := wrong.run(t, "", "me"); code != 2 || !strings.Contains(errs, "open to others") {
		t.Errorf("a secret that others read: %d %s", code, errs)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(wrong.profiles), "mine"), []byte(mine), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		profiles string
		code     int
		text     string
	}{
		"http to another machine":    {"profiles: {a: {api: 'http://central.example.com', issuer: 'https://id.example.com', client_id: x, client_secret_env: HOME}}", 2, "http to another machine"},
		"unknown member":             {"profiles: {a: {api: 'https://central.example.com', client_secret: x}}", 2, "client_secret"},
		"no secret":                  {"profiles: {a: {api: 'http://localhost:1', issuer: 'http://localhost:1', client_id: x}}", 2, "client_secret_file"},
		"nobody there":               {"profiles: {a: {api: 'http://localhost:1', issuer: 'http://localhost:1', client_id: x, client_secret_env: HOME}}", 3, "does not answer"},
		"not the API":                {"profiles: {a: {api: '" + s.Issuer + "', issuer: '" + systemIssuer(s) + "', client_id: ops, client_secret_file: mine}}", 3, "is no administration API"},
		"a client that is not known": {"profiles: {a: {api: '" + s.Internal + "', issuer: '" + systemIssuer(s) + "', client_id: nobody, client_secret_env: HOME}}", 3, "the client is not accepted: 401 invalid_client"},
		"unknown member's type":      {"profiles: {a: {wrong: 1}}", 2, "line 1: field wrong not found\n"},
		"a list":                     {"profiles: [a]", 2, "cannot unmarshal !!seq"},
		"an empty profile":           {"profiles: {a: }", 2, "api: is missing"},
		"another issuer":             {"profiles: {a: {api: '" + s.Internal + "', issuer: '" + strings.Replace(s.Issuer, "localhost", "127.0.0.1", 1) + "', client_id: x, client_secret_env: HOME}}", 3, "another issuer"},
		"no profiles":                {"{}", 2, "has no profiles"},
	} {
		if err := os.WriteFile(wrong.profiles, []byte(c.profiles), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := wrong.run(t, "", "me"); code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: %d %s", name, code, errs)
		}
	}
}
