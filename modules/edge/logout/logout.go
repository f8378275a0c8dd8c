package logout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/page"
	"versola/modules/edge/provider"
	"versola/modules/edge/session"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
)

// Sessions ends sessions.
type Sessions interface {
	Look(ctx context.Context, preset *catalog.Preset, cookie string) (*session.Session, error)
	End(ctx context.Context, cookie string) (session.Ended, error)
	Logout(ctx context.Context, l session.Logout) (fresh bool, ended int, err error)
}

// Deps are what the handlers need.
type Deps struct {
	Catalog   *catalog.Holder
	EdgeID    string
	PublicURL string // of this edge, without a trailing slash
	Clock     clock.Clock
	Random    io.Reader
	Log       *slog.Logger
	Cookies   httpserver.Cookies
	Sessions  Sessions
}

// Handler ends sessions.
type Handler struct {
	d      Deps
	origin string
}

// New makes the handlers. Errors: a public URL that does not parse.
func New(d Deps) (*Handler, error) {
	u, err := url.Parse(d.PublicURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("public url %q: not a URL", d.PublicURL)
	}
	return &Handler{d: d, origin: u.Scheme + "://" + u.Host}, nil
}

// Preset handles GET and POST /logout/{preset}.
func (h *Handler) Preset(c echo.Context) error {
	current := h.d.Catalog.Current()
	if current == nil {
		return &page.Problem{Status: http.StatusServiceUnavailable, Title: "Starting up",
			Text: "The service has no configuration yet. Please try again in a moment.", Reason: "catalog_missing"}
	}
	p, ok := current.Preset(h.d.EdgeID, c.Param("preset"))
	if !ok {
		return &page.Problem{Status: http.StatusNotFound, Title: "Not found", Text: "There is no such sign-out here.", Reason: "preset_unknown"}
	}
	if !h.own(c.Request()) {
		return page.Confirm(c, h.d.PublicURL, "/logout/"+url.PathEscape(p.ID))
	}
	base := session.CookieBase(p)
	ended, err := h.d.Sessions.End(c.Request().Context(), h.d.Cookies.Get(c.Request(), base))
	if err != nil && !errors.Is(err, session.ErrNone) {
		return err // the cookie stays, so that it can be tried again
	}
	h.d.Cookies.Clear(c.Response(), base)
	q := url.Values{"client_id": {p.Client}}
	if !ended.IDToken.Empty() {
		q.Set("id_token_hint", ended.IDToken.Reveal())
	}
	if after := h.absolute(p.AfterLogout); after != "" {
		q.Set("post_logout_redirect_uri", after)
		q.Set("state", id.Short(h.d.Random, 16))
	}
	res := c.Response().Header()
	res.Set("Cache-Control", "no-store")
	res.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, provider.LogoutURL(p.Owner)+"?"+q.Encode())
}

// absolute makes a path of this edge a URL.
func (h *Handler) absolute(to string) string {
	if strings.HasPrefix(to, "/") {
		return h.d.PublicURL + to
	}
	return to
}

// own tells whether a request comes from this site's own pages or from the
// person directly. A GET may also come from a sibling site, such as the
// application's; a POST only from this origin. Where a browser says nothing
// about the origin, its Referer decides, and without one there is no site to
// distrust.
func (h *Handler) own(r *http.Request) bool {
	header := r.Header
	for _, name := range []string{"Sec-Fetch-Site", "Origin", "Referer"} {
		if len(header.Values(name)) > 1 {
			return false
		}
	}
	site := header.Get("Sec-Fetch-Site")
	// "null" says nothing (a page under the referrer policy no-referrer sends
	// it too); then Sec-Fetch-Site has to speak.
	if origin := header.Get("Origin"); origin != "" && origin != h.origin && (origin != "null" || site == "") {
		return false
	}
	switch site {
	case "same-origin", "none":
		return true
	case "same-site":
		return r.Method == http.MethodGet
	case "":
	default:
		return false
	}
	if referer := header.Get("Referer"); referer != "" {
		u, err := url.Parse(referer)
		return err == nil && u.Scheme+"://"+u.Host == h.origin
	}
	return true
}

// FrontChannel handles GET /logout/frontchannel.
func (h *Handler) FrontChannel(c echo.Context) error {
	q := c.QueryParams()
	iss, sid := q.Get("iss"), q.Get("sid")
	res := c.Response().Header()
	res.Set("Cache-Control", "no-store")
	current := h.d.Catalog.Current()
	if current == nil || len(q["iss"]) != 1 || len(q["sid"]) != 1 || sid == "" {
		return echo.NewHTTPError(http.StatusBadRequest, "iss and sid are required, once each")
	}
	t, ok := current.TenantByIssuer(iss)
	if !ok {
		return echo.NewHTTPError(http.StatusBadRequest, "iss is unknown here")
	}
	if u, err := url.Parse(t.Issuer); err == nil {
		res.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors "+u.Scheme+"://"+u.Host)
	}
	for _, p := range current.Presets(h.d.EdgeID) {
		if p.Owner != t {
			continue
		}
		cookie := h.d.Cookies.Get(c.Request(), session.CookieBase(p))
		if cookie == "" {
			continue
		}
		s, err := h.d.Sessions.Look(c.Request().Context(), p, cookie)
		if errors.Is(err, session.ErrNone) || err == nil && s.SessionID != sid {
			continue
		}
		if err != nil {
			return err
		}
		if _, err := h.d.Sessions.End(c.Request().Context(), cookie); err != nil && !errors.Is(err, session.ErrNone) {
			return err
		}
		h.d.Cookies.Clear(c.Response(), session.CookieBase(p))
	}
	return c.HTML(http.StatusOK, "<!doctype html><title>Signed out</title>")
}
