package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"versola/platform/clock"
)

// initTimeout bounds initdb, which takes a second or two.
const initTimeout = 2 * time.Minute

// initialise makes the data directory when there is none. initdb works in a
// directory beside it, which is renamed when it is complete: whatever kills it
// in the middle leaves no half of a cluster.
func (p *place) initialise(ctx context.Context, bin binaries, log *slog.Logger) error {
	unfinished := filepath.Join(p.home, "data.unfinished")
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove unfinished cluster: %w", err)
	}
	switch _, err := os.Lstat(filepath.Join(p.data, "PG_VERSION")); {
	case err == nil:
		return nil
	case !errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("look for cluster: %w", err)
	}
	if err := os.Remove(p.data); err != nil && !errors.Is(err, fs.ErrNotExist) { // an empty directory is replaced
		return fmt.Errorf("%s is neither empty nor a PostgreSQL data directory: %w", p.data, err)
	}
	start := clock.Monotonic()
	ctx, cancel := context.WithTimeout(ctx, initTimeout)
	defer cancel()
	cmd := p.command(ctx, bin, "initdb", "--pgdata="+unfinished, "--username="+databaseName,
		"--encoding=UTF8", "--locale=C", "--auth=trust", "--no-sync", "--no-instructions")
	// The death signal is tied to the thread that forks.
	runtime.LockOSThread()
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	if err != nil {
		return fmt.Errorf("run initdb: %w\n%s", err, strings.TrimSpace(string(out)))
	}
	if err := os.Rename(unfinished, p.data); err != nil {
		return fmt.Errorf("put cluster in place: %w", err)
	}
	log.Info("private PostgreSQL initialised", "version", bin.major, "cluster", p.home, "took", clock.Since(start).Round(time.Millisecond))
	return nil
}

// command prepares a PostgreSQL program: as the database user, in a process
// group of its own, with a clean environment (PGHOST and the like of the
// person who starts versola are not meant for this cluster), and signalled by
// the kernel when the forking thread ends.
func (p *place) command(ctx context.Context, bin binaries, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, filepath.Join(bin.dir, name), args...) //nolint:gosec // found on this machine
	cmd.Dir = p.home
	cmd.Env = []string{"PATH=" + bin.dir + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC", "HOME=" + p.home}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.cred}
	setDeathSignal(cmd.SysProcAttr, syscall.SIGKILL)
	return cmd
}
