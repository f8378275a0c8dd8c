package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/user"
	"path/filepath"

	"versola/db"
	"versola/modules/central/audit"
	"versola/modules/central/keys"
	"versola/platform/clock"
	"versola/platform/pgembed"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// deployment is what a command that works on the database of auth and central
// has: beside running processes, or with none.
type deployment struct {
	cfg        *Config
	db         *postgres.DB
	encryption []secret.Key
	clock      clock.Clock
	log        *slog.Logger
	audit      *audit.Log
	closers    []func() error
}

// openDeployment opens the database of a configuration. In development without
// one, it is the private PostgreSQL of state_dir: that of a running server, or
// started for as long as the command lasts.
func openDeployment(ctx context.Context, file string, logTo io.Writer) (_ *deployment, err error) {
	// Whatever the processes of this configuration run, a command needs what
	// central does.
	cfg, _, err := loadConfig(file, "central")
	if err != nil {
		return nil, err
	}
	d := &deployment{cfg: cfg, clock: clock.System{}, log: slog.New(slog.NewTextHandler(logTo, &slog.HandlerOptions{Level: slog.LevelWarn}))}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.cfg.StateDir, err = filepath.Abs(cfg.StateDir); err != nil {
		return nil, fmt.Errorf("locate state_dir: %w", err)
	}
	if cfg.Profile != profileProduction {
		if _, err := os.Stat(d.cfg.StateDir); err != nil {
			return nil, fmt.Errorf("there is no deployment in state_dir %s: start \"versola serve\" once, or name its configuration with --config", d.cfg.StateDir)
		}
		if _, err := fillSecrets(cfg); err != nil {
			return nil, err
		}
	}
	if d.encryption, err = secret.ParseKeys(cfg.Keys.Encryption); err != nil {
		return nil, fmt.Errorf("keys.encryption: %w", err)
	}
	if err := d.openDatabase(ctx); err != nil {
		return nil, err
	}
	if d.audit, err = audit.New(audit.Deps{DB: d.db, Clock: d.clock, Encryption: d.encryption}); err != nil {
		return nil, err
	}
	return d, nil
}

func (d *deployment) openDatabase(ctx context.Context) error {
	if d.cfg.Database.URL.Empty() {
		if err := d.openPrivate(ctx); err != nil {
			return err
		}
	}
	for _, m := range []postgres.Migrations{db.Auth(), db.Central()} {
		if err := m.Check(ctx, d.cfg.Database.URL.Reveal()); err != nil {
			return schemaAdvice("database", err)
		}
	}
	opened, err := postgres.Open(ctx, postgres.Options{URL: d.cfg.Database.URL.Reveal(), MaxConns: 4, ApplicationName: "versola command"})
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	d.db = opened
	d.closers = append(d.closers, func() error { opened.Close(); return nil })
	return nil
}

// openPrivate attaches to the private PostgreSQL of a running server, or starts
// it.
func (d *deployment) openPrivate(ctx context.Context) error {
	o := pgembed.Options{Dir: d.cfg.StateDir, Log: d.log}
	url, err := pgembed.Attach(ctx, o)
	if errors.Is(err, pgembed.ErrNotRunning) {
		var cluster *pgembed.Cluster
		if cluster, err = pgembed.Start(ctx, o); err == nil {
			d.closers = append(d.closers, cluster.Stop)
			url = cluster.URL()
		}
	}
	if err != nil {
		return err
	}
	d.cfg.Database.URL = secret.Text(url)
	return nil
}

// close undoes what openDeployment did, last first.
func (d *deployment) close() error {
	var errs []error
	for i := len(d.closers) - 1; i >= 0; i-- {
		errs = append(errs, d.closers[i]())
	}
	return errors.Join(errs...)
}

// within runs a command's work on a deployment.
func within(ctx context.Context, file string, logTo io.Writer, work func(*deployment) error) error {
	d, err := openDeployment(ctx, file, logTo)
	if err != nil {
		return err
	}
	return errors.Join(work(d), d.close())
}

// operator is who runs a command: the operating system's user.
func operator() audit.Actor {
	a := audit.Actor{Kind: audit.ActorCommand}
	if u, err := user.Current(); err == nil {
		a.ID = u.Username
	}
	return a
}

// rotator works on the deployment's signing keys.
func (d *deployment) rotator() (*keys.Rotator, error) {
	return keys.New(keys.Deps{DB: d.db, Encryption: d.encryption, Clock: d.clock, Log: d.log, Audit: d.audit})
}
