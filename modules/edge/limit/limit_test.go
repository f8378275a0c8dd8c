package limit

import (
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func TestTake_BucketEmptiesAndFillsSteadily(t *testing.T) {
	t.Parallel()
	l, k, r := New(start), Key{What: "a"}, Rate{Every: time.Second, Burst: 3}
	now := start
	take := func(want bool, wait time.Duration) {
		t.Helper()
		if got, ok := l.Take(k, r, now); ok != want || got != wait {
			t.Errorf("at %s: %v, %s; want %v, %s", now.Sub(start), ok, got, want, wait)
		}
	}
	take(true, 0)
	take(true, 0)
	take(true, 0)
	take(false, time.Second)
	take(false, time.Second) // asking costs nothing
	now = now.Add(500 * time.Millisecond)
	take(false, 500*time.Millisecond)
	now = now.Add(500 * time.Millisecond)
	take(true, 0)
	take(false, time.Second)
	now = now.Add(time.Hour) // it does not overflow
	for range 3 {
		take(true, 0)
	}
	take(false, time.Second)
}

func TestTake_CallersAndThingsHaveBucketsOfTheirOwn(t *testing.T) {
	t.Parallel()
	l, r := New(start), Rate{Every: time.Minute, Burst: 1}
	for _, k := range []Key{{"a", "b", "c"}, {"a", "b", "d"}, {"a", "c", "c"}, {"b", "b", "c"}, {"ab", "", "c"}} {
		if _, ok := l.Take(k, r, start); !ok {
			t.Errorf("%v: refused", k)
		}
		if _, ok := l.Take(k, r, start); ok {
			t.Errorf("%v: passed twice", k)
		}
	}
}

func TestTake_ClockThatGoesBackDoesNotLockOut(t *testing.T) {
	t.Parallel()
	l, k, r := New(start), Key{What: "a"}, Rate{Every: time.Second, Burst: 5}
	l.Take(k, r, start.Add(2*time.Second))
	if _, ok := l.Take(k, r, start); !ok {
		t.Error("refused after the clock went back by less than the burst")
	}
	if _, ok := l.Take(k, r, start.Add(-time.Hour)); ok {
		t.Error("an hour back the bucket cannot be told from an empty one")
	}
}

func TestTake_MemoryIsBounded(t *testing.T) {
	t.Parallel()
	l, r := New(start), Rate{Every: time.Hour, Burst: 1}
	for i := range 2 * shards * perShard {
		l.Take(Key{Who: strconv.Itoa(i)}, r, start)
	}
	if n := l.Len(); n > shards*perShard {
		t.Errorf("%d buckets", n)
	}
}

func TestEnter_AtMostSoManyAtOnce(t *testing.T) {
	t.Parallel()
	l, k := New(start), Key{What: "a"}
	var now, most atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 200 {
				if !l.Enter(k, 5) {
					continue
				}
				if n := now.Add(1); n > most.Load() {
					most.Store(n)
				}
				now.Add(-1)
				l.Leave(k)
			}
		})
	}
	wg.Wait()
	if most.Load() > 5 {
		t.Errorf("%d at once", most.Load())
	}
	for i := range l.shards {
		if n := len(l.shards[i].busy); n != 0 {
			t.Errorf("%d callers are still counted", n)
		}
	}
}

func BenchmarkTake(b *testing.B) {
	l, r := New(start), Rate{Every: time.Nanosecond, Burst: 1 << 30}
	k := Key{"demo/bank", "web", "0190aaaa-0000-7000-8000-000000000001"}
	b.ReportAllocs()
	for b.Loop() {
		l.Take(k, r, start)
	}
}
