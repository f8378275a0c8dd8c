// Command versola is an identity platform: an OpenID provider (auth), an
// authorizing reverse proxy (edge) and their configuration (central) in one
// executable. A role says which of them a process runs.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"versola/modules/app"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// The first signal begins an orderly end; a second one, of somebody who
	// will not wait for it, ends the process as if nobody listened.
	context.AfterFunc(ctx, stop)
	code := run(ctx)
	stop()
	os.Exit(code)
}

func run(ctx context.Context) int {
	// The memory limit of a container becomes Go's soft limit, less a tenth
	// for what Go does not count. GOMEMLIMIT wins; without a limit nothing
	// happens.
	_, _ = memlimit.Set(memlimit.WithRatio(0.9), memlimit.WithProvider(memlimit.FromCgroup))

	root, err := app.RootCommand()
	if err != nil {
		fmt.Fprintln(os.Stderr, "versola:", err)
		return app.ExitCode(err)
	}
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "versola:", err)
		return app.ExitCode(err)
	}
	return 0
}
