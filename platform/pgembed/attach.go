package pgembed

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrNotRunning reports that no server of the state directory is running.
var ErrNotRunning = errors.New("no private PostgreSQL is running")

// Attach returns the URL of the cluster that another process of this machine
// runs in the state directory: for commands beside a server. Errors:
// [ErrNotRunning].
func Attach(ctx context.Context, o Options) (string, error) {
	dir, err := realPath(o.Dir)
	if err != nil {
		return "", fmt.Errorf("%w in %s", ErrNotRunning, o.Dir)
	}
	p, err := locate(dir, o.Log)
	if err != nil {
		return "", err
	}
	// PostgreSQL's own note: its fifth line is the directory of the socket.
	raw, err := os.ReadFile(filepath.Join(p.data, "postmaster.pid"))
	if err != nil {
		return "", fmt.Errorf("%w in %s", ErrNotRunning, o.Dir)
	}
	lines := strings.Split(string(raw), "\n")
	if len(lines) < 5 || lines[4] == "" {
		return "", fmt.Errorf("%w in %s", ErrNotRunning, o.Dir)
	}
	p.socket = lines[4]
	url := p.url(databaseName)
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", fmt.Errorf("%w in %s: %w", ErrNotRunning, o.Dir, err)
	}
	return url, conn.Close(ctx)
}
