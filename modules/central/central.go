package central

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"versola/modules/central/admin"
	"versola/modules/central/admin/access"
	"versola/modules/central/admin/idempotency"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/copy"
	"versola/modules/central/feed"
	"versola/modules/central/keys"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/modules/central/webhook"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	// channel is where triggers announce a new revision.
	channel = "versola_catalog"
	// settle is how long the next reload waits after one, so that a burst of
	// commits is few reloads. It is a twentieth of the second within which a
	// change is live.
	settle = 50 * time.Millisecond
	// ownWrite bounds how long a change that this process makes waits until it
	// is in its own catalog; longer only costs the writer their own reading.
	ownWrite = 2 * time.Second
	// pollEvery is the slow poll behind the notifications.
	pollEvery = 5 * time.Second
	// retryAfter is how soon a reload that did not reach the database is
	// tried again.
	retryAfter = 250 * time.Millisecond
	// loadTimeout bounds one reload: reading 10,000 clients anew takes under a
	// second.
	loadTimeout = 10 * time.Second
)

// Deps is what the module works with.
type Deps struct {
	DB          *postgres.DB
	DatabaseURL string // for the listener, which has a connection of its own
	Catalog     *catalog.Holder
	Clock       clock.Clock
	Random      io.Reader
	Encryption  []secret.Key // open client secrets and signing keys; the active one first
	Issuer      string       // auth's public URL, without a trailing slash
	RootTenant  string       // the tenant served at Issuer itself
	StateDir    string       // where the copy of the catalog is kept
	// KeyPolicy is the schedule of the signing keys.
	KeyPolicy keys.Policy
	Rules     validate.Rules // what configuration is validated by
	URL       string         // where the admin API is called, without a trailing slash
	Replay    dpop.Replay    // remembers used proofs; nil: bound tokens are refused
	Revoked   access.Revoked // tells of tokens of administrators; nil: none is
	// Users makes the handlers that administer people, by operationId; nil:
	// there are none.
	Users func(*audit.Log) map[string]echo.HandlerFunc
	// People keep a directory from being deleted; nil: there are none.
	People change.People
	// Outbound calls webhooks, with the address filter of platform/outbound.
	Outbound *http.Client
	Log      *slog.Logger
	Meter    metric.Meter
}

// Module is central in one process.
type Module struct {
	Deps
	compiler *catalog.Compiler
	copy     *copy.File
	feed     *feed.Feed
	admin    *admin.API
	audit    *audit.Log
	events   *audit.Sink
	keys     *keys.Rotator
	webhooks *webhook.Webhooks
	engine   *change.Engine
	metrics  metrics
	source   *store.Source
	wake     chan struct{}
	interval time.Duration // of the poll

	reloading chan struct{} // holds one: one reload at a time
	served    store.Mark    // of the catalog in the holder
	invalid   string        // the fault that was logged last
}

// ErrNoCatalog reports that neither the database nor the copy on disk gave a
// configuration.
var ErrNoCatalog = errors.New("no catalog: the database is away and there is no copy on disk")

// New makes the module. Errors: no or unusable encryption keys.
func New(d Deps) (*Module, error) {
	keyring, err := secret.NewKeyring(d.Encryption, catalog.SealPurpose)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	file, err := copy.New(d.StateDir, d.Encryption)
	if err != nil {
		return nil, err
	}
	m := &Module{
		Deps: d, compiler: &catalog.Compiler{Open: keyring.Open}, copy: file,
		feed: feed.New(d.Catalog, d.Clock, feed.Wait), source: store.NewSource(d.DB),
		wake: make(chan struct{}, 1), reloading: make(chan struct{}, 1), interval: pollEvery,
	}
	if m.metrics, err = newMetrics(d.Meter, d.Catalog, d.Clock); err != nil {
		return nil, err
	}
	if m.audit, err = audit.New(audit.Deps{DB: d.DB, Clock: d.Clock, Encryption: d.Encryption}); err != nil {
		return nil, err
	}
	if m.events, err = audit.NewSink(m.audit, d.Log, d.Meter); err != nil {
		return nil, err
	}
	m.webhooks, err = webhook.New(webhook.Deps{DB: d.DB, Clock: d.Clock, Random: d.Random, Encryption: d.Encryption, Audit: m.audit, Client: d.Outbound, Log: d.Log, Meter: d.Meter})
	if err != nil {
		return nil, err
	}
	m.keys, err = keys.New(keys.Deps{DB: d.DB, Encryption: d.Encryption, Clock: d.Clock, Log: d.Log, Audit: m.audit, Policy: d.KeyPolicy, Committed: m.committed})
	if err != nil {
		return nil, err
	}
	return m, m.makeAdmin()
}

// makeAdmin makes the administration API and what it works with.
func (m *Module) makeAdmin() (err error) {
	m.engine, err = change.New(change.Deps{DB: m.DB, Source: m.source, Committed: m.committed, Encryption: m.Encryption, Clock: m.Clock, Random: m.Random, Rules: m.Rules, Auditor: m.audit, People: m.People})
	if err != nil {
		return err
	}
	once, err := idempotency.New(m.DB, m.Encryption, m.Clock)
	if err != nil {
		return err
	}
	handlers := admin.AuditHandlers(m.audit)
	maps.Copy(handlers, admin.KeyHandlers(m.keys))
	maps.Copy(handlers, m.webhooks.Handlers())
	if m.Users != nil {
		maps.Copy(handlers, m.Users(m.audit))
	}
	m.admin, err = admin.New(admin.Deps{Catalog: m.Catalog, Engine: m.engine, Clock: m.Clock, Revoked: m.Revoked, URL: m.URL, Proofs: dpop.Guard{Replay: m.Replay}, Once: once, Handlers: handlers, SigningSecret: m.webhooks.FirstSecret})
	return err
}

// Engine returns what changes configuration.
func (m *Module) Engine() *change.Engine { return m.engine }

// Audit returns the deployment's audit log.
func (m *Module) Audit() *audit.Log { return m.audit }

// Events takes what is to be in the audit log and must not wait for it.
func (m *Module) Events() *audit.Sink { return m.events }

// Keys returns what rotates the deployment's signing keys.
func (m *Module) Keys() *keys.Rotator { return m.keys }

// Mount adds the routes of the internal listener: the feed for edges and the
// administration API.
func (m *Module) Mount(g *echo.Group) {
	g.GET("/internal/catalog", m.feed.Handle)
	m.admin.Mount(g)
}

// Ready tells why the process cannot serve: only without any catalog. An old
// one is served on, and its age is a metric.
func (m *Module) Ready() error {
	if m.Catalog.Current() == nil {
		return ErrNoCatalog
	}
	return nil
}

// Load fills the holder before the process serves: from the database, or from
// the copy on disk when the database is away or holds what does not compile.
// Errors: [ErrNoCatalog] together with the causes; Run goes on trying.
func (m *Module) Load(ctx context.Context) error {
	err := m.reload(ctx)
	if err == nil || m.Catalog.Current() != nil {
		return nil
	}
	s, copyErr := m.copy.Read()
	if copyErr == nil {
		copyErr = m.use(&store.State{Snapshot: s}) // of no mark: the database is read whole
	}
	if copyErr != nil {
		return fmt.Errorf("%w: %w", ErrNoCatalog, errors.Join(err, copyErr))
	}
	m.Log.WarnContext(ctx, "started from the copy of the catalog on disk", "revision", s.Revision, "error", err)
	return nil
}

// Run follows the database until ctx ends.
func (m *Module) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	listener := &postgres.Listener{
		URL: m.DatabaseURL, Channel: channel, Log: m.Log,
		OnConnect: func(context.Context) { m.signal() },
		OnNotify:  func(context.Context, string) { m.signal() },
	}
	group.Go(func() error { return listener.Run(ctx) })
	group.Go(func() error { return m.follow(ctx) })
	group.Go(func() error { return m.copy.Run(ctx, m.Log) })
	group.Go(func() error { return m.keys.Run(ctx) })
	group.Go(func() error { return m.events.Run(ctx) })
	group.Go(func() error { return m.webhooks.Run(ctx) })
	return group.Wait()
}

// signal asks for a reload; one that is asked for already covers this one.
func (m *Module) signal() {
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

func (m *Module) follow(ctx context.Context) error {
	poll := time.NewTicker(m.interval)
	defer poll.Stop()
	for {
		polled := false
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			polled = true
		case <-m.wake:
		}
		err := m.reload(ctx)
		pause := settle
		if err != nil && postgres.Unavailable(err) && !polled {
			pause = retryAfter
			m.signal()
		}
		if !sleep(ctx, pause) {
			return nil
		}
	}
}

// sleep waits, and tells whether ctx still lives.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// committed puts a change that this process has made into its own catalog, so
// that whoever made it finds it at work.
func (m *Module) committed(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, ownWrite)
	defer cancel()
	if err := m.reload(ctx); err != nil {
		m.Log.WarnContext(ctx, "a change is stored, and not in this process's catalog yet", "error", err)
		m.signal()
	}
}

// reload publishes what the database has, if that is something else than what
// is served. It reports its own faults; the error is for who wants to try
// again.
func (m *Module) reload(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	select {
	case m.reloading <- struct{}{}:
		defer func() { <-m.reloading }()
	case <-ctx.Done():
		return fmt.Errorf("wait for a reload: %w", ctx.Err())
	}
	state, err := m.source.Newest(ctx)
	if err != nil {
		if postgres.Unavailable(err) || ctx.Err() != nil {
			m.metrics.reloaded(ctx, resultUnavailable)
			m.Log.DebugContext(ctx, "catalog reload", "error", err)
			return err
		}
		m.reportInvalid(ctx, err)
		return err
	}
	if m.Catalog.Current() != nil && m.served == state.Mark {
		m.Catalog.Synced(m.Clock.Now())
		return nil
	}
	if err := m.use(state); err != nil {
		m.reportInvalid(ctx, err)
		return err
	}
	m.Catalog.Synced(m.Clock.Now())
	m.metrics.reloaded(ctx, resultOK)
	m.invalid = ""
	m.Log.InfoContext(ctx, "catalog loaded", "revision", state.Revision)
	return nil
}

// use compiles a state and publishes it.
func (m *Module) use(state *store.State) error {
	s := *state.Snapshot // a copy of the lists' headers: the state is shared
	s.Issuer, s.RootTenant = m.Issuer, m.RootTenant
	c, err := m.compile(&s, state)
	if err != nil {
		return err
	}
	m.feed.Set(&s, c, state)
	m.Catalog.Set(c)
	m.served = state.Mark
	m.copy.Keep(&s)
	return nil
}

// compile works out only what differs from the catalog that is served, where
// that is known.
func (m *Module) compile(s *catalog.Snapshot, state *store.State) (*catalog.Catalog, error) {
	if current := m.Catalog.Current(); current != nil {
		if changed, known := state.Since(m.served); known {
			return m.compiler.Advance(current, s, changed)
		}
	}
	return m.compiler.Compile(s)
}

// reportInvalid logs a fault once, not at every poll.
func (m *Module) reportInvalid(ctx context.Context, err error) {
	m.metrics.reloaded(ctx, resultInvalid)
	if m.invalid == err.Error() {
		return
	}
	m.invalid = err.Error()
	m.Log.ErrorContext(ctx, "the configuration in the database is not usable; the last good one stays", "error", err)
}
