package app

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"versola/platform/config"
)

// ConfigCommand is "versola config".
func ConfigCommand() *cobra.Command {
	return group("config", "Make, check and show a configuration", configInit(), configCheck(), configPrint(), configReference())
}

func configCheck() *cobra.Command {
	var file, role string
	cmd := withUsageErrors(&cobra.Command{
		Use: "check [FILE]", Short: "Report everything that is wrong with a configuration, with file and line", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fileArgument(&file, args); err != nil {
				return err
			}
			if _, _, err := loadConfig(file, role); err != nil {
				return err
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "ok")
			return err
		},
	})
	addConfigFlags(cmd, &file, &role)
	return cmd
}

func configPrint() *cobra.Command {
	var file, role string
	cmd := withUsageErrors(&cobra.Command{
		Use: "print [FILE]", Short: "Print the effective configuration, with where each value came from and secrets redacted", Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := fileArgument(&file, args); err != nil {
				return err
			}
			cfg, src, err := loadConfig(file, role)
			if err != nil {
				return err
			}
			text, err := config.Print(cfg, src)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	})
	addConfigFlags(cmd, &file, &role)
	return cmd
}

// fileArgument takes the file from the argument or from --config, not both.
func fileArgument(file *string, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if *file != "" && *file != args[0] {
		return usageError{fmt.Errorf("two files given: %s and --config %s", args[0], *file)}
	}
	if args[0] == "" {
		return usageError{fmt.Errorf("the file's name is empty")}
	}
	*file = args[0]
	return nil
}

func configReference() *cobra.Command {
	return withUsageErrors(&cobra.Command{
		Use: "reference", Short: "Print the reference of all keys as a Markdown table", Args: cobra.NoArgs, Hidden: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprint(cmd.OutOrStdout(), config.Reference[Config]())
			return err
		},
	})
}

func configInit() *cobra.Command {
	o := initOptions{}
	cmd := withUsageErrors(&cobra.Command{
		Use: "init", Short: "Write an annotated configuration with freshly generated keys", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := parseRoles(o.role, true); err != nil {
				return usageError{err}
			}
			if o.profile != profileDevelopment && o.profile != profileProduction {
				return usageError{fmt.Errorf("unknown profile %q: %s or %s", o.profile, profileProduction, profileDevelopment)}
			}
			if o.out == "" {
				return usageError{fmt.Errorf("--out is empty: the name of the file to write, or - for standard output")}
			}
			written, err := o.write(cmd.OutOrStdout())
			for _, path := range written {
				_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "wrote", path)
			}
			if err == nil && o.out != "-" {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "now fill in the addresses that end in example.com, then: versola config check %s\n", o.out)
			}
			return err
		},
	})
	f := cmd.Flags()
	f.StringVar(&o.role, "role", "all", "role: "+RoleNames+", or a comma list")
	f.StringVar(&o.profile, "profile", profileProduction, "profile: production or development")
	f.StringVar(&o.out, "out", "versola.yaml", "file to write; - for standard output")
	f.StringVar(&o.secretsDir, "secrets-dir", "", "write each secret to a file of its own in this directory, and refer to it")
	f.BoolVar(&o.force, "force", false, "overwrite files that exist, also secrets: what they sealed becomes unreadable")
	return cmd
}

// exists tells whether something has the path's name, also a dangling link.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
