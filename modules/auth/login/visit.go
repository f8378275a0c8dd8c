package login

import (
	"encoding/base64"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/factor"
	"versola/modules/auth/oauth"
	"versola/modules/auth/pages"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/secret"
)

const (
	// browserCookie binds conversations to a browser. It identifies nobody and
	// gives access to nothing by itself.
	browserCookie = "versola_auth_browser"
	// browserCookieAge is long, so that tabs that are opened at the same time
	// nearly always find a cookie to share.
	browserCookieAge = 180 * 24 * time.Hour
	// handleBytes of a conversation: with the browser's cookie beside it, 144
	// bits are plenty, and twenty tabs stay small.
	handleBytes = 18
	// maxHandle and maxCookie bound what is hashed.
	maxHandle = 64
	maxCookie = 128
	// maxForm is the largest form: the longest password and identifier, many
	// times over.
	maxForm = 16 << 10
)

// visit is one request to a conversation.
type visit struct {
	c           echo.Context
	t           tenant.At
	now         time.Time
	handle      string
	hash        []byte
	browserHash []byte
	form        oauth.Params
	version     int // that the form was shown for

	// Set by admit.
	conversation *conversation
	client       *catalog.Client
	flow         flow
	locale       string
}

// path returns an address within the conversation.
func (v *visit) path(step string) string {
	p := v.t.PathPrefix + "/login/" + v.handle
	if step != "" {
		p += "/" + step
	}
	return p
}

// goTo answers with the address of a step; "" is the dispatcher.
func (v *visit) goTo(step string) error {
	oauth.NoStore(v.c.Response().Header())
	return v.c.Redirect(http.StatusSeeOther, v.path(step)) //nolint:wrapcheck // writes a header
}

// arrive reads a request. For what cannot go on it answers and returns nil.
func (e *Engine) arrive(c echo.Context) (*visit, error) {
	v := &visit{c: c, t: tenant.Of(c), now: e.d.Clock.Now(), handle: c.Param("handle")}
	httpserver.Annotate(c, slog.String("tenant", v.t.ID))
	if len(v.handle) > maxHandle {
		return nil, e.d.Pages.Notice(c, http.StatusNotFound, "gone", nil)
	}
	browser := e.cookies.Get(c.Request(), browserCookie)
	if browser == "" || len(browser) > maxCookie {
		return nil, e.d.Pages.Notice(c, http.StatusBadRequest, "cookies", nil)
	}
	v.hash, v.browserHash = secret.Hash(v.handle), secret.Hash(browser)
	if c.Request().Method != http.MethodPost {
		return v, nil
	}
	return e.readForm(v)
}

// readForm reads a POST and checks its token, before the database is asked
// anything.
func (e *Engine) readForm(v *visit) (*visit, error) {
	r := v.c.Request()
	r.Body = http.MaxBytesReader(v.c.Response(), r.Body, maxForm)
	form, err := oauth.ReadForm(r)
	if err != nil {
		httpserver.NoteError(v.c, err)
		status := http.StatusBadRequest
		if refused, ok := oauth.AsError(err); ok {
			status = refused.HTTPStatus()
		}
		return nil, e.d.Pages.Notice(v.c, status, "form", nil)
	}
	_, twice := form.Duplicate("csrf", "v", "identifier", "factor", "code", "password", "new_password")
	tag, err := base64.RawURLEncoding.Strict().DecodeString(form.Get("csrf"))
	if twice || err != nil || !e.csrf.Verify(tag, csrfInput(v)) {
		httpserver.NoteError(v.c, errors.New("the form's token is not of this conversation and browser"))
		return nil, e.d.Pages.Notice(v.c, http.StatusForbidden, "form", nil)
	}
	if v.version, err = strconv.Atoi(form.Get("v")); err != nil || v.version < 1 || v.version > 1<<30 {
		return nil, e.d.Pages.Notice(v.c, http.StatusForbidden, "form", nil)
	}
	v.form = form
	return v, nil
}

func csrfInput(v *visit) []byte {
	return append(append([]byte{}, v.hash...), v.browserHash...)
}

// admit lets a visit into its conversation. For one that it cannot enter it
// answers and returns false.
func (e *Engine) admit(v *visit, conv *conversation) (bool, error) {
	if conv == nil || conv.Tenant != v.t.ID {
		return false, e.d.Pages.Notice(v.c, http.StatusNotFound, "gone", nil)
	}
	if !secret.Equal(conv.BrowserHash, v.browserHash) {
		return false, e.d.Pages.Notice(v.c, http.StatusForbidden, "foreign", nil)
	}
	if v.conversation == nil {
		httpserver.Annotate(v.c, slog.String("client", conv.Client))
	}
	v.conversation = conv
	locales := conv.Request.UILocales
	if conv.FinishedAt != nil {
		return false, e.again(v)
	}
	var ok bool
	if v.client, ok = v.t.Client(conv.Client); !ok || v.client.Disabled || !v.client.Redirect(conv.Request.RedirectURI) {
		return false, e.d.Pages.Notice(v.c, http.StatusGone, "gone", locales)
	}
	if !v.now.Before(conv.ExpiresAt) {
		return false, e.restart(v)
	}
	v.flow, v.locale = e.flow(v.client), e.d.Pages.Locale(v.c, locales)
	return true, nil
}

// restart begins an expired conversation's request anew.
func (e *Engine) restart(v *visit) error {
	handle := id.Short(e.d.Random, handleBytes)
	st := []byte(`{"tries":{},"notice":"error.restarted"}`)
	tag, err := e.d.DB.Exec(v.c.Request().Context(), restart, v.conversation.Request.Pushed, v.now.Add(v.t.LoginTTL()),
		v.hash, secret.Hash(handle), st, v.now)
	if err != nil {
		return err //nolint:wrapcheck // shown as it is
	}
	if tag.RowsAffected() == 0 {
		return e.gone(v)
	}
	v.handle = handle
	return v.goTo("identifier")
}

// gone tells that there is nothing left to do in a conversation.
func (e *Engine) gone(v *visit) error {
	return e.d.Pages.Notice(v.c, http.StatusGone, "gone", v.conversation.Request.UILocales)
}

// enterVisit is what every GET and most POSTs begin with.
func (e *Engine) enterVisit(c echo.Context) (*visit, error) {
	v, err := e.arrive(c)
	if v == nil {
		return nil, err
	}
	conv, err := e.load(c.Request().Context(), v.hash)
	if err != nil {
		return nil, err
	}
	ok, err := e.admit(v, conv)
	if !ok {
		return nil, err
	}
	return v, nil
}

// next decides which step follows. It is the only place that does.
func (e *Engine) next(v *visit) string {
	s := &v.conversation.State
	switch {
	case s.Identifier == nil, s.Factor == "", !v.flow.has(s.Factor):
		return "identifier"
	case s.Proven != nil && s.MustChange:
		return "password/change"
	}
	return s.Factor
}

// current answers GET /login/{h}.
func (e *Engine) current(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	return v.goTo(e.next(v))
}

// view is what every page of a conversation has in common.
func (e *Engine) view(v *visit) pages.View {
	r := &v.conversation.Request
	client := v.client.Name.In(v.locale)
	if client == "" {
		client = v.client.ID
	}
	return pages.View{
		Locales: r.UILocales, Client: client, PolicyURI: v.client.PolicyURI, TermsURI: v.client.TermsURI, Theme: v.client.Theme, Logo: v.client.LogoURI,
		Targets: []string{r.RedirectURI}, Base: v.path(""),
		CSRF: base64.RawURLEncoding.EncodeToString(e.csrf.Sum(nil, csrfInput(v))), Version: v.conversation.Version,
	}
}

// wait turns a page into the refusal that says when to come back.
func (e *Engine) wait(v *visit, page pages.View, text string, d time.Duration) error {
	page.Status, page.Error = http.StatusTooManyRequests, text
	page.ErrorArgs = []string{"wait", v.t.Texts.Wait(v.locale, d)}
	pages.SetRetryAfter(v.c, texts.Seconds(d))
	return e.d.Pages.Render(v.c, page) //nolint:wrapcheck // says what it is
}

// factorPage is the page of the factor that is asked for.
func (e *Engine) factorPage(v *visit, f factor.Factor) pages.View {
	s := &v.conversation.State
	page := e.view(v)
	page.Name, page.Title, page.Data = f.Page(factor.Shown{
		Identifier: *s.Identifier, State: s.Factors[f.Name()], Others: v.flow.others(f.Name()), Settings: &v.t.Settings, Now: v.now,
	})
	page.Error = s.Error
	return page
}
