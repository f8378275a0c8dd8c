package reset

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/event"
	"versola/modules/auth/oauth"
	"versola/modules/auth/pages"
	"versola/modules/auth/password"
	"versola/modules/auth/tenant"
	"versola/modules/auth/throttle"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	// path is where links lead, below a tenant's issuer.
	path = "/password/reset"
	// cookie carries the token from the link to the form.
	cookie = "versola_auth_reset"
	// cookieAge is longer than a form is left open.
	cookieAge = time.Hour
	// tokenChars is the length of a token: 256 bits in base64url.
	tokenChars = 43
	// maxForm is the largest form: the longest password, several times over.
	maxForm = 16 << 10
	// pairFor is how far two clicks of one person are apart.
	pairFor = 30 * time.Second
	// stepTimeout bounds a POST that nobody waits for any more.
	stepTimeout = 10 * time.Second
)

// Ender ends what a person holds: *logout.Ender.
type Ender interface {
	EndAll(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID id.UUID) (sessions int, err error)
}

// Deps is what the endpoint works with.
type Deps struct {
	DB        *postgres.DB
	Clock     clock.Clock
	PublicURL string       // the issuer: says whether cookies are secure
	Tokens    []secret.Key // authenticate forms
	Pages     *pages.Renderer
	Hasher    *password.Hasher
	Ender     Ender
	Events    event.Sink
}

// Endpoint has the pages behind links.
type Endpoint struct {
	d       Deps
	cookies httpserver.Cookies
	keys    *throttle.Keys
	csrf    *secret.MAC
}

// New makes the endpoint.
func New(d Deps) (*Endpoint, error) {
	e := &Endpoint{d: d, cookies: httpserver.NewCookies(d.PublicURL)}
	var err error
	if e.keys, err = throttle.NewKeys(d.Tokens); err != nil {
		return nil, err
	}
	if e.csrf, err = secret.NewMAC(d.Tokens, "reset/csrf"); err != nil {
		return nil, fmt.Errorf("make form key: %w", err)
	}
	return e, nil
}

// Mount registers the routes on a tenant's group.
func (e *Endpoint) Mount(g *echo.Group) {
	for _, r := range []struct {
		path, allow string
		get, post   echo.HandlerFunc
	}{
		{path + "/:token", "GET, HEAD", e.enter, nil},
		{path + "/done", "GET, HEAD", e.done, nil},
		{path, "GET, HEAD, POST", e.show, e.set},
	} {
		g.Any(r.path, func(c echo.Context) error {
			c.Response().Header().Set(echo.HeaderAllow, r.allow)
			return echo.ErrMethodNotAllowed
		}, e.errors)
		g.GET(r.path, r.get, e.errors)
		g.HEAD(r.path, r.get, e.errors)
		if r.post != nil {
			g.POST(r.path, r.post, e.errors)
		}
	}
}

// errors shows what went wrong as a page. A POST goes on when its browser hangs
// up: a double click hangs up on the first request.
func (e *Endpoint) errors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		httpserver.Annotate(c, slog.String("tenant", tenant.Of(c).ID))
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
		if errors.Is(err, errSpent) {
			e.cookies.Clear(c.Response(), cookie)
			return e.d.Pages.Notice(c, http.StatusGone, "reset_link", nil)
		}
		return e.d.Pages.WriteError(c, err)
	}
}

// goTo answers with an address of the tenant's.
func goTo(c echo.Context, to string) error {
	h := c.Response().Header()
	oauth.NoStore(h)
	h.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, tenant.Of(c).PathPrefix+to)
}

// wellFormed tells whether a token can be one of ours.
func wellFormed(token string) bool {
	if len(token) != tokenChars {
		return false
	}
	_, err := base64.RawURLEncoding.Strict().DecodeString(token)
	return err == nil
}

// enter answers GET /password/reset/{token}: the token moves from the address
// into a cookie. Nothing is looked up, so that a scanner learns nothing.
func (e *Endpoint) enter(c echo.Context) error {
	token := c.Param("token")
	if !wellFormed(token) {
		return errSpent
	}
	e.cookies.Set(c.Response(), cookie, token, cookieAge)
	return goTo(c, path)
}

// token returns the hash of the token of the cookie; nil: there is none, and
// the answer says so.
func (e *Endpoint) token(c echo.Context) ([]byte, error) {
	token := e.cookies.Get(c.Request(), cookie)
	if token == "" {
		return nil, e.d.Pages.Notice(c, http.StatusBadRequest, "reset_cookie", nil)
	}
	if !wellFormed(token) {
		return nil, errSpent
	}
	return secret.Hash(token), nil
}

// form is the data of the page "reset".
type form struct {
	Name string // the person's, for password managers
	Min  int
}

// show answers GET /password/reset.
func (e *Endpoint) show(c echo.Context) error {
	hash, err := e.token(c)
	if hash == nil {
		return err
	}
	return e.page(c, hash, "", nil)
}

// page shows the form, with an error where there is one.
func (e *Endpoint) page(c echo.Context, hash []byte, problem string, args []string) error {
	t := tenant.Of(c)
	f, err := e.find(c.Request().Context(), t, hash)
	if err != nil {
		return err
	}
	v := e.view(c, hash)
	v.Error, v.ErrorArgs, v.Data = problem, args, form{f.name(), password.PolicyOf(t.Tenant).Min}
	if problem != "" {
		v.Status = http.StatusUnprocessableEntity
	}
	return e.d.Pages.Render(c, v)
}

func (e *Endpoint) view(c echo.Context, hash []byte) pages.View {
	return pages.View{Name: "reset", Title: "reset.title", Base: tenant.Of(c).PathPrefix + path, CSRF: base64.RawURLEncoding.EncodeToString(e.csrf.Sum(nil, hash))}
}

// set answers POST /password/reset.
func (e *Endpoint) set(c echo.Context) error {
	hash, err := e.token(c)
	if hash == nil {
		return err
	}
	chosen, ok, err := e.read(c, hash)
	if !ok {
		return err
	}
	ctx, t := c.Request().Context(), tenant.Of(c)
	a, err := e.attempt(ctx, t, hash)
	switch {
	case err != nil:
		return err
	case !a.retryAt.IsZero():
		return e.wait(c, hash, a.retryAt)
	case !a.open:
		return e.second(c, a.just, chosen)
	}
	policy := password.PolicyOf(t.Tenant)
	if problem := policy.Problem(chosen); problem != "" {
		return e.page(c, hash, problem, policy.Args())
	}
	passwordHash, err := e.d.Hasher.Hash(ctx, chosen)
	if err != nil {
		return err
	}
	f, err := e.use(ctx, t, hash, passwordHash)
	if errors.Is(err, errSpent) { // the other of two clicks was faster
		if a, err = e.attempt(ctx, t, hash); err != nil {
			return err
		}
		return e.second(c, a.just, chosen)
	}
	if err != nil {
		return err
	}
	e.d.Events.Take(event.Event{At: e.d.Clock.Now(), Kind: event.PasswordReset, Tenant: t.ID, Directory: t.Directory, User: f.id}.From(c))
	return e.finish(c)
}

// second answers for a link that is open no more: like the first, to whoever
// has set the same password by it a moment ago.
func (e *Endpoint) second(c echo.Context, just, chosen string) error {
	if just == "" {
		return errSpent
	}
	same, _, err := e.d.Hasher.Verify(c.Request().Context(), just, chosen)
	if err != nil && !errors.Is(err, password.ErrFormat) {
		return err
	}
	if !same {
		return errSpent
	}
	return e.finish(c)
}

func (e *Endpoint) finish(c echo.Context) error {
	e.cookies.Clear(c.Response(), cookie)
	return goTo(c, path+"/done")
}

// read returns the password of a form; not ok: the answer was written.
func (e *Endpoint) read(c echo.Context, hash []byte) (chosen string, ok bool, err error) {
	r := c.Request()
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	form, err := oauth.ReadForm(r)
	if err != nil {
		httpserver.NoteError(c, err)
		status := http.StatusBadRequest
		if refused, is := oauth.AsError(err); is {
			status = refused.HTTPStatus()
		}
		return "", false, e.d.Pages.Notice(c, status, "reset_form", nil)
	}
	_, twice := form.Duplicate("csrf", "new_password")
	tag, err := base64.RawURLEncoding.Strict().DecodeString(form.Get("csrf"))
	if twice || err != nil || !e.csrf.Verify(tag, hash) {
		httpserver.NoteError(c, errors.New("the form's token is not of this link"))
		return "", false, e.d.Pages.Notice(c, http.StatusForbidden, "reset_form", nil)
	}
	return form.Get("new_password"), true, nil
}

// wait answers that the link was tried too often.
func (e *Endpoint) wait(c echo.Context, hash []byte, until time.Time) error {
	wait := until.Sub(e.d.Clock.Now())
	pages.SetRetryAfter(c, texts.Seconds(wait))
	v := e.view(c, hash)
	v.Status, v.Error, v.Data = http.StatusTooManyRequests, "error.throttled", form{Min: password.PolicyOf(tenant.Of(c).Tenant).Min}
	v.ErrorArgs = []string{"wait", tenant.Of(c).Texts.Wait(e.d.Pages.Locale(c, nil), wait)}
	return e.d.Pages.Render(c, v)
}

// done answers GET /password/reset/done.
func (e *Endpoint) done(c echo.Context) error {
	return e.d.Pages.Render(c, pages.View{Name: "reset_done", Title: "reset_done.title"})
}
