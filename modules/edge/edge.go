package edge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"
	"golang.org/x/sync/errgroup"

	"versola/modules/central/catalog"
	"versola/modules/edge/catalogfeed"
	"versola/modules/edge/identity"
	"versola/modules/edge/logout"
	"versola/modules/edge/page"
	"versola/modules/edge/preset"
	"versola/modules/edge/provider"
	"versola/modules/edge/proxy"
	"versola/modules/edge/revocation"
	"versola/modules/edge/session"
	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/postgres"
	"versola/platform/replay"
	"versola/platform/secret"
)

const (
	// sweepEvery is how often expired rows are deleted: seldom enough to cost
	// nothing, often enough that tables stay small.
	sweepEvery = time.Minute
	// readyTimeout bounds the look at the database for readiness.
	readyTimeout = time.Second
)

// Deps are what an edge needs.
type Deps struct {
	DB             *postgres.DB // the edge's own
	Catalog        *catalog.Holder
	Clock          clock.Clock
	Random         io.Reader
	Log            *slog.Logger
	Meter          metric.Meter // nil: no metrics
	EdgeID         string
	PublicURL      string            // without a trailing slash
	SessionKeys    []secret.Key      // seal tokens and logins; the first seals
	AuthURL        string            // base of back-channel calls; empty: the issuer's own
	HTTP           http.RoundTripper // to auth; nil: the network
	Internal       http.RoundTripper // to the feeds; nil: the network
	CentralURL     string            // base URL of the feeds
	PrivateKeys    secret.Text       // the edge's private JSON Web Key Set
	TrustedProxies []netip.Prefix
	StateDir       string // where the catalog copy of Feed is kept
}

// Module is an edge.
type Module struct {
	d        Deps
	identity *identity.Identity
	sessions *session.Sessions
	follower *revocation.Follower
	proxy    *proxy.Handler
	preset   *preset.Handler
	logout   *logout.Handler
}

// New makes an edge. It waits for nothing: neither database, auth nor central
// has to be there. Errors: unusable keys or URLs.
func New(d Deps) (*Module, error) {
	if d.Meter == nil {
		d.Meter = noop.Meter{}
	}
	if d.HTTP == nil {
		d.HTTP = network()
	}
	if d.Internal == nil {
		d.Internal = network()
	}
	d.PublicURL = strings.TrimSuffix(d.PublicURL, "/")
	d.CentralURL = strings.TrimSuffix(d.CentralURL, "/")
	who, err := identity.Parse(d.EdgeID, d.PrivateKeys, d.Clock, d.Random)
	if err != nil {
		return nil, err
	}
	m := &Module{d: d, identity: who}
	verifier := token.NewVerifier(d.Catalog, d.Clock)
	auth, err := provider.New(provider.Options{Transport: d.HTTP, AuthURL: d.AuthURL, Catalog: d.Catalog, Verifier: verifier, Clock: d.Clock})
	if err != nil {
		return nil, err
	}
	refreshes, err := countRefreshes(d.Meter)
	if err != nil {
		return nil, err
	}
	m.sessions, err = session.New(session.Deps{
		DB: d.DB, Catalog: d.Catalog, EdgeID: d.EdgeID, Keys: d.SessionKeys, Clock: d.Clock, Random: d.Random, Log: d.Log,
		Refresher: auth, Verifier: verifier, OnRefresh: refreshes,
	})
	if err != nil {
		return nil, err
	}
	m.follower = &revocation.Follower{Set: revocation.NewSet(), URL: d.CentralURL, Transport: d.Internal, Identity: who, Clock: d.Clock, Log: d.Log}
	return m, m.handlers(auth, verifier)
}

// handlers makes what answers requests.
func (m *Module) handlers(auth *provider.Client, verifier *token.Verifier) (err error) {
	d := m.d
	cookies := httpserver.NewCookies(d.PublicURL)
	used := replay.New(replay.Options{DB: d.DB, Schema: "edge", Clock: d.Clock, Longest: dpop.Longest})
	m.proxy, err = proxy.New(proxy.Deps{
		Catalog: d.Catalog, EdgeID: d.EdgeID, PublicURL: d.PublicURL, Clock: d.Clock, Log: d.Log, Meter: d.Meter, Cookies: cookies,
		Verifier: verifier, Proofs: dpop.Guard{Replay: used}, Revoked: m.follower.Set, Sessions: m.sessions, TrustedProxies: d.TrustedProxies,
	})
	if err != nil {
		return err
	}
	m.preset, err = preset.New(preset.Deps{
		DB: d.DB, Catalog: d.Catalog, EdgeID: d.EdgeID, Keys: d.SessionKeys, Clock: d.Clock, Random: d.Random, Cookies: cookies,
		Redeemer: auth, Sessions: m.sessions,
	})
	if err != nil {
		return err
	}
	m.logout, err = logout.New(logout.Deps{
		Catalog: d.Catalog, EdgeID: d.EdgeID, PublicURL: d.PublicURL, Clock: d.Clock, Random: d.Random, Log: d.Log, Cookies: cookies,
		Sessions: m.sessions,
	})
	if err != nil {
		return err
	}
	return m.observe()
}

// network is the transport to auth and the feeds: both are few hosts.
func network() http.RoundTripper {
	return &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: 50 * time.Second, TLSHandshakeTimeout: 2 * time.Second, ForceAttemptHTTP2: true}
}

// Mount registers the routes. The listener must not limit bodies: the proxy
// streams them and has limits of its own for each resource.
func (m *Module) Mount(g *echo.Group) {
	g.GET("/login/:preset", m.preset.Login, page.Errors)
	g.GET("/complete", m.preset.Complete, page.Errors)
	g.GET("/logout/frontchannel", m.logout.FrontChannel)
	g.POST("/logout/backchannel", m.logout.BackChannel)
	g.GET("/logout/:preset", m.logout.Preset, page.Errors)
	g.POST("/logout/:preset", m.logout.Preset, page.Errors)
	g.GET(page.StylePath, page.Style)
	g.GET("/permissions/me", m.proxy.Permissions, proxy.Errors)
	g.GET("/.well-known/oauth-protected-resource/resources/:resource", m.proxy.Metadata, proxy.Errors)
	g.Any("/resources/*", m.proxy.Resources, proxy.Errors)
}

// Run does the background work until ctx ends: it follows revocations and
// ended sessions, and deletes expired rows.
func (m *Module) Run(ctx context.Context) error {
	sweeper := postgres.Sweeper{DB: m.d.DB, Now: m.d.Clock.Now, Every: sweepEvery, Log: m.d.Log, Sweeps: []postgres.Sweep{
		{Table: "edge.session", Column: "expires_at"},
		{Table: "edge.login", Column: "expires_at"},
		{Table: "edge.logout_token", Column: "expires_at"},
		{Table: "edge.replay", Column: "expires_at"},
	}}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return m.sessions.Run(ctx) })
	g.Go(func() error { return m.follower.Run(ctx) })
	g.Go(func() error { return sweeper.Run(ctx) })
	if err := g.Wait(); err != nil {
		return fmt.Errorf("run edge: %w", err)
	}
	return nil
}

// Errors of readiness.
var errNoCatalog = errors.New("no catalog yet: central has not been reached and there is no copy on disk")

// Ready tells why the edge cannot serve, or nil. An auth or feed that is away
// does not count: calls go on without.
func (m *Module) Ready() error {
	if m.d.Catalog.Current() == nil {
		return errNoCatalog
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyTimeout)
	defer cancel()
	if err := m.d.DB.Ping(ctx); err != nil {
		return fmt.Errorf("edge database: %w", err)
	}
	return nil
}

// Feed makes the follower of a central in another process; run it beside the
// module. A process that has central itself sets the catalog from there.
func (m *Module) Feed() (*catalogfeed.Feed, error) {
	return catalogfeed.New(catalogfeed.Deps{
		Catalog: m.d.Catalog, Clock: m.d.Clock, Log: m.d.Log, Meter: m.d.Meter, Identity: m.identity, CentralURL: m.d.CentralURL,
		Transport: m.d.Internal, SessionKeys: m.d.SessionKeys, StateDir: m.d.StateDir,
	})
}

func countRefreshes(meter metric.Meter) (func(session.Outcome), error) {
	counter, err := meter.Int64Counter("versola_edge_refreshes_total", metric.WithDescription("Refreshes of sessions, by how they ended."))
	if err != nil {
		return nil, fmt.Errorf("make refresh counter: %w", err)
	}
	options := map[session.Outcome][]metric.AddOption{}
	for _, o := range session.Outcomes() {
		options[o] = []metric.AddOption{metric.WithAttributeSet(attribute.NewSet(attribute.String("outcome", string(o))))}
	}
	return func(o session.Outcome) { counter.Add(context.Background(), 1, options[o]...) }, nil
}

// observe makes the gauges.
func (m *Module) observe() error {
	age, err1 := m.d.Meter.Float64ObservableGauge("versola_edge_revocation_age_seconds", metric.WithDescription("Time since the revocation feed last answered; -1: never."))
	revoked, err2 := m.d.Meter.Int64ObservableGauge("versola_edge_revocations", metric.WithDescription("Revocations in memory."))
	cached, err3 := m.d.Meter.Int64ObservableGauge("versola_edge_cached_sessions", metric.WithDescription("Sessions in memory."))
	if err := errors.Join(err1, err2, err3); err != nil {
		return fmt.Errorf("make edge gauges: %w", err)
	}
	_, err := m.d.Meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		seconds := -1.0
		if a := m.follower.Age(); a >= 0 {
			seconds = a.Seconds()
		}
		o.ObserveFloat64(age, seconds)
		o.ObserveInt64(revoked, int64(m.follower.Set.Len()))
		o.ObserveInt64(cached, int64(m.sessions.Cached()))
		return nil
	}, age, revoked, cached)
	if err != nil {
		return fmt.Errorf("register edge gauges: %w", err)
	}
	return nil
}
