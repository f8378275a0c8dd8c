package admin

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html/template"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/catalog"
)

//go:embed overview.css
var style string

//go:embed overview.html
var page string

var overviewPage = template.Must(template.New("overview").Parse(page))

// styleHash allows the page's one style element by its content.
var styleHash = func() string {
	sum := sha256.Sum256([]byte(style))
	return base64.StdEncoding.EncodeToString(sum[:])
}()

// overview is a page of the tenants that the caller reaches.
func (a *API) overview(c echo.Context) error {
	cat, reach := a.Catalog.Current(), access.From(c).Reach("overview")
	data := struct {
		Style    template.CSS
		Revision int64
		Issuer   string
		Tenants  []*catalog.Tenant
	}{template.CSS(style), cat.Revision, cat.Issuer, nil} //nolint:gosec // our own embedded file
	for _, t := range cat.Tenants() {
		if reach.Has(t.ID) {
			data.Tenants = append(data.Tenants, t)
		}
	}
	var body bytes.Buffer
	if err := overviewPage.Execute(&body, data); err != nil {
		return err
	}
	h := c.Response().Header()
	// The sign-out form is redirected to the issuer, which counts as its target.
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+styleHash+"'; form-action 'self' "+origin(cat.Issuer)+
		"; base-uri 'none'; frame-ancestors 'none'")
	h.Set("X-Content-Type-Options", "nosniff")
	// Not "no-referrer": the sign-out form would be sent with "Origin: null".
	h.Set("Referrer-Policy", "same-origin")
	return c.HTMLBlob(http.StatusOK, body.Bytes())
}

func origin(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}
