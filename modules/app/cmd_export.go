package app

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/export"
	"versola/modules/central/store"
	"versola/platform/secret"
)

// ExportCommand is "versola export".
func ExportCommand() *cobra.Command {
	var file, out, tenant string
	var secrets bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "export [-o DIR|FILE]", Short: "Write the configuration as documents for versola apply", Args: cobra.NoArgs,
		Long: `Write the configuration as documents that "versola apply" reads. The same configuration gives the same
bytes, and applied to an empty deployment they reproduce it.

Clients' secrets are written with --secrets only. Without it, a client that has secrets is written with
generate_secret: it keeps the secrets that it has where it is known, and gets a new one where it is not.
People and signing keys are not part of the configuration. Either way the export is in the audit log
before anything is written, as configuration.exported or secrets.exported.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return usageError{errors.New("--output is empty: a directory, a .yaml file, or - for standard output")}
			}
			return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
				o := export.Options{Tenant: tenant}
				s, err := store.Load(cmd.Context(), d.db)
				if err != nil {
					return err
				}
				if tenant != "" && !slices.ContainsFunc(s.Tenants, func(t catalog.TenantSpec) bool { return t.ID == tenant }) {
					return usageError{fmt.Errorf("--tenant: there is no tenant %q", tenant)}
				}
				e := audit.Entry{Action: "configuration.exported", Actor: operator(), Tenant: tenant, Detail: map[string]string{"revision": strconv.FormatInt(s.Revision, 10)}}
				if secrets {
					e.Action = "secrets.exported"
				}
				if err := d.audit.Write(cmd.Context(), e); err != nil {
					return err
				}
				if secrets {
					keyring, err := secret.NewKeyring(d.encryption, catalog.SealPurpose)
					if err != nil {
						return fmt.Errorf("keys.encryption: %w", err)
					}
					o.Open = keyring.Open
				}
				return writeExport(s, o, out, cmd.OutOrStdout())
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().StringVarP(&out, "output", "o", stdin, "directory that is empty or not there yet, .yaml file, or - for standard output")
	cmd.Flags().StringVar(&tenant, "tenant", "", "only this tenant and what belongs to it")
	cmd.Flags().BoolVar(&secrets, "secrets", false, "write clients' secrets in plain text")
	return cmd
}

// errNotEmpty: what an earlier export left there would be applied again.
var errNotEmpty = errors.New("the directory is not empty")

func writeExport(s *catalog.Snapshot, o export.Options, to string, stdout io.Writer) error {
	if to == stdin {
		return export.Write(stdout, s, o)
	}
	if ext := filepath.Ext(to); ext == ".yaml" || ext == ".yml" {
		var b bytes.Buffer
		if err := export.Write(&b, s, o); err != nil {
			return err
		}
		return writeExported(to, b.Bytes())
	}
	entries, err := os.ReadDir(to)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("look at the output: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("%s: %w", to, errNotEmpty)
	}
	files := map[string]*strings.Builder{}
	err = export.Documents(s, o, func(name string, document []byte) error {
		b, begun := files[name]
		if !begun {
			b = &strings.Builder{}
			files[name] = b
		} else {
			b.WriteString("---\n")
		}
		b.Write(document)
		return nil
	})
	if err != nil {
		return err
	}
	for name, b := range files {
		if err := writeExported(filepath.Join(to, filepath.FromSlash(name)), []byte(b.String())); err != nil {
			return err
		}
	}
	return nil
}

// writeExported makes a file that its owner alone reads: it may hold secrets.
func writeExported(name string, raw []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return fmt.Errorf("make the output's directory: %w", err)
	}
	if err := os.WriteFile(name, raw, 0o600); err != nil {
		return fmt.Errorf("write the output: %w", err)
	}
	return nil
}
