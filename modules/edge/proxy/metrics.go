package proxy

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"versola/modules/edge/policy"
)

// metrics are handles and attribute sets made once: recording allocates
// nothing.
type metrics struct {
	overhead  metric.Float64Histogram
	decisions metric.Int64Counter
	reasons   map[policy.Reason][]metric.AddOption
}

// overheadBounds in seconds: the budget is 0.3 ms at the median and 3 ms at the
// 99th percentile, so the buckets are narrow around both.
var overheadBounds = []float64{
	50e-6, 75e-6, 100e-6, 150e-6, 200e-6, 300e-6, 400e-6, 500e-6, 750e-6,
	1e-3, 1.5e-3, 2e-3, 3e-3, 4e-3, 5e-3, 10e-3, 20e-3, 50e-3, 100e-3, 250e-3, 1,
}

func newMetrics(m metric.Meter) (*metrics, error) {
	overhead, err := m.Float64Histogram("versola_edge_overhead_seconds",
		metric.WithDescription("Time the edge adds to a proxied call, without the wait for the upstream."),
		metric.WithExplicitBucketBoundaries(overheadBounds...))
	if err != nil {
		return nil, fmt.Errorf("make overhead histogram: %w", err)
	}
	decisions, err := m.Int64Counter("versola_edge_decisions_total", metric.WithDescription("Calls to resources, by what became of them."))
	if err != nil {
		return nil, fmt.Errorf("make decision counter: %w", err)
	}
	out := &metrics{overhead: overhead, decisions: decisions, reasons: map[policy.Reason][]metric.AddOption{}}
	for _, r := range policy.Reasons() {
		out.reasons[r] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("reason", string(r))))}
	}
	return out, nil
}

func (m *metrics) decided(r policy.Reason) {
	m.decisions.Add(context.Background(), 1, m.reasons[r]...)
}

func (m *metrics) took(d time.Duration) { m.overhead.Record(context.Background(), d.Seconds()) }
