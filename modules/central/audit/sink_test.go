package audit_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"versola/modules/central/audit"
	"versola/platform/pgtest"
)

func sink(t *testing.T, l *audit.Log) *audit.Sink {
	t.Helper()
	s, err := audit.NewSink(l, slog.New(slog.DiscardHandler), noop.Meter{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a sink; the returned stop waits until everything is written.
func run(t *testing.T, s *audit.Sink) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Run(ctx) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func TestSink_WritesEverythingThatItTookAlsoAtShutdown(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	s := sink(t, l)
	stop := run(t, s)
	for range 1200 {
		s.Take(event("sign_in.succeeded"))
	}
	stop()
	if r := verify(t, l); r.Broken != nil || r.Entries != 1200 {
		t.Errorf("%+v", r)
	}
}

func TestSink_FullBufferDropsAndTheLogSaysHowMany(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	s := sink(t, l)
	for range 8192 + 5 { // nobody writes yet, and nothing waits
		s.Take(event("sign_in.failed"))
	}
	run(t, s)()
	page, err := l.Page(t.Context(), audit.Filter{Action: "audit.dropped"}, 0, 5)
	if err != nil || len(page) != 1 || !strings.Contains(string(page[0].Body), `"events":"5"`) {
		t.Errorf("%d entries, %v", len(page), err)
	}
	if r := verify(t, l); r.Broken != nil || r.Entries != 8192+1 {
		t.Errorf("%+v", r)
	}
}

func TestSink_WaitsForADatabaseThatIsAway(t *testing.T) { // not parallel: stops the cluster
	l, _, _ := open(t)
	s := sink(t, l)
	stop := run(t, s)
	pgtest.Stop(t)
	for range 10 {
		s.Take(event("sign_in.succeeded"))
	}
	time.Sleep(300 * time.Millisecond) //nolint:forbidigo // the write has to meet the outage
	pgtest.Start(t)
	deadline := time.Now().Add(20 * time.Second) //nolint:forbidigo // a bound, not a measure
	for {
		if r, err := l.Verify(t.Context()); err == nil && r.Broken == nil && r.Entries == 10 {
			break
		}
		if time.Now().After(deadline) { //nolint:forbidigo // as above
			t.Fatal("the events were not written")
		}
		time.Sleep(50 * time.Millisecond) //nolint:forbidigo // polls
	}
	stop()
}

func BenchmarkAppend_EventsInBatches(b *testing.B) {
	l, _, _ := open(b)
	batch := make([]audit.Entry, 500)
	for i := range batch {
		batch[i] = event("sign_in.succeeded")
		batch[i].User, batch[i].Tenant, batch[i].Address = "u1", "demo", "192.0.2.1"
		batch[i].Detail = map[string]string{"client": "web", "factor": "otp"}
	}
	for b.Loop() {
		if err := l.Write(b.Context(), batch...); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(batch))/b.Elapsed().Seconds(), "events/s")
}
