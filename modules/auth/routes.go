package auth

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/cors"
	"versola/modules/auth/grant"
	"versola/modules/auth/par"
	"versola/modules/auth/tenant"
	"versola/modules/auth/userinfo"
)

// tenantPrefix is where tenants other than the root one live.
const tenantPrefix = "/t/:tenant"

// Paths of the endpoints, below a tenant's issuer.
const (
	pathOpenID    = "/.well-known/openid-configuration"
	pathOAuth     = "/.well-known/oauth-authorization-server"
	pathJWKS      = "/.well-known/jwks.json"
	pathAuthorize = "/authorize"
	pathPAR       = par.Path
	pathToken     = grant.Path
	pathUserinfo  = userinfo.Path
	pathRevoke    = "/revoke"
	pathLogout    = "/logout"
)

// Mount adds the public routes, for the root tenant and for every other. The
// middleware is given to each route and not to a group: a group of echo's would
// answer methods and paths that it does not know itself.
func (m *Module) Mount(g *echo.Group) {
	of := tenant.Middleware(m.deps.Catalog, m.deps.RootTenant)
	for _, prefix := range []string{"", tenantPrefix} {
		m.mountPublic(g, prefix, of)
		m.mountTokens(g, prefix, of)
		m.mountBrowser(g, prefix, of)
	}
	m.metadata(g, pathOAuth+tenantPrefix, of)
}

func (m *Module) mountPublic(g *echo.Group, prefix string, of echo.MiddlewareFunc) {
	m.metadata(g, prefix+pathOpenID, of)
	m.metadata(g, prefix+pathOAuth, of)
	readable(g, prefix+pathJWKS, m.keys.Handle, of)
}

func (m *Module) metadata(g *echo.Group, path string, of echo.MiddlewareFunc) {
	readable(g, path, m.discovery.Handle, of)
}

// readable mounts a document that anyone may read.
func readable(g *echo.Group, path string, h echo.HandlerFunc, of echo.MiddlewareFunc) {
	const allow = "GET, HEAD, OPTIONS"
	g.Any(path, notAllowed(allow), cors.Any)
	g.GET(path, h, cors.Any, of)
	g.HEAD(path, h, cors.Any, of)
	g.OPTIONS(path, cors.Preflight(allow), cors.Any, of)
}

func (m *Module) mountTokens(g *echo.Group, prefix string, of echo.MiddlewareFunc) {
	for _, r := range []struct {
		path    string
		handle  echo.HandlerFunc
		methods []string
		allow   string
	}{
		{pathPAR, m.par.Handle, []string{http.MethodPost}, "POST, OPTIONS"},
		{pathToken, m.token.Handle, []string{http.MethodPost}, "POST, OPTIONS"},
		{pathRevoke, m.revoke.Handle, []string{http.MethodPost}, "POST, OPTIONS"},
		{pathUserinfo, m.userinfo.Handle, []string{http.MethodGet, http.MethodPost}, "GET, POST, OPTIONS"},
	} {
		g.Any(prefix+r.path, notAllowed(r.allow))
		g.Match(r.methods, prefix+r.path, r.handle, of, m.origins.Middleware)
		g.OPTIONS(prefix+r.path, cors.Preflight(r.allow), of, m.origins.Middleware)
	}
}

func (m *Module) mountBrowser(g *echo.Group, prefix string, of echo.MiddlewareFunc) {
	both := []string{http.MethodGet, http.MethodPost}
	for path, handle := range map[string]echo.HandlerFunc{pathAuthorize: m.authorize.Handle, pathLogout: m.logout.Handle} {
		g.Any(prefix+path, notAllowed("GET, POST"))
		g.Match(both, prefix+path, handle, of)
	}
	m.signIn.login.Mount(g.Group(prefix, of))
	if m.signIn.reset != nil {
		m.signIn.reset.Mount(g.Group(prefix, of))
	}
}

// notAllowed answers the methods that an endpoint does not have. The router
// would answer 404 where a group has a route for everything below it.
func notAllowed(allow string) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set(echo.HeaderAllow, allow)
		return echo.ErrMethodNotAllowed
	}
}

// MountInternal adds the routes of the internal listener.
func (m *Module) MountInternal(g *echo.Group) {
	g.GET("/internal/revocations", m.feed.Handle)
}
