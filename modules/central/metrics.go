package central

import (
	"context"
	"fmt"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"versola/modules/central/catalog"
	"versola/platform/clock"
)

// Results of a reload.
const (
	resultOK          = "ok"
	resultUnavailable = "unavailable" // the database is away
	resultInvalid     = "invalid"     // what it holds is not usable
)

type metrics struct {
	reloads metric.Int64Counter
	results map[string]metric.AddOption
}

func newMetrics(meter metric.Meter, holder *catalog.Holder, c clock.Clock) (metrics, error) {
	m := metrics{results: map[string]metric.AddOption{}}
	for _, r := range []string{resultOK, resultUnavailable, resultInvalid} {
		m.results[r] = metric.WithAttributeSet(attribute.NewSet(attribute.String("result", r)))
	}
	var err error
	m.reloads, err = meter.Int64Counter("versola.catalog.reloads", metric.WithDescription("Reloads of the catalog from the database, by result."))
	if err != nil {
		return m, fmt.Errorf("make metric: %w", err)
	}
	_, err = meter.Int64ObservableGauge("versola.catalog.revision",
		metric.WithDescription("Revision of the catalog that is served."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			if current := holder.Current(); current != nil {
				o.Observe(current.Revision)
			}
			return nil
		}))
	if err != nil {
		return m, fmt.Errorf("make metric: %w", err)
	}
	_, err = meter.Float64ObservableGauge("versola.catalog.age", metric.WithUnit("s"),
		metric.WithDescription("Time since the source of the catalog was last heard."),
		metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
			if age := holder.Age(c); age >= 0 {
				o.Observe(age.Seconds())
			}
			return nil
		}))
	if err != nil {
		return m, fmt.Errorf("make metric: %w", err)
	}
	return m, nil
}

func (m metrics) reloaded(ctx context.Context, result string) {
	m.reloads.Add(ctx, 1, m.results[result])
}
