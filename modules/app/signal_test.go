package app_test

import (
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"versola/db"
	"versola/modules/app/apptest"
	"versola/platform/pgtest"
)

// busyAuth starts auth as a process, with a request in flight whose body does
// not come.
func busyAuth(t *testing.T) *child {
	t.Helper()
	dir := t.TempDir()
	ports := apptest.FreePorts(t, 3)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	c := newChild(t, dir, []string{
		"VERSOLA_STATE_DIR=" + dir, "VERSOLA_AUTH_LISTEN=" + at(0), "VERSOLA_CENTRAL_LISTEN=" + at(1), "VERSOLA_DIAGNOSTICS_AUTH=" + at(2),
		"VERSOLA_DATABASE_URL=" + pgtest.New(t, db.Auth(), db.Central()),
	}, "serve", "--role=auth")
	c.start()
	apptest.WaitReady(t, "http://"+at(2))
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at(0))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	// The server asks for the body once its handler reads it: the request is in
	// flight from then on.
	const request = "POST /token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\nExpect: 100-continue\r\n\r\n"
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, len("HTTP/1.1 100"))
	if _, err := io.ReadFull(conn, answer); err != nil || string(answer) != "HTTP/1.1 100" {
		t.Fatalf("%q, %v", answer, err)
	}
	return c
}

func TestSignal_ASlowClientIsCutOffAndIsNoFailure(t *testing.T) {
	t.Parallel()
	c := busyAuth(t)
	if code := c.stop(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if !strings.Contains(c.out.String(), "cutting off requests") {
		t.Error("nobody was told of the request that was cut off")
	}
}

func TestSignal_ASecondOneEndsTheProcessAtOnce(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			c := busyAuth(t)
			if err := c.cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			apptest.Eventually(t, 5*time.Second, "the beginning of the end", func() bool { return strings.Contains(c.out.String(), "shutting down") })
			ended := make(chan struct{})
			cmd := c.cmd
			go func() {
				_ = cmd.Wait()
				close(ended)
			}()
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(5 * time.Second): // draining takes ten
				t.Fatal("the process goes on draining")
			}
			if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != sig {
				t.Errorf("ended with %v", cmd.ProcessState)
			}
		})
	}
}
