package clock

import (
	"sync"
	"time"
)

// Clock tells the current time.
type Clock interface {
	// Now returns the current instant, in UTC and with microseconds, the
	// precision that PostgreSQL keeps.
	Now() time.Time
}

// System is the machine's clock.
type System struct{}

// Now implements [Clock].
func (System) Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// Monotonic returns a reading for measuring durations; it is not truncated and
// keeps Go's monotonic part.
func Monotonic() time.Time { return time.Now() }

// Since returns the time passed since a [Monotonic] reading.
func Since(start time.Time) time.Duration { return time.Since(start) }

// Fake is a clock that a test moves by hand. The zero value is not usable;
// call [NewFake].
type Fake struct {
	mu  sync.Mutex
	now time.Time
}

// NewFake returns a clock that stands still at now.
func NewFake(now time.Time) *Fake { return &Fake{now: now.UTC().Truncate(time.Microsecond)} }

// Now implements [Clock].
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance moves the clock forward by d.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
}

// Offset is the system's clock shifted by a settable amount: what a test uses
// when real time has to go on passing but an expiry should be jumped over.
type Offset struct {
	mu sync.Mutex
	by time.Duration
}

// Now implements [Clock].
func (o *Offset) Now() time.Time {
	o.mu.Lock()
	defer o.mu.Unlock()
	return System{}.Now().Add(o.by)
}

// Advance shifts the clock by a further d.
func (o *Offset) Advance(d time.Duration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.by += d
}
