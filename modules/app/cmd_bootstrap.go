package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"versola/modules/auth/logout"
	"versola/modules/auth/password"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/bootstrap"
	"versola/modules/central/seed"
	"versola/modules/central/users"
	"versola/platform/secret"
)

// BootstrapCommand is "versola bootstrap".
func BootstrapCommand() *cobra.Command {
	return group("bootstrap", "Set up a new deployment", bootstrapAdmin())
}

// bootstrapFlags are what the command line says.
type bootstrapFlags struct {
	file, email, phone, name              string
	edgeID, edgeURL, edgeKeys, centralURL string
	validFor                              time.Duration
	again                                 bool
}

func bootstrapAdmin() *cobra.Command {
	var f bootstrapFlags
	cmd := withUsageErrors(&cobra.Command{
		Use: "admin --email ADDRESS | --phone NUMBER", Short: "Make the first administrator, with a one-time password", Args: cobra.NoArgs,
		Long: `Make the first administrator of a deployment and print a temporary password, which has to be replaced at
the first sign-in (at EDGE-URL/login/admin). The command works on the database, also beside a running
process.

The first time, it loads the tenant "system": the administration API as a resource, its permissions and
roles, and the client and login through which administrators sign in, at the edge that the --edge-...
flags name. What is there already is left as it is.

It refuses where there is an administrator, and does nothing when that is the same person. --recover makes
another one, or lets one in who is locked out: the role, a new temporary password instead of the one they
have, signed out everywhere, limits forgotten; with the --edge-... flags it also brings back what is
missing of the tenant "system". Everything is in the audit log.

Exit codes: 0 done, or that person is an administrator already; 1 refused, or the database did not allow
it; 2 a mistake in the command line.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := f.params(standardInput(cmd))
			if err != nil {
				return err
			}
			return within(cmd.Context(), f.file, cmd.ErrOrStderr(), func(d *deployment) error {
				return d.bootstrapAdmin(cmd.Context(), p, cmd.OutOrStdout())
			})
		},
	})
	configFlag(cmd, &f.file)
	flags := cmd.Flags()
	flags.StringVar(&f.email, "email", "", "e-mail address of the administrator")
	flags.StringVar(&f.phone, "phone", "", "phone number of the administrator, with + and country code")
	flags.StringVar(&f.name, "name", "", "name of the administrator, for people to see")
	flags.DurationVar(&f.validFor, "valid-for", users.DefaultTemporary, "how long the temporary password works")
	flags.BoolVar(&f.again, "recover", false, "also where there is an administrator")
	flags.StringVar(&f.edgeID, "edge-id", "", "id of the edge through which administrators sign in (edge.id)")
	flags.StringVar(&f.edgeURL, "edge-url", "", "its public URL (edge.public_url)")
	flags.StringVar(&f.edgeKeys, "edge-keys", "", "file with its keys (edge.private_keys, or their public half); needed where the edge is not declared yet")
	flags.StringVar(&f.centralURL, "central-url", "", "where that edge reaches central (edge.central_url)")
	return cmd
}

// params reads the flags; the edge's may be left to the configuration.
func (f *bootstrapFlags) params(stdin io.Reader) (p bootstrap.Params, err error) {
	p = bootstrap.Params{Name: strings.TrimSpace(f.name), ValidFor: f.validFor, Recover: f.again, By: operator()}
	switch {
	case (f.email == "") == (f.phone == ""):
		return p, usageError{errors.New("--email or --phone is needed, one of them")}
	case f.email != "":
		p.Identifier.Kind = user.KindEmail
		if p.Identifier.Value, err = user.ParseEmail(f.email); err != nil {
			return p, usageError{fmt.Errorf("--email: %w", err)}
		}
	default:
		p.Identifier.Kind = user.KindPhone
		if p.Identifier.Value, err = user.ParsePhone(f.phone); err != nil {
			return p, usageError{fmt.Errorf("--phone: %w", err)}
		}
	}
	if p.Name != "" {
		n := user.New{Email: "a@b.example", Claims: map[string]any{"name": p.Name}}
		if problems := n.Problems(); len(problems) > 0 {
			return p, usageError{fmt.Errorf("--name %s", problems[0].Detail)}
		}
	}
	if f.validFor < users.MinTemporary || f.validFor > users.MaxTemporary {
		return p, usageError{fmt.Errorf("--valid-for is %s to %s", users.MinTemporary, users.MaxTemporary)}
	}
	p.Edge = seed.Params{EdgeID: f.edgeID, EdgeURL: f.edgeURL, CentralURL: f.centralURL}
	for name, text := range map[string]*string{"--edge-url": &p.Edge.EdgeURL, "--central-url": &p.Edge.CentralURL} {
		*text = strings.TrimSuffix(*text, "/")
		if u, err := url.Parse(*text); *text != "" && (err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.RawQuery+u.Fragment != "") {
			return p, usageError{fmt.Errorf("%s is an http or https URL", name)}
		}
	}
	if f.edgeKeys != "" {
		keys, err := readKeys(stdin, f.edgeKeys)
		if err != nil {
			return p, err
		}
		if p.Edge.EdgeJWKS, err = PublicEdgeKeys(keys); err != nil {
			return p, fmt.Errorf("--edge-keys %s: %w", f.edgeKeys, err)
		}
	}
	return p, nil
}

// ownEdge fills in what the flags leave out, where the configuration is that of
// a process that runs an edge too: it has the edge's keys then.
func (d *deployment) ownEdge(p *seed.Params) (err error) {
	own := d.cfg.Edge
	if own.PrivateKeys.Empty() || p.EdgeID != "" && p.EdgeID != own.ID {
		return nil
	}
	p.EdgeID, p.EdgeURL, p.CentralURL = own.ID, cmp.Or(p.EdgeURL, own.PublicURL), cmp.Or(p.CentralURL, own.CentralURL)
	if len(p.EdgeJWKS) == 0 {
		p.EdgeJWKS, err = PublicEdgeKeys(own.PrivateKeys)
	}
	return err
}

func (d *deployment) bootstrapAdmin(ctx context.Context, p bootstrap.Params, out io.Writer) error {
	if err := d.ownEdge(&p.Edge); err != nil {
		return err
	}
	deps, err := d.bootstrapDeps()
	if err != nil {
		return err
	}
	r, err := bootstrap.New(*deps).Administrator(ctx, p)
	switch {
	case errors.Is(err, bootstrap.ErrEdge):
		return usageError{fmt.Errorf("%w: --edge-id, --edge-url, --edge-keys, --central-url", err)}
	case err != nil:
		return err
	}
	who := p.Identifier.Value
	if r.Password.Empty() {
		_, err = fmt.Fprintf(out, "%s is an administrator already; nothing was changed\n", who)
		return err
	}
	did := "is an administrator again"
	if r.Created {
		did = "is an administrator"
	}
	_, err = fmt.Fprintf(out, "%s %s (%s)\ntemporary password: %s\nworks until: %s, and has to be replaced at the first sign-in\n",
		who, did, r.User, r.Password.Reveal(), r.ExpiresAt.UTC().Format(time.RFC3339))
	if err == nil && p.Edge.EdgeURL != "" {
		_, err = fmt.Fprintf(out, "sign in at: %s/login/admin\n", p.Edge.EdgeURL)
	}
	return err
}

func (d *deployment) bootstrapDeps() (*bootstrap.Deps, error) {
	hasher, err := password.NewHasher(d.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("password hasher: %w", err)
	}
	engine, err := d.engine()
	if err != nil {
		return nil, err
	}
	people := user.NewStore(d.db, rand.Reader)
	applier := apply.New(apply.Deps{DB: d.db, Engine: engine, Users: people, Hasher: hasher, Clock: d.clock, Random: rand.Reader})
	deps := &bootstrap.Deps{
		DB: d.db, Seed: seed.Deps{DB: d.db, Applier: applier, Clock: d.clock}, Engine: engine, Users: people,
		Sessions: logout.NewEnder(d.db, d.clock, nil), Hasher: hasher, Audit: d.audit, Clock: d.clock, Random: rand.Reader, Catalog: d.catalog,
	}
	if len(d.cfg.Keys.Tokens) > 0 {
		tokens, err := secret.ParseKeys(d.cfg.Keys.Tokens)
		if err != nil {
			return nil, fmt.Errorf("keys.tokens: %w", err)
		}
		if deps.Limits, err = throttle.NewKeys(tokens); err != nil {
			return nil, fmt.Errorf("keys.tokens: %w", err)
		}
	}
	return deps, nil
}
