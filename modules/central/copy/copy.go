package copy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/secret"
)

const (
	fileName = "catalog.sealed"
	purpose  = "catalog-copy"
	// rest is how many times as long as the writing of a copy took nothing is
	// written after it: a crash loses little of a small catalog, and a large
	// one, of which a copy takes 0.1 to 0.3 s, does not keep a processor busy.
	rest = 10
	// sealedAs binds the content to its format: one of another shape does not
	// open.
	sealedAs = "snapshot/1"
	// maxFile is far above a deployment of 10,000 clients (some 20 MiB).
	maxFile = 1 << 30
)

// ErrNone reports that there is no copy yet.
var ErrNone = errors.New("no copy of the catalog on disk")

// File is the copy in a directory.
type File struct {
	dir     string
	keyring *secret.Keyring
	kept    atomic.Pointer[catalog.Snapshot] // not written yet
	wake    chan struct{}
}

// New makes the copy of a directory, which is created when first written.
func New(dir string, keys []secret.Key) (*File, error) {
	keyring, err := secret.NewKeyring(keys, purpose)
	if err != nil {
		return nil, fmt.Errorf("keys of the catalog copy: %w", err)
	}
	return &File{dir: dir, keyring: keyring, wake: make(chan struct{}, 1)}, nil
}

// Read returns the snapshot. Errors: [ErrNone]; secret.ErrOpen for a file that
// was altered or is of other keys.
func (f *File) Read() (*catalog.Snapshot, error) {
	file, err := os.Open(filepath.Join(f.dir, fileName))
	if errors.Is(err, os.ErrNotExist) {
		return nil, ErrNone
	}
	if err != nil {
		return nil, fmt.Errorf("open catalog copy: %w", err)
	}
	defer func() { _ = file.Close() }()
	sealed, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return nil, fmt.Errorf("read catalog copy: %w", err)
	}
	raw, err := f.keyring.Open(sealed, sealedAs)
	if err != nil {
		return nil, fmt.Errorf("open catalog copy: %w", err)
	}
	s := &catalog.Snapshot{}
	if err := json.Unmarshal(raw, s); err != nil {
		return nil, fmt.Errorf("decode catalog copy: %w", err)
	}
	return s, nil
}

// Keep has the copy replaced soon, by [File.Run]; it does not wait. Of several
// snapshots the last is written.
func (f *File) Keep(s *catalog.Snapshot) {
	f.kept.Store(s)
	select {
	case f.wake <- struct{}{}:
	default: // asked for already
	}
}

// Run writes what it is told to keep, until ctx ends and all of it is written.
func (f *File) Run(ctx context.Context, log *slog.Logger) error {
	for {
		select {
		case <-f.wake:
		case <-ctx.Done():
		}
		started := clock.Monotonic()
		if s := f.kept.Swap(nil); s != nil {
			if err := f.Write(s); err != nil {
				log.WarnContext(ctx, "catalog copy not written", "error", err)
			}
		}
		pause := time.NewTimer(rest * clock.Since(started))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			if f.kept.Load() == nil {
				return nil
			}
		}
	}
}

// Write replaces the copy.
func (f *File) Write(s *catalog.Snapshot) (err error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("encode catalog copy: %w", err)
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("make state directory: %w", err)
	}
	// CreateTemp makes files of mode 0600.
	tmp, err := os.CreateTemp(f.dir, fileName+".*")
	if err != nil {
		return fmt.Errorf("write catalog copy: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(tmp.Name())
		}
	}()
	_, err = tmp.Write(f.keyring.Seal(raw, sealedAs))
	if err == nil {
		err = tmp.Sync()
	}
	if err = errors.Join(err, tmp.Close()); err != nil {
		return fmt.Errorf("write catalog copy: %w", err)
	}
	if err = os.Rename(tmp.Name(), filepath.Join(f.dir, fileName)); err != nil {
		return fmt.Errorf("replace catalog copy: %w", err)
	}
	return nil
}
