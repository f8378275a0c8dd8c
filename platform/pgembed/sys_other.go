//go:build !linux

package pgembed

import (
	"context"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// setDeathSignal does nothing: only Linux has such a signal. A server left by
// a killed owner is stopped at the next start.
func setDeathSignal(*syscall.SysProcAttr, syscall.Signal) {}

// isOurs tells whether pid is a living server on our data directory, by the
// command line we gave it.
func (p *place) isOurs(ctx context.Context, pid int) bool {
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "ps", "-ww", "-o", "command=", "-p", strconv.Itoa(pid)).Output() //nolint:gosec // a number
	return err == nil && strings.Contains(string(out), "postgres -D "+p.data+" ")
}
