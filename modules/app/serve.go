package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"versola/modules/auth"
	"versola/modules/auth/revocation"
	"versola/modules/central"
	"versola/modules/central/catalog"
	"versola/modules/edge"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/pgembed"
	"versola/platform/postgres"
	"versola/platform/secret"
	"versola/platform/telemetry"
)

// A shutdown takes 15 s at the most, which an orchestrator is told to wait for
// before it kills: [httpserver.DrainTimeout] for requests in flight, then these,
// then what the private database needs to stop.
const (
	backgroundTimeout = 2 * time.Second
	telemetryTimeout  = time.Second
	poolTimeout       = time.Second
)

// ServeOptions says what to serve.
type ServeOptions struct {
	Config  *Config
	Version string
	Migrate bool        // bring the schemas up to date first
	Out     io.Writer   // where a newcomer is greeted
	LogTo   io.Writer   // default: standard error
	Clock   clock.Clock // default: the system's
	// OnReady, when set, is called once every listener answers.
	OnReady func()
}

// Serve runs the configured roles until ctx ends, then shuts down in order. It
// returns nil after a clean shutdown.
func Serve(ctx context.Context, o ServeOptions) (err error) {
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	if o.LogTo == nil {
		o.LogTo = os.Stderr
	}
	p, err := newProcess(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if err := p.open(ctx); err != nil {
		return err
	}
	if err := p.build(ctx); err != nil {
		return err
	}
	return p.run(ctx)
}

// process is one running process: what its roles need, in the order in which
// it is opened.
type process struct {
	o         ServeOptions
	cfg       *Config
	roles     roles
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	ready     *readiness

	cluster       *pgembed.Cluster
	adminPassword string
	db, edgeDB    *postgres.DB
	catalog       *catalog.Holder
	central       *central.Module
	auth          *auth.Module
	revocations   *revocation.Follower // of central without auth; else nil
	edge          *edge.Module

	servers    map[string]*httpserver.Server
	observe    func(context.Context, httpserver.Observation)
	background []task
	closers    []func() error
}

// task is background work with a name for its failure.
type task struct {
	name string
	run  func(context.Context) error
}

func newProcess(o ServeOptions) (*process, error) {
	cfg := o.Config
	r, err := parseRoles(cfg.Role, cfg.Auth.Central)
	if err != nil {
		return nil, err
	}
	format := cfg.Log.Format
	if format == "" {
		format = "text"
		if cfg.Profile == profileProduction {
			format = "json"
		}
	}
	log, err := telemetry.NewLogger(o.LogTo, cfg.Log.Level, format)
	if err != nil {
		return nil, fmt.Errorf("set up the log: %w", err)
	}
	return &process{
		o: o, cfg: cfg, roles: r, log: log.With("role", r.String()),
		ready: newReadiness(), catalog: catalog.NewHolder(), servers: map[string]*httpserver.Server{},
	}, nil
}

// open prepares what lies outside the modules: telemetry, the state directory,
// secrets, databases and their schemas.
func (p *process) open(ctx context.Context) error {
	var err error
	p.telemetry, err = telemetry.New(ctx, telemetry.Options{
		ServiceName: "versola-" + p.roles.String(), Version: p.o.Version,
		OTLPEndpoint: p.cfg.Telemetry.OTLPEndpoint, SampleRatio: p.cfg.Telemetry.SampleRatio, Log: p.log,
	})
	if err != nil {
		return fmt.Errorf("set up telemetry: %w", err)
	}
	p.onClose(func() error {
		closing, cancel := context.WithTimeout(context.Background(), telemetryTimeout)
		defer cancel()
		return p.telemetry.Shutdown(closing)
	})
	if err := p.openState(); err != nil {
		return err
	}
	if err := p.openCluster(ctx); err != nil {
		return err
	}
	return p.openDatabases(ctx)
}

func (p *process) onClose(f func() error) { p.closers = append(p.closers, f) }

// close undoes open, last first.
func (p *process) close() error {
	var errs []error
	for i := len(p.closers) - 1; i >= 0; i-- {
		errs = append(errs, p.closers[i]())
	}
	return errors.Join(errs...)
}

func (p *process) openState() error {
	abs, err := filepath.Abs(p.cfg.StateDir)
	if err != nil {
		return fmt.Errorf("locate state_dir: %w", err)
	}
	p.cfg.StateDir = abs
	// Others may pass through (an unprivileged database process does) but not
	// look; each file inside guards itself.
	if err := os.MkdirAll(abs, 0o711); err != nil { //nolint:gosec // see above
		return fmt.Errorf("make state_dir: %w", err)
	}
	if p.cfg.Profile == profileProduction {
		return nil
	}
	p.adminPassword, err = fillSecrets(p.cfg)
	return err
}

// openCluster starts the private PostgreSQL where no database is configured.
func (p *process) openCluster(ctx context.Context) error {
	needed := p.roles.usesDatabase() && p.cfg.Database.URL.Empty()
	edgeNeeded := p.roles.edge && p.cfg.Edge.Database.URL.Empty()
	if !needed && !edgeNeeded {
		return nil
	}
	if edgeNeeded && p.roles.usesDatabase() && !needed {
		// One configured database serves both schemas of a single process.
		p.cfg.Edge.Database.URL = p.cfg.Database.URL
		return nil
	}
	if p.cfg.Profile == profileProduction {
		return errors.New("no database configured: set database.url (auth, central) and edge.database.url (edge)")
	}
	dir := p.cfg.StateDir
	if !p.roles.usesDatabase() {
		// An edge on its own has its own database, also beside an auth that
		// runs on the same state directory.
		dir = filepath.Join(dir, "edge")
	}
	var err error
	p.cluster, err = pgembed.Start(ctx, pgembed.Options{Dir: dir, Log: p.log})
	if err != nil {
		return err
	}
	p.onClose(p.cluster.Stop)
	if needed {
		p.cfg.Database.URL = secret.Text(p.cluster.URL())
	}
	if edgeNeeded {
		p.cfg.Edge.Database.URL = secret.Text(p.cluster.URL())
	}
	return nil
}

// prefixes reads networks that configuration has validated.
func prefixes(texts []string) ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, t := range texts {
		n, err := netip.ParsePrefix(t)
		if err != nil {
			return nil, fmt.Errorf("trusted proxy %q: %w", t, err)
		}
		out = append(out, n)
	}
	return out, nil
}

// run serves until ctx ends or something fails for good, then shuts down:
// readiness first, then listeners (drained), then background work.
func (p *process) run(ctx context.Context) error {
	working, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	group, failed := errgroup.WithContext(working)
	for name, s := range p.servers {
		if err := s.Listen(ctx); err != nil {
			return err
		}
		p.log.DebugContext(ctx, "listening", "listener", name, "address", s.Addr().String())
	}
	for _, s := range p.servers {
		group.Go(s.Serve)
	}
	for _, t := range p.background {
		group.Go(func() error {
			if err := t.run(failed); err != nil {
				return fmt.Errorf("%s: %w", t.name, err)
			}
			return nil
		})
	}
	p.greet()
	if p.o.OnReady != nil {
		p.o.OnReady()
	}
	p.log.InfoContext(ctx, "serving", "version", p.o.Version)
	select {
	case <-ctx.Done():
	case <-failed.Done():
	}
	p.ready.stopping.Store(true)
	p.log.InfoContext(ctx, "shutting down")
	err := p.drain(ctx)
	stopWork()
	return errors.Join(p.waitFor(group), err)
}

// drain closes the listeners, and the one for operators last and at once, so that probes hear
// why the process is not ready.
func (p *process) drain(ctx context.Context) error {
	var g errgroup.Group
	for name, s := range p.servers {
		if name != listenDiagnostics {
			g.Go(func() error { return s.Shutdown(ctx) })
		}
	}
	err := g.Wait()
	return errors.Join(err, p.servers[listenDiagnostics].Close())
}

// waitFor waits for background work, but not for ever: a task that ignores its
// context must not keep the process.
func (p *process) waitFor(group *errgroup.Group) error {
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	select {
	case err := <-done:
		if errors.Is(err, context.Canceled) {
			return nil
		}
		return err
	case <-time.After(backgroundTimeout):
		return errors.New("background work did not stop in time")
	}
}
