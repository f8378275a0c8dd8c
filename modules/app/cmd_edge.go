package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"versola/platform/secret"
)

// EdgeCommand is "versola edge".
func EdgeCommand() *cobra.Command {
	return group("edge", "Make and rotate the keys of an edge", edgeKeygen(), edgePublic(), edgePrune())
}

const edgeRotation = `
An edge's keys are rotated without an interruption in three steps:

  versola edge keygen --from keys.json --out new.json   new keys first, those of before after them
  versola edge public new.json                          register this in the edge's declaration (jwks), then
                                                        restart the edge's processes, one by one, with new.json
  versola edge prune new.json --out last.json           when all run with it: the same again with last.json`

func edgeKeygen() *cobra.Command {
	var from, out string
	cmd := withUsageErrors(&cobra.Command{
		Use: "keygen", Short: "Make an edge's private keys, or add new ones before those that it has", Args: cobra.NoArgs,
		Long: "Make an edge's private keys (edge.private_keys), or add new ones before those that it has.\n" + edgeRotation,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeKeys(cmd, out, func() (json.RawMessage, error) {
				if from == "" {
					return GenerateEdgeKeys()
				}
				old, err := readKeys(standardInput(cmd), from)
				if err != nil {
					return nil, err
				}
				return RotateEdgeKeys(old)
			})
		},
	})
	cmd.Flags().StringVar(&from, "from", "", "file with the keys that the edge has; - for standard input")
	cmd.Flags().StringVar(&out, "out", "-", "file to write, which must not exist; - for standard output")
	return cmd
}

func edgePrune() *cobra.Command {
	var out string
	cmd := withUsageErrors(&cobra.Command{
		Use: "prune FILE", Short: "Drop the keys of before: what ends a rotation", Args: cobra.ExactArgs(1),
		Long: "Keep only the first key of each use.\n" + edgeRotation,
		RunE: func(cmd *cobra.Command, args []string) error {
			return writeKeys(cmd, out, func() (json.RawMessage, error) {
				all, err := readKeys(standardInput(cmd), args[0])
				if err != nil {
					return nil, err
				}
				return PruneEdgeKeys(all)
			})
		},
	})
	cmd.Flags().StringVar(&out, "out", "-", "file to write, which must not exist; - for standard output")
	return cmd
}

func edgePublic() *cobra.Command {
	return withUsageErrors(&cobra.Command{
		Use: "public FILE", Short: "Print the public half of an edge's keys: what central is told", Args: cobra.ExactArgs(1),
		Long: "Print the public half of an edge's keys; - reads standard input.\n" + edgeRotation,
		RunE: func(cmd *cobra.Command, args []string) error {
			private, err := readKeys(standardInput(cmd), args[0])
			if err != nil {
				return err
			}
			if _, err := edgeKeys(private); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			public, err := PublicEdgeKeys(private)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", public)
			return err
		},
	})
}

// maxKeyFile bounds a file of keys: eight of them are two kilobytes.
const maxKeyFile = 64 << 10

func readKeys(stdin io.Reader, name string) (secret.Text, error) {
	in := stdin
	if name != "-" {
		f, err := os.Open(name) //nolint:gosec // the operator names it
		if err != nil {
			return "", fmt.Errorf("read keys: %w", err)
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, maxKeyFile))
	if err != nil {
		return "", fmt.Errorf("read keys: %w", err)
	}
	return secret.Text(raw), nil
}

// writeKeys makes keys and writes them where only their owner reads them.
func writeKeys(cmd *cobra.Command, name string, generate func() (json.RawMessage, error)) error {
	if name == "" {
		return usageError{errors.New("--out is empty: the name of the file to write, or - for standard output")}
	}
	if name != "-" && exists(name) {
		return fmt.Errorf("%s exists already; keys are never overwritten", name)
	}
	raw, err := generate()
	if err != nil {
		return err
	}
	if name == "-" {
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s\n", raw)
		return err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the operator names it
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists already; keys are never overwritten", name)
	}
	if err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	_, err = f.Write(append(raw, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write keys: %w", err)
	}
	_, err = fmt.Fprintln(cmd.ErrOrStderr(), "wrote", name)
	return err
}
