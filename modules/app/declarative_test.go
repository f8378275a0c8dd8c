package app_test

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/db"
	"versola/modules/app/apptest"
	"versola/modules/central/catalog"
	"versola/platform/pgtest"
)

// station runs commands of the built binary on a database of its own, with
// encryption keys of its own.
type station struct{ env []string }

func newStation(t *testing.T) station {
	t.Helper()
	env := slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, "VERSOLA_") })
	return station{append(env, "VERSOLA_STATE_DIR="+t.TempDir(), "VERSOLA_DATABASE_URL="+pgtest.New(t, db.Auth(), db.Central()))}
}

func (s station) run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, versola(t), args...) //nolint:gosec // our own binary
	var stdout, stderr bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = s.env, &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), stdout.String(), stderr.String()
}

// must runs a command that succeeds.
func (s station) must(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := s.run(t, args...)
	if code != 0 {
		t.Fatalf("%v: %d %s%s", args, code, out, errs)
	}
	return out
}

// unserved are kinds that registration refuses as a whole, so that no document
// of them can be applied.
var unserved = []string{catalog.KindNameDetailType}

const documents = "testdata/declarative"

func TestDeclarative_ExportAppliedToAnEmptyDatabaseIsTheSame(t *testing.T) {
	t.Parallel()
	first, second := newStation(t), newStation(t)
	if out := first.must(t, "apply", "-f", documents); !strings.Contains(out, "0 updated, 0 deleted, 0 unchanged") {
		t.Errorf("the first time: %s", out)
	}
	before := first.must(t, "export", "--secrets")
	for _, k := range catalog.Kinds {
		if !strings.Contains(before, "kind: "+k.Name+"\n") && !slices.Contains(unserved, k.Name) {
			t.Errorf("%s has no %s", documents, k.Name)
		}
	}
	if out := first.must(t, "apply", "-f", documents, "--prune=all"); !strings.Contains(out, "0 created, 0 updated, 0 deleted, ") {
		t.Errorf("the second time: %s", out)
	}
	dir := filepath.Join(t.TempDir(), "export")
	first.must(t, "export", "--secrets", "-o", dir)
	second.must(t, "apply", "-f", dir)
	if diff := cmp.Diff(before, second.must(t, "export", "--secrets")); diff != "" {
		t.Errorf("the other database's export differs:\n%s", diff)
	}
	bare := first.must(t, "export")
	for _, secret := range []string{"a-secret-of-web-1", "a-secret-of-web-2", "sealed"} {
		if strings.Contains(bare, secret) {
			t.Errorf("%s is in an export without --secrets", secret)
		}
	}
	if code, out, errs := first.run(t, "export", "--secrets", "-o", dir); code != 1 || !strings.Contains(errs, "not empty") {
		t.Errorf("into a directory that has files: %d %s%s", code, out, errs)
	}
	if code, out, errs := first.run(t, "export", "--tenant", "nobody"); code != 2 || out != "" || !strings.Contains(errs, `no tenant "nobody"`) {
		t.Errorf("of no tenant: %d %s%s", code, out, errs)
	}
}

func TestDeclarative_ProcessesThatApplyAtOnceQueue(t *testing.T) {
	t.Parallel()
	s := newStation(t)
	versola(t) // built before the race
	const processes = 4
	outs := make([]string, processes)
	var group sync.WaitGroup
	for i := range processes {
		group.Go(func() { _, outs[i], _ = s.run(t, "apply", "-f", documents, "--json") })
	}
	group.Wait()
	creators := 0
	for i, out := range outs {
		switch {
		case strings.Contains(out, `"action": "created"`) && !strings.Contains(out, `"action": "unchanged"`):
			creators++
		case !strings.Contains(out, `"action": "unchanged"`) || strings.Contains(out, `"action": "updated"`):
			t.Errorf("process %d: %s", i, out)
		}
	}
	if creators != 1 {
		t.Errorf("%d processes created everything, expected one", creators)
	}
}

func TestSeed_ARestartBringsNothingBackThatAnOperatorChanged(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	for _, c := range []struct{ method, path, body string }{
		{http.MethodDelete, "/v1/tenants/demo/clients/demo-service", ""},
		{http.MethodPatch, "/v1/tenants/demo/scopes/bank", `{"description":"Edited"}`},
		{http.MethodDelete, "/v1/tenants/system/roles/viewer", ""},
		{http.MethodPatch, "/v1/tenants/system/roles/support", `{"permissions":["use-api"]}`},
	} {
		if page := administer(t, s, admin, c.method, c.path, "application/merge-patch+json", c.body); page.Status >= 300 {
			t.Fatalf("%s %s: %d %s", c.method, c.path, page.Status, page.Body)
		}
	}
	s.Restart(t)
	for _, c := range []struct {
		path, want string
		status     int
	}{
		{"/v1/tenants/demo/clients/demo-service", "", http.StatusNotFound},
		{"/v1/tenants/demo/scopes/bank", `"description":"Edited"`, http.StatusOK},
		{"/v1/tenants/system/roles/viewer", "", http.StatusNotFound},
		{"/v1/tenants/system/roles/support", `"permissions":["use-api"]`, http.StatusOK},
	} {
		if page := administer(t, s, admin, http.MethodGet, c.path, "", ""); page.Status != c.status || !strings.Contains(page.Body, c.want) {
			t.Errorf("%s: %d %s", c.path, page.Status, page.Body)
		}
	}
}
