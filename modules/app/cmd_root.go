package app

import "github.com/spf13/cobra"

// RootCommand is "versola" with all its commands. Its errors are for
// [ExitCode]. Errors here: an OpenAPI document that gives no commands.
func RootCommand() (*cobra.Command, error) {
	admin, err := AdminCommand()
	if err != nil {
		return nil, err
	}
	root := withUsageErrors(&cobra.Command{
		Use:           "versola",
		Short:         "Versola signs people in and guards the APIs behind it",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       Version(),
	})
	root.AddCommand(ServeCommand(), MigrateCommand(), ConfigCommand(), BootstrapCommand(), ApplyCommand(), ExportCommand(), admin,
		UsersCommand(), AuditCommand(), KeysCommand(), EdgeCommand(), VersionCommand())
	return root, nil
}
