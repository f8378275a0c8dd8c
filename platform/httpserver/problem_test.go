package httpserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/labstack/echo/v4"

	"versola/platform/httpserver"
)

func TestProblem_TellsTheCallerWhatIsMeantForThem(t *testing.T) {
	t.Parallel()
	private := errors.New("dial tcp 10.1.2.3:5432: connection refused")
	for _, c := range []struct {
		name string
		err  error
		want httpserver.Problem
	}{
		{"an unknown error", private, httpserver.Problem{Title: "Internal Server Error", Status: 500}},
		{"a problem", fmt.Errorf("call: %w", &httpserver.Problem{
			Title: "Forbidden", Status: 403, Reason: "role", Detail: "no role reaches it", Cause: private,
		}), httpserver.Problem{Title: "Forbidden", Status: 403, Reason: "role", Detail: "no role reaches it"}},
		{
			"echo's own error", echo.NewHTTPError(http.StatusBadRequest, "the body is no JSON").SetInternal(private),
			httpserver.Problem{Title: "Bad Request", Status: 400, Detail: "the body is no JSON"},
		},
		{"echo's own error without text", echo.ErrNotFound, httpserver.Problem{Title: "Not Found", Status: 404}},
		{
			"a message that is no text", echo.NewHTTPError(http.StatusBadRequest, map[string]string{"a": "b"}),
			httpserver.Problem{Title: "Bad Request", Status: 400},
		},
		{
			"a body over the limit", fmt.Errorf("read: %w", &http.MaxBytesError{Limit: 1}),
			httpserver.Problem{Title: "Request Entity Too Large", Status: 413},
		},
		{
			"a database that starts", fmt.Errorf("read session: %w", &pgconn.PgError{Code: "57P03", Message: "the database system is starting up"}),
			httpserver.Problem{Title: "Service Unavailable", Status: 503, Detail: "a part of the service is unavailable, try again shortly"},
		},
		{
			"a network fault", fmt.Errorf("read session: %w", &net.OpError{Op: "dial", Err: errors.New("refused")}),
			httpserver.Problem{Title: "Service Unavailable", Status: 503, Detail: "a part of the service is unavailable, try again shortly"},
		},
		{
			"a deadline", fmt.Errorf("read: %w", os.ErrDeadlineExceeded),
			httpserver.Problem{Title: "Service Unavailable", Status: 503, Detail: "a part of the service is unavailable, try again shortly"},
		},
		{"a fault of a statement", &pgconn.PgError{Code: "42P01", Message: `relation "users" does not exist`}, httpserver.Problem{Title: "Internal Server Error", Status: 500}},
	} {
		s, _ := newServer(httpserver.Options{})
		s.Echo.GET("/", func(echo.Context) error { return c.err })
		w := call(s, get(t, "/"))
		var got httpserver.Problem
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Fatalf("%s: %v in %q", c.name, err, w.Body)
		}
		c.want.RequestID = w.Header().Get("X-Request-Id")
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
		if w.Code != c.want.Status || w.Header().Get("Content-Type") != "application/problem+json" || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", c.name, w.Code, w.Header())
		}
		if retry := w.Header().Get("Retry-After") != ""; retry != (w.Code == http.StatusServiceUnavailable) {
			t.Errorf("%s: Retry-After is %q", c.name, w.Header().Get("Retry-After"))
		}
	}
}

func TestProblem_HasNoBodyForHEAD(t *testing.T) {
	t.Parallel()
	s, _ := newServer(httpserver.Options{})
	s.Echo.HEAD("/", func(echo.Context) error { return echo.ErrForbidden })
	w := call(s, httptest.NewRequestWithContext(t.Context(), http.MethodHead, "/", http.NoBody))
	if w.Code != http.StatusForbidden || w.Body.Len() != 0 {
		t.Errorf("got %d %q", w.Code, w.Body)
	}
}

func TestProblem_ErrorNamesTheCause(t *testing.T) {
	t.Parallel()
	p := &httpserver.Problem{Title: "Bad Gateway", Reason: "upstream", Detail: "no answer", Cause: context.DeadlineExceeded}
	if got, want := p.Error(), "Bad Gateway (upstream): no answer: context deadline exceeded"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !errors.Is(p, context.DeadlineExceeded) {
		t.Error("the cause is not unwrapped")
	}
}

func TestCookies_OfHTTPSAreTiedToTheHost(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"https://id.example": "__Host-sid=v; Path=/; Max-Age=60; HttpOnly; Secure; SameSite=Lax",
		"http://localhost":   "sid=v; Path=/; Max-Age=60; HttpOnly; SameSite=Lax",
	} {
		k := httpserver.NewCookies(url)
		w := httptest.NewRecorder()
		k.Set(w, "sid", "v", time.Minute)
		if got := w.Header().Get("Set-Cookie"); got != want {
			t.Errorf("%s: %s, want %s", url, got, want)
		}
		w = httptest.NewRecorder()
		k.Clear(w, "sid")
		r := get(t, "/")
		r.Header.Set("Cookie", k.Name("sid")+"=v")
		if c := w.Result().Cookies(); len(c) != 1 || c[0].MaxAge >= 0 || c[0].Name != k.Name("sid") {
			t.Errorf("%s: cleared with %v", url, w.Header())
		}
		if got := k.Get(r, "sid"); got != "v" {
			t.Errorf("%s: read %q", url, got)
		}
	}
}

func TestCookies_OneSentTwiceWithTwoValuesCountsAsNone(t *testing.T) {
	t.Parallel()
	k := httpserver.NewCookies("https://id.example")
	for header, want := range map[string]string{
		"__Host-sid=a":                        "a",
		"__Host-sid=a; __Host-sid=a":          "a",
		"__Host-sid=a; __Host-sid=b":          "",
		"__Host-sid=a; x=1; __Host-sid=b":     "",
		"sid=a":                               "",
		"__host-sid=a":                        "",
		"":                                    "",
		"__Host-sid=; __Host-sid=b":           "",
		"__Host-sid=a; __Host-sid=":           "",
		"__Host-sid=a; __Host-sid=b; other=c": "",
	} {
		r := get(t, "/")
		r.Header.Set("Cookie", header)
		if got := k.Get(r, "sid"); got != want {
			t.Errorf("%q: read %q, want %q", header, got, want)
		}
	}
}
