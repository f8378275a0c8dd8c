package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// Migrations is the history of one schema: SQL files named
// "00001_what_it_does.sql" in Files. The history's own table lives in Schema.
type Migrations struct {
	Schema string
	Files  fs.FS
}

// Errors of a schema check.
var (
	ErrSchemaOld = errors.New("the database schema is older than this program")
	ErrSchemaNew = errors.New("the database schema is newer than this program")
)

// Step is one migration and whether the database has it.
type Step struct {
	Schema  string
	Version int64
	Name    string
	Applied bool
	At      time.Time // zero when not applied
}

// Up applies what is missing and returns it. It is safe when several run at
// once: a session-level advisory lock lets one work and the others wait.
func (m Migrations) Up(ctx context.Context, url string) ([]Step, error) {
	var done []Step
	err := m.with(ctx, url, func(p *goose.Provider) error {
		results, err := p.Up(ctx)
		if err != nil {
			return fmt.Errorf("migrate schema %s: %w", m.Schema, err)
		}
		for _, r := range results {
			done = append(done, Step{Schema: m.Schema, Version: r.Source.Version, Name: r.Source.Path, Applied: true})
		}
		return nil
	})
	return done, err
}

// Status lists every migration of this program and whether the database has
// it. It changes nothing: a database without the history reports all pending.
func (m Migrations) Status(ctx context.Context, url string) ([]Step, error) {
	// goose wants a handle to list its sources; this one is never used.
	unused := stdlib.OpenDB(pgx.ConnConfig{})
	defer func() { _ = unused.Close() }()
	known, err := goose.NewProvider(goose.DialectPostgres, unused, m.Files, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return nil, fmt.Errorf("read migrations of %s: %w", m.Schema, err)
	}
	applied, err := m.applied(ctx, url)
	if err != nil {
		return nil, err
	}
	var steps []Step
	for _, s := range known.ListSources() {
		at, ok := applied[s.Version]
		steps = append(steps, Step{Schema: m.Schema, Version: s.Version, Name: s.Path, Applied: ok, At: at})
		delete(applied, s.Version)
	}
	for _, v := range slices.Sorted(maps.Keys(applied)) {
		if v > 0 {
			steps = append(steps, Step{Schema: m.Schema, Version: v, Name: unknownMigration, Applied: true, At: applied[v]})
		}
	}
	return steps, nil
}

// Check tells whether the schema is exactly the one this program was built
// for. Errors: [ErrSchemaOld], [ErrSchemaNew], or the database's own.
func (m Migrations) Check(ctx context.Context, url string) error {
	steps, err := m.Status(ctx, url)
	if err != nil {
		return err
	}
	var last int64
	for _, s := range steps {
		if s.Name != unknownMigration {
			last = max(last, s.Version)
		}
	}
	for _, s := range steps {
		if s.Version > last {
			return fmt.Errorf("schema %s is at version %d, this program knows %d: %w", m.Schema, s.Version, last, ErrSchemaNew)
		}
	}
	for _, s := range steps {
		if !s.Applied {
			return fmt.Errorf("schema %s lacks migration %d: %w", m.Schema, s.Version, ErrSchemaOld)
		}
	}
	return nil
}

func (m Migrations) applied(ctx context.Context, url string) (map[int64]time.Time, error) {
	cfg, err := migrationConfig(url)
	if err != nil {
		return nil, err
	}
	conn, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	table := pgx.Identifier{m.Schema, historyTable}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", table.Sanitize()).Scan(&exists); err != nil {
		return nil, fmt.Errorf("look for migration history: %w", err)
	}
	applied := map[int64]time.Time{}
	if !exists {
		return applied, nil
	}
	rows, err := conn.Query(ctx, "SELECT version_id, tstamp FROM "+table.Sanitize()+" WHERE is_applied")
	if err != nil {
		return nil, fmt.Errorf("read migration history: %w", err)
	}
	var v int64
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&v, &at}, func() error {
		applied[v] = at
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read migration history: %w", err)
	}
	return applied, nil
}

const (
	historyTable     = "schema_history"
	unknownMigration = "(unknown to this program)"
)

// Bounds of the wait for another process that migrates: a try a second, for two
// minutes, after which something is wrong with the other.
const (
	lockEvery = 1 // seconds
	lockTries = 120
)

func migrationConfig(url string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("read database url: %w", redactURL(err))
	}
	cfg.ConnectTimeout = connectTimeout
	cfg.RuntimeParams["application_name"] = "versola migrate"
	return cfg, nil
}

// with runs f with goose on the schema, under the lock.
func (m Migrations) with(ctx context.Context, url string, f func(*goose.Provider) error) (err error) {
	cfg, err := migrationConfig(url)
	if err != nil {
		return err
	}
	db := stdlib.OpenDB(*cfg)
	defer func() { err = errors.Join(err, db.Close()) }()
	// The history's table lives in the schema, so the schema comes first. Two
	// processes may race for it; losing is fine.
	if _, e := db.ExecContext(ctx, "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{m.Schema}.Sanitize()); e != nil && !IsUniqueViolation(e, "") {
		return fmt.Errorf("create schema %s: %w", m.Schema, e)
	}
	locker, err := lock.NewPostgresSessionLocker(lock.WithLockTimeout(lockEvery, lockTries))
	if err != nil {
		return fmt.Errorf("make migration lock: %w", err)
	}
	p, err := goose.NewProvider(goose.DialectPostgres, db, m.Files, goose.WithSessionLocker(locker),
		goose.WithTableName(m.Schema+"."+historyTable), goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations of %s: %w", m.Schema, err)
	}
	return f(p)
}
