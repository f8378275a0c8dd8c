package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"versola/modules/auth/password"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/change"
	"versola/modules/central/validate"
)

// stdin is the name of standard input among files.
const stdin = "-"

// ApplyCommand is "versola apply".
func ApplyCommand() *cobra.Command {
	var file, prune string
	var paths, vars []string
	var dryRun, asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "apply -f DIR|FILE", Short: "Make the configuration what YAML documents declare", Args: cobra.NoArgs,
		Long: `Make the configuration what YAML documents declare: all or nothing, and nothing the second time.

A document is one entity: its kind and its members, as "versola export" writes them. ${NAME} in a
value is a variable: of --var, else of the environment. What no document names stays as it is,
unless --prune deletes it: from the tenants that documents declare, or with --prune=all also whole
tenants and edges (what belongs to the tenant "system" only if it is declared).

Exit codes: 0 done, or nothing to do; 1 the documents or the database do not allow it, and nothing
was changed; 2 a mistake in the command line.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			how, ok := map[string]apply.Prune{"": apply.PruneNothing, "declared": apply.PruneDeclared, "all": apply.PruneAll}[prune]
			if !ok {
				return usageError{fmt.Errorf("--prune is declared or all, not %q", prune)}
			}
			if len(paths) == 0 {
				return usageError{errors.New("-f is needed: a directory, a file, or - for standard input")}
			}
			values, err := variables(vars)
			if err != nil {
				return err
			}
			docs, err := readDocuments(paths, values, standardInput(cmd))
			if err != nil {
				return err
			}
			if docs.Len() == 0 && docs.Err() == nil {
				return fmt.Errorf("there is no document in %s", strings.Join(paths, ", "))
			}
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				return d.apply(cmd.Context(), docs, apply.Options{DryRun: dryRun, Prune: how}, cmd.OutOrStdout(), asJSON)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().StringArrayVarP(&paths, "filename", "f", nil, "directory (its .yaml and .yml files), file, or - for standard input; may be given several times")
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "print the difference and change nothing")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: each change with its entity and, of an update, the members that differ")
	cmd.Flags().StringVar(&prune, "prune", "", "delete what no document declares: declared (of the declared tenants) or all")
	cmd.Flags().Lookup("prune").NoOptDefVal = "declared"
	cmd.Flags().StringArrayVar(&vars, "var", nil, "NAME=VALUE of a variable; may be given several times")
	return cmd
}

// variables are those of the environment and, before them, of the command line.
func variables(list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		out[name] = value
	}
	for _, pair := range list {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, usageError{errors.New("--var is NAME=VALUE")}
		}
		out[name] = value
	}
	return out, nil
}

func readDocuments(paths []string, vars map[string]string, in io.Reader) (*apply.Documents, error) {
	docs := &apply.Documents{}
	for _, name := range paths {
		if name == stdin {
			if err := docs.Add("standard input", in, vars); err != nil {
				return nil, err
			}
			continue
		}
		if err := docs.AddPath(name, vars); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// engine changes the deployment's configuration.
func (d *deployment) engine() (*change.Engine, error) {
	return change.New(change.Deps{
		DB: d.db, Encryption: d.encryption, Clock: d.clock, Random: rand.Reader, Auditor: d.audit, People: user.NewStore(d.db, rand.Reader),
		Rules: validate.Rules{Development: d.cfg.Profile != profileProduction},
	})
}

func (d *deployment) apply(ctx context.Context, docs *apply.Documents, o apply.Options, out io.Writer, asJSON bool) error {
	hasher, err := password.NewHasher(d.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return fmt.Errorf("password hasher: %w", err)
	}
	engine, err := d.engine()
	if err != nil {
		return err
	}
	a := apply.New(apply.Deps{DB: d.db, Engine: engine, Users: user.NewStore(d.db, rand.Reader), Hasher: hasher, Clock: d.clock, Random: rand.Reader})
	who := operator()
	o.Actor = change.Actor{Kind: who.Kind, ID: who.ID}
	changes, err := a.Apply(ctx, docs, o)
	var wrong apply.Errors
	if errors.As(err, &wrong) {
		if len(wrong) == 1 {
			return fmt.Errorf("nothing was changed: %w", wrong)
		}
		return fmt.Errorf("%d errors, nothing was changed:\n%w", len(wrong), wrong)
	}
	if err != nil {
		return err
	}
	if asJSON {
		return printChanges(out, changes, o.DryRun)
	}
	return apply.Format(out, changes, o.DryRun)
}

// changeOutput is a change as --json prints it.
type changeOutput struct {
	Action change.Action `json:"action"`
	Kind   string        `json:"kind"`
	Tenant string        `json:"tenant,omitempty"` // of a person, the directory
	ID     string        `json:"id"`
	Fields []string      `json:"fields,omitempty"`
}

func printChanges(out io.Writer, changes []apply.Change, dryRun bool) error {
	list := make([]changeOutput, len(changes))
	for i, c := range changes {
		list[i] = changeOutput{c.Action, c.Ref.Kind, c.Ref.Tenant, c.Ref.ID, c.Fields}
	}
	return printJSON(out, map[string]any{"dry_run": dryRun, "changes": list})
}
