package apptest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/db"
	"versola/modules/app"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/secret"
)

// System is a running Versola.
type System struct {
	Config      *app.Config
	Issuer      string // auth's public URL
	Edge        string // the edge's public URL
	Internal    string // central's API and the feeds
	Diagnostics string
	Clock       *clock.Offset
	stop        context.CancelFunc
	done        chan error
	log         logBuffer
}

// Start runs role all with the demo tenant on a fresh database, until the test
// ends. adjust, when not nil, changes the configuration first.
func Start(t testing.TB, adjust func(*app.Config)) *System {
	t.Helper()
	url := secret.Text(pgtest.New(t, db.Auth(), db.Central(), db.Edge()))
	cfg := app.DefaultConfig()
	cfg.Role = "all"
	cfg.StateDir = filepath.Join(t.TempDir(), "state")
	cfg.Database.URL, cfg.Edge.Database.URL = url, url
	cfg.Log.Level = "warn"
	cfg.Demo.Enabled = true
	cfg.Auth.AllowPrivateNetworks, cfg.Central.AllowPrivateNetworks = true, true
	ports := FreePorts(t, 5)
	cfg.Auth.Listen, cfg.Auth.Issuer = addr(ports[0]), fmt.Sprintf("http://localhost:%d", ports[0])
	cfg.Edge.Listen, cfg.Edge.PublicURL = addr(ports[1]), fmt.Sprintf("http://localhost:%d", ports[1])
	cfg.Central.Listen, cfg.Edge.CentralURL = addr(ports[2]), "http://"+addr(ports[2])
	cfg.Diagnostics.Auth = addr(ports[3])
	cfg.Demo.UpstreamListen = addr(ports[4])
	if adjust != nil {
		adjust(cfg)
	}
	s := &System{Config: cfg, Issuer: cfg.Auth.Issuer, Edge: cfg.Edge.PublicURL, Internal: cfg.Edge.CentralURL,
		Diagnostics: "http://" + cfg.Diagnostics.Auth, Clock: &clock.Offset{}, done: make(chan error, 1)}
	s.run(t)
	t.Cleanup(func() { s.Stop(t) })
	return s
}

func (s *System) run(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s.stop = cancel
	ready := make(chan struct{})
	go func() {
		s.done <- app.Serve(ctx, app.ServeOptions{Config: s.Config, Version: "test", Out: io.Discard, LogTo: io.MultiWriter(testLog(t), &s.log), Clock: s.Clock, OnReady: func() { close(ready) }})
	}()
	select {
	case <-ready:
	case err := <-s.done:
		s.done <- err
		t.Fatalf("serve: %v", err)
	case <-time.After(30 * time.Second):
		t.Fatal("not ready after 30 s")
	}
	WaitReady(t, s.Diagnostics)
}

// Logged returns what the system has logged so far.
func (s *System) Logged() string {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	return s.log.b.String()
}

type logBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// Stop shuts the system down and reports an unclean end.
func (s *System) Stop(t testing.TB) {
	t.Helper()
	s.stop()
	select {
	case err := <-s.done:
		s.done <- nil
		if err != nil {
			t.Errorf("serve ended with: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Error("serve did not end within 20 s")
	}
}

// Restart stops the system and starts it again on the same data and ports.
func (s *System) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.done = make(chan error, 1)
	s.run(t)
}

// WaitReady waits until /readyz of a diagnostics listener answers 200.
func WaitReady(t testing.TB, diagnostics string) {
	t.Helper()
	last := "nothing yet"
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the last answer of %s/readyz: %s", diagnostics, last)
		}
	})
	Eventually(t, 30*time.Second, "readiness of "+diagnostics, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, diagnostics+"/readyz", nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			last = err.Error()
			return false
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		last = string(body)
		return resp.StatusCode == http.StatusOK
	})
}

// Eventually waits for something that another process or goroutine does.
func Eventually(t testing.TB, within time.Duration, what string, ok func() bool) {
	t.Helper()
	start := clock.Monotonic()
	for !ok() {
		if clock.Since(start) > within {
			t.Fatalf("still waiting for %s after %v", what, within)
		}
		<-time.After(20 * time.Millisecond)
	}
}

// FreePorts returns loopback ports that nothing listens on.
func FreePorts(t testing.TB, n int) []int {
	t.Helper()
	var ports []int
	for range n {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port) //nolint:errcheck,forcetypeassert // a TCP listener has one
	}
	return ports
}

func addr(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// testLog shows the system's log of a failed test; TEST_LOG=1 shows it
// always.
func testLog(t testing.TB) io.Writer {
	if os.Getenv("TEST_LOG") != "" {
		return os.Stderr
	}
	return logWriter{t}
}

type logWriter struct{ t testing.TB }

func (w logWriter) Write(p []byte) (int, error) {
	// Late lines of a stopping system come after the test's end.
	defer func() { _ = recover() }()
	w.t.Log(string(p))
	return len(p), nil
}
