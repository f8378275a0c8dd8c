package logout

import (
	"context"
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/event"
	"versola/modules/auth/oauth"
	"versola/modules/auth/session"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/secret"
)

// Sessions reads the session behind a cookie; nil where none lives.
type Sessions interface {
	Read(ctx context.Context, t *catalog.Tenant, cookie string) (*session.Session, error)
}

// Pages shows what the browser sees.
type Pages interface {
	SignedOut(c echo.Context) error
	SigningOut(c echo.Context, frames []string, onward string) error
	ConfirmLogout(c echo.Context, csrf string, hidden url.Values) error
}

// Endpoint is the end session endpoint.
type Endpoint struct {
	sessions Sessions
	pages    Pages
	ender    *Ender
	cookies  httpserver.Cookies
	mac      *secret.MAC
	events   event.Sink
}

// Purpose is what the key of the confirmation's csrf value is derived for.
const Purpose = "logout-confirmation"

// New makes the endpoint; keys are the deployment's token keys.
func New(s Sessions, p Pages, e *Ender, cookies httpserver.Cookies, keys []secret.Key, events event.Sink) (*Endpoint, error) {
	mac, err := secret.NewMAC(keys, Purpose)
	if err != nil {
		return nil, err
	}
	return &Endpoint{sessions: s, pages: p, ender: e, cookies: cookies, mac: mac, events: events}, nil
}

// maxState bounds the state that goes back, as at the authorization endpoint.
const maxState = 2 << 10

// maxQuery bounds the query that a POST comes back with: common proxies and
// browsers take 8 KiB of an address. What does not fit was never a GET.
const maxQuery = 8 << 10

// parametersKnown are those that may be sent once only.
var parametersKnown = []string{"id_token_hint", "client_id", "post_logout_redirect_uri", "state", "logout_hint", "ui_locales", "csrf"}

// request is a parsed logout request.
type request struct {
	hint     *token.Hint     // nil: none, or not ours
	client   *catalog.Client // nil: none was named
	redirect string          // registered with client; empty: none
	state    string
	csrf     string
	locales  string // ui_locales
	raw      url.Values
	doubt    error // why the person has to be asked
}

// Handle answers GET and POST /logout.
func (e *Endpoint) Handle(c echo.Context) error {
	t := tenant.Of(c)
	r, err := parse(c, t)
	if err != nil {
		return err
	}
	cookie := e.cookies.Get(c.Request(), session.CookieBase)
	var s *session.Session
	if cookie != "" {
		if s, err = e.sessions.Read(c.Request().Context(), t.Tenant, cookie); err != nil {
			return err
		}
	}
	if s == nil {
		return e.withoutSession(c, t, r, cookie == "")
	}
	if !e.sure(r, s, cookie) {
		return e.confirm(c, r, cookie)
	}
	frames, err := e.end(c, t, r, s.UserID, s.ID)
	if err != nil {
		return err
	}
	e.cookies.Clear(c.Response(), session.CookieBase)
	return e.leave(c, r, frames)
}

func parse(c echo.Context, t tenant.At) (*request, error) {
	p, err := oauth.Read(c.Request())
	if err != nil {
		return nil, err
	}
	if name, twice := p.Duplicate(parametersKnown...); twice {
		return nil, oauth.Refuse(oauth.InvalidRequest, "%s was sent more than once", name)
	}
	r := &request{raw: url.Values{}, csrf: p.Get("csrf"), state: p.Get("state"), locales: p.Get("ui_locales")}
	for _, name := range parametersKnown {
		if p.Has(name) && name != "csrf" {
			r.raw.Set(name, p.Get(name))
		}
	}
	if len(r.state) > maxState {
		return nil, oauth.Refuse(oauth.InvalidRequest, "state is longer than 2048 bytes")
	}
	clientID := p.Get("client_id")
	if p.Has("id_token_hint") {
		if r.hint, err = token.ReadHint(t, p.Get("id_token_hint")); err != nil {
			r.doubt = err
		} else if clientID == "" {
			clientID = r.hint.ClientID
		} else if clientID != r.hint.ClientID {
			// RP-Initiated Logout section 2: they must agree.
			return nil, oauth.Refuse(oauth.InvalidRequest, "client_id is not the client of the id_token_hint")
		}
	}
	if clientID != "" {
		cl, ok := t.Client(clientID)
		if !ok || cl.Disabled {
			r.doubt = errors.New("unknown client")
			return r, nil
		}
		r.client = cl
		httpserver.Annotate(c, slog.String("tenant", t.ID), slog.String("client", cl.ID))
	}
	if uri := p.Get("post_logout_redirect_uri"); uri != "" {
		if r.client != nil && r.client.PostLogoutRedirect(uri) {
			r.redirect = uri
		} else {
			r.doubt = errors.New("post_logout_redirect_uri is not registered with a known client")
		}
	}
	return r, nil
}

// withoutSession ends the session that a hint of ours names, where nothing is
// in doubt. The browser has no cookie, or one that names no session here: it
// may have expired, or be that of another tenant's directory.
func (e *Endpoint) withoutSession(c echo.Context, t tenant.At, r *request, noCookie bool) error {
	if r.hint == nil || r.doubt != nil {
		if noCookie && r.csrf == "" && c.Request().Method == http.MethodPost {
			return again(c, t, r)
		}
		return e.leave(c, r, nil)
	}
	user, err := id.ParseUUID(r.hint.Subject)
	if err != nil {
		return e.leave(c, r, nil)
	}
	sid, err := id.ParseUUID(r.hint.Session)
	if err != nil {
		return e.leave(c, r, nil)
	}
	frames, err := e.end(c, t, r, user, sid)
	if err != nil {
		return err
	}
	return e.leave(c, r, frames)
}

// end ends a session that lives, says so, and returns the frames to show.
func (e *Endpoint) end(c echo.Context, t tenant.At, r *request, userID, sessionID id.UUID) (frames []string, err error) {
	ended, err := e.ender.endHere(c.Request().Context(), t, userID, sessionID)
	if err != nil || ended == nil {
		return nil, err
	}
	done := event.Event{At: e.ender.clock.Now(), Kind: event.SessionEnded, Reason: event.SignedOut, Tenant: t.ID, Directory: t.Directory,
		User: userID, Session: sessionID}
	if r.client != nil {
		done.Client = r.client.ID
	}
	e.events.Take(done.From(c))
	return ended.frames, nil
}

// again lets a POST come back as a GET, with its cookie.
func again(c echo.Context, t tenant.At, r *request) error {
	query := r.raw.Encode()
	if len(query) > maxQuery {
		return oauth.Refuse(oauth.InvalidRequest, "the parameters are longer than %d bytes together", maxQuery)
	}
	oauth.NoStore(c.Response().Header())
	return c.Redirect(http.StatusSeeOther, t.PathPrefix+"/logout?"+query)
}

// sure tells whether the session may end without asking the person.
func (e *Endpoint) sure(r *request, s *session.Session, cookie string) bool {
	if r.csrf != "" {
		tag, err := base64.RawURLEncoding.Strict().DecodeString(r.csrf)
		return err == nil && e.mac.Verify(tag, []byte(cookie))
	}
	return r.doubt == nil && r.client != nil && r.hint != nil &&
		r.hint.Subject == s.UserID.String() && r.hint.Session == s.ID.String()
}

func (e *Endpoint) confirm(c echo.Context, r *request, cookie string) error {
	if r.doubt != nil {
		httpserver.NoteError(c, r.doubt)
	}
	hidden := url.Values{}
	if r.client != nil {
		hidden.Set("client_id", r.client.ID)
	}
	if r.redirect != "" {
		hidden.Set("post_logout_redirect_uri", r.redirect)
		if r.state != "" {
			hidden.Set("state", r.state)
		}
	}
	if r.locales != "" {
		hidden.Set("ui_locales", r.locales)
	}
	oauth.NoStore(c.Response().Header())
	return e.pages.ConfirmLogout(c, base64.RawURLEncoding.EncodeToString(e.mac.Sum(nil, []byte(cookie))), hidden)
}

// leave shows the way on, by a page with frames where clients have some. A cookie without a session here is left alone: it may
// be that of another tenant's directory on this host.
func (e *Endpoint) leave(c echo.Context, r *request, frames []string) error {
	oauth.NoStore(c.Response().Header())
	target := r.redirect
	if target != "" && r.state != "" {
		target = oauth.AddQuery(target, url.Values{"state": {r.state}})
	}
	switch {
	case len(frames) > 0:
		return e.pages.SigningOut(c, frames, target)
	case target == "":
		return e.pages.SignedOut(c)
	}
	c.Response().Header().Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, target)
}
