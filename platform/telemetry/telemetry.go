package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/propagation"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// maxScrapes bounds concurrent reads of the metrics: one scraper, its
	// standby and a person.
	maxScrapes = 3
	// scrapeTimeout ends a read that no scraper waits for any more (Prometheus
	// gives up after 10 s by default).
	scrapeTimeout = 10 * time.Second
	// exportTimeout bounds one delivery of spans, so that a dead collector
	// holds neither memory nor shutdown.
	exportTimeout = 5 * time.Second
)

// Options describes a process to those who watch it.
type Options struct {
	ServiceName  string       // "versola-auth", "versola-edge" ...
	Version      string       // of the binary
	OTLPEndpoint string       // http(s) URL of an OTLP/HTTP collector; empty: no traces
	SampleRatio  float64      // share of requests that are traced, 0 to 1
	Log          *slog.Logger // hears of spans that could not be delivered; may be nil
}

// Telemetry holds the providers of one process.
type Telemetry struct {
	registry *prometheus.Registry
	meters   *sdkmetric.MeterProvider
	tracers  trace.TracerProvider
	exported *sdktrace.TracerProvider // nil: traces are off
	inject   propagation.TraceContext
}

// New makes the providers. A collector that does not answer is no error: spans
// are dropped until it does. Errors: an endpoint that is no http(s) URL, a
// ratio outside 0..1.
func New(ctx context.Context, o Options) (*Telemetry, error) {
	if !(o.SampleRatio >= 0 && o.SampleRatio <= 1) { // NaN fails too
		return nil, fmt.Errorf("trace sample ratio %v is not between 0 and 1", o.SampleRatio)
	}
	res := resource.NewSchemaless(attribute.String("service.name", o.ServiceName), attribute.String("service.version", o.Version))
	t := &Telemetry{registry: prometheus.NewRegistry(), tracers: noop.NewTracerProvider()}
	t.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	reader, err := otelprometheus.New(otelprometheus.WithRegisterer(t.registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return nil, fmt.Errorf("make prometheus exporter: %w", err)
	}
	t.meters = sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader), sdkmetric.WithResource(res))
	if o.OTLPEndpoint == "" {
		return t, nil
	}
	if err := t.exportTraces(ctx, o, res); err != nil {
		return nil, err
	}
	return t, nil
}

func (t *Telemetry) exportTraces(ctx context.Context, o Options, res *resource.Resource) error {
	u, err := url.Parse(o.OTLPEndpoint)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("otlp endpoint %q is not an http(s) URL", o.OTLPEndpoint)
	}
	if u.Path == "" || u.Path == "/" {
		u.Path = "/v1/traces" // the collector's standard path
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(u.String()), otlptracehttp.WithTimeout(exportTimeout))
	if err != nil {
		return fmt.Errorf("make otlp exporter: %w", err)
	}
	if o.Log != nil {
		otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
			o.Log.Warn("telemetry was not delivered", "error", err)
		}))
	}
	t.exported = sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithExportTimeout(exportTimeout)),
		sdktrace.WithResource(res),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.SampleRatio))),
	)
	t.tracers = t.exported
	return nil
}

// Meter returns the meter of an instrumented part, such as "versola/edge".
func (t *Telemetry) Meter(name string) metric.Meter { return t.meters.Meter(name) }

// Tracer returns the tracer of an instrumented part; without a collector its
// spans are empty and free.
func (t *Telemetry) Tracer(name string) trace.Tracer { return t.tracers.Tracer(name) }

// Traces tells whether spans are exported.
func (t *Telemetry) Traces() bool { return t.exported != nil }

// Inject writes the traceparent of ctx into the header of an outbound request.
func (t *Telemetry) Inject(ctx context.Context, h http.Header) {
	if t.exported != nil {
		t.inject.Inject(ctx, propagation.HeaderCarrier(h))
	}
}

// Handler answers a scrape with every metric of the process.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		// One broken metric must not hide the others.
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: maxScrapes,
		Timeout:             scrapeTimeout,
		EnableOpenMetrics:   true,
	})
}

// Shutdown delivers what is pending, for as long as ctx allows.
func (t *Telemetry) Shutdown(ctx context.Context) error {
	var errs []error
	if t.exported != nil {
		if err := t.exported.Shutdown(ctx); err != nil {
			errs = append(errs, fmt.Errorf("deliver last traces: %w", err))
		}
	}
	if err := t.meters.Shutdown(ctx); err != nil {
		errs = append(errs, fmt.Errorf("stop metrics: %w", err))
	}
	return errors.Join(errs...)
}
