package replay

import (
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"versola/db"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

const longest = 90 * time.Second

type world struct {
	testing.TB
	url   string
	db    *postgres.DB
	clock *clock.Fake
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{TB: t, url: pgtest.New(t, db.Edge()), clock: clock.NewFake(time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))}
	w.db = w.open()
	return w
}

func (w *world) open() *postgres.DB {
	w.Helper()
	conn, err := postgres.Open(w.Context(), postgres.Options{URL: w.url, MaxConns: 8})
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(conn.Close)
	return conn
}

// process makes a guard as another process has it.
func (w *world) process() *Guard {
	return New(Options{DB: w.db, Schema: "edge", Clock: w.clock, Longest: longest})
}

func (w *world) claims(name string, g *Guard, scope, id string, expires time.Time, want bool) {
	w.Helper()
	got, err := g.Claim(w.Context(), scope, id, expires)
	if err != nil || got != want {
		w.Errorf("%s: %v %v, want %v", name, got, err, want)
	}
}

func TestClaim_IsFreshOnceInAllProcesses(t *testing.T) {
	w := newWorld(t)
	one, two := w.process(), w.process()
	end := w.clock.Now().Add(time.Minute)
	w.claims("first", one, "dpop", "a", end, true)
	before := w.db.Statements()
	w.claims("again", one, "dpop", "a", end, false)
	if n := w.db.Statements() - before; n != 0 {
		t.Errorf("what the process knows cost %d statements", n)
	}
	w.claims("in another process", two, "dpop", "a", end, false)
	w.claims("another scope", two, "assertion", "a", end, true)
	w.claims("another id", two, "dpop", "b", end, true)
	for _, id := range []string{"", "\x00", "\xff", "й"} {
		w.claims("odd text", one, "dpop", id, end, true)
		w.claims("odd text again", two, "dpop", id, end, false)
	}
	w.claims("where the scope ends", one, "ab", "c", end, true)
	w.claims("where the scope ends, elsewhere", one, "a", "bc", end, true)
}

func TestClaim_OfManyAtOnceOneIsFreshAndStatementsAreShared(t *testing.T) {
	w := newWorld(t)
	guards := []*Guard{w.process(), w.process()}
	end := w.clock.Now().Add(time.Minute)
	const ids, each = 200, 8
	fresh := make([]atomic.Int64, ids)
	before := w.db.Statements()
	var all sync.WaitGroup
	for n := range ids * each {
		all.Go(func() {
			ok, err := guards[n%2].Claim(context.Background(), "dpop", fmt.Sprint(n/each), end)
			if err != nil {
				t.Error(err)
			}
			if ok {
				fresh[n/each].Add(1)
			}
		})
	}
	all.Wait()
	for n := range fresh {
		if got := fresh[n].Load(); got != 1 {
			t.Errorf("id %d was fresh %d times", n, got)
		}
	}
	if n := w.db.Statements() - before; n > ids {
		t.Errorf("%d claims of %d ids took %d statements", ids*each, ids, n)
	}
}

func TestClaim_AfterACrashNothingOlderIsAccepted(t *testing.T) {
	w := newWorld(t)
	end := w.clock.Now().Add(time.Minute)
	w.claims("before", w.process(), "dpop", "a", end, true)
	if _, err := w.db.Exec(t.Context(), "TRUNCATE edge.replay, edge.replay_epoch"); err != nil { // what a crash does to UNLOGGED tables
		t.Fatal(err)
	}
	w.claims("again, after", w.process(), "dpop", "a", end, false)
	w.claims("one that may have been used before", w.process(), "dpop", "b", w.clock.Now().Add(longest), false)
	w.claims("one that cannot have been", w.process(), "dpop", "c", w.clock.Now().Add(longest+time.Microsecond), true)
	w.clock.Advance(31 * time.Second)
	w.claims("a new one, later", w.process(), "dpop", "d", w.clock.Now().Add(time.Minute), true)
}

func TestClaim_ThatFailedCanBeMadeAgain(t *testing.T) {
	w := newWorld(t)
	g, end := w.process(), w.clock.Now().Add(time.Minute)
	if _, err := w.db.Exec(t.Context(), "ALTER TABLE edge.replay RENAME TO away"); err != nil {
		t.Fatal(err)
	}
	if ok, err := g.Claim(t.Context(), "dpop", "a", end); ok || err == nil {
		t.Fatalf("%v %v", ok, err)
	}
	if _, err := w.db.Exec(t.Context(), "ALTER TABLE edge.away RENAME TO replay"); err != nil {
		t.Fatal(err)
	}
	w.claims("again", g, "dpop", "a", end, true)
}

func TestClaim_OfWhoHangsUpIsStillMadeForTheOthers(t *testing.T) {
	w := newWorld(t)
	g, end := w.process(), w.clock.Now().Add(time.Minute)
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if ok, err := g.Claim(gone, "dpop", "a", end); err != nil && ok {
		t.Fatalf("%v %v", ok, err)
	}
	w.claims("its id", w.process(), "dpop", "a", end, false)
}

func TestMemory_ForgetsTheOldestAndStaysBounded(t *testing.T) {
	m, now := newMemory(longest), time.Unix(0, 0)
	keys := func(n int) key { return keyOf("x", fmt.Sprint(n)) }
	for n := range 3 * maxRemembered {
		if !m.add(keys(n), now) {
			t.Fatalf("%d is not new", n)
		}
	}
	if n := len(m.young) + len(m.old); n > 2*maxRemembered {
		t.Errorf("%d remembered", n)
	}
	last := 3*maxRemembered - 1
	now = now.Add(longest)
	if m.add(keys(last), now) {
		t.Error("the last is forgotten")
	}
	now = now.Add(time.Second)
	m.add(keys(-1), now)
	now = now.Add(longest + time.Second)
	m.add(keys(-2), now)
	if !m.add(keys(last), now) {
		t.Error("the last is still remembered after two lifetimes")
	}
}

func BenchmarkClaim(b *testing.B) {
	w := newWorld(b)
	g, end := w.process(), w.clock.Now().Add(time.Minute)
	before := w.db.Statements()
	var n atomic.Int64
	b.SetParallelism(32)
	b.ReportAllocs()
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			if ok, err := g.Claim(context.Background(), "dpop", fmt.Sprint(n.Add(1)), end); !ok || err != nil {
				b.Errorf("%v %v", ok, err)
				return
			}
		}
	})
	b.ReportMetric(float64(w.db.Statements()-before)/float64(b.N), "statements/op")
}
