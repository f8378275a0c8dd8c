package login

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"golang.org/x/sync/errgroup"

	"versola/modules/auth/authorization"
	"versola/modules/auth/event"
	"versola/modules/auth/factor"
	"versola/modules/auth/message"
	"versola/modules/auth/otp"
	"versola/modules/auth/pages"
	"versola/modules/auth/password"
	"versola/modules/auth/session"
	"versola/modules/auth/tenant"
	"versola/modules/auth/throttle"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Ender ends a session with all that hangs on it; *logout.Ender is one.
type Ender interface {
	End(ctx context.Context, t tenant.At, userID, sessionID id.UUID) (bool, error)
}

// Deps are what the engine is made of.
type Deps struct {
	DB         *postgres.DB
	Clock      clock.Clock
	Random     io.Reader
	Log        *slog.Logger
	PublicURL  string       // the issuer: says whether cookies are secure
	Encryption []secret.Key // seal messages, and answers that may be given again
	Tokens     []secret.Key // authenticate forms and codes
	Pages      *pages.Renderer
	Hasher     *password.Hasher
	Sessions   *session.Store
	Ender      Ender
	Sender     message.Sender
	Events     event.Sink // hears of sign-ins, and of those that fail
	FakeCode   string     // the demo's one-time code; empty: random codes
}

// Engine leads people through their sign-in. It is safe for concurrent use.
type Engine struct {
	d       Deps
	cookies httpserver.Cookies
	factors []factor.Factor
	outbox  *message.Outbox
	keys    *throttle.Keys
	csrf    *secret.MAC
	answers *secret.Keyring
	respond *authorization.Responder
}

// New makes an engine.
func New(d Deps) (*Engine, error) {
	e := &Engine{d: d, cookies: httpserver.NewCookies(d.PublicURL), respond: &authorization.Responder{Clock: d.Clock, Pages: d.Pages}}
	var err error
	if e.outbox, err = message.NewOutbox(d.DB, d.Clock, d.Encryption, d.Sender, d.Log); err != nil {
		return nil, err
	}
	if e.keys, err = throttle.NewKeys(d.Tokens); err != nil {
		return nil, err
	}
	if e.csrf, err = secret.NewMAC(d.Tokens, "login/csrf"); err != nil {
		return nil, fmt.Errorf("make form key: %w", err)
	}
	if e.answers, err = secret.NewKeyring(d.Encryption, "login/answer"); err != nil {
		return nil, fmt.Errorf("make answer key: %w", err)
	}
	codes, err := otp.New(d.Tokens, d.Random, otp.Options{FakeCode: d.FakeCode})
	if err != nil {
		return nil, err
	}
	e.factors = []factor.Factor{codes, password.New(d.Hasher, d.Log)}
	return e, nil
}

// Mount registers the routes on a tenant's group, the pages' static files
// among them.
func (e *Engine) Mount(g *echo.Group) {
	e.d.Pages.Mount(g)
	page := func(step string, get, post echo.HandlerFunc) {
		path, allow := "/login/:handle"+step, "GET, POST"
		if get == nil {
			allow = "POST"
		} else if post == nil {
			allow = "GET"
		}
		// Given to each route, not to a group: a group of echo's answers 404
		// to methods that it does not know.
		g.Any(path, func(c echo.Context) error {
			c.Response().Header().Set(echo.HeaderAllow, allow)
			return echo.ErrMethodNotAllowed
		}, e.errors)
		if get != nil {
			g.GET(path, get, e.errors)
		}
		if post != nil {
			g.POST(path, post, e.errors)
		}
	}
	page("", e.current, nil)
	page("/identifier", e.showIdentifier, e.identify)
	page("/choose", nil, e.choose)
	page("/cancel", nil, e.cancel)
	for _, f := range e.factors {
		page("/"+f.Name(), e.showFactor(f), e.prove(f))
	}
	page("/password/change", e.showChange, e.change)
}

const (
	// sweepEvery is how often expired rows are deleted.
	sweepEvery = time.Minute
	// restartable is how long an expired conversation can still start its
	// request again: a tab that was forgotten over lunch. At 100 sign-ins per
	// second, an hour's conversations are 360,000 small rows.
	restartable = time.Hour
)

// Run sends messages and deletes expired rows until ctx ends.
func (e *Engine) Run(ctx context.Context) error {
	// The module sweeps the other tables; here an expired row is still good for
	// something.
	sweeper := &postgres.Sweeper{DB: e.d.DB, Now: func() time.Time { return e.d.Clock.Now().Add(-restartable) }, Every: sweepEvery,
		Sweeps: []postgres.Sweep{{Table: "auth.conversation", Column: "expires_at"}}, Log: e.d.Log}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return e.outbox.Run(ctx) })
	g.Go(func() error { return sweeper.Run(ctx) })
	return g.Wait() //nolint:wrapcheck // both say what they are
}

// stepTimeout bounds a step that nobody waits for any more.
const stepTimeout = 10 * time.Second

// errors shows what went wrong as a page, and leaves the cause for the log.
//
// A step goes on when its browser hangs up: a double click hangs up on the
// first request, and half a step is worth nothing to the second.
func (e *Engine) errors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if r := c.Request(); r.Method == http.MethodPost {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), stepTimeout)
			defer cancel()
			c.SetRequest(r.WithContext(ctx))
		}
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		httpserver.NoteError(c, err)
		return e.d.Pages.WriteError(c, err)
	}
}
