package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	root := &cobra.Command{
		Use: "benchmarks", Short: "Measure what Versola carries", SilenceUsage: true, SilenceErrors: true,
	}
	root.AddCommand(driveCommand())
	err := root.ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchmarks:", err)
		os.Exit(1)
	}
}

func driveCommand() *cobra.Command {
	var o driveOptions
	cmd := &cobra.Command{
		Use:   "drive",
		Short: "Load a running demo with refreshes and calls through the edge",
		Long: "Start the demo first (versola serve --role=all), then:\n\n" +
			"  go run ./benchmarks drive --rate 300 --duration 30s\n\n" +
			"Sessions are made by real sign-ins of the demo's people. Ctrl-C ends the\n" +
			"plateau early and still reports what was measured.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return drive(cmd.Context(), o, cmd.OutOrStdout()) },
	}
	f := cmd.Flags()
	f.StringVar(&o.Auth, "auth", "http://localhost:8080", "issuer of the demo tenant")
	f.StringVar(&o.Edge, "edge", "http://localhost:8095", "public URL of the edge")
	f.Float64Var(&o.Rate, "rate", 200, "steps per second")
	f.Float64Var(&o.RefreshShare, "refresh-share", 0.3, "share of the steps that are token refreshes, 0 to 1")
	f.IntVar(&o.Sessions, "sessions", 20, "people signed in; a session has one step in flight at most")
	f.DurationVar(&o.Warmup, "warmup", 5e9, "time before measuring")
	f.DurationVar(&o.Duration, "duration", 30e9, "time of measuring (the plateau)")
	f.IntSliceVar(&o.PIDs, "pid", nil, "process ids of Versola, when more than one process has its name")
	f.StringVar(&o.JSON, "json", "", "also write the numbers to this file")
	return cmd
}
