package app

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// root is the whole program.
func root(t *testing.T) *cobra.Command {
	t.Helper()
	cmd, err := RootCommand()
	if err != nil {
		t.Fatal(err)
	}
	return cmd
}

// leaves are the commands that do something, hidden ones left out.
func leaves(cmd *cobra.Command) (out []*cobra.Command) {
	if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" {
		return nil
	}
	if !cmd.HasSubCommands() {
		return []*cobra.Command{cmd}
	}
	for _, c := range cmd.Commands() {
		out = append(out, leaves(c)...)
	}
	return out
}

func TestCommandReference_IsCurrent(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "command-line.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var reference strings.Builder
	for _, c := range leaves(root(t)) {
		if !strings.HasPrefix(c.CommandPath(), "versola admin ") { // they are the operations of the API's document
			describe(&reference, c)
		}
	}
	place := regexp.MustCompile(`(?s)(<!-- reference -->\n).*(<!-- end of reference -->)`)
	if !place.Match(page) {
		t.Fatal("the page has no place for the reference")
	}
	want := place.ReplaceAllString(string(page), "${1}"+strings.ReplaceAll(reference.String(), "$", "$$")+"${2}")
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(page)); diff != "" {
		t.Errorf("%s is out of date (go test ./modules/app -run CommandReference -update):\n%s", path, diff)
	}
}

func describe(b *strings.Builder, c *cobra.Command) {
	fmt.Fprintf(b, "### %s\n\n%s.\n\n", c.CommandPath(), c.Short)
	text := strings.TrimSuffix(c.UseLine(), " [flags]")
	if c.Long != "" {
		text += "\n\n" + strings.TrimSpace(c.Long)
	}
	fmt.Fprintf(b, "```text\n%s\n```\n\n", text)
	var rows []string
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name = "`-" + f.Shorthand + "`, " + name
		}
		value := f.DefValue
		if value == "false" || value == "[]" || value == "0s" {
			value = ""
		}
		if value != "" {
			value = "`" + value + "`"
		}
		rows = append(rows, fmt.Sprintf("| %s | %s | %s |\n", name, value, strings.ReplaceAll(f.Usage, "|", "\\|")))
	})
	if len(rows) > 0 {
		fmt.Fprintf(b, "| flag | default | meaning |\n|---|---|---|\n%s\n", strings.Join(rows, ""))
	}
}

func TestCommands_EachHasHelpAndRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Setenv("VERSOLA_CONFIG", "")
	t.Setenv("VERSOLA_STATE_DIR", filepath.Join(t.TempDir(), "none"))
	// The operations of the API are made by one rule: one group stands for all.
	all := slices.DeleteFunc(leaves(root(t)), func(c *cobra.Command) bool {
		return c.Parent().Parent() != nil && c.Parent().Parent().Name() == "admin" && c.Parent().Name() != "clients"
	})
	if len(all) < 30 {
		t.Fatalf("%d commands", len(all))
	}
	execute := func(args ...string) (string, string, int) {
		cmd := root(t)
		var out, errs strings.Builder
		cmd.SetIn(strings.NewReader(""))
		cmd.SetOut(&out)
		cmd.SetErr(&errs)
		cmd.SetArgs(args)
		err := cmd.ExecuteContext(t.Context())
		if err != nil {
			errs.WriteString(err.Error())
		}
		return out.String(), errs.String(), ExitCode(err)
	}
	for _, c := range all {
		path := strings.Fields(c.CommandPath())[1:]
		if c.Short == "" || strings.HasSuffix(c.Short, ".") {
			t.Errorf("%s: short description %q", c.CommandPath(), c.Short)
		}
		out, errs, code := execute(append(path, "--help")...)
		if code != 0 || errs != "" || !strings.Contains(out, "Usage:\n  "+c.CommandPath()) {
			t.Errorf("%s --help: %d %s%s", c.CommandPath(), code, out, errs)
		}
		for name, args := range map[string][]string{
			"an unknown flag":       {"--no-such-flag"},
			"an unknown short flag": {"-Z"},
			"a flag without value":  {"--profile-file", "--config"},
			"too many arguments":    {"a", "b", "c", "d", "e"},
		} {
			if out, errs, code := execute(append(path, args...)...); code != 2 || errs == "" || strings.Contains(errs, "\n") || out != "" {
				t.Errorf("%s with %s: %d %q %q", c.CommandPath(), name, code, out, errs)
			}
		}
		group := path[:len(path)-1]
		if out, errs, code := execute(append(group, "no-such-command")...); code != 2 || !strings.Contains(errs, "no-such-command") || out != "" {
			t.Errorf("%v no-such-command: %d %q %q", group, code, out, errs)
		}
	}
}
