package app

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"versola/modules/central/keys"
)

// KeysCommand is "versola keys".
func KeysCommand() *cobra.Command {
	return group("keys", "List, rotate and retire the keys that sign tokens", keysList(), keysRotate(), keysRetire())
}

func keysList() *cobra.Command {
	var file string
	var asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "list", Short: "List the signing keys and their states", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return withRotator(cmd, file, func(r *keys.Rotator) error {
				list, err := r.List(cmd.Context())
				if err != nil {
					return err
				}
				return printKeys(cmd.OutOrStdout(), list, asJSON)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func keysRotate() *cobra.Command {
	var file string
	var algs []string
	var publish time.Duration
	var now, asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "rotate", Short: "Publish new keys, which take over when relying parties know them", Args: cobra.NoArgs,
		Long: `Publish a new key for each algorithm in use, or for those given. It begins to sign after --publish,
when every relying party has had the time to fetch it; the key of before stays published until
nothing that it signed is valid. --now does not wait: for a key that may be compromised.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if now {
				if cmd.Flags().Changed("publish") {
					return usageError{errors.New("--now and --publish exclude each other")}
				}
				publish = 0
			} else if publish == 0 {
				return usageError{keys.ErrPublish}
			}
			return withRotator(cmd, file, func(r *keys.Rotator) error {
				list, err := r.Rotate(cmd.Context(), keys.Caller{Actor: operator()}, algs, publish)
				if errors.Is(err, keys.ErrPublish) || errors.Is(err, keys.ErrAlgorithm) {
					return usageError{err}
				}
				if err != nil {
					return err
				}
				return printKeys(cmd.OutOrStdout(), list, asJSON)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().StringSliceVar(&algs, "alg", nil, "algorithms: ES256, RS256, PS256, EdDSA; default: those in use")
	cmd.Flags().DurationVar(&publish, "publish", keys.MinPublish, "how long a key is published before it signs")
	cmd.Flags().BoolVar(&now, "now", false, "sign with the new key at once")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func keysRetire() *cobra.Command {
	var file string
	var asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "retire KID", Short: "Remove a key at once: what it signed no longer verifies", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return withRotator(cmd, file, func(r *keys.Rotator) error {
				list, err := r.Retire(cmd.Context(), keys.Caller{Actor: operator()}, args[0])
				if err != nil {
					return err
				}
				return printKeys(cmd.OutOrStdout(), list, asJSON)
			})
		},
	})
	configFlag(cmd, &file)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func withRotator(cmd *cobra.Command, file string, work func(*keys.Rotator) error) error {
	return within(cmd.Context(), file, cmd.ErrOrStderr(), func(d *deployment) error {
		r, err := d.rotator()
		if err != nil {
			return err
		}
		return work(r)
	})
}

func printKeys(out io.Writer, list []keys.Key, asJSON bool) error {
	if asJSON {
		return printJSON(out, list)
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "ALG\tSTATE\tKID\tSINCE\tNEXT STEP")
	for _, k := range list {
		since, due := "", ""
		if k.ActiveSince != nil {
			since = k.ActiveSince.UTC().Format(time.RFC3339)
		}
		if k.Due != nil {
			due = map[string]string{"next": "signs ", "retiring": "removed "}[k.State] + k.Due.UTC().Format(time.RFC3339)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", k.Alg, k.State, k.ID, since, due)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print keys: %w", err)
	}
	return nil
}
