package revocation

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"versola/platform/clock"
)

// Bounds of the follower.
const (
	// pollTimeout is above the 25 s that the feed holds a request.
	pollTimeout = 40 * time.Second
	// retryFirst and retryMost bound the pause after a failed poll; the most
	// is what "live within a second of the source's return" allows.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
	// gapLife is how long a missing number is asked for: far above the
	// statement timeout that ends any transaction.
	gapLife = 30 * time.Second
	// maxGaps bounds the query string; with more, everything is fetched again.
	maxGaps = 500
	// firstGaps is how far below the head a first answer's missing numbers may
	// be of transactions still running.
	firstGaps = 100
	// maxAnswer bounds one answer: a million entries.
	maxAnswer = 128 << 20
	// purgeEvery is how often expired entries are dropped.
	purgeEvery = time.Minute
)

// Authorizer puts the edge's credentials on a request.
type Authorizer interface {
	Authorize(r *http.Request) error
}

// Follower keeps a [Set] up to date.
type Follower struct {
	Set       *Set
	URL       string // of the internal listener
	Transport http.RoundTripper
	Identity  Authorizer
	Clock     clock.Clock
	Log       *slog.Logger

	after  int64 // highest sequence number known; below zero: nothing yet
	gaps   map[int64]time.Time
	synced atomic.Int64 // unix microseconds of the last answer
}

// Age returns how long ago the feed last answered; negative: never.
func (f *Follower) Age() time.Duration {
	at := f.synced.Load()
	if at == 0 {
		return -1
	}
	return f.Clock.Now().Sub(time.UnixMicro(at))
}

// Run follows until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	f.after, f.gaps = -1, map[int64]time.Time{}
	pause, failing := retryFirst, false
	purged := clock.Monotonic()
	for ctx.Err() == nil {
		started, known := clock.Monotonic(), f.after
		err := f.poll(ctx)
		if clock.Since(purged) >= purgeEvery {
			f.Set.Purge(f.Clock.Now())
			purged = clock.Monotonic()
		}
		if err == nil {
			if failing {
				f.Log.InfoContext(ctx, "revocation feed is back")
			}
			pause, failing = retryFirst, false
			if f.after <= known && clock.Since(started) < retryFirst {
				sleep(ctx, retryFirst) // the feed did not hold the request; do not spin
			}
			continue
		}
		if ctx.Err() != nil {
			break
		}
		if !failing {
			f.Log.WarnContext(ctx, "revocation feed", "error", err)
		}
		failing = true
		f.after = -1 // what happened meanwhile is unknown
		sleep(ctx, pause)
		pause = min(pause*2, retryMost)
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

type page struct {
	Entries []Entry `json:"entries"`
	Head    int64   `json:"head"`
}

func (f *Follower) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+"/internal/revocations"+f.query(), nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if err := f.Identity.Authorize(r); err != nil {
		return err
	}
	res, err := f.Transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("ask for revocations: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("ask for revocations: status %d", res.StatusCode)
	}
	var p page
	if err := json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(&p); err != nil {
		return fmt.Errorf("read revocations: %w", err)
	}
	f.take(p)
	return nil
}

func (f *Follower) query() string {
	if f.after < 0 {
		return ""
	}
	q := url.Values{"after": {strconv.FormatInt(f.after, 10)}}
	if len(f.gaps) > 0 {
		names := make([]string, 0, len(f.gaps))
		for seq := range f.gaps {
			names = append(names, strconv.FormatInt(seq, 10))
		}
		slices.Sort(names)
		q.Set("gaps", strings.Join(names, ","))
	}
	return "?" + q.Encode()
}

// take adds a page and notes which numbers are missing below its head.
func (f *Follower) take(p page) {
	now := f.Clock.Now()
	f.Set.Add(p.Entries...)
	f.synced.Store(now.UnixMicro())
	if p.Head < f.after {
		// The numbers went back: the feed's database was restored from an older
		// copy (or another process of auth is a moment behind). What it numbers
		// from here on would be taken for known, so everything is fetched again.
		// What is revoked already stays so.
		clear(f.gaps)
		f.after = -1
		return
	}
	seen := make(map[int64]struct{}, len(p.Entries))
	head := p.Head
	for _, e := range p.Entries {
		seen[e.Seq] = struct{}{}
		head = max(head, e.Seq)
		delete(f.gaps, e.Seq)
	}
	from := f.after
	if from < 0 {
		from = max(0, head-firstGaps)
	}
	for seq := max(from, head-maxGaps) + 1; seq <= head; seq++ {
		if _, ok := seen[seq]; !ok {
			if _, known := f.gaps[seq]; !known {
				f.gaps[seq] = now
			}
		}
	}
	for seq, since := range f.gaps {
		if now.Sub(since) > gapLife {
			delete(f.gaps, seq)
		}
	}
	f.after = head
	if len(f.gaps) > maxGaps {
		clear(f.gaps)
		f.after = -1
	}
}
