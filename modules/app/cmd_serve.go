package app

import (
	"github.com/spf13/cobra"
)

// ServeCommand returns "serve".
func ServeCommand() *cobra.Command {
	var file, role string
	var migrate bool
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run auth, edge, central, or all of them",
		Long: "Run the modules of a role until a signal ends the process.\n\n" +
			"Without any configuration it runs a demo: a private PostgreSQL, generated keys\n" +
			"in .versola/, the tenant \"demo\" and a small bank behind the edge.",
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := loadConfig(file, role)
			if err != nil {
				return err
			}
			return Serve(cmd.Context(), ServeOptions{Config: cfg, Version: Version(), Migrate: migrate, Out: cmd.OutOrStdout(), LogTo: cmd.ErrOrStderr()})
		},
	}
	addConfigFlags(cmd, &file, &role)
	cmd.Flags().BoolVar(&migrate, "migrate", false, "bring the database schema up to date before serving")
	return withUsageErrors(cmd)
}
