package telemetry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/trace"

	"versola/platform/httpserver"
	"versola/platform/telemetry"
)

func newTelemetry(t testing.TB, o telemetry.Options) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel
}

func scrape(t *testing.T, tel *telemetry.Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", http.NoBody))
	if w.Code != http.StatusOK {
		t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return w.Body.String()
}

func TestNew_RefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]telemetry.Options{
		"ratio over one":     {SampleRatio: 1.5},
		"negative ratio":     {SampleRatio: -0.1},
		"ratio not a number": {SampleRatio: math.NaN()},
		"no scheme":          {OTLPEndpoint: "collector:4318"},
		"another scheme":     {OTLPEndpoint: "grpc://collector:4317"},
		"no host":            {OTLPEndpoint: "http:///v1/traces"},
	} {
		if _, err := telemetry.New(t.Context(), o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestHandler_ShowsTheProcessAndItsOwnMetricsOnly(t *testing.T) {
	t.Parallel()
	a := newTelemetry(t, telemetry.Options{ServiceName: "versola-test", Version: "v1"})
	b := newTelemetry(t, telemetry.Options{ServiceName: "versola-test"})
	counter, err := a.Meter("versola/test").Int64Counter("logins")
	if err != nil {
		t.Fatal(err)
	}
	counter.Add(t.Context(), 3)
	text := scrape(t, a)
	for _, want := range []string{"go_goroutines", "process_start_time_seconds", "logins_total 3", `service_name="versola-test"`} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(scrape(t, b), "logins") {
		t.Error("one process's metrics show in another's")
	}
}

func TestRequestHistogram_LabelsAreTemplatesAndClasses(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{})
	observe, err := telemetry.RequestHistogram(tel.Meter("versola/http"))
	if err != nil {
		t.Fatal(err)
	}
	for status := range 3 {
		observe(t.Context(), httpserver.Observation{
			Listener: "auth", Route: "/token", Method: "POST", Status: 200 + status, Duration: 3 * time.Millisecond,
		})
	}
	text := scrape(t, tel)
	want := `http_request_duration_seconds_count{listener="auth",method="POST",route="/token",status="2xx"} 3`
	if !strings.Contains(text, want) {
		t.Errorf("no %s in\n%s", want, text)
	}
}

func TestRequestHistogram_AnOpenSetOfLabelsStaysBounded(t *testing.T) {
	t.Parallel()
	tel := newTelemetry(t, telemetry.Options{})
	observe, err := telemetry.RequestHistogram(tel.Meter("versola/http"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3000 {
		observe(t.Context(), httpserver.Observation{Listener: "auth", Route: fmt.Sprintf("/%d", i), Method: "GET", Status: 200})
	}
	text := scrape(t, tel)
	if n := strings.Count(text, "http_request_duration_seconds_count{"); n > 2001 {
		t.Errorf("%d series", n)
	}
	if !strings.Contains(text, `route="(other)"`) {
		t.Error("the rest is not counted")
	}
}

func TestTraces_WithoutACollectorCostNothing(t *testing.T) {
	tel := newTelemetry(t, telemetry.Options{SampleRatio: 1})
	if tel.Traces() {
		t.Fatal("traces are on")
	}
	called := false
	h := tel.TraceRequests("auth", nil)(func(c echo.Context) error {
		called = true
		if trace.SpanContextFromContext(c.Request().Context()).IsValid() {
			t.Error("there is a span")
		}
		return nil
	})
	c := echo.New().NewContext(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody), httptest.NewRecorder())
	if err := h(c); err != nil || !called {
		t.Errorf("called %t, %v", called, err)
	}
	if n := testing.AllocsPerRun(100, func() { _ = h(c) }); n > 0 {
		t.Errorf("%v allocations per request", n)
	}
	header := http.Header{}
	tel.Inject(t.Context(), header)
	if len(header) != 0 {
		t.Errorf("header %v", header)
	}
}

func TestTraces_ReachTheCollectorAtShutdown(t *testing.T) {
	t.Parallel()
	var got atomic.Value
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got.Store(r.URL.Path + " " + string(body))
	}))
	defer collector.Close()
	tel := newTelemetry(t, telemetry.Options{ServiceName: "versola-test", OTLPEndpoint: collector.URL, SampleRatio: 1})
	e := echo.New()
	e.GET("/t/:tenant/token", func(c echo.Context) error { return c.NoContent(http.StatusTeapot) }, tel.TraceRequests("auth", nil))
	e.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/t/secret-name/token?code=topsecret", http.NoBody))
	if err := tel.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	text, _ := got.Load().(string)
	if !strings.HasPrefix(text, "/v1/traces ") || !strings.Contains(text, "/t/:tenant/token") {
		t.Errorf("the collector got %q", text)
	}
	if strings.Contains(text, "topsecret") || strings.Contains(text, "secret-name") {
		t.Error("the span holds the request's own text")
	}
}

func TestTraces_ACallersTraceIsFollowedFromTrustedNetworksOnly(t *testing.T) {
	t.Parallel()
	collector := httptest.NewServer(http.NotFoundHandler())
	defer collector.Close()
	tel := newTelemetry(t, telemetry.Options{OTLPEndpoint: collector.URL, SampleRatio: 0, Log: slog.New(slog.DiscardHandler)})
	const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
	for peer, followed := range map[string]bool{"10.0.0.7:5555": true, "203.0.113.9:5555": false} {
		h := tel.TraceRequests("edge", []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})(func(c echo.Context) error {
			span := trace.SpanContextFromContext(c.Request().Context())
			if got := span.TraceID().String() == theirs && span.IsSampled(); got != followed {
				t.Errorf("%s: followed = %t", peer, got)
			}
			return nil
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody)
		r.RemoteAddr = peer
		r.Header.Set("Traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
		if err := h(echo.New().NewContext(r, httptest.NewRecorder())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestNewLogger_WritesUTCAndSeconds(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	log, err := telemetry.NewLogger(&b, "info", telemetry.FormatJSON)
	if err != nil {
		t.Fatal(err)
	}
	log.Debug("unseen")
	log.Info("seen", "duration", 1500*time.Millisecond)
	var line struct {
		Time     string
		Msg      string
		Duration float64
	}
	if err := json.Unmarshal([]byte(b.String()), &line); err != nil {
		t.Fatalf("%v in %q", err, b.String())
	}
	if line.Msg != "seen" || line.Duration != 1.5 || !strings.HasSuffix(line.Time, "Z") {
		t.Errorf("got %+v", line)
	}
}

func TestNewLogger_RefusesUnknownNames(t *testing.T) {
	t.Parallel()
	if _, err := telemetry.NewLogger(io.Discard, "loud", ""); err == nil {
		t.Error("unknown level: no error")
	}
	if _, err := telemetry.NewLogger(io.Discard, "", "xml"); err == nil {
		t.Error("unknown format: no error")
	}
	for _, level := range []string{"", "debug", "info", "warn", "error"} {
		if _, err := telemetry.NewLogger(io.Discard, level, telemetry.FormatText); err != nil {
			t.Errorf("%q: %v", level, err)
		}
	}
}

func BenchmarkRequestHistogram(b *testing.B) {
	tel := newTelemetry(b, telemetry.Options{})
	observe, err := telemetry.RequestHistogram(tel.Meter("versola/http"))
	if err != nil {
		b.Fatal(err)
	}
	o := httpserver.Observation{Listener: "edge", Route: "/resources/:resource/*", Method: "GET", Status: 200, Duration: time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		observe(b.Context(), o)
	}
}
