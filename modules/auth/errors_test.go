package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
)

func TestHandleError_WritesForWhoReads(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	secret := errors.New("pq: password of the database")
	for name, x := range map[string]struct {
		route  string
		accept string
		err    error
		status int
		want   string
	}{
		"fault at the token endpoint":  {"/token", "", secret, 500, `"error":"server_error"`},
		"fault in another tenant":      {"/t/:tenant/token", "", secret, 500, `"error":"server_error"`},
		"fault at authorize":           {"/authorize", "", secret, 500, `"Page":"error"`},
		"fault at a login page":        {"/login/:handle/otp", "", secret, 500, `"Page":"error"`},
		"refusal at authorize":         {"/authorize", "", oauth.Refuse(oauth.InvalidRequest, "client_id is missing"), 400, "client_id is missing"},
		"wrapped refusal":              {"/token", "", fmt.Errorf("x: %w", oauth.Refuse(oauth.InvalidGrant, "no")), 400, `"error":"invalid_grant"`},
		"unknown route for a program":  {"", "application/json", echo.ErrNotFound, 404, `"status":404`},
		"unknown route for a browser":  {"", "text/html,*/*", echo.ErrNotFound, 404, `"Page":"error"`},
		"client hung up":               {"/token", "", fmt.Errorf("x: %w", context.Canceled), 499, ""},
		"large body":                   {"/token", "", echo.NewHTTPError(413, "over"), 413, `"error":"invalid_request"`},
		"no configuration, token":      {"/token", "", echo.NewHTTPError(503, "not loaded"), 503, `"error":"temporarily_unavailable"`},
		"no configuration, well-known": {"/.well-known/jwks.json", "text/html", echo.NewHTTPError(503, "not loaded"), 503, `"status":503`},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Accept", x.accept)
		w := httptest.NewRecorder()
		c := g.server.Echo.NewContext(r, w)
		c.SetPath(x.route)
		g.module.HandleError(c, x.err)
		body := w.Body.String()
		if w.Code != x.status || !strings.Contains(body, x.want) || strings.Contains(body, "database") {
			t.Errorf("%s: %d %s", name, w.Code, body)
		}
		if w.Header().Get("Cache-Control") != "no-store" || (x.status == 503) != (w.Header().Get("Retry-After") != "") {
			t.Errorf("%s: %v", name, w.Header())
		}
	}
}
