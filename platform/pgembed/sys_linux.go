package pgembed

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal lets the kernel signal the child when the thread that forked
// it ends.
func setDeathSignal(attr *syscall.SysProcAttr, sig syscall.Signal) { attr.Pdeathsig = sig }

// isOurs tells whether pid is a living server on our data directory: a
// postmaster works in it. A zombie has no working directory.
func (p *place) isOurs(_ context.Context, pid int) bool {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	cwd, err := os.Readlink(filepath.Join(proc, "cwd"))
	if err != nil || cwd != p.data {
		return false
	}
	exe, err := os.Readlink(filepath.Join(proc, "exe"))
	return err == nil && strings.HasPrefix(filepath.Base(exe), "postgres")
}
