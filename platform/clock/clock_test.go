package clock_test

import (
	"testing"
	"time"

	"versola/platform/clock"
)

func TestSystem_IsUTCInMicroseconds(t *testing.T) {
	t.Parallel()
	now := clock.System{}.Now()
	if now.Location() != time.UTC || now.Nanosecond()%1000 != 0 {
		t.Errorf("got %v", now)
	}
}

func TestFake_MovesOnlyByHand(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 1, 2, 3, 4, 5, 6789, time.FixedZone("x", 3600))
	f := clock.NewFake(start)
	want := time.Date(2026, 1, 2, 2, 4, 5, 6000, time.UTC)
	if got := f.Now(); !got.Equal(want) || got.Location() != time.UTC {
		t.Errorf("got %v, want %v", got, want)
	}
	f.Advance(time.Hour)
	if got := f.Now(); !got.Equal(want.Add(time.Hour)) {
		t.Errorf("an hour on: %v", got)
	}
}

func TestOffset_GoesOnFromTheSystemsTime(t *testing.T) {
	t.Parallel()
	var o clock.Offset
	o.Advance(24 * time.Hour)
	if ahead := o.Now().Sub(clock.System{}.Now()); ahead < 23*time.Hour || ahead > 25*time.Hour {
		t.Errorf("ahead by %v", ahead)
	}
}

func TestMonotonic_MeasuresDurations(t *testing.T) {
	t.Parallel()
	if d := clock.Since(clock.Monotonic()); d < 0 || d > time.Minute {
		t.Errorf("got %v", d)
	}
}
