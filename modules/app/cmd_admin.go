package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"versola/modules/app/adminapi"
)

// maxBody is the most that is sent of a file, in bytes: a bulk import of people
// is the largest.
const maxBody = 256 << 20

// adminRun is one run of "versola admin ...".
type adminRun struct {
	*adminFlags
	command            adminapi.Command
	within             map[string]*string // flags of the path
	query              map[string]*string // flags of the query
	ifMatch, key, file string
	set                []string
	all                bool
}

// adminFlags are those of every command of "versola admin".
type adminFlags struct{ profiles, profile, output string }

// AdminCommand is "versola admin": a command for each operation of the
// administration API. Errors: an OpenAPI document that gives no commands.
func AdminCommand() (*cobra.Command, error) {
	commands, err := adminapi.Commands()
	if err != nil {
		return nil, err
	}
	var members []*cobra.Command
	var order []string
	groups := map[string][]*cobra.Command{}
	shared := &adminFlags{}
	for _, c := range commands {
		cmd := adminOperation(c, shared)
		if c.Group == "" {
			members = append(members, cmd)
			continue
		}
		if groups[c.Group] == nil {
			order = append(order, c.Group)
		}
		groups[c.Group] = append(groups[c.Group], cmd)
	}
	for _, name := range order {
		g := group(name, "Administer "+strings.ReplaceAll(name, "-", " "), groups[name]...)
		if one := adminapi.Singular(name); one != name {
			g.Aliases = []string{one}
		}
		members = append(members, g)
	}
	cmd := group("admin", "Administer a deployment through its API", members...)
	f := cmd.PersistentFlags()
	f.StringVar(&shared.profiles, "profile-file", "", "file of profiles; default: versola/profiles.yaml in the user's configuration directory")
	f.StringVar(&shared.profile, "profile", "", "profile of the file; default: its only one, else \"default\"")
	f.StringVarP(&shared.output, "output", "o", "", "table, json or yaml; default: table for lists, else yaml")
	if err := cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]cobra.Completion{adminapi.Table, adminapi.JSON, adminapi.YAML}, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		return nil, fmt.Errorf("complete --output: %w", err)
	}
	cmd.Long = `Administer a running deployment through its API, with the rights of a service client.

Where it is and who calls says a profile of the file --profile-file (mode 0600):

  profiles:
    default:
      api: https://central.example.com          # or the edge's /resources/central
      issuer: https://id.example.com/t/system
      client_id: ops
      client_secret_file: ops.secret            # or client_secret_env: NAME
      ca_file: ca.pem                           # optional

Exit codes: 0 done; 1 the deployment refused; 2 a mistake in the command line or the profile; 3 the
deployment does not answer, or does not accept the client.`
	return cmd, nil
}

func adminOperation(c adminapi.Command, shared *adminFlags) *cobra.Command {
	run := &adminRun{adminFlags: shared, command: c, within: map[string]*string{}, query: map[string]*string{}}
	use := c.Name
	for _, a := range c.Args {
		use += " " + strings.ToUpper(a)
	}
	cmd := withUsageErrors(&cobra.Command{Use: use, Short: c.Summary, Args: cobra.ExactArgs(len(c.Args)),
		RunE: func(cmd *cobra.Command, args []string) error { return run.do(cmd, args) }})
	f := cmd.Flags()
	for _, name := range c.Flags {
		run.within[name] = f.String(name, "", "the "+name+" that it is within; required")
	}
	for _, p := range c.Query {
		name := p.Name
		run.query[name] = f.String(strings.ReplaceAll(name, "_", "-"), "", "query parameter "+name+" of "+c.ID)
	}
	if c.Paged() {
		f.BoolVar(&run.all, "all", false, "all pages")
	}
	if c.Versioned {
		f.StringVar(&run.ifMatch, "if-match", "", "ETag of the version to change, or *; default: that of now")
	}
	if c.Idempotent {
		f.StringVar(&run.key, "idempotency-key", "", "names the request, so that it can be sent again; default: a random one")
	}
	if c.Body != "" {
		f.StringVarP(&run.file, "file", "f", "", "what to send, in YAML or JSON (- for standard input)")
		f.StringArrayVar(&run.set, "set", nil, "member of what is sent: a.b=VALUE, VALUE in YAML; repeatable")
	}
	return cmd
}

// do makes the call, or all of them for --all, and prints what comes.
func (r *adminRun) do(cmd *cobra.Command, args []string) error {
	parameters, query, err := r.parameters(args)
	if err != nil {
		return usageError{err}
	}
	if r.output != "" && r.output != adminapi.Table && r.output != adminapi.JSON && r.output != adminapi.YAML {
		return usageError{fmt.Errorf("--output is table, json or yaml, not %q", r.output)}
	}
	call := adminapi.Call{Method: r.command.Method, Path: r.command.Target(parameters, query), Header: http.Header{}}
	if r.command.Body != "" {
		if call.Body, err = r.body(standardInput(cmd)); err != nil {
			return usageError{err}
		}
		call.Header.Set("Content-Type", r.command.Body)
	}
	client, err := r.client()
	if err != nil {
		return usageError{err}
	}
	if r.command.Idempotent {
		if r.key == "" {
			r.key = rand.Text()
		}
		call.Header.Set("Idempotency-Key", r.key)
	}
	if r.command.Versioned {
		if err := r.version(cmd.Context(), client, &call); err != nil {
			return err
		}
	}
	answer, err := client.Do(cmd.Context(), call)
	if err != nil {
		return err
	}
	if r.all {
		more := func(after string) (*adminapi.Answer, error) {
			query.Set("after", after)
			return client.Do(cmd.Context(), adminapi.Call{Method: call.Method, Path: r.command.Target(parameters, query)})
		}
		if answer, err = adminapi.Join(answer, more); err != nil {
			return err
		}
	}
	return adminapi.Print(cmd.OutOrStdout(), answer, r.output)
}

func (r *adminRun) parameters(args []string) (map[string]string, url.Values, error) {
	parameters, query := map[string]string{}, url.Values{}
	for i, name := range r.command.Args {
		parameters[name] = args[i]
	}
	for name, value := range r.within {
		if *value == "" {
			return nil, nil, fmt.Errorf("--%s is needed", name)
		}
		parameters[name] = *value
	}
	for name, value := range parameters {
		if value == "" || value == "." || value == ".." {
			return nil, nil, fmt.Errorf("%s cannot be %q", name, value)
		}
	}
	for name, value := range r.query {
		if *value != "" {
			query.Set(name, *value)
		}
	}
	if n := query.Get("limit"); n != "" {
		if _, err := strconv.Atoi(n); err != nil {
			return nil, nil, fmt.Errorf("--limit is a number, not %q", n)
		}
	}
	return parameters, query, nil
}

func (r *adminRun) body(standard io.Reader) ([]byte, error) {
	var raw []byte
	if r.command.NeedsBody && r.file == "" && len(r.set) == 0 {
		return nil, errors.New("there is nothing to send: -f FILE, --set MEMBER=VALUE, or both")
	}
	if r.file != "" {
		in, err := openLines(r.file, standard)
		if err != nil {
			return nil, err
		}
		defer func() { _ = in.Close() }()
		if raw, err = io.ReadAll(io.LimitReader(in, maxBody+1)); err != nil {
			return nil, fmt.Errorf("read %s: %w", r.file, err)
		}
		if len(raw) > maxBody {
			return nil, fmt.Errorf("%s is longer than %d bytes", r.file, maxBody)
		}
	}
	if !strings.HasSuffix(r.command.Body, "json") || strings.HasSuffix(r.command.Body, "ndjson") {
		if r.file == "" || len(r.set) > 0 {
			return nil, fmt.Errorf("%s is sent as it is: name it with -f, without --set", r.command.Body)
		}
		return raw, nil
	}
	body, err := adminapi.Body(raw, r.set)
	if err != nil && r.file != "" {
		err = fmt.Errorf("%s: %w", r.file, err)
	}
	return body, err
}

func (r *adminRun) client() (*adminapi.Client, error) {
	file := r.profiles
	if file == "" {
		var err error
		if file, err = adminapi.DefaultProfiles(); err != nil {
			return nil, err
		}
	}
	p, err := adminapi.ReadProfile(file, r.profile, os.Getenv)
	if err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	return adminapi.New(p)
}

// version makes the call conditional on the version that is there now, unless
// the command line names one: a change in between is refused.
func (r *adminRun) version(ctx context.Context, client *adminapi.Client, call *adminapi.Call) error {
	if r.ifMatch == "" {
		now, err := client.Do(ctx, adminapi.Call{Method: http.MethodGet, Path: call.Path})
		if err != nil {
			return err
		}
		if r.ifMatch = now.Header.Get("ETag"); r.ifMatch == "" {
			return errors.New("the deployment tells no version; name it with --if-match")
		}
	}
	call.Header.Set("If-Match", r.ifMatch)
	return nil
}
