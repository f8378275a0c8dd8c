package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
)

// stall answers with handle, and returns a connection to it and how handle
// ended.
func stall(t *testing.T, handle func(c echo.Context, x *exchange) error) (net.Conn, <-chan error) {
	t.Helper()
	ended := make(chan error, 1)
	e := echo.New()
	e.Any("/", func(c echo.Context) error {
		ended <- handle(c, &exchange{route: &route{resource: &catalog.Resource{}}, endpoint: &catalog.EndpointSpec{}})
		return nil
	})
	s := httptest.NewServer(e)
	t.Cleanup(s.Close)
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn, ended
}

func TestBody_ThatStopsComingEnds(t *testing.T) {
	t.Parallel()
	var bodyErr error
	conn, ended := stall(t, func(c echo.Context, x *exchange) error {
		b := newBody(c.Request().Body, x, newWriter(c.Response(), x).control)
		b.timeout = 50 * time.Millisecond
		_, err := io.ReadAll(b)
		bodyErr = x.bodyErr
		return err
	})
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !os.IsTimeout(err) || bodyReason(bodyErr) != policy.BodySlow {
		t.Errorf("reading ended with %v, noted as %v", err, bodyErr)
	}
}

// What was read to its end has no deadline any more: it would look like a
// client that hung up.
func TestBody_ThatCameLeavesNoDeadline(t *testing.T) {
	t.Parallel()
	conn, ended := stall(t, func(c echo.Context, x *exchange) error {
		b := newBody(c.Request().Body, x, newWriter(c.Response(), x).control)
		b.timeout = 50 * time.Millisecond
		if _, err := io.ReadAll(b); err != nil {
			return err
		}
		select {
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		case <-time.After(4 * b.timeout): // the kernel's clock, not ours
			return nil
		}
	})
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWriter_AClientThatReadsNothingIsLeft(t *testing.T) {
	t.Parallel()
	conn, ended := stall(t, func(c echo.Context, x *exchange) error {
		w := newWriter(c.Response(), x)
		w.timeout = 50 * time.Millisecond
		defer w.finish()
		for piece := bytes.Repeat([]byte("a"), bufferSize); ; {
			if _, err := w.Write(piece); err != nil {
				return err
			}
		}
	})
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !os.IsTimeout(err) {
		t.Errorf("writing ended with %v", err)
	}
}

func TestWriter_ItsDeadlineIsNotTheConnections(t *testing.T) {
	t.Parallel()
	conn, ended := stall(t, func(c echo.Context, x *exchange) error {
		w := newWriter(c.Response(), x)
		w.timeout = 50 * time.Millisecond
		defer w.finish()
		_, err := io.WriteString(w, "answer")
		return err
	})
	for range 2 {
		if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Read(make([]byte, 4096)); err != nil {
			t.Fatalf("%d bytes, then %v", n, err)
		}
		<-time.After(100 * time.Millisecond) // the kernel's clock, not ours
	}
}
