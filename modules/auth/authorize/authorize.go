package authorize

import (
	"context"
	"io"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/authorization"
	"versola/modules/auth/code"
	"versola/modules/auth/oauth"
	"versola/modules/auth/par"
	"versola/modules/auth/session"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

// Login signs a person in and then answers the request: it stores a
// conversation and sends the browser to its first page.
type Login interface {
	Start(c echo.Context, t tenant.At, cl *catalog.Client, r *authorization.Request) error
}

// Sessions reads the session behind a cookie; nil where none lives.
type Sessions interface {
	Read(ctx context.Context, t *catalog.Tenant, cookie string) (*session.Session, error)
}

// Codes stores authorization codes; false: the session no longer lives.
type Codes interface {
	Create(ctx context.Context, n code.New, now time.Time) (bool, error)
}

// Pushed finds pushed requests; nil where there is none of the client, or none
// any more. Spend tells whether it was there still.
type Pushed interface {
	Find(ctx context.Context, tenant, client, uri string, now time.Time) (*authorization.Request, error)
	Spend(ctx context.Context, hash []byte) (bool, error)
}

// Endpoint is the authorization endpoint.
type Endpoint struct {
	Requests  Requests
	Pushed    Pushed
	Responses *authorization.Responder
	Clock     clock.Clock
	Random    io.Reader
	Login     Login
	Sessions  Sessions
	Codes     Codes
	Cookies   httpserver.Cookies
}

// Handle answers GET and POST /authorize. An error that it returns has no
// client to go to, and is shown to the person.
func (e *Endpoint) Handle(c echo.Context) error {
	t := tenant.Of(c)
	httpserver.Annotate(c, slog.String("tenant", t.ID))
	p, err := oauth.Read(c.Request())
	if err != nil {
		return err
	}
	cl, err := clientOf(t, p)
	if err != nil {
		return err
	}
	httpserver.Annotate(c, slog.String("client", cl.ID))
	r, err := e.request(c, t, cl, p)
	if err != nil {
		return e.refuse(c, t, r, err)
	}
	s, err := e.session(c, t, r)
	if err != nil {
		return e.refuse(c, t, r, err)
	}
	if s != nil {
		done, err := e.silently(c, t, r, s)
		if done || err != nil {
			return err
		}
	}
	if slices.Contains(r.Prompt, "none") {
		return e.refuse(c, t, r, oauth.Refuse(oauth.LoginRequired, "nobody is signed in, or not as the request asks"))
	}
	if err := e.Login.Start(c, t, cl, r); err != nil && !c.Response().Committed {
		return e.refuse(c, t, r, err)
	}
	return nil
}

// request returns the request of a client: the one that it pushed, or the one
// that the parameters make.
func (e *Endpoint) request(c echo.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (*authorization.Request, error) {
	if !strings.HasPrefix(p.Get("request_uri"), par.URIPrefix) {
		return e.Requests.validate(c.Request().Context(), t, cl, p)
	}
	// Nothing else of what is sent counts (RFC 9126 section 4, RFC 9101 section
	// 6.3), but that there is one request, and not two.
	if _, twice := p.Duplicate("request_uri"); twice || p.Has("request") {
		return nil, oauth.Refuse(oauth.InvalidRequest, "request_uri was sent more than once, or with request")
	}
	r, err := e.Pushed.Find(c.Request().Context(), t.ID, cl.ID, p.Get("request_uri"), e.Clock.Now())
	switch {
	case err != nil:
		return nil, err
	case r == nil, !cl.Redirect(r.RedirectURI):
		return nil, authorization.Spent()
	}
	return r, nil
}

// session returns the session that may answer r, or nil.
func (e *Endpoint) session(c echo.Context, t tenant.At, r *authorization.Request) (*session.Session, error) {
	for _, interactive := range []string{"login", "consent", "select_account"} {
		if slices.Contains(r.Prompt, interactive) {
			return nil, nil //nolint:nilnil // no session will do
		}
	}
	cookie := e.Cookies.Get(c.Request(), session.CookieBase)
	if cookie == "" {
		return nil, nil //nolint:nilnil // no session is an ordinary answer
	}
	s, err := e.Sessions.Read(c.Request().Context(), t.Tenant, cookie)
	if err != nil || s == nil || !answers(r, s, e.Clock.Now()) {
		return nil, err
	}
	return s, nil
}

// answers tells whether a living session satisfies what r asks of the sign-in.
func answers(r *authorization.Request, s *session.Session, now time.Time) bool {
	if r.Subject != "" && r.Subject != s.UserID.String() {
		return false
	}
	if r.MaxAge == nil {
		return true
	}
	// max_age=0 asks for a sign-in now, like prompt=login (OpenID Connect Core
	// section 3.1.2.1).
	age := time.Duration(*r.MaxAge) * time.Second
	return age > 0 && now.Sub(s.AuthTime) <= age
}

// silently answers with a code for the session; false: it ended meanwhile.
func (e *Endpoint) silently(c echo.Context, t tenant.At, r *authorization.Request, s *session.Session) (bool, error) {
	now := e.Clock.Now()
	value, hash := authorization.NewCode(e.Random)
	validUntil, expiresAt := authorization.CodeTimes(now, t.CodeTTL())
	created, err := e.Codes.Create(c.Request().Context(), code.New{
		Hash: hash, Request: r, Scope: strings.Join(r.Scopes, " "), Authentication: s.Authentication(),
		ValidUntil: validUntil, ExpiresAt: expiresAt,
	}, now)
	if err != nil {
		return true, e.refuse(c, t, r, err)
	}
	if !created {
		return false, nil
	}
	return true, e.Responses.Code(c, t, r, value)
}

// refuse sends the browser back to the client with an error, or leaves it here
// where r is nil: there is nobody to go back to. A fault of ours stays here too
// while it passes: the browser can simply try again, which a client that was sent
// an error cannot.
func (e *Endpoint) refuse(c echo.Context, t tenant.At, r *authorization.Request, err error) error {
	refusal, ok := oauth.AsError(err)
	if !ok || r == nil || refusal.Code == oauth.InvalidRequestURI {
		return err
	}
	if r.Pushed != nil {
		switch live, err := e.Pushed.Spend(c.Request().Context(), r.Pushed); {
		case err != nil:
			return err
		case !live:
			return authorization.Spent()
		}
	}
	httpserver.NoteError(c, refusal)
	return e.Responses.Error(c, t, r, refusal)
}
