package app_test

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"versola/db"
	"versola/modules/app/apptest"
	"versola/platform/pgtest"
)

// binary builds the real executable once for the tests of this package.
var binary = sync.OnceValues(func() (string, error) { //nolint:gochecknoglobals // built once
	dir, err := os.MkdirTemp("", "versola-binary-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "versola")
	cmd := exec.Command("go", "build", "-o", path, "versola") //nolint:gosec,noctx // a fixed command
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

func versola(t *testing.T) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// child is a running process of the built binary.
type child struct {
	t    *testing.T
	args []string
	env  []string
	dir  string
	cmd  *exec.Cmd
	out  *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newChild(t *testing.T, dir string, env []string, args ...string) *child {
	t.Helper()
	c := &child{t: t, args: args, env: env, dir: dir, out: &lockedBuffer{}}
	t.Cleanup(func() {
		c.kill()
		if t.Failed() {
			t.Logf("output of versola %s:\n%s", strings.Join(args, " "), c.out)
		}
	})
	return c
}

func (c *child) start() {
	c.t.Helper()
	c.cmd = exec.Command(versola(c.t), c.args...) //nolint:gosec,noctx // our own binary
	c.cmd.Dir = c.dir
	c.cmd.Env = append(os.Environ(), c.env...)
	c.cmd.Stdout, c.cmd.Stderr = c.out, c.out
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := c.cmd.Start(); err != nil {
		c.t.Fatal(err)
	}
}

// kill ends the process at once, as a crash would.
func (c *child) kill() {
	if c.cmd != nil && c.cmd.Process != nil {
		_ = c.cmd.Process.Kill()
		_ = c.cmd.Wait()
		c.cmd = nil
	}
}

// stop asks the process to end and returns its exit code.
func (c *child) stop() int {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		c.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- c.cmd.Wait() }()
	select {
	case err := <-done:
		c.cmd = nil
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return exit.ExitCode()
		}
		return 0
	case <-time.After(20 * time.Second):
		c.t.Fatal("the process did not end within 20 s of SIGTERM")
		return -1
	}
}

// pair is an auth and an edge process on two databases.
type pair struct {
	auth, edge         *child
	sys                *apptest.System
	authDiag, edgeDiag string
}

func newPair(t *testing.T) *pair {
	t.Helper()
	dir := t.TempDir()
	ports := apptest.FreePorts(t, 6)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	env := []string{
		"VERSOLA_STATE_DIR=" + filepath.Join(dir, "state"),
		"VERSOLA_AUTH_LISTEN=" + at(0), fmt.Sprintf("VERSOLA_AUTH_ISSUER=http://localhost:%d", ports[0]),
		"VERSOLA_EDGE_LISTEN=" + at(1), fmt.Sprintf("VERSOLA_EDGE_PUBLIC_URL=http://localhost:%d", ports[1]),
		"VERSOLA_CENTRAL_LISTEN=" + at(2), "VERSOLA_EDGE_CENTRAL_URL=http://" + at(2),
		"VERSOLA_DIAGNOSTICS_AUTH=" + at(3), "VERSOLA_DIAGNOSTICS_EDGE=" + at(4), "VERSOLA_DEMO_UPSTREAM_LISTEN=" + at(5),
		"VERSOLA_DEMO_ENABLED=true", "VERSOLA_AUTH_ALLOW_PRIVATE_NETWORKS=true",
		"VERSOLA_DATABASE_URL=" + pgtest.New(t, db.Auth(), db.Central()),
		"VERSOLA_EDGE_DATABASE_URL=" + pgtest.New(t, db.Edge()),
	}
	return &pair{
		auth: newChild(t, dir, env, "serve", "--role=auth"), edge: newChild(t, dir, env, "serve", "--role=edge"),
		sys:      &apptest.System{Issuer: fmt.Sprintf("http://localhost:%d", ports[0]), Edge: fmt.Sprintf("http://localhost:%d", ports[1])},
		authDiag: "http://" + at(3), edgeDiag: "http://" + at(4),
	}
}

func (p *pair) journey(t *testing.T) *apptest.Browser {
	t.Helper()
	b := apptest.NewBrowser(t)
	signInByCode(t, p.sys, b, "+77000000001")
	p.works(t, b)
	return b
}

func (p *pair) works(t *testing.T, b *apptest.Browser) {
	t.Helper()
	if page := call(t, p.sys, b, http.MethodGet, "/resources/bank/accounts", ""); page.Status != http.StatusOK {
		t.Fatalf("accounts: %d %s", page.Status, page.Body)
	}
}

func TestRoles_AuthAndEdgeAsTwoProcessesOnTwoDatabases(t *testing.T) {
	p := newPair(t)
	// No start order: the edge comes first, without a catalog and without auth.
	p.edge.start()
	apptest.Eventually(t, 20*time.Second, "the edge to answer without auth", func() bool {
		resp, err := http.DefaultTransport.RoundTrip(mustGet(t, p.edgeDiag+"/livez"))
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	p.auth.start()
	apptest.WaitReady(t, p.authDiag)
	apptest.WaitReady(t, p.edgeDiag)
	b := p.journey(t)

	t.Run("auth killed: known sessions go on, then it heals", func(t *testing.T) {
		p.auth.kill()
		p.works(t, b)
		p.auth.start()
		apptest.WaitReady(t, p.authDiag)
		p.journey(t)
		p.works(t, b)
	})
	t.Run("edge killed: sessions outlive it", func(t *testing.T) {
		p.edge.kill()
		p.edge.start()
		apptest.WaitReady(t, p.edgeDiag)
		p.works(t, b)
		p.journey(t)
	})
	t.Run("edge restarts while auth is down: it serves its last catalog", func(t *testing.T) {
		p.auth.kill()
		p.edge.kill()
		p.edge.start()
		apptest.Eventually(t, 20*time.Second, "the edge to serve from its catalog copy", func() bool {
			resp, err := http.DefaultTransport.RoundTrip(mustGet(t, p.sys.Edge+demoPage))
			if err != nil {
				return false
			}
			_ = resp.Body.Close()
			return resp.StatusCode != http.StatusServiceUnavailable && resp.StatusCode != http.StatusNotFound
		})
		p.auth.start()
		apptest.WaitReady(t, p.authDiag)
		apptest.WaitReady(t, p.edgeDiag)
		p.works(t, b)
		p.journey(t)
	})
	t.Run("both killed and started together", func(t *testing.T) {
		p.auth.kill()
		p.edge.kill()
		p.auth.start()
		p.edge.start()
		apptest.WaitReady(t, p.authDiag)
		apptest.WaitReady(t, p.edgeDiag)
		p.works(t, b)
		p.journey(t)
	})
	t.Run("a sign-out is known to the edge within a second", func(t *testing.T) {
		rp := newParty(t, p.sys, "demo-app", "demo-app-secret", callback, "offline_access")
		code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
		tok := rp.exchange(t, code, verifier)
		accounts := p.sys.Edge + "/resources/bank/accounts"
		if status := bearer(t, accounts, tok.AccessToken); status != http.StatusOK {
			t.Fatalf("before: %d", status)
		}
		logout(t, rp, tok.Extra("id_token").(string)) //nolint:errcheck,forcetypeassert // a test
		apptest.Eventually(t, time.Second, "the edge to refuse the token", func() bool {
			return bearer(t, accounts, tok.AccessToken) == http.StatusUnauthorized
		})
	})
	t.Run("they stop cleanly", func(t *testing.T) {
		if code := p.edge.stop(); code != 0 {
			t.Errorf("edge exited with %d", code)
		}
		if code := p.auth.stop(); code != 0 {
			t.Errorf("auth exited with %d", code)
		}
	})
}

func mustGet(t *testing.T, address string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
