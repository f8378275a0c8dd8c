package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// fetchTimeout bounds the download, about 30 MB.
const fetchTimeout = 5 * time.Minute

// fetchable maps a major version to the release that is fetched. The first
// entry of a new cluster is fetchMajor.
var fetchable = map[int]embedded.PostgresVersion{
	14: embedded.V14, 15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18,
}

const fetchMajor = 17

// fetch downloads binaries into the place with the embedded-postgres library.
// Only its download is used: it would start the server itself, on a TCP port
// and not as root, so it is made to stop after unpacking by a data directory
// that cannot exist.
func (p *place) fetch(ctx context.Context, major int, log *slog.Logger) (binaries, error) {
	if major == 0 {
		major = fetchMajor
	}
	version, ok := fetchable[major]
	if !ok {
		return binaries{}, fmt.Errorf("PostgreSQL %d is not offered for download", major)
	}
	log.Info("no PostgreSQL on this machine: fetching its binaries", "version", string(version), "into", p.fetched)
	cache := filepath.Join(p.fetched, "cache")
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // public binaries, run by the database user
		return binaries{}, fmt.Errorf("make directory: %w", err)
	}
	stopper := filepath.Join(cache, "not-a-directory")
	if err := os.WriteFile(stopper, nil, 0o600); err != nil {
		return binaries{}, fmt.Errorf("make file: %w", err)
	}
	library := embedded.NewDatabase(embedded.DefaultConfig().Version(version).Port(freePort).
		CachePath(cache).BinariesPath(p.fetched).RuntimePath(filepath.Join(cache, "runtime")).
		DataPath(filepath.Join(stopper, "data")).Logger(io.Discard))
	unpacked := make(chan error, 1)
	go func() { unpacked <- library.Start() }() // takes no context; ends with its download
	select {
	case err := <-unpacked:
		if b, e := inspect(ctx, filepath.Join(p.fetched, "bin")); e == nil {
			return b, nil
		}
		return binaries{}, errors.Join(err)
	case <-time.After(fetchTimeout):
		return binaries{}, errors.New("the download took too long")
	case <-ctx.Done():
		return binaries{}, ctx.Err()
	}
}

// freePort makes the library's check of its port pass: 0 is any free one.
const freePort = 0
