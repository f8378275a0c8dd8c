package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"versola/db"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// openDatabases opens the pools and makes sure that the schemas are those of
// this program.
func (p *process) openDatabases(ctx context.Context) error {
	if p.roles.usesDatabase() {
		if err := p.schema(ctx, p.cfg.Database.URL, "database", db.Auth(), db.Central()); err != nil {
			return err
		}
		opened, err := p.pool(ctx, p.cfg.Database, "versola "+p.roles.String())
		if err != nil {
			return fmt.Errorf("database: %w", err)
		}
		p.db = opened
	}
	if p.roles.edge {
		if err := p.schema(ctx, p.cfg.Edge.Database.URL, "edge database", db.Edge()); err != nil {
			return err
		}
		opened, err := p.pool(ctx, p.cfg.Edge.Database, "versola edge")
		if err != nil {
			return fmt.Errorf("edge database: %w", err)
		}
		p.edgeDB = opened
	}
	return nil
}

func (p *process) pool(ctx context.Context, c DatabaseConfig, name string) (*postgres.DB, error) {
	opened, err := postgres.Open(context.WithoutCancel(ctx), postgres.Options{URL: c.URL.Reveal(), MaxConns: c.MaxConnections, ApplicationName: name})
	if err != nil {
		return nil, err
	}
	p.onClose(func() error { return closePool(opened) })
	p.ready.add(name, func() error {
		ping, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		if err := opened.Ping(ping); err != nil {
			return errors.New("the database does not answer")
		}
		return nil
	})
	return opened, nil
}

// closePool waits for the connections in use, but not for ever.
func closePool(pool *postgres.DB) error {
	done := make(chan struct{})
	go func() {
		pool.Close()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-time.After(poolTimeout):
		return errors.New("connections to the database were still in use")
	}
}

// schema migrates where that was asked for, and otherwise checks. A database
// that is away is no reason not to start: it is checked when it comes back, and
// the process ends if its schema turns out to be another.
func (p *process) schema(ctx context.Context, url secret.Text, name string, all ...postgres.Migrations) error {
	if p.cluster != nil || p.o.Migrate {
		for _, m := range all {
			steps, err := m.Up(ctx, url.Reveal())
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			for _, s := range steps {
				p.log.InfoContext(ctx, "migrated", "schema", s.Schema, "migration", s.Name)
			}
		}
		return nil
	}
	return p.onceThere(ctx, name, "starting without the "+name+"; its schema is checked when it is back", func(ctx context.Context) error {
		return schemaAdvice(name, checkSchemas(ctx, url, all))
	})
}

func checkSchemas(ctx context.Context, url secret.Text, all []postgres.Migrations) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, m := range all {
		if err := m.Check(ctx, url.Reveal()); err != nil {
			return err
		}
	}
	return nil
}

// schemaAdvice says what to do about a schema that is not this program's.
func schemaAdvice(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, postgres.ErrSchemaOld):
		return fmt.Errorf("%s: %w; run \"versola migrate up\" (or serve with --migrate)", name, err)
	case errors.Is(err, postgres.ErrSchemaNew):
		return fmt.Errorf("%s: %w; run the newer program", name, err)
	}
	return fmt.Errorf("check schema of %s: %w", name, err)
}
