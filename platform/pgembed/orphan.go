package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// stopOrphan stops a server that an earlier owner left running on the data
// directory: we hold the state directory's lock, so that owner is gone. A
// postmaster.pid which names no such process but would keep PostgreSQL from
// starting is removed; one of a dead process PostgreSQL handles itself.
func (p *place) stopOrphan(ctx context.Context, log *slog.Logger) error {
	path := filepath.Join(p.data, "postmaster.pid")
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read postmaster.pid: %w", err)
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	alive := err == nil && pid > 1 && syscall.Kill(pid, 0) == nil
	switch {
	case err == nil && pid > 1 && !alive:
		return nil
	case !alive || !p.isOurs(ctx, pid):
		log.Warn("removing a postmaster.pid that names no server of this cluster", "path", path)
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove stale postmaster.pid: %w", err)
		}
		return nil
	}
	log.Warn("stopping a PostgreSQL that an earlier process left running", "pid", pid, "cluster", p.home)
	for _, st := range []step{{syscall.SIGINT, fastTimeout}, {syscall.SIGQUIT, quitTimeout}, {syscall.SIGKILL, quitTimeout}} {
		if err := syscall.Kill(pid, st.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop earlier PostgreSQL (pid %d): %w", pid, err)
		}
		gone, err := p.awaitEnd(ctx, pid, st.wait)
		if err != nil || gone {
			return err
		}
	}
	return fmt.Errorf("an earlier PostgreSQL (pid %d) on %s does not stop", pid, p.data)
}

func (p *place) awaitEnd(ctx context.Context, pid int, most time.Duration) (gone bool, err error) {
	timeout := time.After(most)
	for p.isOurs(ctx, pid) {
		select {
		case <-ctx.Done():
			return false, ctx.Err()
		case <-timeout:
			return false, nil
		case <-time.After(20 * time.Millisecond): // a fast shutdown takes tenths of a second
		}
	}
	return true, nil
}
