package app

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"versola/modules/central/audit"
)

// AuditCommand is "versola audit".
func AuditCommand() *cobra.Command {
	return group("audit", "Prove and read the audit log", auditVerify(), auditExport(), auditRetain())
}

func configFlag(cmd *cobra.Command, file *string) {
	cmd.Flags().StringVar(file, "config", "", "configuration file (YAML); default: $"+configVariable+", else none")
}

// errBroken ends "audit verify" with exit code 1; the fault is printed.
var errBroken = errors.New("the audit log is not whole")

func auditVerify() *cobra.Command {
	var file string
	var anchors []string
	var asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "verify", Short: "Prove that no entry was changed, removed, moved or cut off", Args: cobra.NoArgs,
		Long: `Prove the audit log's chain from its first entry to its head, and print an anchor of the head.
Keep anchors outside of the deployment: given back with --anchor they also prove that the whole
database was not replaced by an older or a rewritten one. Exit code 1 names the first broken entry.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var noted []audit.Anchor
			for _, text := range anchors {
				a, err := audit.ParseAnchor(text)
				if err != nil {
					return usageError{err}
				}
				noted = append(noted, a)
			}
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				r, err := d.audit.Verify(cmd.Context(), noted...)
				if err != nil {
					return err
				}
				return printReport(cmd.OutOrStdout(), r, asJSON)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringArrayVar(&anchors, "anchor", nil, "an anchor noted before; may be given several times")
	return cmd
}

// reportOutput is what --json prints of the log: the entries from first on are
// proven up to the anchor.
type reportOutput struct {
	Whole   bool   `json:"whole"`
	Entries int64  `json:"entries"`
	First   int64  `json:"first"`
	Anchor  string `json:"anchor"`
	Fault   string `json:"fault,omitempty"`
}

func printReport(out io.Writer, r *audit.Report, asJSON bool) error {
	if asJSON {
		o := reportOutput{Whole: r.Broken == nil, Entries: r.Entries, First: r.First, Anchor: r.Head.String()}
		var broken error
		if r.Broken != nil {
			o.Fault, broken = r.Broken.String(), errBroken
		}
		return errors.Join(broken, printJSON(out, o))
	}
	if r.First > 1 {
		_, _ = fmt.Fprintf(out, "entries before %d were removed by retention\n", r.First)
	}
	if r.Broken != nil {
		_, err := fmt.Fprintf(out, "proven: %d entries, up to %d\nBROKEN: %s\n", r.Entries, r.Head.Seq, r.Broken)
		return errors.Join(errBroken, err)
	}
	_, err := fmt.Fprintf(out, "ok: %d entries\nanchor: %s\n", r.Entries, r.Head)
	return err
}

func auditExport() *cobra.Command {
	var file, from, to string
	var f audit.Filter
	cmd := withUsageErrors(&cobra.Command{
		Use: "export", Short: "Write entries as JSON, one a line, oldest first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			for text, at := range map[*string]*time.Time{&from: &f.From, &to: &f.To} {
				if *text == "" {
					continue
				}
				var err error
				if *at, err = time.Parse(time.RFC3339, *text); err != nil {
					return usageError{fmt.Errorf("%.40q is not a time such as 2026-01-31T12:00:00Z", *text)}
				}
			}
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				err := d.audit.Write(cmd.Context(), audit.Entry{Action: "audit.exported", Actor: operator(), Tenant: f.Tenant})
				if err != nil {
					return err
				}
				out := bufio.NewWriter(cmd.OutOrStdout())
				lines := json.NewEncoder(out)
				err = d.audit.Export(cmd.Context(), f, func(s audit.Stored) error { return lines.Encode(s) })
				return errors.Join(err, out.Flush())
			})
		},
	})
	configFlag(cmd, &file)
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "from this time on (RFC 3339)")
	flags.StringVar(&to, "to", "", "before this time (RFC 3339)")
	flags.StringVar(&f.Action, "action", "", "one action, or a prefix that ends with a dot (client.)")
	flags.StringVar(&f.Actor, "actor", "", "id of who did it")
	flags.StringVar(&f.Tenant, "tenant", "", "the tenant that it concerns")
	flags.StringVar(&f.User, "user", "", "the person that it concerns")
	flags.StringVar(&f.ObjectKind, "kind", "", "kind of what it was done to")
	flags.StringVar(&f.ObjectID, "id", "", "id of what it was done to, with --kind")
	return cmd
}

// minRetention is the least age at which entries may go: what is younger is
// what an inquiry asks for.
const minRetention = 30 * 24 * time.Hour

func auditRetain() *cobra.Command {
	var file string
	var keep time.Duration
	cmd := withUsageErrors(&cobra.Command{
		Use: "retain", Short: "Remove the oldest entries; the chain goes on from there", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if keep < minRetention {
				return usageError{fmt.Errorf("--keep is %s; at least %s is kept", keep, minRetention)}
			}
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				n, err := d.audit.Retain(cmd.Context(), d.clock.Now().Add(-keep), operator())
				_, printErr := fmt.Fprintf(cmd.OutOrStdout(), "removed %d entries\n", n)
				return errors.Join(err, printErr)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().DurationVar(&keep, "keep", 0, "age of what is kept, such as 8760h for a year; required")
	return cmd
}
