package audit

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"versola/platform/postgres"
)

const (
	// sinkBuffer bounds the events that wait, at about 1 KiB each: several
	// seconds of a busy node's sign-ins while the database is away.
	sinkBuffer = 8192
	// sinkBatch bounds one write, so that the lock on the head is short.
	sinkBatch = 500
	// flushEvery is how long an event waits for others to be written with.
	flushEvery = 100 * time.Millisecond
	// sinkRetry is the pause after a write that did not reach the database.
	sinkRetry = 500 * time.Millisecond
	// flushTimeout bounds the last write of a process that stops.
	flushTimeout = 3 * time.Second
)

// Sink takes events from paths that must not wait, and writes them in the
// background.
type Sink struct {
	log     *Log
	logger  *slog.Logger
	events  chan Entry
	dropped atomic.Int64 // not yet in the log
	metrics struct{ written, dropped metric.Int64Counter }
}

// NewSink makes a sink; [Sink.Run] writes what it takes.
func NewSink(l *Log, logger *slog.Logger, meter metric.Meter) (*Sink, error) {
	s := &Sink{log: l, logger: logger, events: make(chan Entry, sinkBuffer)}
	var err error
	if s.metrics.written, err = meter.Int64Counter("versola.audit.events", metric.WithDescription("Events written to the audit log.")); err == nil {
		s.metrics.dropped, err = meter.Int64Counter("versola.audit.dropped", metric.WithDescription("Events that were lost because the buffer was full."))
	}
	if err == nil {
		_, err = meter.Int64ObservableGauge("versola.audit.waiting", metric.WithDescription("Events that wait to be written to the audit log."),
			metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
				o.Observe(int64(len(s.events)))
				return nil
			}))
	}
	if err != nil {
		return nil, fmt.Errorf("make audit metrics: %w", err)
	}
	return s, nil
}

// Take takes an event without ever waiting. One without a time happened now.
func (s *Sink) Take(e Entry) {
	if e.At.IsZero() {
		e.At = s.log.clock.Now()
	}
	select {
	case s.events <- e:
	default:
		s.dropped.Add(1)
		s.metrics.dropped.Add(context.Background(), 1)
	}
}

// Run writes until ctx ends, and then what is left.
func (s *Sink) Run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return s.last(ctx)
		case e := <-s.events:
			batch := s.collect(ctx, e)
			if !s.write(ctx, batch) {
				return s.last(ctx, batch...)
			}
		}
	}
}

// collect waits a little for more events.
func (s *Sink) collect(ctx context.Context, first Entry) []Entry {
	batch := []Entry{first}
	timer := time.NewTimer(flushEvery)
	defer timer.Stop()
	for len(batch) < sinkBatch {
		select {
		case e := <-s.events:
			batch = append(batch, e)
		case <-timer.C:
			return batch
		case <-ctx.Done():
			return batch
		}
	}
	return batch
}

// write writes a batch, again and again while the database is away. It tells
// whether the batch is done with.
func (s *Sink) write(ctx context.Context, batch []Entry) bool {
	away := false
	for {
		err := s.try(ctx, batch)
		switch {
		case err == nil:
			if away {
				s.logger.InfoContext(ctx, "the audit log is written again")
			}
			return true
		case ctx.Err() != nil:
			return false
		case !postgres.Unavailable(err):
			// Nothing of an event makes the database refuse it; waiting for
			// a schema to be mended would lose the others.
			s.logger.ErrorContext(ctx, "audit events not written", "error", err, "events", len(batch))
			s.dropped.Add(int64(len(batch)))
			s.metrics.dropped.Add(ctx, int64(len(batch)))
			return true
		case !away:
			s.logger.WarnContext(ctx, "audit events wait for the database", "error", err)
		}
		away = true
		select {
		case <-ctx.Done():
			return false
		case <-time.After(sinkRetry):
		}
	}
}

// try writes a batch and, with it, how many events are missing.
func (s *Sink) try(ctx context.Context, batch []Entry) error {
	lost := s.dropped.Load()
	if lost > 0 {
		batch = append(batch[:len(batch):len(batch)], Entry{At: s.log.clock.Now(), Action: "audit.dropped", Actor: Actor{Kind: ActorSystem},
			Detail: map[string]string{"events": strconv.FormatInt(lost, 10)}})
	}
	if err := s.log.Write(ctx, batch...); err != nil {
		return err
	}
	s.dropped.Add(-lost)
	s.metrics.written.Add(ctx, int64(len(batch)))
	return nil
}

// last writes what is left when the process stops.
func (s *Sink) last(ctx context.Context, batch ...Entry) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
	defer cancel()
	for {
		select {
		case e := <-s.events:
			batch = append(batch, e)
			continue
		default:
		}
		break
	}
	for len(batch) > 0 {
		n := min(len(batch), sinkBatch)
		if err := s.try(ctx, batch[:n]); err != nil {
			s.logger.ErrorContext(ctx, "audit events not written at shutdown", "error", err, "events", len(batch))
			return nil
		}
		batch = batch[n:]
	}
	return nil
}
