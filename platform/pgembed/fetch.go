package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
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
	if err := os.MkdirAll(filepath.Dir(p.fetched), 0o755); err != nil { //nolint:gosec // public binaries, run by the database user
		return binaries{}, fmt.Errorf("make directory: %w", err)
	}
	// Unpacked beside and renamed when complete, like a cluster.
	work, err := os.MkdirTemp(filepath.Dir(p.fetched), filepath.Base(p.fetched)+".unfinished-")
	if err != nil {
		return binaries{}, fmt.Errorf("make directory: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	tree := filepath.Join(work, "tree")
	if err := download(ctx, version, work, tree); err != nil {
		return binaries{}, err
	}
	if err := os.Rename(tree, p.fetched); err != nil && !errors.Is(err, fs.ErrExist) {
		return binaries{}, fmt.Errorf("put binaries in place: %w", err)
	}
	return inspect(ctx, filepath.Join(p.fetched, "bin"))
}

func download(ctx context.Context, version embedded.PostgresVersion, work, tree string) error {
	stopper := filepath.Join(work, "not-a-directory")
	if err := os.WriteFile(stopper, nil, 0o600); err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	library := embedded.NewDatabase(embedded.DefaultConfig().Version(version).Port(freePort).
		CachePath(work).BinariesPath(tree).RuntimePath(filepath.Join(work, "runtime")).
		DataPath(filepath.Join(stopper, "data")).Logger(io.Discard))
	unpacked := make(chan error, 1)
	go func() { unpacked <- library.Start() }() // takes no context; ends with its download
	select {
	case err := <-unpacked:
		if _, e := inspect(ctx, filepath.Join(tree, "bin")); e != nil {
			return errors.Join(err, e)
		}
		return nil
	case <-time.After(fetchTimeout):
		return errors.New("the download took too long")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// freePort makes the library's check of its port pass: 0 is any free one.
const freePort = 0
