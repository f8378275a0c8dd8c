package app

import (
	"context"
	"crypto/rand"
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

// seedRetry is the pause between attempts to seed a database that is away.
const seedRetry = time.Second

// seed loads the system and the demo tenant, once in the life of a database. A
// database that is away is seeded when it comes.
func (p *process) seed(ctx context.Context, encryption []secret.Key) error {
	if !p.cfg.Demo.Enabled {
		return nil
	}
	plant, err := p.planter(encryption)
	if err != nil {
		return err
	}
	err = plant(ctx)
	if !postgres.Unavailable(err) {
		return err
	}
	p.log.WarnContext(ctx, "the demo is seeded when the database is back", "error", err)
	p.background = append(p.background, task{"seed", func(ctx context.Context) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(seedRetry):
			}
			if err := plant(ctx); err == nil || !postgres.Unavailable(err) {
				return err
			}
		}
	}})
	return nil
}

func (p *process) planter(encryption []secret.Key) (func(context.Context) error, error) {
	hasher, err := password.NewHasher(p.cfg.Keys.Pepper, rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("password hasher: %w", err)
	}
	engine, err := change.New(change.Deps{
		DB: p.db, Encryption: encryption, Clock: p.o.Clock, Random: rand.Reader,
		Rules: validate.Rules{Development: p.cfg.Profile != profileProduction},
	})
	if err != nil {
		return nil, err
	}
	applier := apply.New(apply.Deps{
		DB: p.db, Engine: engine, Users: user.NewStore(p.db, rand.Reader), Hasher: hasher, Clock: p.o.Clock, Random: rand.Reader,
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
