package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"versola/db"
	"versola/platform/config"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// migrateTimeout bounds a look at the schemas; applying them may take longer.
const migrateTimeout = 30 * time.Second

// MigrateCommand is "versola migrate".
func MigrateCommand() *cobra.Command {
	return group("migrate", "Bring database schemas up to date, or show where they are", migrateUp(), migrateStatus())
}

func migrateUp() *cobra.Command {
	var file, role string
	var dryRun, asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "up", Short: "Apply the migrations that the role's databases lack", Args: cobra.NoArgs,
		Long: "Apply the migrations that the role's databases lack. Safe when several run at once: one works, the others wait.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			targets, err := migrationTargets(file, role)
			if err != nil {
				return err
			}
			if dryRun {
				return showPending(cmd.Context(), cmd.OutOrStdout(), targets, asJSON)
			}
			return applyPending(cmd.Context(), cmd.OutOrStdout(), targets, asJSON)
		},
	})
	addConfigFlags(cmd, &file, &role)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "list what would be applied and change nothing")
	return cmd
}

func migrateStatus() *cobra.Command {
	var file, role string
	var asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "status", Short: "List the migrations and whether the role's databases have them; changes nothing", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			targets, err := migrationTargets(file, role)
			if err != nil {
				return err
			}
			var all []postgres.Step
			for _, t := range targets {
				steps, err := t.status(cmd.Context())
				if err != nil {
					return err
				}
				all = append(all, steps...)
			}
			return printSteps(cmd.OutOrStdout(), all, asJSON)
		},
	})
	addConfigFlags(cmd, &file, &role)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().Bool("dry-run", true, "accepted for symmetry: status never changes anything")
	return cmd
}

// target is one database and the schemas that belong in it.
type target struct {
	key        string // of its URL in the configuration
	url        secret.Text
	migrations []postgres.Migrations
}

// migrationTargets tells which schemas the role needs, and where.
func migrationTargets(file, role string) ([]target, error) {
	cfg, _, problems := readConfig(file, role)
	// A job that migrates holds the database's password, not the keys.
	problems = slices.DeleteFunc(problems, func(p config.Problem) bool {
		return strings.HasPrefix(p.Path, "keys.") || strings.HasPrefix(p.Path, "edge.session_keys") || strings.HasPrefix(p.Path, "edge.private_keys")
	})
	if err := refuse(problems); err != nil {
		return nil, err
	}
	r, err := parseRoles(cfg.Role, cfg.Auth.Central)
	if err != nil {
		return nil, err
	}
	var targets []target
	if r.usesDatabase() {
		targets = append(targets, target{"database.url", cfg.Database.URL, []postgres.Migrations{db.Auth(), db.Central()}})
	}
	if r.edge {
		url := cfg.Edge.Database.URL
		if url.Empty() && r.usesDatabase() {
			url = cfg.Database.URL // as serve does
		}
		targets = append(targets, target{"edge.database.url", url, []postgres.Migrations{db.Edge()}})
	}
	for _, t := range targets {
		if t.url.Empty() {
			return nil, fmt.Errorf("no database is configured for role %s: set %s (VERSOLA_%s); the private database of development is migrated by \"versola serve\" itself",
				cfg.Role, t.key, strings.ToUpper(strings.ReplaceAll(t.key, ".", "_")))
		}
	}
	return targets, nil
}

func (t target) status(ctx context.Context) ([]postgres.Step, error) {
	ctx, cancel := context.WithTimeout(ctx, migrateTimeout)
	defer cancel()
	var all []postgres.Step
	for _, m := range t.migrations {
		steps, err := m.Status(ctx, t.url.Reveal())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.key, err)
		}
		all = append(all, steps...)
	}
	return all, nil
}

func showPending(ctx context.Context, out io.Writer, targets []target, asJSON bool) error {
	var pending []postgres.Step
	for _, t := range targets {
		steps, err := t.status(ctx)
		if err != nil {
			return err
		}
		pending = append(pending, slices.DeleteFunc(steps, func(s postgres.Step) bool { return s.Applied })...)
	}
	return printSteps(out, pending, asJSON)
}

func applyPending(ctx context.Context, out io.Writer, targets []target, asJSON bool) error {
	var applied []postgres.Step
	var failure error
	for _, t := range targets {
		for _, m := range t.migrations {
			steps, err := m.Up(ctx, t.url.Reveal())
			applied = append(applied, steps...)
			if err == nil {
				err = m.Check(ctx, t.url.Reveal()) // a newer schema is not brought back
			}
			if err != nil {
				failure = fmt.Errorf("%s: %w", t.key, err)
				break
			}
		}
		if failure != nil {
			break
		}
	}
	// What was applied before a failure is worth knowing.
	return errors.Join(failure, printSteps(out, applied, asJSON))
}

// stepOutput is a migration as --json prints it.
type stepOutput struct {
	Schema    string     `json:"schema"`
	Version   int64      `json:"version"`
	Name      string     `json:"name"`
	Applied   bool       `json:"applied"`
	AppliedAt *time.Time `json:"applied_at,omitempty"` // not known of every one
}

func printSteps(out io.Writer, steps []postgres.Step, asJSON bool) error {
	if asJSON {
		list := make([]stepOutput, len(steps))
		for i, s := range steps {
			list[i] = stepOutput{Schema: s.Schema, Version: s.Version, Name: s.Name, Applied: s.Applied}
			if !s.At.IsZero() {
				at := s.At.UTC()
				list[i].AppliedAt = &at
			}
		}
		return printJSON(out, list)
	}
	if len(steps) == 0 {
		_, err := fmt.Fprintln(out, "nothing to apply")
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "SCHEMA\tVERSION\tMIGRATION\tSTATE")
	for _, s := range steps {
		state := "pending"
		switch {
		case s.Applied && s.At.IsZero():
			state = "applied"
		case s.Applied:
			state = "applied " + s.At.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", s.Schema, s.Version, s.Name, state)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print migrations: %w", err)
	}
	return nil
}
