package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/central/keys"
	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/secret"
)

// operate runs a command on a deployment's database.
func operate(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := root(t)
	var out, errs bytes.Buffer
	cmd.SetIn(strings.NewReader(stdin))
	cmd.SetOut(&out)
	cmd.SetErr(&errs)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(context.Background())
	if err != nil {
		fmt.Fprintln(&errs, err)
	}
	return out.String(), errs.String(), ExitCode(err)
}

// deployed points commands at a fresh database.
func deployed(t *testing.T) (url string) {
	t.Helper()
	url = pgtest.New(t, db.Auth(), db.Central())
	t.Setenv("VERSOLA_CONFIG", "")
	t.Setenv("VERSOLA_STATE_DIR", t.TempDir())
	t.Setenv("VERSOLA_DATABASE_URL", url)
	return url
}

func TestKeysCommand_RotatesListsAndRetires(t *testing.T) {
	deployed(t)
	list := func(args ...string) []keys.Key {
		t.Helper()
		out, errs, code := operate(t, "", append(args, "--json")...)
		var got []keys.Key
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil {
			t.Fatalf("%v: %d %s%s", args, code, out, errs)
		}
		return got
	}
	if got := list("keys", "list"); len(got) != 0 {
		t.Errorf("an empty database: %+v", got)
	}
	if got := list("keys", "rotate", "--now", "--alg", "ES256,EdDSA"); len(got) != 2 || got[0].State != "active" {
		t.Errorf("%+v", got)
	}
	got := list("keys", "rotate")
	if len(got) != 4 || got[1].State != "next" || got[1].Due == nil {
		t.Fatalf("%+v", got)
	}
	if out, _, code := operate(t, "", "keys", "retire", got[0].ID); code != 0 || strings.Contains(out, got[0].ID) || !strings.Contains(out, got[1].ID) {
		t.Errorf("%d %s", code, out)
	}
	for _, tt := range []struct {
		args string
		code int
	}{
		{"keys", 2}, {"keys rotate --alg none", 2}, {"keys rotate --publish 1m", 2}, {"keys rotate --publish 0s", 2}, {"keys rotate --publish x", 2},
		{"keys rotate --now --publish 1h", 2}, {"keys retire", 2}, {"keys retire nobody", 1}, {"keys list --config /nowhere.yaml", 1},
	} {
		if out, errs, code := operate(t, "", strings.Fields(tt.args)...); code != tt.code {
			t.Errorf("%s: %d\n%s%s", tt.args, code, out, errs)
		}
	}
}

func TestAuditCommand_VerifiesExportsAndFindsTheFault(t *testing.T) {
	url := deployed(t)
	if out, errs, code := operate(t, "", "audit", "verify"); code != 0 || !strings.Contains(out, "ok: 0 entries") {
		t.Fatalf("%d %s%s", code, out, errs)
	}
	if _, errs, code := operate(t, "", "keys", "rotate", "--now", "--alg", "ES256"); code != 0 {
		t.Fatal(errs)
	}
	out, _, code := operate(t, "", "audit", "verify")
	_, anchor, found := strings.Cut(strings.TrimSpace(out), "anchor: ")
	if code != 0 || !found || !strings.Contains(out, "ok: 2 entries") {
		t.Fatalf("%d %s", code, out)
	}
	if out, errs, code := operate(t, "", "audit", "verify", "--anchor", anchor); code != 0 {
		t.Errorf("%d %s%s", code, out, errs)
	}
	out, _, code = operate(t, "", "audit", "export", "--kind", "signing_key")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || len(lines) != 2 || !strings.Contains(lines[0], `"signing_key.published"`) || !strings.Contains(lines[0], `"kind":"command"`) {
		t.Errorf("%d %s", code, out)
	}
	for _, tt := range []struct {
		args string
		code int
	}{
		{"audit verify --anchor x", 2}, {"audit export --from yesterday", 2}, {"audit retain", 2}, {"audit retain --keep 1h", 2}, {"audit retain --keep 9000h", 0},
	} {
		if out, errs, code := operate(t, "", strings.Fields(tt.args)...); code != tt.code {
			t.Errorf("%s: %d\n%s%s", tt.args, code, out, errs)
		}
	}
	d, err := openDeployment(t.Context(), "", io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.close() }()
	if _, err := d.db.Exec(t.Context(), `SET session_replication_role = replica; UPDATE central.audit_entry SET body = '{"at":"2026-01-01T00:00:00Z","action":"x","actor":{"kind":"user"}}' WHERE seq = 2`); err != nil {
		t.Fatal(err)
	}
	out, errs, code := operate(t, "", "audit", "verify")
	if code != 1 || !strings.Contains(out, "BROKEN: entry 2: ") {
		t.Errorf("%s: %d %s%s", url, code, out, errs)
	}
}

func TestEdgeCommand_RotationKeepsTheOldKeysUntilPruned(t *testing.T) {
	dir := t.TempDir()
	first, second, third := filepath.Join(dir, "1"), filepath.Join(dir, "2"), filepath.Join(dir, "3")
	must := func(args ...string) string {
		t.Helper()
		out, errs, code := operate(t, "", args...)
		if code != 0 {
			t.Fatalf("%v: %d %s", args, code, errs)
		}
		return out
	}
	kids := func(name string) (out []string) {
		t.Helper()
		raw, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := identity.Parse("e", secret.Text(raw), clock.System{}, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var set struct {
			Keys []struct{ Kid, Use, D string }
		}
		if err := json.Unmarshal(raw, &set); err != nil {
			t.Fatal(err)
		}
		for _, k := range set.Keys {
			if k.D == "" {
				t.Error("not a private key")
			}
			out = append(out, k.Use+" "+k.Kid)
		}
		return out
	}
	must("edge", "keygen", "--out", first)
	must("edge", "keygen", "--from", first, "--out", second)
	must("edge", "prune", second, "--out", third)
	old, both, last := kids(first), kids(second), kids(third)
	if len(old) != 2 || len(both) != 4 || len(last) != 2 || both[2] != old[0] || both[3] != old[1] || both[0] != last[0] || both[1] != last[1] {
		t.Errorf("%v\n%v\n%v", old, both, last)
	}
	if info, err := os.Stat(second); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	public := must("edge", "public", second)
	if strings.Contains(public, `"d"`) || strings.Count(public, `"kid"`) != 4 {
		t.Error(public)
	}
	raw, _ := os.ReadFile(first)
	if out, _, code := operate(t, string(raw), "edge", "keygen", "--from", "-"); code != 0 || strings.Count(out, `"kid"`) != 4 {
		t.Errorf("%d %s", code, out)
	}
	junk := writeFile(t, filepath.Join(dir, "junk"), "secret-junk")
	publicFile := writeFile(t, filepath.Join(dir, "public"), public)
	for _, args := range []string{"edge keygen --out " + first, "edge keygen --from " + junk, "edge keygen --from /nowhere", "edge prune " + junk,
		"edge public " + junk, "edge public " + publicFile, "edge keygen --from " + publicFile, "edge prune " + second + " --out " + first} {
		if out, errs, code := operate(t, "", strings.Fields(args)...); code != 1 || strings.Contains(out+errs, "secret-junk") {
			t.Errorf("%s: %d %s%s", args, code, out, errs)
		}
	}
}

// onDatabase are the commands that work on the database, as they would be
// called.
var onDatabase = []string{
	"apply -f -", "apply -f - --dry-run --json", "export", "export --secrets", "keys list", "keys rotate --now --alg ES256", "keys retire nobody",
	"audit verify", "audit export", "audit retain --keep 9000h", "users import - --directory demo", "bootstrap admin --email a@example.com",
}

func TestCommands_SayWhatIsWrongWithTheDatabase(t *testing.T) {
	t.Setenv("VERSOLA_CONFIG", "")
	t.Setenv("VERSOLA_STATE_DIR", t.TempDir())
	newer := pgtest.New(t, db.Auth(), db.Central())
	conn, err := pgx.Connect(t.Context(), newer)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), "INSERT INTO central.schema_history (version_id, is_applied) VALUES (9999, true)"); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, says string }{
		"nobody listens": {"postgres://versola:sesame@127.0.0.1:1/x", "connection refused"},
		"empty":          {pgtest.New(t), `run "versola migrate up"`},
		"of one schema":  {pgtest.New(t, db.Auth()), `run "versola migrate up"`},
		"newer":          {newer, "run the newer program"},
	} {
		t.Setenv("VERSOLA_DATABASE_URL", c.url)
		for _, args := range onDatabase {
			out, errs, code := operate(t, "kind: tenant\nid: a\n", strings.Fields(args)...)
			if code != 1 || out != "" || !strings.Contains(errs, c.says) || strings.Contains(errs, "sesame") {
				t.Errorf("%s with a database, %s: %d %s%s", args, name, code, out, errs)
			}
		}
	}
	t.Setenv("VERSOLA_DATABASE_URL", "")
	t.Setenv("VERSOLA_STATE_DIR", filepath.Join(t.TempDir(), "none"))
	for _, args := range onDatabase {
		if out, errs, code := operate(t, "kind: tenant\nid: a\n", strings.Fields(args)...); code != 1 || out != "" || !strings.Contains(errs, "there is no deployment in state_dir") {
			t.Errorf("%s without a deployment: %d %s%s", args, code, out, errs)
		}
	}
}

func TestCommands_PrintJSONForScripts(t *testing.T) {
	deployed(t)
	for args, members := range map[string][]string{
		"version --json": {"version", "commit", "go", "platform"}, "audit verify --json": {"whole", "entries", "first", "anchor"},
		"apply -f - --json": {"dry_run", "changes"},
	} {
		out, errs, code := operate(t, "kind: tenant\nid: a\nname: A\nsecurity_profile: standard\n---\nkind: directory\nid: a\n", strings.Fields(args)...)
		var got map[string]any
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || len(got) != len(members) {
			t.Errorf("%s: %d %s%s %v", args, code, out, errs, err)
		}
		for _, m := range members {
			if _, ok := got[m]; !ok {
				t.Errorf("%s has no %s: %s", args, m, out)
			}
		}
	}
	for _, args := range []string{"migrate status --role central --json", "migrate up --role central --json", "keys list --json"} {
		out, errs, code := operate(t, "", strings.Fields(args)...)
		var got []map[string]any
		if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || got == nil {
			t.Errorf("%s: %d %s%s %v", args, code, out, errs, err)
		}
	}
}
