package httpserver

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
)

// slow starts a listener that gives a body little time, and reports how reading
// a body ended.
func slow(t *testing.T, maxBody int64) (s *Server, read <-chan error) {
	t.Helper()
	s = New(Options{Name: "test", Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler), MaxBody: maxBody})
	s.bodyTimeout = 50 * time.Millisecond
	ended := make(chan error, 1)
	s.Echo.POST("/", func(c echo.Context) error {
		_, err := io.ReadAll(c.Request().Body)
		ended <- err
		return c.NoContent(http.StatusNoContent)
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve() }()
	t.Cleanup(func() { _ = s.http.Close() })
	return s, ended
}

func dial(t *testing.T, s *Server, request string) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	return conn
}

func TestLimitBody_ABodyThatDoesNotComeEndsItsRequest(t *testing.T) {
	t.Parallel()
	for name, request := range map[string]string{
		"stated length": "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab",
		"chunks":        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
		"no limit":      "POST / HTTP/1.1\r\nHost: unlimited\r\nContent-Length: 10\r\n\r\nab",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limit := int64(0)
			if name == "no limit" {
				limit = -1
			}
			s, read := slow(t, limit)
			conn := dial(t, s, request)
			if err := <-read; !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("reading ended with %v", err)
			}
			// The connection is not used again.
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestLimitBody_TheTimeOfOneBodyIsNotTheConnections(t *testing.T) {
	t.Parallel()
	const request = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\nab"
	s, read := slow(t, 0)
	conn := dial(t, s, request)
	answers := bufio.NewReader(conn)
	for i := range 3 {
		if err := <-read; err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		resp, err := http.ReadResponse(answers, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		_ = resp.Body.Close()
		<-time.After(2 * s.bodyTimeout) // the kernel's clock, not ours
		if _, err := io.WriteString(conn, request); err != nil {
			t.Fatal(err)
		}
	}
}

// Nobody reads the body of a request that is refused; it must not keep the
// connection.
func TestLimitBody_ARefusedBodyIsNotWaitedForWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, limit := range []int64{0, -1} {
		s, _ := slow(t, limit)
		conn := dial(t, s, "POST /nothing HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nab")
		if answer, err := io.ReadAll(conn); err != nil || !bytes.Contains(answer, []byte(" 404 ")) {
			t.Errorf("limit %d: %v: %s", limit, err, answer)
		}
	}
}

func TestRequestLog_AnAnswerThatBreaksOffHasItsLine(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := New(Options{Name: "test", Log: slog.New(slog.NewJSONHandler(&log, nil))})
	s.Echo.GET("/", func(c echo.Context) error {
		c.Response().WriteHeader(http.StatusOK)
		panic(http.ErrAbortHandler)
	})
	func() {
		defer func() {
			if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // compared as net/http does
				t.Errorf("the server got %v", v)
			}
		}()
		s.Echo.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil))
	}()
	if !bytes.Contains(log.Bytes(), []byte(`"route":"/","status":200`)) {
		t.Errorf("logged %s", log.Bytes())
	}
}
