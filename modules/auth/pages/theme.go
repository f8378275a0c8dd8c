package pages

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/tenant"
)

// themesPath is where a tenant's themes are, below its path: each as
// "<id>.<hash>.css".
const themesPath = "/assets/themes/"

// dress gives a page its tenant's look.
func dress(c echo.Context, v *View) {
	t, ok := tenant.Lookup(c)
	if !ok {
		return
	}
	name := v.Theme
	if name == "" {
		name = t.Settings.Theme
	}
	look, ok := t.Theme(name)
	if !ok {
		return
	}
	v.ThemeCSS = t.PathPrefix + themesPath + name + "." + look.Sheet().Hash + ".css"
	if v.Logo == "" {
		v.Logo = look.Logo
	}
}

// sheet answers with a style sheet. Where the catalog has another version than
// the page asks for, it is given, and not kept.
func sheet(c echo.Context) error {
	file, isCSS := strings.CutSuffix(c.Param("file"), ".css")
	dot := strings.LastIndexByte(file, '.')
	if !isCSS || dot < 0 {
		return echo.ErrNotFound
	}
	look, ok := tenant.Of(c).Theme(file[:dot])
	if !ok {
		return echo.ErrNotFound
	}
	s := look.Sheet()
	h := c.Response().Header()
	h.Set("Cache-Control", "no-cache")
	if file[dot+1:] == s.Hash {
		h.Set("Cache-Control", forever)
	}
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return c.Blob(http.StatusOK, "text/css; charset=utf-8", s.CSS)
}
