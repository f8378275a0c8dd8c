package catalogfeed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/metric"

	"versola/modules/central/catalog"
	"versola/modules/edge/identity"
	"versola/platform/clock"
	"versola/platform/secret"
)

// Bounds of the follower.
const (
	// pollTimeout is above the 25 s that the feed holds a request.
	pollTimeout = 40 * time.Second
	// retryFirst and retryMost bound the pause after a failed poll: a change
	// is live within about a second of central's return.
	retryFirst = 100 * time.Millisecond
	retryMost  = time.Second
	// maxSnapshot bounds an answer: a thousand tenants with ten clients each
	// are about 20 MiB.
	maxSnapshot = 256 << 20
	// copyRest is how many times as long as the writing of a copy took nothing
	// is written after it: a crash loses little of a small catalog, and a large
	// one, of which a copy takes 0.3 s, does not keep a processor busy.
	copyRest = 10
	// fileName is the copy on disk, in the state directory.
	fileName = "edge-catalog.sealed"
)

// Deps are what a feed needs.
type Deps struct {
	Catalog     *catalog.Holder
	Clock       clock.Clock
	Log         *slog.Logger
	Meter       metric.Meter
	Identity    *identity.Identity
	CentralURL  string
	Transport   http.RoundTripper
	SessionKeys []secret.Key
	StateDir    string // empty: no copy is kept
}

// Feed follows central.
type Feed struct {
	d        Deps
	compiler *catalog.Compiler
	copies   *secret.Keyring

	etag     string // of snapshot; empty: central is asked for all
	snapshot *catalog.Snapshot
	current  *catalog.Catalog // snapshot, compiled
	kept     atomic.Pointer[catalog.Snapshot]
	wake     chan struct{} // kept is to be written
}

// New makes a feed, and sets the catalog from the copy on disk if there is one
// that opens. Errors: unusable keys; never an absent central or copy.
func New(d Deps) (*Feed, error) {
	copies, err := secret.NewKeyring(d.SessionKeys, "edge/catalog-copy")
	if err != nil {
		return nil, fmt.Errorf("make catalog copy keyring: %w", err)
	}
	d.CentralURL = strings.TrimSuffix(d.CentralURL, "/")
	f := &Feed{d: d, copies: copies, wake: make(chan struct{}, 1), compiler: &catalog.Compiler{Open: d.Identity.Open, SecretsOptional: true}}
	if d.Meter != nil {
		_, err := d.Meter.Float64ObservableGauge("versola_edge_catalog_age_seconds",
			metric.WithDescription("Time since central was last heard; -1: never."),
			metric.WithFloat64Callback(func(_ context.Context, o metric.Float64Observer) error {
				age := d.Catalog.Age(d.Clock)
				if age < 0 {
					age = -time.Second
				}
				o.Observe(age.Seconds())
				return nil
			}))
		if err != nil {
			return nil, fmt.Errorf("make catalog age metric: %w", err)
		}
	}
	if err := f.restore(); err != nil && !errors.Is(err, fs.ErrNotExist) {
		d.Log.Warn("catalog copy on disk is not usable", "error", err)
	}
	return f, nil
}

// Run follows until ctx ends, and keeps the copy on disk.
func (f *Feed) Run(ctx context.Context) error {
	var copying sync.WaitGroup
	copying.Go(func() { f.copy(ctx) })
	defer copying.Wait()
	f.follow(ctx)
	return nil
}

func (f *Feed) follow(ctx context.Context) {
	pause, failing := retryFirst, false
	for ctx.Err() == nil {
		started, known := clock.Monotonic(), f.etag
		err := f.poll(ctx)
		if err == nil {
			if failing {
				f.d.Log.InfoContext(ctx, "catalog feed is back")
			}
			pause, failing = retryFirst, false
			if f.etag == known && clock.Since(started) < retryFirst {
				sleep(ctx, retryFirst) // central did not hold the request; do not spin
			}
			continue
		}
		// Central may come back with an older database and count up to the
		// same revision again, with other contents.
		f.etag = ""
		if ctx.Err() != nil {
			break
		}
		if !failing {
			f.d.Log.WarnContext(ctx, "catalog feed", "error", err)
		}
		failing = true
		sleep(ctx, pause)
		pause = min(pause*2, retryMost)
	}
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (f *Feed) poll(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, f.d.CentralURL+"/internal/catalog", nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	if err := f.d.Identity.Authorize(r); err != nil {
		return err
	}
	if f.etag != "" {
		r.Header.Set("If-None-Match", f.etag)
		r.Header.Set("A-IM", catalog.DeltaIM)
	}
	res, err := f.d.Transport.RoundTrip(r)
	if err != nil {
		return fmt.Errorf("ask for the catalog: %w", err)
	}
	defer func() { _ = res.Body.Close() }()
	switch res.StatusCode {
	case http.StatusNotModified:
		f.d.Catalog.Synced(f.d.Clock.Now())
		return nil
	case http.StatusOK, http.StatusIMUsed:
	default:
		return fmt.Errorf("ask for the catalog: status %d", res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxSnapshot))
	if err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	if res.StatusCode == http.StatusIMUsed {
		err = f.change(res.Header, body)
	} else {
		err = f.set(body)
	}
	if err != nil {
		return err
	}
	f.d.Catalog.Synced(f.d.Clock.Now())
	f.etag = res.Header.Get("ETag")
	return nil
}

// set compiles a snapshot and makes it current.
func (f *Feed) set(body []byte) error {
	s := &catalog.Snapshot{}
	if err := json.Unmarshal(body, s); err != nil {
		return fmt.Errorf("read catalog: %w", err)
	}
	c, err := f.compiler.Compile(s)
	if err != nil {
		return err
	}
	f.use(s, c)
	return nil
}

// change applies what differs from the current snapshot.
func (f *Feed) change(header http.Header, body []byte) error {
	if header.Get("IM") != catalog.DeltaIM || header.Get("Delta-Base") != f.etag || f.snapshot == nil {
		return errors.New("read catalog: a difference from something else")
	}
	var d catalog.Delta
	if err := json.Unmarshal(body, &d); err != nil {
		return fmt.Errorf("read difference of the catalog: %w", err)
	}
	s, changed, err := d.Apply(f.snapshot)
	if err != nil {
		return fmt.Errorf("read difference of the catalog: %w", err)
	}
	c, err := f.compiler.Advance(f.current, s, changed)
	if err != nil {
		return err
	}
	f.use(s, c)
	return nil
}

func (f *Feed) use(s *catalog.Snapshot, c *catalog.Catalog) {
	f.snapshot, f.current = s, c
	f.d.Catalog.Set(c)
	f.kept.Store(s)
	select {
	case f.wake <- struct{}{}:
	default: // asked for already
	}
}

// copy writes what is used to disk, until ctx ends and the last is written.
func (f *Feed) copy(ctx context.Context) {
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
		started := clock.Monotonic()
		if s := f.kept.Swap(nil); s != nil {
			if err := f.keep(s); err != nil {
				f.d.Log.WarnContext(ctx, "keep a copy of the catalog", "error", err)
			}
		}
		if ctx.Err() != nil && f.kept.Load() == nil {
			return
		}
		sleep(ctx, copyRest*clock.Since(started))
	}
}

func (f *Feed) context() string { return "edge_catalog/" + f.d.Identity.EdgeID() }

// keep replaces the copy on disk: written beside it, synced, then renamed.
func (f *Feed) keep(s *catalog.Snapshot) error {
	if f.d.StateDir == "" {
		return nil
	}
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	if err := os.MkdirAll(f.d.StateDir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	tmp, err := os.CreateTemp(f.d.StateDir, fileName+".*") // mode 0600
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	_, err = tmp.Write(f.copies.Seal(body, f.context()))
	err = errors.Join(err, tmp.Sync(), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(f.d.StateDir, fileName))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write file: %w", err), os.Remove(tmp.Name()))
	}
	return nil
}

func (f *Feed) restore() error {
	if f.d.StateDir == "" {
		return nil
	}
	sealed, err := os.ReadFile(filepath.Join(f.d.StateDir, fileName))
	if err != nil {
		return fmt.Errorf("read file: %w", err)
	}
	body, err := f.copies.Open(sealed, f.context())
	if err != nil {
		return err
	}
	err = f.set(body)
	f.kept.Store(nil) // it is on disk
	return err
}
