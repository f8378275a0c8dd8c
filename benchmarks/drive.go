package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"versola/platform/clock"
)

// maxLag is how far the driver may fall behind its own schedule before a run
// says nothing about the server: a tenth of the smallest latency limit.
const maxLag = 25 * time.Millisecond

type driveOptions struct {
	Auth, Edge       string
	Rate             float64
	RefreshShare     float64
	Sessions         int
	Warmup, Duration time.Duration
	JSON             string
	PIDs             []int
}

func (o driveOptions) check() error {
	switch {
	case o.Rate <= 0 || o.Rate > 100_000:
		return errors.New("--rate must be over 0 and at most 100000 steps per second")
	case o.RefreshShare < 0 || o.RefreshShare > 1:
		return errors.New("--refresh-share must be from 0 to 1")
	case o.Sessions < 1 || o.Sessions > 10_000:
		return errors.New("--sessions must be from 1 to 10000")
	case o.Duration < time.Second:
		return errors.New("--duration must be at least 1s")
	case o.Warmup < 0:
		return errors.New("--warmup must not be negative")
	}
	return nil
}

// Kinds of step.
const (
	stepCall    = "call through the edge"
	stepRefresh = "token refresh"
)

// recorder collects outcomes of the plateau.
type recorder struct {
	mu       sync.Mutex
	from     time.Time // of the plateau; earlier steps do not count
	latency  map[string]*hdrhistogram.Histogram
	failures map[string]int // by kind and cause
	failed   int
	lag      time.Duration // the driver's own worst
	skipped  int           // due while every session was busy
}

func newRecorder(from time.Time) *recorder {
	r := &recorder{from: from, latency: map[string]*hdrhistogram.Histogram{}, failures: map[string]int{}}
	for _, k := range []string{stepCall, stepRefresh} {
		// 1 microsecond to 60 seconds, three digits.
		r.latency[k] = hdrhistogram.New(1, int64(time.Minute/time.Microsecond), 3)
	}
	return r
}

// done notes a step that was due at scheduled and has just ended.
func (r *recorder) done(kind string, scheduled time.Time, err error) {
	took := clock.Since(scheduled)
	if scheduled.Before(r.from) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_ = r.latency[kind].RecordValue(min(took, time.Minute).Microseconds())
	if err != nil {
		r.failed++
		r.failures[kind+": "+err.Error()]++
	}
}

func (r *recorder) lagged(scheduled time.Time) {
	if late := clock.Since(scheduled); !scheduled.Before(r.from) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.lag = max(r.lag, late)
	}
}

func (r *recorder) skip(scheduled time.Time) {
	if !scheduled.Before(r.from) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.skipped++
	}
}

func drive(ctx context.Context, o driveOptions, out io.Writer) error {
	if err := o.check(); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(out, "signing %d sessions in ...\n", o.Sessions)
	sessions, err := signIn(ctx, o)
	if err != nil {
		return err
	}
	watch, err := watchProcesses(o.PIDs)
	if err != nil {
		return err
	}
	start := clock.Monotonic()
	rec := newRecorder(start.Add(o.Warmup))
	_, _ = fmt.Fprintf(out, "warming up for %v, then measuring for %v at %.0f steps/s ...\n", o.Warmup, o.Duration, o.Rate)
	measuring := time.AfterFunc(o.Warmup, watch.begin)
	defer measuring.Stop()
	run(ctx, o, sessions, rec, start)
	watch.end()
	if ctx.Err() != nil && clock.Since(rec.from) < time.Second {
		return errors.New("stopped before anything was measured")
	}
	report := summarise(o, rec, watch)
	report.print(out)
	if o.JSON == "" {
		return nil
	}
	raw, err := json.MarshalIndent(report, "", "  ")
	if err != nil {
		return fmt.Errorf("encode report: %w", err)
	}
	if err := os.WriteFile(o.JSON, append(raw, '\n'), 0o600); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

// run schedules steps until the plateau's end. Idle sessions wait in a channel;
// a step that finds none idle is not sent late but counted as skipped, since a
// person has one operation in flight.
func run(ctx context.Context, o driveOptions, sessions []*session, rec *recorder, start time.Time) {
	idle := make(chan *session, len(sessions))
	for _, s := range sessions {
		idle <- s
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a load's schedule, the same in every run
	end := start.Add(o.Warmup + o.Duration)
	var flying sync.WaitGroup
	defer flying.Wait()
	for due := start; due.Before(end); due = due.Add(time.Duration(random.ExpFloat64() / o.Rate * float64(time.Second))) {
		if wait := -clock.Since(due); wait > 0 {
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
		}
		kind := stepCall
		if random.Float64() < o.RefreshShare {
			kind = stepRefresh
		}
		rec.lagged(due)
		select {
		case s := <-idle:
			flying.Go(func() {
				rec.done(kind, due, s.do(context.WithoutCancel(ctx), kind))
				idle <- s
			})
		default:
			rec.skip(due)
		}
	}
}
