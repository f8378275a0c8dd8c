package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"versola/db"
	"versola/modules/app/apptest"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

// empty is a deployment without the demo: auth and edge as two processes, and
// nothing in their databases.
type empty struct {
	*pair
	dir  string
	env  []string
	edge string // its public URL
	db   *postgres.DB
}

func newEmpty(t *testing.T) *empty {
	t.Helper()
	dir := t.TempDir()
	ports := apptest.FreePorts(t, 5)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	if err := os.Mkdir(filepath.Join(dir, "state"), 0o711); err != nil { //nolint:gosec // as the program makes it
		t.Fatal(err)
	}
	url := pgtest.New(t, db.Auth(), db.Central())
	env := []string{
		"VERSOLA_STATE_DIR=" + filepath.Join(dir, "state"), "VERSOLA_DEMO_ENABLED=false", "VERSOLA_AUTH_ROOT_TENANT=system",
		"VERSOLA_AUTH_LISTEN=" + at(0), fmt.Sprintf("VERSOLA_AUTH_ISSUER=http://localhost:%d", ports[0]),
		"VERSOLA_EDGE_ID=front", "VERSOLA_EDGE_LISTEN=" + at(1), fmt.Sprintf("VERSOLA_EDGE_PUBLIC_URL=http://localhost:%d", ports[1]),
		"VERSOLA_CENTRAL_LISTEN=" + at(2), "VERSOLA_EDGE_CENTRAL_URL=http://" + at(2),
		"VERSOLA_DIAGNOSTICS_AUTH=" + at(3), "VERSOLA_DIAGNOSTICS_EDGE=" + at(4), "VERSOLA_AUTH_ALLOW_PRIVATE_NETWORKS=true",
		"VERSOLA_DATABASE_URL=" + url, "VERSOLA_EDGE_DATABASE_URL=" + pgtest.New(t, db.Edge()),
	}
	opened, err := postgres.Open(t.Context(), postgres.Options{URL: url, MaxConns: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(opened.Close)
	e := &empty{dir: dir, env: env, edge: fmt.Sprintf("http://localhost:%d", ports[1]), db: opened}
	e.pair = &pair{
		auth: newChild(t, dir, env, "serve", "--role=auth"), edge: newChild(t, dir, env, "serve", "--role=edge"),
		sys:      &apptest.System{Issuer: fmt.Sprintf("http://localhost:%d", ports[0]), Edge: e.edge},
		authDiag: "http://" + at(3), edgeDiag: "http://" + at(4),
	}
	return e
}

// run runs a command on the deployment.
func (e *empty) run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), versola(t), args...) //nolint:gosec // our own binary
	cmd.Dir, cmd.Env = e.dir, append(os.Environ(), e.env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

var printedPassword = regexp.MustCompile(`(?m)^temporary password: (\S+)$`)

func password(t *testing.T, out string) string {
	t.Helper()
	m := printedPassword.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no password in:\n%s", out)
	}
	return m[1]
}

// administrators counts who holds the role, and how often one was made.
func (e *empty) administrators(t *testing.T) (people, audited int) {
	t.Helper()
	err := e.db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM auth.users WHERE roles @> '{"system": ["admin"]}'),
		(SELECT count(*) FROM central.audit_entry WHERE action IN ('user.created', 'user.recovered'))`).Scan(&people, &audited)
	if err != nil {
		t.Fatal(err)
	}
	return people, audited
}

// signIn signs an administrator in through the edge with a temporary password.
func (e *empty) signIn(t *testing.T, identifier, temporary, chosen string) *apptest.Browser {
	t.Helper()
	b := apptest.NewBrowser(t)
	b.Open(e.edge + "/login/admin")
	b.Submit(map[string]string{"identifier": identifier})
	b.Submit(map[string]string{"password": temporary})
	if page := b.Submit(map[string]string{"new_password": chosen}); page.Status != http.StatusOK || page.URL.String() != e.edge+"/resources/central/" {
		t.Fatalf("expected the administration page, got %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	return b
}

func TestBootstrap_MakesTheAdministratorOfAnEmptyDeploymentBesideRunningProcesses(t *testing.T) {
	e := newEmpty(t)
	e.auth.start()
	e.pair.edge.start()
	if code, out, errs := e.run(t, "bootstrap", "admin", "--email", "ops@example.com", "--name", "Operations"); code != 0 {
		t.Fatalf("%d %s %s", code, out, errs)
	} else {
		apptest.WaitReady(t, e.authDiag)
		apptest.WaitReady(t, e.edgeDiag)
		admin := e.signIn(t, "ops@example.com", password(t, out), "chosen-by-operations-1")
		if p := administer(t, e.sys, admin, http.MethodGet, "/v1/me", "", ""); p.Status != http.StatusOK || !strings.Contains(p.Body, `"admin"`) {
			t.Errorf("me: %d %s", p.Status, p.Body)
		}
		if p := administer(t, e.sys, admin, http.MethodPost, "/v1/tenants", "application/json",
			`{"id":"shop","name":"Shop","security_profile":"standard","directory":"shop","settings":{}}`); p.Status != http.StatusCreated {
			t.Errorf("create a tenant: %d %s", p.Status, p.Body)
		}
	}

	t.Run("the same person again: nothing", func(t *testing.T) {
		code, out, errs := e.run(t, "bootstrap", "admin", "--email", "OPS@example.com")
		if code != 0 || !strings.Contains(out, "already") || strings.Contains(out, "password") {
			t.Errorf("%d %s %s", code, out, errs)
		}
	})
	t.Run("somebody else: refused", func(t *testing.T) {
		code, out, errs := e.run(t, "bootstrap", "admin", "--email", "eve@example.com")
		if code != 1 || !strings.Contains(errs, "o***@example.com") || !strings.Contains(errs, "--recover") || out != "" {
			t.Errorf("%d %s %s", code, out, errs)
		}
	})
	if people, audited := e.administrators(t); people != 1 || audited != 1 {
		t.Errorf("%d administrators, %d entries", people, audited)
	}
	t.Run("recover lets a disabled administrator back in", func(t *testing.T) {
		if _, err := e.db.Exec(t.Context(), `UPDATE auth.users SET status = 'disabled', roles = '{}'`); err != nil {
			t.Fatal(err)
		}
		if code, _, errs := e.run(t, "bootstrap", "admin", "--email", "ops@example.com"); code != 1 || !strings.Contains(errs, "--recover") {
			t.Errorf("without --recover: %d %s", code, errs)
		}
		code, out, errs := e.run(t, "bootstrap", "admin", "--email", "ops@example.com", "--recover")
		if code != 0 {
			t.Fatalf("%d %s", code, errs)
		}
		b := apptest.NewBrowser(t)
		b.Open(e.edge + "/login/admin")
		b.Submit(map[string]string{"identifier": "ops@example.com"})
		if p := b.Submit(map[string]string{"password": "chosen-by-operations-1"}); strings.HasPrefix(p.URL.String(), e.edge) {
			t.Error("the password of before still works")
		}
		e.signIn(t, "ops@example.com", password(t, out), "chosen-by-operations-2")
	})
	t.Run("recover makes another", func(t *testing.T) {
		code, out, errs := e.run(t, "bootstrap", "admin", "--phone", "+7 700 000-00-77", "--recover")
		if code != 0 {
			t.Fatalf("%d %s", code, errs)
		}
		e.signIn(t, "+77000000077", password(t, out), "chosen-by-another-1")
	})
	if code, out, errs := e.run(t, "audit", "verify"); code != 0 {
		t.Errorf("audit: %d %s %s", code, out, errs)
	}
}

func TestBootstrap_OfSeveralAtOnceMakesOneAdministrator(t *testing.T) {
	e := newEmpty(t)
	const parallel = 4
	codes, outs := make([]int, parallel), make([]string, parallel)
	var wg sync.WaitGroup
	for i := range parallel {
		wg.Go(func() {
			codes[i], outs[i], _ = e.run(t, "bootstrap", "admin", "--email", fmt.Sprintf("ops%d@example.com", i))
		})
	}
	wg.Wait()
	made := 0
	for i, code := range codes {
		if code == 0 && strings.Contains(outs[i], "temporary password: ") {
			made++
		} else if code != 1 {
			t.Errorf("exit code %d: %s", code, outs[i])
		}
	}
	if people, audited := e.administrators(t); made != 1 || people != 1 || audited != 1 {
		t.Errorf("%d made, %d administrators, %d entries", made, people, audited)
	}
}

func TestBootstrap_RecoverBringsBackWhatIsMissingAndKeepsEdits(t *testing.T) {
	e := newEmpty(t)
	if code, _, errs := e.run(t, "bootstrap", "admin", "--email", "ops@example.com"); code != 0 {
		t.Fatal(errs)
	}
	for _, statement := range []string{
		`UPDATE auth.users SET roles = '{}'`, `DELETE FROM central.role WHERE id = 'admin'`, `DELETE FROM central.preset`,
		`UPDATE central.tenant SET spec = jsonb_set(spec, '{name}', '"Ours"') WHERE id = 'system'`,
	} {
		if _, err := e.db.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	code, out, errs := e.run(t, "bootstrap", "admin", "--email", "ops@example.com", "--recover")
	if code != 0 {
		t.Fatalf("%d %s", code, errs)
	}
	if code, exported, _ := e.run(t, "export"); code != 0 || !strings.Contains(exported, "Ours") {
		t.Errorf("the operator's name is gone: %d", code)
	}
	e.auth.start()
	e.pair.edge.start()
	apptest.WaitReady(t, e.authDiag)
	apptest.WaitReady(t, e.edgeDiag)
	e.signIn(t, "ops@example.com", password(t, out), "chosen-by-operations-1")
}

func TestBootstrap_RefusesMistakesOfTheCommandLine(t *testing.T) {
	t.Parallel()
	e := newEmpty(t)
	for name, args := range map[string][]string{
		"nobody":           {},
		"two identifiers":  {"--email", "a@example.com", "--phone", "+77000000001"},
		"not an address":   {"--email", "a@b@c"},
		"a line break":     {"--email", "a@example.com\nBcc: b@example.com"},
		"not a number":     {"--phone", "12345"},
		"too short a time": {"--email", "a@example.com", "--valid-for", "1m"},
		"too long a time":  {"--email", "a@example.com", "--valid-for", "9000h"},
		"a long name":      {"--email", "a@example.com", "--name", strings.Repeat("n", 600)},
		"an argument":      {"a@example.com"},
		"not a URL":        {"--email", "a@example.com", "--edge-url", "app.example.com"},
		"a script":         {"--email", "a@example.com", "--edge-url", "javascript:alert(1)"},
		"an unknown edge":  {"--email", "a@example.com", "--edge-id", "elsewhere", "--edge-url", "https://app.example.com", "--central-url", "http://central:8090"},
	} {
		if code, out, errs := e.run(t, append([]string{"bootstrap", "admin"}, args...)...); code != 2 || out != "" {
			t.Errorf("%s: exit code %d: %s%s", name, code, out, errs)
		}
	}
	if people, _ := e.administrators(t); people != 0 {
		t.Errorf("%d administrators", people)
	}
}
