package replay

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"strings"
	"sync"
	"time"

	"versola/platform/clock"
	"versola/platform/postgres"
)

const (
	// every is the shortest time between the beginnings of two statements.
	every = 2 * time.Millisecond
	// maxBatch bounds one statement; more wait for the next.
	maxBatch = 1000
	// statementTimeout bounds a statement: requests wait for it.
	statementTimeout = 2 * time.Second
)

// key identifies what is claimed: a hash, so that a row has a fixed size
// whatever a stranger wrote.
type key [sha256.Size]byte

// Options configure a [Guard].
type Options struct {
	DB     *postgres.DB
	Schema string // of the tables replay and replay_epoch
	Clock  clock.Clock
	// Longest is the most time that can pass between something being accepted
	// and its expiry.
	Longest time.Duration
}

// Guard remembers what was used. It is safe for concurrent use.
type Guard struct {
	o   Options
	sql string

	mu      sync.Mutex
	seen    memory
	queue   []*batch
	flying  *batch
	carried bool      // somebody takes the queue to the database
	last    time.Time // monotonic: when the last statement began
}

// New makes a guard.
func New(o Options) *Guard {
	return &Guard{o: o, sql: strings.ReplaceAll(claimSQL, "{schema}", o.Schema), seen: newMemory(o.Longest)}
}

// Claim tells whether an id is claimed for the first time within a scope; it is
// remembered until it expires. Errors: a fault of the database, after which the
// same may be claimed again.
func (g *Guard) Claim(ctx context.Context, scope, id string, expires time.Time) (fresh bool, err error) {
	k := keyOf(scope, id)
	b, lead := g.join(k, expires)
	if b == nil {
		return false, nil
	}
	if lead {
		g.lead(ctx)
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		return false, ctx.Err() //nolint:wrapcheck // the caller's own
	}
	return b.fresh[k], b.err
}

// keyOf hashes with the scope's length before it, so that no two pairs are the
// same text.
func keyOf(scope, id string) key {
	text := binary.BigEndian.AppendUint32(make([]byte, 0, 4+len(scope)+len(id)), uint32(len(scope))) //nolint:gosec // a scope is a few letters
	return sha256.Sum256(append(append(text, scope...), id...))
}

// join adds a claim to the queue; nil: this process knows it. lead tells the
// claimant to take the queue to the database.
func (g *Guard) join(k key, expires time.Time) (b *batch, lead bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.seen.add(k, g.o.Clock.Now()) || g.pending(k) {
		return nil, false
	}
	if n := len(g.queue); n > 0 && len(g.queue[n-1].items) < maxBatch {
		b = g.queue[n-1]
	} else {
		b = &batch{items: map[key]time.Time{}, done: make(chan struct{})}
		g.queue = append(g.queue, b)
	}
	b.items[k] = expires
	lead, g.carried = !g.carried, true
	return b, lead
}

// pending tells whether a claim is on its way: the memory may have forgotten it
// already.
func (g *Guard) pending(k key) bool {
	for _, b := range g.queue {
		if _, ok := b.items[k]; ok {
			return true
		}
	}
	if g.flying == nil {
		return false
	}
	_, ok := g.flying.items[k]
	return ok
}

// lead takes the claimant's own batch to the database, and leaves what came
// meanwhile to a goroutine, which ends when the queue is empty. A statement is
// for others too, so it outlives the request that began it.
func (g *Guard) lead(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	g.carry(ctx)
	if g.more() {
		go func() {
			for again := true; again; again = g.more() {
				g.carry(ctx)
			}
		}()
	}
}

// more tells whether the queue has a batch; if not, the next claimant leads.
func (g *Guard) more() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.carried = len(g.queue) > 0
	return g.carried
}

// carry stores the first batch of the queue, as soon as a statement may begin.
func (g *Guard) carry(ctx context.Context) {
	g.mu.Lock()
	pause := every - clock.Since(g.last)
	g.mu.Unlock()
	if pause > 0 {
		time.Sleep(pause) // others join meanwhile
	}
	g.mu.Lock()
	b := g.queue[0]
	g.queue, g.flying, g.last = g.queue[1:], b, clock.Monotonic()
	g.mu.Unlock()

	g.store(ctx, b)

	g.mu.Lock()
	g.flying = nil
	if b.err != nil {
		g.seen.forget(b.items)
	}
	g.mu.Unlock()
	close(b.done)
}
