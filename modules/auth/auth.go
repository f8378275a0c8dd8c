package auth

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"versola/modules/auth/authorization"
	"versola/modules/auth/authorize"
	"versola/modules/auth/client"
	"versola/modules/auth/clientcredentials"
	"versola/modules/auth/code"
	"versola/modules/auth/cors"
	"versola/modules/auth/discovery"
	"versola/modules/auth/dpop"
	"versola/modules/auth/event"
	"versola/modules/auth/grant"
	"versola/modules/auth/keys"
	"versola/modules/auth/logout"
	"versola/modules/auth/par"
	"versola/modules/auth/refresh"
	"versola/modules/auth/requestobject"
	"versola/modules/auth/revocation"
	"versola/modules/auth/revoke"
	"versola/modules/auth/session"
	"versola/modules/auth/token"
	"versola/modules/auth/userinfo"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	proof "versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/postgres"
	"versola/platform/replay"
	"versola/platform/secret"
)

// sweepEvery is how often expired rows are deleted: often enough that the
// ephemeral tables stay small, rarely enough to cost nothing.
const sweepEvery = 30 * time.Second

// ensureAgain is the pause between attempts to make the first signing keys
// while the database is away.
const ensureAgain = time.Second

// Deps is what the module needs.
type Deps struct {
	DB          *postgres.DB
	DatabaseURL string // for the connection that listens
	Catalog     *catalog.Holder
	Clock       clock.Clock
	Random      io.Reader    // crypto/rand.Reader in production
	TokenKeys   []secret.Key // refresh tokens, cookies and forms; the active first
	// Encryption seals signing keys, as the catalog opens them.
	Encryption *secret.Keyring
	Log        *slog.Logger
	Meter      metric.Meter
	Outbound   *http.Client // for back-channel logout and the key sets of clients, with an address filter
	Issuer     string       // auth's public URL, without a trailing slash
	RootTenant string
	Events     event.Sink // hears of what is to be in the audit log; nil: nobody does
	SignIn     SignIn     // what the sign-in half needs beyond these
}

// engine signs people in.
type engine interface {
	authorize.Login
	Mount(g *echo.Group)
	Run(ctx context.Context) error
}

// mounter has routes of its own.
type mounter interface{ Mount(g *echo.Group) }

// pageSet shows pages to browsers.
type pageSet interface {
	Error(c echo.Context, status int, code, description string) error
	SignedOut(c echo.Context) error
	SigningOut(c echo.Context, frames []string, onward string) error
	ConfirmLogout(c echo.Context, csrf string, hidden url.Values) error
	authorization.Pages
}

// signIn is the other half: who signs people in and shows pages.
type signIn struct {
	reset mounter // pages behind links that set a password; nil: there are none
	login engine
	pages pageSet
}

// Module is the OpenID provider.
type Module struct {
	deps   Deps
	signIn signIn

	authorize *authorize.Endpoint
	par       *par.Endpoint
	token     *grant.Endpoint
	userinfo  *userinfo.Endpoint
	revoke    *revoke.Endpoint
	logout    *logout.Endpoint
	keys      *keys.Endpoint
	discovery *discovery.Endpoint
	origins   *cors.Registered
	feed      *revocation.Feed

	follower *revocation.Follower
	notifier *logout.Notifier
	sweeper  *postgres.Sweeper
}

// New wires the module.
func New(d Deps) (*Module, error) { return assemble(d, newSignIn) }

// assemble wires the module around a sign-in half, which a test may replace.
func assemble(d Deps, half func(Deps, *session.Store, *logout.Ender) (signIn, error)) (*Module, error) {
	if d.Events == nil {
		d.Events = event.Discard{}
	}
	format, err := refresh.NewFormat(d.TokenKeys)
	if err != nil {
		return nil, fmt.Errorf("token keys: %w", err)
	}
	cookies := httpserver.NewCookies(d.Issuer)
	follower := revocation.NewFollower(d.DB, d.DatabaseURL, d.Clock, d.Log)
	sessions, ender := session.NewStore(d.DB, d.Clock), logout.NewEnder(d.DB, d.Clock, follower)
	s, err := half(d, sessions, ender)
	if err != nil {
		return nil, fmt.Errorf("set up sign-in: %w", err)
	}
	minter := &token.Minter{Random: d.Random}
	codes, grants := &code.Store{DB: d.DB}, &refresh.Store{DB: d.DB}
	sender, err := newConstraint(d)
	if err != nil {
		return nil, fmt.Errorf("token keys: %w", err)
	}
	clients := newAuthenticator(d)
	pushed, requests := &par.Store{DB: d.DB}, authorize.Requests{Objects: &requestobject.Reader{Clock: d.Clock, Keys: clients.Keys}}
	m := &Module{
		deps: d, signIn: s, follower: follower,
		authorize: &authorize.Endpoint{Requests: requests, Pushed: pushed, Responses: &authorization.Responder{Clock: d.Clock, Pages: s.pages},
			Clock: d.Clock, Random: d.Random, Login: s.login, Sessions: sessions, Codes: codes, Cookies: cookies},
		par:      &par.Endpoint{Clock: d.Clock, Random: d.Random, Clients: clients.At(par.Path), Requests: &requests, Proofs: sender, Store: pushed},
		userinfo: &userinfo.Endpoint{DB: d.DB, Clock: d.Clock, Revocations: follower, Sender: sender},
		revoke:   &revoke.Endpoint{DB: d.DB, Clock: d.Clock, Clients: clients, Format: format, Grants: grants, Log: follower, Events: d.Events},
		keys:     keys.NewEndpoint(),
		origins:  cors.NewRegistered(),
		feed:     &revocation.Feed{Follower: follower, Catalog: d.Catalog, Clock: d.Clock},
	}
	m.token, err = grant.New(map[string]grant.Grant{
		catalog.GrantCode:              &code.Grant{Clock: d.Clock, Random: d.Random, Store: codes, Minter: minter, Refresh: format, Revoked: follower},
		catalog.GrantRefreshToken:      &refresh.Grant{Clock: d.Clock, Format: format, Store: grants, Minter: minter, Revoked: follower},
		catalog.GrantClientCredentials: &clientcredentials.Grant{Clock: d.Clock, Minter: minter},
	}, clients, minter, sender, d.Events, d.Meter)
	if err != nil {
		return nil, err
	}
	m.discovery = discovery.New(discovery.Capabilities{GrantTypes: m.token.Types(), AuthMethods: clients.Methods(), Prompts: authorize.Prompts()})
	if m.logout, err = logout.New(sessions, s.pages, ender, cookies, d.TokenKeys, d.Events); err != nil {
		return nil, fmt.Errorf("token keys: %w", err)
	}
	m.notifier = &logout.Notifier{DB: d.DB, Catalog: d.Catalog, Clock: d.Clock, Minter: minter, Client: d.Outbound, Log: d.Log, Ender: ender}
	m.sweeper, err = newSweeper(d)
	return m, err
}

// newAuthenticator makes what clients prove themselves to.
func newAuthenticator(d Deps) *client.Authenticator {
	used := replay.New(replay.Options{DB: d.DB, Schema: "auth", Clock: d.Clock, Longest: client.Longest})
	return &client.Authenticator{Clock: d.Clock, Used: used, Keys: &client.Keys{HTTP: d.Outbound, Clock: d.Clock}, TokenPath: pathToken}
}

// newConstraint makes what binds tokens to keys.
func newConstraint(d Deps) (*dpop.Constraint, error) {
	nonces, err := dpop.NewNonces(d.Clock, d.TokenKeys)
	if err != nil {
		return nil, err
	}
	used := replay.New(replay.Options{DB: d.DB, Schema: "auth", Clock: d.Clock, Longest: proof.Longest})
	return &dpop.Constraint{Clock: d.Clock, Nonces: nonces, Proofs: proof.Guard{Replay: used}}, nil
}

// swept are the tables with an expiry, but for those that package login sweeps
// in its own way.
func swept() []postgres.Sweep {
	names := []string{"session", "grants", "revocation", "logout_notice", "authorization_code", "throttle", "message", "replay", "password_reset", "pushed_request"}
	out := make([]postgres.Sweep, len(names))
	for i, n := range names {
		out[i] = postgres.Sweep{Table: "auth." + n, Column: "expires_at"}
	}
	return out
}

func newSweeper(d Deps) (*postgres.Sweeper, error) {
	counter, err := d.Meter.Int64Counter("versola.auth.expired.rows", metric.WithDescription("Expired rows that were deleted, by table."))
	if err != nil {
		return nil, fmt.Errorf("make cleanup counter: %w", err)
	}
	labels := map[string]metric.MeasurementOption{}
	for _, s := range swept() {
		labels[s.Table] = metric.WithAttributeSet(attribute.NewSet(attribute.String("table", s.Table)))
	}
	return &postgres.Sweeper{DB: d.DB, Now: d.Clock.Now, Every: sweepEvery, Sweeps: swept(), Log: d.Log,
		OnDeleted: func(table string, rows int64) { counter.Add(context.Background(), rows, labels[table]) }}, nil
}

// Run does the background work until ctx ends: first keys, the revocation log,
// logout notices, cleanup, and that of the sign-in half.
func (m *Module) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, run := range []func(context.Context) error{m.ensureKeys, m.follower.Run, m.notifier.Run, m.sweeper.Run, m.signIn.login.Run} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// ensureKeys makes the first signing keys, as soon as the database is there.
func (m *Module) ensureKeys(ctx context.Context) error {
	for failed := false; ; failed = true {
		err := keys.Ensure(ctx, m.deps.DB, m.deps.Encryption, m.deps.Clock.Now())
		if err == nil || ctx.Err() != nil {
			return nil
		}
		if !failed { // once, not at every attempt
			m.deps.Log.WarnContext(ctx, "signing keys cannot be made sure of yet", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(ensureAgain):
		}
	}
}

// Revoked tells whether an access token of these claims has been revoked: see [revocation.Follower.RevokedClaims].
func (m *Module) Revoked(sid, gid, jti, sub string, issued time.Time) bool {
	return m.follower.RevokedClaims(sid, gid, jti, sub, issued)
}

// Ready tells why the module cannot serve yet; nil: it can.
func (m *Module) Ready() error {
	current := m.deps.Catalog.Current()
	if current == nil {
		return errors.New("the configuration is not loaded yet")
	}
	if _, ok := current.Tenant(m.deps.RootTenant); !ok {
		return fmt.Errorf("the root tenant %q is not configured", m.deps.RootTenant)
	}
	for _, alg := range keys.Algorithms() {
		if _, ok := current.Signer(alg); !ok {
			return fmt.Errorf("there is no %s signing key yet", alg)
		}
	}
	return m.follower.Ready()
}
