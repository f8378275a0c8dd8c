package app

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is set by the linker in a release:
// -ldflags "-X versola/modules/app.version=1.2.3".
var version = "" //nolint:gochecknoglobals // the linker sets it

// Version returns the version of this program: the release's, else the
// module's, else "dev".
func Version() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "dev"
}

// commit returns the revision that the program was built from.
func commit() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	revision := settings["vcs.revision"]
	switch {
	case revision == "":
		return "unknown"
	case settings["vcs.modified"] == "true":
		return revision + " (modified)"
	}
	return revision
}

// VersionCommand is "versola version".
func VersionCommand() *cobra.Command {
	var asJSON bool
	cmd := withUsageErrors(&cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if asJSON {
				return printJSON(cmd.OutOrStdout(), map[string]string{"version": Version(), "commit": commit(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "versola %s\ncommit %s\n%s %s/%s\n", Version(), commit(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	})
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
