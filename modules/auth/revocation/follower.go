package revocation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"versola/modules/auth/token"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// Bounds of following.
const (
	// pollEvery stands behind the notification: a lost one delays an entry by
	// this much at most, inside the second that a revocation may take.
	pollEvery = 500 * time.Millisecond
	// gapKept is how long a missing number is asked for. A statement ends
	// after five seconds (platform/postgres), and its transaction with it;
	// after a minute a number that is still missing was rolled back.
	gapKept = time.Minute
	// maxGaps bounds the remembered numbers: what a minute of failing
	// transactions may leave behind.
	maxGaps = 1000
	// pruneEvery is how often expired entries are dropped from memory.
	pruneEvery = time.Minute
)

// Follower holds the log in memory. It is safe for concurrent use.
type Follower struct {
	db    *postgres.DB
	url   string
	clock clock.Clock
	log   *slog.Logger

	pulling sync.Mutex // one pull at a time
	failing atomic.Bool

	mu       sync.RWMutex
	loaded   bool
	head     int64
	gaps     map[int64]time.Time // number -> when it was missed
	entries  []Entry             // by number
	subjects map[subject]time.Time
	changed  chan struct{}
	pruned   time.Time
}

type subject struct{ kind, name string }

// NewFollower makes a follower; url is for the connection that listens.
func NewFollower(db *postgres.DB, url string, clk clock.Clock, log *slog.Logger) *Follower {
	return &Follower{db: db, url: url, clock: clk, log: log,
		gaps: map[int64]time.Time{}, subjects: map[subject]time.Time{}, changed: make(chan struct{})}
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	listener := &postgres.Listener{URL: f.url, Channel: Channel, Log: f.log,
		OnConnect: func(ctx context.Context) { f.report(ctx, f.Resync(ctx)) },
		OnNotify:  func(ctx context.Context, _ string) { f.report(ctx, f.Pull(ctx)) }}
	group.Go(func() error { return listener.Run(ctx) })
	group.Go(func() error {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-tick.C:
				f.report(ctx, f.Pull(ctx))
			}
		}
	})
	return group.Wait()
}

// Ready tells whether the log has been read once.
func (f *Follower) Ready() error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if !f.loaded {
		return errors.New("the revocation log has not been read yet")
	}
	return nil
}

// Head returns the highest number that was read.
func (f *Follower) Head() int64 {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.head
}

// report logs an outage once, not at every poll.
func (f *Follower) report(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	switch {
	case err != nil && !f.failing.Swap(true):
		f.log.WarnContext(ctx, "the revocation log cannot be read", "error", err)
	case err == nil && f.failing.Swap(false):
		f.log.InfoContext(ctx, "the revocation log is read again")
	}
}

// Note makes an entry that this process has just written count at once here;
// the log itself brings it a moment later, and keeps it.
func (f *Follower) Note(kind, name string, at time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.note(Entry{Kind: kind, Subject: name, At: at})
}

const pullSQL = `
SELECT seq, kind, subject, at, expires_at FROM auth.revocation
WHERE seq > $1 OR seq = ANY ($2)
ORDER BY seq`

// Pull reads what is new.
func (f *Follower) Pull(ctx context.Context) error {
	f.pulling.Lock()
	defer f.pulling.Unlock()
	f.mu.RLock()
	loaded, head, gaps := f.loaded, f.head, slices.Collect(maps.Keys(f.gaps))
	f.mu.RUnlock()
	if gaps == nil {
		gaps = []int64{}
	}
	fresh, err := f.query(ctx, head, gaps)
	if err != nil {
		return err
	}
	f.take(fresh, !loaded)
	return nil
}

// Resync reads the whole log anew. After a lost connection it may be another
// server that answers, to which the last entries had not been replicated: its
// numbers may be lower than those seen before, and be given out again.
func (f *Follower) Resync(ctx context.Context) error {
	f.pulling.Lock()
	defer f.pulling.Unlock()
	all, err := f.query(ctx, 0, []int64{})
	if err != nil {
		return err
	}
	f.take(all, true)
	return nil
}

func (f *Follower) query(ctx context.Context, head int64, gaps []int64) ([]Entry, error) {
	rows, err := f.db.Query(ctx, pullSQL, head, gaps)
	if err != nil {
		return nil, fmt.Errorf("query revocation log: %w", err)
	}
	fresh, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Entry])
	if err != nil {
		return nil, fmt.Errorf("read revocation log: %w", err)
	}
	return fresh, nil
}

// take adds entries, which are in the order of their numbers; anew: they are
// the whole log.
func (f *Follower) take(fresh []Entry, anew bool) {
	now := f.clock.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.loaded = true
	if anew {
		f.head, f.entries = 0, nil
		clear(f.gaps)
		clear(f.subjects)
	}
	for _, e := range fresh {
		if e.Seq > f.head {
			// Numbers that the log lacks from before this process read it
			// first may be swept or rolled back, but the newest of them may
			// also still be on their way.
			from := f.head + 1
			if anew && f.head == 0 {
				from = max(from, e.Seq-maxGaps/2)
			}
			for n := max(from, e.Seq-maxGaps); n < e.Seq; n++ {
				f.gaps[n] = now
			}
			f.head = e.Seq
		}
		delete(f.gaps, e.Seq)
		f.add(e, now)
	}
	f.forget(now)
	if len(fresh) > 0 || anew {
		close(f.changed)
		f.changed = make(chan struct{})
	}
}

func (f *Follower) add(e Entry, now time.Time) {
	if !e.ExpiresAt.After(now) {
		return
	}
	at := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].Seq >= e.Seq })
	if at < len(f.entries) && f.entries[at].Seq == e.Seq {
		return
	}
	f.entries = slices.Insert(f.entries, at, e)
	f.note(e)
}

func (f *Follower) note(e Entry) {
	key := subject{e.Kind, e.Subject}
	if e.At.After(f.subjects[key]) {
		f.subjects[key] = e.At
	}
}

// forget drops gaps that no transaction can fill any more, and expired entries.
func (f *Follower) forget(now time.Time) {
	for n, since := range f.gaps {
		if now.Sub(since) > gapKept || n < f.head-maxGaps {
			delete(f.gaps, n)
		}
	}
	if now.Sub(f.pruned) < pruneEvery {
		return
	}
	f.pruned = now
	kept := make([]Entry, 0, len(f.entries))
	f.subjects = make(map[subject]time.Time, len(f.subjects))
	for _, e := range f.entries {
		if e.ExpiresAt.After(now) {
			kept = append(kept, e)
			f.note(e)
		}
	}
	f.entries = kept
}

// Revoked tells whether a token has been revoked, as far as this process knows.
func (f *Follower) Revoked(a *token.Access) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if len(f.subjects) == 0 {
		return false
	}
	if f.has(KindToken, a.ID) {
		return true
	}
	if !a.Person() {
		return false
	}
	if f.has(KindGrant, a.GrantID.String()) || !a.SessionID.IsNil() && f.has(KindSession, a.SessionID.String()) {
		return true
	}
	before, ok := f.subjects[subject{KindUser, a.UserID.String()}]
	return ok && granted(a).Before(before)
}

// RevokedClaims tells whether an access token of these claims (sid, gid, jti,
// sub, iat) has been revoked, as far as this process knows. An id that does not
// read names nothing.
func (f *Follower) RevokedClaims(sid, gid, jti, sub string, issued time.Time) bool {
	a := token.Access{ID: jti, Issued: issued}
	a.SessionID, _ = id.ParseUUID(sid)
	a.GrantID, _ = id.ParseUUID(gid)
	a.UserID, _ = id.ParseUUID(sub)
	return f.Revoked(&a)
}

// granted is when the sign-in behind a token was. The grant's id tells it to the
// millisecond, where iat has whole seconds: who signs in within the second of a
// revocation is not part of it.
func granted(a *token.Access) time.Time {
	if a.GrantID.Ordered() {
		return a.GrantID.Time()
	}
	return a.Issued
}

func (f *Follower) has(kind, name string) bool {
	_, ok := f.subjects[subject{kind, name}]
	return ok
}

// since returns the unexpired entries above after or in wanted, the highest
// number, and a channel that closes when there is more.
func (f *Follower) since(after int64, wanted []int64) (entries []Entry, head int64, changed <-chan struct{}, loaded bool) {
	now := f.clock.Now()
	f.mu.RLock()
	defer f.mu.RUnlock()
	entries = []Entry{}
	for _, n := range wanted {
		at := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].Seq >= n })
		if n <= after && at < len(f.entries) && f.entries[at].Seq == n && f.entries[at].ExpiresAt.After(now) {
			entries = append(entries, f.entries[at])
		}
	}
	from := sort.Search(len(f.entries), func(i int) bool { return f.entries[i].Seq > after })
	for _, e := range f.entries[from:] {
		if e.ExpiresAt.After(now) {
			entries = append(entries, e)
		}
	}
	return entries, f.head, f.changed, f.loaded
}
