package httpserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/labstack/echo/v4"

	"versola/platform/httpserver"
)

// logBuffer collects log lines of concurrent requests.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newServer(o httpserver.Options) (*httpserver.Server, *logBuffer) {
	log := &logBuffer{}
	o.Log = slog.New(slog.NewJSONHandler(log, nil))
	if o.Name == "" {
		o.Name = "test"
	}
	return httpserver.New(o), log
}

func call(s *httpserver.Server, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.Echo.ServeHTTP(w, r)
	return w
}

func get(t *testing.T, target string) *http.Request {
	t.Helper()
	return httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
}

func TestRequestLog_IsOneLineWithoutTheRequestsOwnText(t *testing.T) {
	t.Parallel()
	s, log := newServer(httpserver.Options{Name: "auth"})
	s.Echo.GET("/t/:tenant/authorize", func(c echo.Context) error {
		httpserver.Annotate(c, slog.String("client", "demo-web"))
		return c.NoContent(http.StatusNoContent)
	})
	r := get(t, "/t/topsecretpath/authorize?code=topsecretquery#frag")
	r.Header.Set("Authorization", "Bearer topsecretheader")
	r.Header.Set("Cookie", "a=topsecretcookie")
	w := call(s, r)
	lines := strings.Split(strings.TrimSpace(log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("%d lines: %s", len(lines), log)
	}
	if strings.Contains(lines[0], "topsecret") || strings.Contains(lines[0], "?") {
		t.Errorf("the line holds the request's own text: %s", lines[0])
	}
	var line map[string]any
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"time", "duration"} {
		if _, ok := line[key]; !ok {
			t.Errorf("no %s in %s", key, lines[0])
		}
		delete(line, key)
	}
	want := map[string]any{
		"level": "INFO", "msg": "request", "request_id": w.Header().Get("X-Request-Id"), "listener": "auth", "method": "GET",
		"route": "/t/:tenant/authorize", "status": float64(204), "client": "demo-web",
	}
	if diff := cmp.Diff(want, line); diff != "" {
		t.Error(diff)
	}
}

func TestRequestLog_AStrangersMethodIsNotItsText(t *testing.T) {
	t.Parallel()
	s, log := newServer(httpserver.Options{})
	r := get(t, "/")
	r.Method = strings.Repeat("TOPSECRET", 100)
	call(s, r)
	if got := log.String(); strings.Contains(got, "TOPSECRET") || !strings.Contains(got, `"method":"OTHER"`) {
		t.Errorf("logged %s", got)
	}
}

func TestRequestID_IsOursAndNewEachTime(t *testing.T) {
	t.Parallel()
	s, _ := newServer(httpserver.Options{})
	s.Echo.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, httpserver.RequestID(c)) })
	r := get(t, "/")
	r.Header.Set("X-Request-Id", "forged\r\nid")
	a, b := call(s, r), call(s, get(t, "/"))
	if a.Header().Get("X-Request-Id") != a.Body.String() || a.Body.Len() != 16 || a.Body.String() == b.Body.String() {
		t.Errorf("got %q and %q", a.Body, b.Body)
	}
}

func TestObserve_HearsOfTheRouteAndAClosedSetOfMethods(t *testing.T) {
	t.Parallel()
	var got []httpserver.Observation
	s, _ := newServer(httpserver.Options{Name: "edge", Observe: func(_ context.Context, o httpserver.Observation) {
		o.Duration = 0
		got = append(got, o)
	}})
	s.Echo.Any("/resources/:resource/*", func(c echo.Context) error { return c.NoContent(http.StatusOK) })
	call(s, get(t, "/resources/bank/accounts/17"))
	call(s, get(t, "/nowhere/at/all"))
	call(s, httptest.NewRequestWithContext(t.Context(), "BREW", "/resources/bank/x", http.NoBody))
	want := []httpserver.Observation{
		{Listener: "edge", Route: "/resources/:resource/*", Method: "GET", Status: 200},
		{Listener: "edge", Route: "(none)", Method: "GET", Status: 404},
		{Listener: "edge", Route: "(none)", Method: "OTHER", Status: 404},
	}
	if diff := cmp.Diff(want[:2], got[:2]); diff != "" {
		t.Error(diff)
	}
	if got[2].Method != "OTHER" {
		t.Errorf("got %+v", got[2])
	}
}

func TestPanic_IsA500ThatTellsNothingAndALineThatTellsAll(t *testing.T) {
	t.Parallel()
	s, log := newServer(httpserver.Options{})
	s.Echo.GET("/", func(echo.Context) error { panic("inside knowledge") })
	w := call(s, get(t, "/"))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "inside") || strings.Contains(w.Body.String(), "goroutine") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "inside knowledge") || !strings.Contains(log.String(), `"level":"ERROR"`) {
		t.Errorf("the log has %s", log)
	}
}

func TestPanic_OfAnAbortedAnswerGoesOnToTheServer(t *testing.T) {
	t.Parallel()
	s, _ := newServer(httpserver.Options{})
	s.Echo.GET("/", func(echo.Context) error { panic(http.ErrAbortHandler) })
	defer func() {
		if v := recover(); v != http.ErrAbortHandler { //nolint:errorlint // as net/http compares
			t.Errorf("recovered %v", v)
		}
	}()
	call(s, get(t, "/"))
}

func TestError_AfterTheAnswerBeganChangesNothing(t *testing.T) {
	t.Parallel()
	s, log := newServer(httpserver.Options{})
	s.Echo.GET("/", func(c echo.Context) error {
		_ = c.String(http.StatusOK, "begun")
		return errors.New("too late")
	})
	w := call(s, get(t, "/"))
	if w.Code != http.StatusOK || w.Body.String() != "begun" || !strings.Contains(log.String(), "too late") {
		t.Errorf("got %d %q, log %s", w.Code, w.Body, log)
	}
}

func TestHandleError_IsCalledOnceAndItsCauseIsLogged(t *testing.T) {
	t.Parallel()
	calls := 0
	s, log := newServer(httpserver.Options{HandleError: func(c echo.Context, err error) {
		calls++
		_ = c.String(http.StatusTeapot, "mine")
		httpserver.NoteError(c, fmt.Errorf("told: %w", err))
	}})
	s.Echo.GET("/", func(echo.Context) error { return errors.New("cause") })
	w := call(s, get(t, "/"))
	if calls != 1 || w.Code != http.StatusTeapot || !strings.Contains(log.String(), "told: cause") {
		t.Errorf("%d calls, %d, log %s", calls, w.Code, log)
	}
}

func TestLimitBody_StatedAndUnstatedLength(t *testing.T) {
	t.Parallel()
	echoBody := func(c echo.Context) error {
		b, err := io.ReadAll(c.Request().Body)
		if err != nil {
			return fmt.Errorf("read body: %w", err)
		}
		return c.String(http.StatusOK, fmt.Sprint(len(b)))
	}
	for _, c := range []struct {
		name   string
		limit  int64
		size   int
		stated bool
		want   int
	}{
		{"at the limit", 100, 100, true, 200},
		{"over the limit", 100, 101, true, 413},
		{"at the limit, chunked", 100, 100, false, 200},
		{"over the limit, chunked", 100, 101, false, 413},
		{"over the default", 0, httpserver.DefaultMaxBody + 1, true, 413},
		{"over the default, chunked", 0, httpserver.DefaultMaxBody + 1, false, 413},
		{"no limit", -1, httpserver.DefaultMaxBody + 1, false, 200},
	} {
		s, _ := newServer(httpserver.Options{MaxBody: c.limit})
		s.Echo.POST("/", echoBody)
		var body io.Reader = strings.NewReader(strings.Repeat("x", c.size))
		if !c.stated {
			body = io.MultiReader(body)
		}
		w := call(s, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
}

func TestClientAddr_BelievesTrustedProxiesOnly(t *testing.T) {
	t.Parallel()
	trusted := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, c := range []struct {
		name, peer string
		forwarded  []string
		trusted    []netip.Prefix
		want       string
	}{
		{"no proxy", "203.0.113.7:1000", nil, trusted, "203.0.113.7"},
		{"a stranger's claim", "203.0.113.7:1000", []string{"1.1.1.1"}, trusted, "203.0.113.7"},
		{"nobody is trusted", "10.0.0.1:1000", []string{"1.1.1.1"}, nil, "10.0.0.1"},
		{"one proxy", "10.0.0.1:1000", []string{"198.51.100.9"}, trusted, "198.51.100.9"},
		{"one proxy, a forged hop before", "10.0.0.1:1000", []string{"1.1.1.1, 198.51.100.9"}, trusted, "198.51.100.9"},
		{"two proxies", "10.0.0.1:1000", []string{"198.51.100.9, 10.0.0.2"}, trusted, "198.51.100.9"},
		{"two headers", "10.0.0.1:1000", []string{"1.1.1.1", "198.51.100.9,10.0.0.2"}, trusted, "198.51.100.9"},
		{"a client inside", "10.0.0.1:1000", []string{"10.0.0.3"}, trusted, "10.0.0.3"},
		{"rubbish from a proxy", "10.0.0.1:1000", []string{"not-an-address"}, trusted, "10.0.0.1"},
		{"rubbish before a good hop", "10.0.0.1:1000", []string{"<script>, 198.51.100.9"}, trusted, "198.51.100.9"},
		{"empty header", "10.0.0.1:1000", []string{""}, trusted, "10.0.0.1"},
		{"spaces", "10.0.0.1:1000", []string{"  198.51.100.9 ,  10.0.0.2  "}, trusted, "198.51.100.9"},
		{"IPv6", "[fd00::1]:1000", []string{"2001:db8::5"}, trusted, "2001:db8::5"},
		{"IPv4 in IPv6", "[::ffff:10.0.0.1]:1000", []string{"::ffff:198.51.100.9"}, trusted, "198.51.100.9"},
		{"a zone, which is free text", "10.0.0.1:1000", []string{"fe80::1%\x1b[2J"}, trusted, "fe80::1"},
		{"an IPv4 network in IPv6", "10.0.0.1:1000", []string{"::ffff:10.0.0.2%x"}, trusted, "10.0.0.2"},
		{"a port", "10.0.0.1:1000", []string{"198.51.100.9:443"}, trusted, "10.0.0.1"},
		{"the word unknown", "10.0.0.1:1000", []string{"198.51.100.9, unknown"}, trusted, "10.0.0.1"},
		{"commas alone", "10.0.0.1:1000", []string{",,,,"}, trusted, "10.0.0.1"},
		{"thousands of hops inside", "10.0.0.1:1000", []string{strings.Repeat("10.0.0.2,", 5000) + "10.0.0.2"}, trusted, "10.0.0.2"},
		{"no address at all", "@", []string{"1.1.1.1"}, trusted, "invalid IP"},
	} {
		s, _ := newServer(httpserver.Options{TrustedProxies: c.trusted})
		s.Echo.GET("/", func(e echo.Context) error { return e.String(http.StatusOK, httpserver.ClientAddr(e).String()) })
		r := get(t, "/")
		r.RemoteAddr = c.peer
		r.Header["X-Forwarded-For"] = c.forwarded
		r.Header.Set("X-Real-Ip", "9.9.9.9")
		r.Header.Set("Forwarded", "for=9.9.9.9")
		if got := call(s, r).Body.String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestServer_DrainsAndTellsLongPolls(t *testing.T) {
	t.Parallel()
	s, _ := newServer(httpserver.Options{Addr: "127.0.0.1:0"})
	entered := make(chan struct{})
	s.Echo.GET("/poll", func(c echo.Context) error {
		close(entered)
		<-httpserver.Stopping(c.Request().Context())
		return c.String(http.StatusOK, "drained")
	})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	answer := make(chan string, 1)
	go func() {
		r, _ := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+s.Addr().String()+"/poll", http.NoBody)
		resp, err := (&http.Client{}).Do(r)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		b, _ := io.ReadAll(resp.Body)
		answer <- string(b)
	}()
	<-entered
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("shutdown: %v", err)
	}
	if err := <-served; err != nil {
		t.Errorf("serve: %v", err)
	}
	if got := <-answer; got != "drained" {
		t.Errorf("the request in flight got %q", got)
	}
	if httpserver.Stopping(t.Context()) != nil {
		t.Error("a context of no listener can stop")
	}
}

func TestListen_SaysWhichAddressIsTaken(t *testing.T) {
	t.Parallel()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = ln.Close() }()
	s, _ := newServer(httpserver.Options{Name: "auth", Addr: ln.Addr().String()})
	if err := s.Listen(t.Context()); err == nil || !strings.Contains(err.Error(), "auth") || !strings.Contains(err.Error(), ln.Addr().String()) {
		t.Errorf("got %v", err)
	}
}
