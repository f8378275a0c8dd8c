package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"versola/modules/app/demobank"
	"versola/modules/auth"
	"versola/modules/auth/revocation"
	"versola/modules/auth/user"
	"versola/modules/central"
	"versola/modules/central/catalog"
	"versola/modules/central/users"
	"versola/modules/edge"
	"versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/outbound"
	"versola/platform/postgres"
	"versola/platform/replay"
	"versola/platform/secret"
	"versola/platform/telemetry"
)

// logoutTimeout bounds one delivery of a back-channel logout notice (OpenID
// Connect Back-Channel Logout section 2.5 wants it prompt).
const logoutTimeout = 5 * time.Second

// Names of the listeners, in logs and metrics.
const (
	listenAuth        = "auth"
	listenInternal    = "internal"
	listenEdge        = "edge"
	listenDiagnostics = "diagnostics"
	listenBank        = "demo-bank"
)

// build makes the modules of the process's roles and their listeners.
func (p *process) build(ctx context.Context) error {
	if err := p.observeDatabases(); err != nil {
		return err
	}
	if p.roles.central {
		if err := p.buildCentral(ctx); err != nil {
			return fmt.Errorf("central: %w", err)
		}
	}
	if p.roles.auth {
		if err := p.buildAuth(ctx); err != nil {
			return fmt.Errorf("auth: %w", err)
		}
	}
	if p.roles.edge {
		if err := p.buildEdge(ctx); err != nil {
			return fmt.Errorf("edge: %w", err)
		}
	}
	return p.listener(listenDiagnostics, httpserver.Options{Addr: p.diagnosticsAddr()}, func(g *echo.Group) {
		mountDiagnostics(g, p.ready, p.telemetry.Handler())
	})
}

// listener makes one listener with what every listener has.
func (p *process) listener(name string, o httpserver.Options, mount func(*echo.Group)) error {
	o.Name, o.Log = name, p.log
	if name != listenDiagnostics {
		observe, err := p.requestHistogram()
		if err != nil {
			return err
		}
		o.Observe = observe
	} else {
		o.Log = slog.New(quiet{p.log.Handler()})
	}
	s := httpserver.New(o)
	s.Echo.Use(p.telemetry.TraceRequests(name, o.TrustedProxies))
	mount(s.Echo.Group(""))
	p.servers[name] = s
	return nil
}

// internal returns the listener of the feeds and the admin API, which auth and
// central share.
func (p *process) internal(mount func(*echo.Group)) error {
	if s, ok := p.servers[listenInternal]; ok {
		mount(s.Echo.Group(""))
		return nil
	}
	trusted, err := prefixes(p.cfg.Central.TrustedProxies)
	if err != nil {
		return err
	}
	return p.listener(listenInternal, httpserver.Options{Addr: p.cfg.Central.Listen, TrustedProxies: trusted, StreamRoutes: []string{users.ImportRoute}}, mount)
}

func (p *process) buildCentral(ctx context.Context) error {
	keys, err := secret.ParseKeys(p.cfg.Keys.Encryption)
	if err != nil {
		return fmt.Errorf("keys.encryption: %w", err)
	}
	p.followRevocations()
	people, err := p.administerUsers()
	if err != nil {
		return err
	}
	p.central, err = central.New(central.Deps{
		DB: p.db, DatabaseURL: p.cfg.Database.URL.Reveal(), Catalog: p.catalog, Clock: p.o.Clock, Random: rand.Reader,
		Encryption: keys, Issuer: p.cfg.Auth.Issuer, RootTenant: p.cfg.Auth.RootTenant, StateDir: p.cfg.StateDir, Users: people,
		People: user.NewStore(p.db, rand.Reader),
		Rules:  p.rules(), KeyPolicy: p.cfg.Central.Keys.policy(), Revoked: p.revoked, URL: strings.TrimSuffix(cmp.Or(p.cfg.Central.URL, "http://"+hostPort(p.cfg.Central.Listen)), "/"),
		Replay: replay.New(replay.Options{DB: p.db, Schema: "auth", Clock: p.o.Clock, Longest: dpop.Longest}),
		Log:    p.log, Meter: p.telemetry.Meter("versola/central"),
		Outbound: outbound.New(outbound.Options{AllowPrivate: p.cfg.Central.AllowPrivateNetworks}),
	})
	if err != nil {
		return err
	}
	if err := p.seed(ctx); err != nil {
		return err
	}
	if err := p.central.Load(ctx); err != nil {
		p.log.WarnContext(ctx, "starting without a catalog", "error", err)
	}
	p.ready.add("central", p.central.Ready)
	p.background = append(p.background, task{"central", p.central.Run})
	return p.internal(p.central.Mount)
}

// followRevocations reads the revocation log for central, which has to know of
// administrators' tokens that were revoked. Where the process runs auth too,
// auth follows the log itself.
func (p *process) followRevocations() {
	if p.roles.auth {
		return
	}
	p.revocations = revocation.NewFollower(p.db, p.cfg.Database.URL.Reveal(), p.o.Clock, p.log)
	p.ready.add("revocations", p.revocations.Ready)
	p.background = append(p.background, task{"revocations", p.revocations.Run})
}

// revoked tells central of administrators' tokens that were revoked.
func (p *process) revoked(sid, gid, jti, sub string, issued time.Time) bool {
	if p.auth != nil {
		return p.auth.Revoked(sid, gid, jti, sub, issued)
	}
	return p.revocations != nil && p.revocations.RevokedClaims(sid, gid, jti, sub, issued)
}

func (p *process) buildAuth(context.Context) error {
	tokens, err := secret.ParseKeys(p.cfg.Keys.Tokens)
	if err != nil {
		return fmt.Errorf("keys.tokens: %w", err)
	}
	encryption, err := secret.ParseKeys(p.cfg.Keys.Encryption)
	if err != nil {
		return fmt.Errorf("keys.encryption: %w", err)
	}
	sealing, err := secret.NewKeyring(encryption, catalog.SealPurpose)
	if err != nil {
		return fmt.Errorf("keys.encryption: %w", err)
	}
	trusted, err := prefixes(p.cfg.Auth.TrustedProxies)
	if err != nil {
		return err
	}
	events, err := p.auditEvents(encryption)
	if err != nil {
		return err
	}
	p.auth, err = auth.New(auth.Deps{
		DB: p.db, DatabaseURL: p.cfg.Database.URL.Reveal(), Catalog: p.catalog, Clock: p.o.Clock, Random: rand.Reader,
		TokenKeys: tokens, Encryption: sealing, Log: p.log, Meter: p.telemetry.Meter("versola/auth"),
		Outbound: outbound.New(outbound.Options{AllowPrivate: p.cfg.Auth.AllowPrivateNetworks, Timeout: logoutTimeout}),
		Issuer:   p.cfg.Auth.Issuer, RootTenant: p.cfg.Auth.RootTenant, Events: events,
		SignIn: auth.SignIn{
			Pepper: p.cfg.Keys.Pepper, EncryptionKeys: encryption, OTPProvider: p.cfg.Auth.OTP.Provider, FakeCode: p.cfg.Auth.OTP.FakeCode,
		},
	})
	if err != nil {
		return err
	}
	p.ready.add("auth", p.auth.Ready)
	p.background = append(p.background, task{"auth", p.auth.Run})
	if err := p.internal(p.auth.MountInternal); err != nil {
		return err
	}
	return p.listener(listenAuth, httpserver.Options{Addr: p.cfg.Auth.Listen, TrustedProxies: trusted, HandleError: p.auth.HandleError}, p.auth.Mount)
}

func (p *process) buildEdge(ctx context.Context) error {
	keys, err := secret.ParseKeys(p.cfg.Edge.SessionKeys)
	if err != nil {
		return fmt.Errorf("edge.session_keys: %w", err)
	}
	trusted, err := prefixes(p.cfg.Edge.TrustedProxies)
	if err != nil {
		return err
	}
	p.edge, err = edge.New(edge.Deps{
		DB: p.edgeDB, Catalog: p.catalog, Clock: p.o.Clock, Random: rand.Reader, Log: p.log, Meter: p.telemetry.Meter("versola/edge"),
		EdgeID: p.cfg.Edge.ID, PublicURL: p.cfg.Edge.PublicURL, SessionKeys: keys,
		AuthURL: p.cfg.Edge.AuthURL, HTTP: p.inProcess(listenAuth), CentralURL: p.cfg.Edge.CentralURL, Internal: p.inProcess(listenInternal),
		PrivateKeys: p.cfg.Edge.PrivateKeys, TrustedProxies: trusted, StateDir: p.cfg.StateDir,
	})
	if err != nil {
		return err
	}
	if !p.roles.central {
		feed, err := p.edge.Feed()
		if err != nil {
			return err
		}
		p.background = append(p.background, task{"catalog feed", feed.Run})
	}
	p.ready.add("edge", p.edge.Ready)
	p.background = append(p.background, task{"edge", p.edge.Run})
	if err := p.buildBank(ctx); err != nil {
		return err
	}
	// The proxy streams: each resource has limits of its own.
	return p.listener(listenEdge, httpserver.Options{Addr: p.cfg.Edge.Listen, TrustedProxies: trusted, MaxBody: -1}, p.edge.Mount)
}

// inProcess returns the way to a listener of this same process, or nil where
// another process has it.
func (p *process) inProcess(listener string) http.RoundTripper {
	s, ok := p.servers[listener]
	if !ok || !p.roles.auth {
		return nil
	}
	return httpserver.InProcess{Handler: s.Echo}
}

// buildBank adds the demo's upstream beside the edge that guards it.
func (p *process) buildBank(context.Context) error {
	if !p.cfg.Demo.Enabled {
		return nil
	}
	bank := demobank.New(p.o.Clock, p.cfg.Auth.Issuer)
	return p.listener(listenBank, httpserver.Options{Addr: p.cfg.Demo.UpstreamListen}, func(g *echo.Group) {
		g.Any("/*", echo.WrapHandler(bank))
	})
}

// requestHistogram makes the histogram of requests, once.
func (p *process) requestHistogram() (func(context.Context, httpserver.Observation), error) {
	if p.observe == nil {
		observe, err := telemetry.RequestHistogram(p.telemetry.Meter("versola/http"))
		if err != nil {
			return nil, err
		}
		p.observe = observe
	}
	return p.observe, nil
}

// observeDatabases makes the metrics of the pools: statements sent and
// connections in use.
func (p *process) observeDatabases() error {
	meter := p.telemetry.Meter("versola/postgres")
	statements, err := meter.Int64ObservableCounter("versola.db.statements", metric.WithDescription("Statements sent to the database; a batch counts as one."))
	if err != nil {
		return fmt.Errorf("make database metrics: %w", err)
	}
	conns, err := meter.Int64ObservableGauge("versola.db.connections", metric.WithDescription("Connections of the pool, by state."))
	if err != nil {
		return fmt.Errorf("make database metrics: %w", err)
	}
	pools := map[string]*postgres.DB{"main": p.db, "edge": p.edgeDB}
	_, err = meter.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		for name, db := range pools {
			if db == nil {
				continue
			}
			pool, stat := attribute.String("pool", name), db.Stat()
			o.ObserveInt64(statements, db.Statements(), metric.WithAttributes(pool))
			o.ObserveInt64(conns, int64(stat.AcquiredConns()), metric.WithAttributes(pool, attribute.String("state", "used")))
			o.ObserveInt64(conns, int64(stat.IdleConns()), metric.WithAttributes(pool, attribute.String("state", "idle")))
		}
		return nil
	}, statements, conns)
	if err != nil {
		return fmt.Errorf("make database metrics: %w", err)
	}
	return nil
}

// quiet leaves out the line of each request: probes come every few seconds and
// are nobody's request.
type quiet struct{ slog.Handler }

// Handle implements slog.Handler.
func (q quiet) Handle(ctx context.Context, r slog.Record) error {
	if r.Message == httpserver.RequestMessage {
		return nil
	}
	return q.Handler.Handle(ctx, r)
}

// hostPort is where a listener is reached from this machine.
func hostPort(listen string) string {
	if a, err := netip.ParseAddrPort(listen); err == nil && !a.Addr().IsUnspecified() {
		return listen
	}
	if len(listen) > 0 && listen[0] == ':' {
		return "127.0.0.1" + listen
	}
	return listen
}
