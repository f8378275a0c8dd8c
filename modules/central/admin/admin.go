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

	"versola/modules/central/catalog"
	"versola/platform/clock"
)

// API is the administration API.
type API struct {
	holder *catalog.Holder
	clock  clock.Clock
}

// New makes the API over a holder's catalog.
func New(holder *catalog.Holder, c clock.Clock) *API { return &API{holder: holder, clock: c} }

// Mount adds the routes.
func (a *API) Mount(g *echo.Group) {
	g.GET("/", a.overview, a.authenticate)
	g.GET("/v1/me", a.me, a.authenticate)
	g.GET("/v1/tenants", a.tenants, a.authenticate)
	g.GET("/v1/tenants/:tenant/clients", a.clients, a.authenticate)
}

func (a *API) me(c echo.Context) error { return c.JSON(http.StatusOK, c.Get(callerKey)) }

// tenantView is a tenant as the API shows it.
type tenantView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Profile   string `json:"security_profile"`
	Directory string `json:"directory"`
	Edge      string `json:"edge,omitempty"`
	Issuer    string `json:"issuer"`
	Clients   int    `json:"clients"`
}

func (a *API) tenants(c echo.Context) error {
	return c.JSON(http.StatusOK, map[string]any{"items": tenantViews(a.holder.Current())})
}

func tenantViews(cat *catalog.Catalog) []tenantView {
	out := []tenantView{}
	for _, t := range cat.Tenants() {
		out = append(out, tenantView{ID: t.ID, Name: t.Name, Profile: string(t.Profile), Directory: t.Directory,
			Edge: t.Edge, Issuer: t.Issuer, Clients: len(t.Clients())})
	}
	return out
}

// clientView is a client as the API shows it: without its secrets.
type clientView struct {
	ID           string   `json:"id"`
	Name         string   `json:"name"`
	Kind         string   `json:"kind"`
	AuthMethod   string   `json:"auth_method"`
	GrantTypes   []string `json:"grant_types"`
	RedirectURIs []string `json:"redirect_uris,omitempty"`
	Scopes       []string `json:"scopes,omitempty"`
	Permissions  []string `json:"permissions,omitempty"`
	Audiences    []string `json:"audiences,omitempty"`
	Disabled     bool     `json:"disabled"`
	Secrets      int      `json:"secrets"` // how many are valid
}

func (a *API) clients(c echo.Context) error {
	t, ok := a.holder.Current().Tenant(c.Param("tenant"))
	if !ok {
		return problem(http.StatusNotFound, "tenant_unknown", "there is no such tenant", nil)
	}
	return c.JSON(http.StatusOK, map[string]any{"items": clientViews(t)})
}

func clientViews(t *catalog.Tenant) []clientView {
	out := []clientView{}
	for _, c := range t.Clients() {
		out = append(out, clientView{ID: c.ID, Name: c.Name.Default(), Kind: string(c.Kind), AuthMethod: string(c.AuthMethod),
			GrantTypes: c.GrantTypes, RedirectURIs: c.RedirectURIs, Scopes: c.Scopes, Permissions: c.Permissions,
			Audiences: c.Audiences, Disabled: c.Disabled, Secrets: len(c.Secrets)})
	}
	return out
}

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

type overviewTenant struct {
	tenantView
	List []clientView
}

func (a *API) overview(c echo.Context) error {
	cat := a.holder.Current()
	data := struct {
		Style    template.CSS
		Revision int64
		Issuer   string
		Tenants  []overviewTenant
	}{template.CSS(style), cat.Revision, cat.Issuer, nil} //nolint:gosec // our own embedded file
	for _, t := range tenantViews(cat) {
		full, _ := cat.Tenant(t.ID)
		data.Tenants = append(data.Tenants, overviewTenant{t, clientViews(full)})
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
