package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"versola/modules/app/adminapi"
	"versola/platform/config"
)

// Exit codes of every command.
const (
	exitProblem = 1 // what was asked for did not work
	exitUsage   = 2 // it was not asked for properly
	// exitUnreachable: the deployment that was asked does not answer, or does
	// not know who asks.
	exitUnreachable = 3
)

// usageError is a mistake in the command line.
type usageError struct{ error }

// Unwrap returns the mistake.
func (u usageError) Unwrap() error { return u.error }

// ExitCode maps the error of a command to the exit code of the process.
func ExitCode(err error) int {
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &usage):
		return exitUsage
	case errors.Is(err, adminapi.ErrUnreachable), errors.Is(err, adminapi.ErrNotAccepted):
		return exitUnreachable
	}
	// cobra's own errors of the root command have no type.
	for _, prefix := range []string{"unknown command", "unknown flag", "unknown shorthand flag", "flag needs an argument", "invalid argument", "bad flag syntax", "required flag"} {
		if strings.HasPrefix(err.Error(), prefix) {
			return exitUsage
		}
	}
	return exitProblem
}

// withUsageErrors marks a command's mistakes in flags and arguments as such,
// and completes names of files only where an argument is one.
func withUsageErrors(cmd *cobra.Command) *cobra.Command {
	if !strings.Contains(cmd.Use, "FILE") {
		cmd.ValidArgsFunction = cobra.NoFileCompletions
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			err := check(cmd, args)
			if err != nil && !cmd.HasSubCommands() && strings.HasPrefix(err.Error(), "unknown command") {
				// What cobra says of any argument to a command that takes none.
				err = fmt.Errorf("%q takes no argument %.64q", cmd.CommandPath(), args[0])
			}
			if err != nil {
				return usageError{fmt.Errorf("%w; see \"%s --help\"", err, cmd.CommandPath())}
			}
			return nil
		}
	}
	return cmd
}

// printJSON writes what --json asks for.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("print JSON: %w", err)
	}
	return nil
}

// standardInput is a command's standard input, which is given up when the
// command is interrupted: a read from a terminal has no other end.
func standardInput(cmd *cobra.Command) io.Reader {
	return interruptible{cmd.Context(), cmd.InOrStdin()}
}

type interruptible struct {
	ctx context.Context //nolint:containedctx // io.Reader has no room for one
	in  io.Reader
}

// Read implements io.Reader. A read that is given up goes on until the process
// ends, into a buffer of its own.
func (r interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	buffer, done := make([]byte, len(p)), make(chan result, 1)
	go func() {
		n, err := r.in.Read(buffer)
		done <- result{n, err}
	}()
	select {
	case got := <-done:
		return copy(p, buffer[:got.n]), got.err
	case <-r.ctx.Done():
		return 0, fmt.Errorf("interrupted: %w", r.ctx.Err())
	}
}

// group is a command that only holds others.
func group(use, short string, members ...*cobra.Command) *cobra.Command {
	var names []string
	for _, m := range members {
		if !m.Hidden {
			names = append(names, m.Name())
		}
	}
	cmd := withUsageErrors(&cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return usageError{fmt.Errorf("%q needs a command: %s", cmd.CommandPath(), strings.Join(names, ", "))}
		},
	})
	cmd.AddCommand(members...)
	return cmd
}

// configVariable names the configuration file where --config does not.
const configVariable = "VERSOLA_CONFIG"

// loadConfig reads the configuration of a command: file (else the variable
// VERSOLA_CONFIG, else none), the environment, and the role of the command
// line. Errors: [config.Problems], wrapped.
func loadConfig(file, role string) (*Config, *config.Source, error) {
	cfg, src, problems := readConfig(file, role)
	return cfg, src, refuse(problems)
}

func readConfig(file, role string) (*Config, *config.Source, config.Problems) {
	if file == "" {
		file = os.Getenv(configVariable)
	}
	return config.Load[Config](file, os.Environ(), config.Flag{Name: "--role", Path: "role", Value: role})
}

// refuse turns problems into the error of a command.
func refuse(problems config.Problems) error {
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("the configuration is not valid:\n%w", problems)
}

// addConfigFlags adds the flags that choose a configuration.
func addConfigFlags(cmd *cobra.Command, file, role *string) {
	cmd.Flags().StringVar(file, "config", "", "configuration file (YAML); default: $"+configVariable+", else none")
	cmd.Flags().StringVar(role, "role", "", "role: "+RoleNames+", or a comma list")
}
