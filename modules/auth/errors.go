package auth

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
	"versola/platform/httpserver"
)

// HandleError turns the error of a handler into its answer; it is the
// httpserver.Options.HandleError of the public listener.
func (m *Module) HandleError(c echo.Context, err error) {
	e := classify(err)
	h := c.Response().Header()
	oauth.NoStore(h)
	if e.HTTPStatus() == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", httpserver.RetryAfter)
	}
	if e.Scheme != "" {
		h.Set(echo.HeaderWWWAuthenticate, e.Scheme)
	}
	switch kindOf(c) {
	case backChannel:
		_ = c.JSON(e.HTTPStatus(), struct {
			Error       string `json:"error"`
			Description string `json:"error_description,omitempty"`
		}{e.Code, e.Description})
	case browser:
		if pageErr := m.signIn.pages.Error(c, e.HTTPStatus(), e.Code, e.Description); pageErr != nil && !c.Response().Committed {
			httpserver.NoteError(c, errors.Join(err, pageErr))
			_ = c.NoContent(e.HTTPStatus())
		}
	default:
		httpserver.WriteProblem(c, err)
	}
}

type kind int

const (
	other kind = iota
	backChannel
	browser
)

// kindOf tells by the route, and not by the path that a stranger sent, who
// reads the answer. Where there is no route, the reader says what it likes.
func kindOf(c echo.Context) kind {
	switch route := strings.TrimPrefix(c.Path(), tenantPrefix); {
	case route == pathPAR, route == pathToken, route == pathUserinfo, route == pathRevoke:
		return backChannel
	case route == pathAuthorize, route == pathLogout, strings.HasPrefix(route, "/login/"):
		return browser
	case strings.HasPrefix(route, "/.well-known/"):
		return other
	}
	if strings.Contains(c.Request().Header.Get(echo.HeaderAccept), echo.MIMETextHTML) {
		return browser
	}
	return other
}

// statusClientGone is in the log where the client hung up before its answer
// (nginx's convention): nobody reads it, and it is no fault of ours.
const statusClientGone = 499

// classify names any error as OAuth would.
func classify(err error) *oauth.Error {
	if e, ok := oauth.AsError(err); ok {
		return e
	}
	if httpserver.Unavailable(err) {
		return &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "a part of the service is unavailable, try again shortly", Cause: err}
	}
	if errors.Is(err, context.Canceled) {
		return &oauth.Error{Status: statusClientGone, Code: oauth.TemporarilyUnavailable, Cause: err}
	}
	p := httpserver.AsProblem(err)
	e := &oauth.Error{Status: p.Status, Description: strings.ToLower(http.StatusText(p.Status)), Cause: err}
	switch {
	case p.Status == http.StatusServiceUnavailable:
		e.Code, e.Description = oauth.TemporarilyUnavailable, "a part of the service is unavailable, try again shortly"
	case p.Status >= http.StatusInternalServerError:
		e.Code, e.Description = oauth.ServerError, "the server met an unexpected condition"
	case p.Status == http.StatusRequestEntityTooLarge:
		e.Code, e.Description = oauth.InvalidRequest, "the request body is too large"
	default:
		e.Code = oauth.InvalidRequest
	}
	return e
}
