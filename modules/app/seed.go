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
		return p.onceThere(ctx, "demo", "a database that holds the demo is refused when it is back", p.refuseDemo)
	}
	if !p.cfg.Demo.Enabled {
		return nil
	}
	plant, err := p.planter()
	if err != nil {
		return err
	}
	return p.onceThere(ctx, "seed", "the demo is seeded when the database is back", plant)
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

func (p *process) planter() (func(context.Context) error, error) {
	hasher, err := password.NewHasher(p.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("password hasher: %w", err)
	}
	applier := apply.New(apply.Deps{
		DB: p.db, Engine: p.central.Engine(), Users: user.NewStore(p.db, rand.Reader), Hasher: hasher, Clock: p.o.Clock, Random: rand.Reader,
	})
	jwks, err := PublicEdgeKeys(p.cfg.Edge.PrivateKeys)
	if err != nil {
		return nil, err
	}
	deps := seed.Deps{DB: p.db, Applier: applier, Clock: p.o.Clock}
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
