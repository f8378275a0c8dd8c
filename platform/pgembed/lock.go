package pgembed

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"versola/platform/clock"
)

// ErrInUse reports a state directory that another process uses.
var ErrInUse = errors.New("in use by another versola process")

// lockPatience is how long a start waits for the lock: a process that was just
// killed holds it until the kernel has taken it apart.
const lockPatience = time.Second

type lock struct{ file *os.File }

// acquire takes the state directory for this process. The kernel releases the
// lock when the process ends, however it ends. Go opens files close-on-exec,
// so the server does not inherit it.
func acquire(dir string) (*lock, error) {
	path := filepath.Join(dir, "lock")
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open lock of state directory: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for began := clock.Monotonic(); errors.Is(err, syscall.EWOULDBLOCK) && clock.Since(began) < lockPatience; {
		time.Sleep(20 * time.Millisecond)
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err != nil {
		defer func() { _ = f.Close() }()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock state directory %s: %w", dir, err)
		}
		return nil, fmt.Errorf("state directory %s is %w%s", dir, ErrInUse, holder(f))
	}
	// The content is for people only; the lock is what counts.
	if err := f.Truncate(0); err == nil {
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return &lock{file: f}, nil
}

func holder(f io.Reader) string {
	b, err := io.ReadAll(io.LimitReader(f, 20)) // a process id
	pid, bad := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || bad != nil {
		return ""
	}
	return fmt.Sprintf(" (pid %d)", pid)
}

func (l *lock) release() error {
	if err := l.file.Close(); err != nil {
		return fmt.Errorf("release state directory: %w", err)
	}
	return nil
}
