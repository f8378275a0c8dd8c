package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"versola/modules/auth/password"
	"versola/modules/auth/user"
	"versola/modules/central/apply"
	"versola/modules/central/change"
	"versola/modules/central/seed"
	"versola/modules/central/validate"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// databaseRetry is the pause between attempts to reach a database that is away.
const databaseRetry = time.Second

// seed loads the system and the demo tenant, once in the life of a database. A
// database that is away is seeded when it comes.
func (p *process) seed(ctx context.Context) error {
	if p.cfg.Profile == profileProduction {
		if err := p.onceThere(ctx, "demo", "a database that holds the demo is refused when it is back", p.refuseDemo); err != nil {
			return err
		}
	}
	deps, err := p.seedDeps()
	if err != nil {
		return err
	}
	if p.cfg.Profile != profileProduction && p.cfg.Demo.Enabled {
		plant, err := p.planter(deps)
		if err != nil {
			return err
		}
		if err := p.onceThere(ctx, "seed", "the demo is seeded when the database is back", plant); err != nil {
			return err
		}
	}
	return p.onceThere(ctx, "upgrade", "what is new in the administration API comes when the database is back", func(ctx context.Context) error {
		return p.upgrade(ctx, deps)
	})
}

// upgrade brings what is new in the administration API to a deployment that an
// older program seeded. An operator's configuration may stand in its way (an
// endpoint of their own at the path of a new one): that is told, and no reason
// not to serve.
func (p *process) upgrade(ctx context.Context, deps seed.Deps) error {
	added, err := seed.Upgrade(ctx, deps)
	var invalid *change.Invalid
	switch {
	case errors.As(err, &invalid):
		p.log.WarnContext(ctx, "the administration API lacks what is new in this version", "error", err)
		return nil
	case err != nil:
		return err
	case len(added) > 0:
		p.log.InfoContext(ctx, "the administration API got what is new in this version", "names", added)
	}
	return nil
}

func (p *process) seedDeps() (seed.Deps, error) {
	hasher, err := password.NewHasher(p.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return seed.Deps{}, fmt.Errorf("password hasher: %w", err)
	}
	applier := apply.New(apply.Deps{
		DB: p.db, Engine: p.central.Engine(), Users: user.NewStore(p.db, rand.Reader), Hasher: hasher, Clock: p.o.Clock, Random: rand.Reader,
	})
	return seed.Deps{DB: p.db, Applier: applier, Clock: p.o.Clock}, nil
}

// refuseDemo keeps the demo's public secrets out of production, whichever way
// they came into its database: a development process was once pointed at it.
func (p *process) refuseDemo(ctx context.Context) error {
	holds, err := seed.HoldsDemo(ctx, p.db)
	if err == nil && holds {
		err = errors.New(`the database holds the tenant "demo", whose people and secrets are public, which production refuses: use another database, or delete the tenant`)
	}
	return err
}

// onceThere does something with the database now or, while that is away, as
// soon as it is back; the process ends if it does not succeed then.
func (p *process) onceThere(ctx context.Context, name, later string, do func(context.Context) error) error {
	err := do(ctx)
	if !postgres.Unavailable(err) {
		return err
	}
	p.log.WarnContext(ctx, "the database is away", "later", later, "error", err)
	p.background = append(p.background, task{name, func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(databaseRetry):
			}
			if err := do(ctx); !postgres.Unavailable(err) {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		}
	}})
	return nil
}

// rules are what configuration is validated by.
func (p *process) rules() validate.Rules {
	return validate.Rules{Development: p.cfg.Profile != profileProduction}
}

func (p *process) planter(deps seed.Deps) (func(context.Context) error, error) {
	jwks, err := PublicEdgeKeys(p.cfg.Edge.PrivateKeys)
	if err != nil {
		return nil, err
	}
	params := seed.Params{
		EdgeID: p.cfg.Edge.ID, EdgeURL: p.cfg.Edge.PublicURL, EdgeJWKS: jwks,
		CentralURL: "http://" + hostPort(p.cfg.Central.Listen), BankURL: "http://" + hostPort(p.cfg.Demo.UpstreamListen),
		AdminPassword: secret.Text(p.adminPassword),
	}
	return func(ctx context.Context) error {
		if _, err := seed.System(ctx, deps, params); err != nil {
			return err
		}
		_, err := seed.Demo(ctx, deps, params)
		return err
	}, nil
}
