package app

import (
	"bufio"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"versola/modules/auth/password"
	"versola/modules/auth/user"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/modules/central/users"
	"versola/platform/clock"
	"versola/platform/secret"
)

// UsersCommand is "versola users".
func UsersCommand() *cobra.Command {
	return group("users", "Administer people", usersImport())
}

// errLines ends "users import" with exit code 1; the lines are printed.
var errLines = errors.New("some lines failed; the others are imported")

func usersImport() *cobra.Command {
	var file, directory string
	var quiet bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "import FILE --directory DIRECTORY", Short: "Create people in bulk, from lines of JSON", Args: cobra.ExactArgs(1),
		Long: `Create people in bulk from a file of JSON documents, one person a line, or from standard input (-):

  {"external_id":"42","phone":"+77000000001","email":"ann@example.com","claims":{"name":"Ann"},
   "roles":{"demo":["customer"]},"password_hash":"$2b$12$..."}

Every member is optional, but a person needs a phone, an email or a username. A password_hash may be
bcrypt, scrypt, PBKDF2 or Argon2; it is renewed when its person signs in. Sending the same again skips
who is there already, by external_id or id, else by the identifiers, and changes nothing about them: an
import that broke off is resumed by running it again.

Exit codes: 0 every line is imported or was before; 1 lines failed, or the database did; 2 a mistake in
the command line.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if directory == "" {
				return usageError{errors.New("--directory is needed: the user directory of a tenant")}
			}
			in, err := openLines(args[0], standardInput(cmd))
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }()
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				return d.importUsers(cmd.Context(), directory, in, cmd.OutOrStdout(), quiet)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().StringVar(&directory, "directory", "", "the user directory that the people are created in; required")
	cmd.Flags().BoolVar(&quiet, "quiet", false, "print the summary and failed lines alone, not those that were skipped")
	return cmd
}

func openLines(name string, standard io.Reader) (io.ReadCloser, error) {
	if name == stdin {
		return io.NopCloser(standard), nil
	}
	f, err := os.Open(name) //nolint:gosec // the operator names the file
	if err != nil {
		return nil, fmt.Errorf("open lines: %w", err)
	}
	return f, nil
}

func (d *deployment) importUsers(ctx context.Context, directory string, in io.Reader, to io.Writer, quiet bool) (err error) {
	cat, err := d.catalog(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(to)
	defer func() { err = errors.Join(err, out.Flush()) }()
	importer := users.Importer{Users: user.NewStore(d.db, rand.Reader), Audit: d.audit, Adopt: password.Adopt, Clock: d.clock}
	start := clock.Monotonic()
	s, err := importer.Run(ctx, cat, directory, in, audit.Entry{Actor: operator()}, nil, func(l user.Line) { printLine(out, l, quiet) })
	took := clock.Since(start)
	_, _ = fmt.Fprintf(out, "%d lines in %s: %d created, %d skipped, %d failed\n", s.Lines, took.Round(time.Millisecond), s.Created, s.Skipped, s.Failed)
	switch {
	case errors.Is(err, users.ErrDirectory):
		return usageError{fmt.Errorf("--directory %s: %w", directory, err)}
	case err != nil:
		return fmt.Errorf("import: %w", err)
	case s.Failed > 0:
		return errLines
	}
	return nil
}

func printLine(out io.Writer, l user.Line, quiet bool) {
	if l.Outcome == user.LineSkipped {
		if !quiet && l.User != nil {
			_, _ = fmt.Fprintf(out, "line %d: skipped, is %s\n", l.Number, l.User)
		}
		return
	}
	for _, p := range l.Errors {
		name := p.Pointer
		if name != "" {
			name += " "
		}
		_, _ = fmt.Fprintf(out, "line %d: %s%s\n", l.Number, name, p.Detail)
	}
}

// catalog reads and compiles the configuration as it is now.
func (d *deployment) catalog(ctx context.Context) (*catalog.Catalog, error) {
	keyring, err := secret.NewKeyring(d.encryption, catalog.SealPurpose)
	if err != nil {
		return nil, fmt.Errorf("keys.encryption: %w", err)
	}
	s, err := store.Load(ctx, d.db)
	if err != nil {
		return nil, err
	}
	s.Issuer, s.RootTenant = d.cfg.Auth.Issuer, d.cfg.Auth.RootTenant
	return (&catalog.Compiler{Open: keyring.Open}).Compile(s)
}
