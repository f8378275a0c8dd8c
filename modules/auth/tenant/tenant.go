package tenant

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
)

const contextKey = "versola.tenant"

// Source gives the current catalog.
type Source interface {
	Current() *catalog.Catalog
}

// At is a tenant together with the catalog that it was found in, so that one
// request sees one revision throughout.
type At struct {
	*catalog.Tenant
	Catalog *catalog.Catalog
}

// Middleware resolves the tenant of the path parameter "tenant", or the root
// tenant where a route has none. Unknown tenants are 404; without any catalog
// yet the answer is 503.
func Middleware(source Source, root string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			current := source.Current()
			if current == nil {
				c.Response().Header().Set("Retry-After", "1")
				return echo.NewHTTPError(http.StatusServiceUnavailable, "the configuration is not loaded yet")
			}
			name := root
			if slices.Contains(c.ParamNames(), "tenant") {
				// The root tenant has one address only; an empty name, as in
				// "/t//token", is no second.
				if name = c.Param("tenant"); name == root {
					return echo.ErrNotFound
				}
			}
			t, ok := current.Tenant(name)
			if !ok {
				return echo.ErrNotFound
			}
			c.Set(contextKey, At{t, current})
			return next(c)
		}
	}
}

// Of returns the tenant of a request that passed [Middleware].
func Of(c echo.Context) At {
	return c.Get(contextKey).(At) //nolint:errcheck,forcetypeassert // the middleware is on every route
}

// Lookup returns the tenant of a request, if [Middleware] found one: an error
// page may come before it.
func Lookup(c echo.Context) (At, bool) {
	t, ok := c.Get(contextKey).(At)
	return t, ok
}
