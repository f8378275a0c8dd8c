package main

import (
	"errors"
	"os"
	"testing"
	"time"

	"versola/platform/clock"
)

func TestRecorder_LatencyCountsFromTheSchedule(t *testing.T) {
	t.Parallel()
	r := newRecorder(clock.Monotonic().Add(-time.Hour))
	// A step that was due 300 ms ago and has just ended took 300 ms, however
	// short the request itself was.
	r.done(stepCall, clock.Monotonic().Add(-300*time.Millisecond), nil)
	if got := r.latency[stepCall].Max(); got < 299_000 || got > 400_000 {
		t.Errorf("recorded %d microseconds", got)
	}
}

func TestRecorder_FailureCountsOnceAndTheWarmUpNever(t *testing.T) {
	t.Parallel()
	now := clock.Monotonic()
	r := newRecorder(now)
	r.done(stepRefresh, now.Add(-time.Second), errors.New("status 500"))
	r.done(stepRefresh, now, errors.New("status 500"))
	if r.failed != 1 || r.failures["token refresh: status 500"] != 1 || r.latency[stepRefresh].TotalCount() != 1 {
		t.Errorf("failed %d, %v, count %d", r.failed, r.failures, r.latency[stepRefresh].TotalCount())
	}
}

func TestProcesses_SeeTheDriverItself(t *testing.T) {
	t.Parallel()
	all, err := readProcesses()
	if err != nil {
		t.Skip(err)
	}
	if q, ok := all[os.Getpid()]; !ok || q.parent != os.Getppid() || q.name == "" {
		t.Errorf("this process reads as %+v", q)
	}
}
