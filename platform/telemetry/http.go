package telemetry

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"versola/platform/httpserver"
)

// maxSeries bounds the label sets of the request histogram: routes times
// methods times status classes of every listener is some hundreds; more means
// that a label is not from a closed set, and the rest is counted as one. It is
// under the library's own limit of 2000, which would drop every label at once.
const maxSeries = 1800

// durationBounds are the histogram's buckets in seconds: fine around a proxied
// call and a token answer (under 10 ms), then up to a password hash behind a
// queue.
var durationBounds = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}

type seriesKey struct{ listener, route, method, class string }

// requests records request durations. Label sets are built once per
// combination: the map is copied to add one, so that a request only reads.
type requests struct {
	histogram metric.Float64Histogram
	add       sync.Mutex
	series    atomic.Pointer[map[seriesKey][]metric.RecordOption]
}

// RequestHistogram makes http_request_duration_seconds{listener, route, method,
// status} and returns what [httpserver.Options.Observe] takes. route is the
// route's template, status the class ("2xx").
func RequestHistogram(meter metric.Meter) (func(ctx context.Context, o httpserver.Observation), error) {
	h, err := meter.Float64Histogram("http.request.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the request's header to the end of the answer."),
		metric.WithExplicitBucketBoundaries(durationBounds...))
	if err != nil {
		return nil, fmt.Errorf("make request histogram: %w", err)
	}
	r := &requests{histogram: h}
	r.series.Store(&map[seriesKey][]metric.RecordOption{})
	return r.observe, nil
}

func (r *requests) observe(ctx context.Context, o httpserver.Observation) {
	r.histogram.Record(ctx, o.Duration.Seconds(), r.labels(seriesKey{o.Listener, o.Route, o.Method, class(o.Status)})...)
}

func (r *requests) labels(key seriesKey) []metric.RecordOption {
	if known, ok := (*r.series.Load())[key]; ok {
		return known
	}
	r.add.Lock()
	defer r.add.Unlock()
	current := *r.series.Load()
	if len(current) >= maxSeries {
		key = seriesKey{key.listener, "(other)", "OTHER", key.class}
	}
	if known, ok := current[key]; ok {
		return known
	}
	set := attribute.NewSet(attribute.String("listener", key.listener), attribute.String("route", key.route),
		attribute.String("method", key.method), attribute.String("status", key.class))
	options := []metric.RecordOption{metric.WithAttributeSet(set)}
	next := maps.Clone(current)
	next[key] = options
	r.series.Store(&next)
	return options
}

func class(status int) string {
	switch status / 100 {
	case 1:
		return "1xx"
	case 2:
		return "2xx"
	case 3:
		return "3xx"
	case 4:
		return "4xx"
	case 5:
		return "5xx"
	}
	return "other"
}

// TraceRequests returns the middleware that wraps every request of a listener
// in a span named by its route; without a collector it is not there at all. A
// traceparent header is followed only when the connection comes from one of
// the trusted networks.
func (t *Telemetry) TraceRequests(listener string, trusted []netip.Prefix) echo.MiddlewareFunc {
	if t.exported == nil {
		return func(next echo.HandlerFunc) echo.HandlerFunc { return next }
	}
	tracer := t.Tracer("versola/" + listener)
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			r := c.Request()
			ctx := r.Context()
			if peer, err := netip.ParseAddrPort(r.RemoteAddr); err == nil && httpserver.Trusted(trusted, peer.Addr().Unmap()) {
				ctx = t.inject.Extract(ctx, propagation.HeaderCarrier(r.Header))
			}
			route := c.Path()
			if route == "" {
				route = "(none)"
			}
			ctx, span := tracer.Start(ctx, route, trace.WithSpanKind(trace.SpanKindServer), trace.WithAttributes(
				attribute.String("http.route", route), attribute.String("http.request.method", r.Method),
				attribute.String("versola.request_id", httpserver.RequestID(c))))
			defer span.End()
			c.SetRequest(r.WithContext(ctx))
			err := next(c)
			status := c.Response().Status
			if err != nil && !c.Response().Committed {
				status = httpserver.AsProblem(err).Status
			}
			span.SetAttributes(attribute.Int("http.response.status_code", status))
			if status >= http.StatusInternalServerError {
				span.SetStatus(codes.Error, http.StatusText(status))
			}
			return err
		}
	}
}
