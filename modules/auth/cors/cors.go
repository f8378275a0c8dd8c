package cors

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
)

const (
	// preflightMaxAge is how long a browser may remember a preflight, in
	// seconds; Chromium caps at two hours, and a changed registration should
	// count sooner.
	preflightMaxAge = "600"
	allowedHeaders  = "Authorization, Content-Type, DPoP"
	exposedHeaders  = "WWW-Authenticate, DPoP-Nonce, Retry-After, X-Request-Id"
)

// Any lets every origin read the answer.
func Any(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		c.Response().Header().Set("Access-Control-Allow-Origin", "*")
		return next(c)
	}
}

// Registered lets the origins of the tenant's clients in. It runs after
// tenant.Middleware.
type Registered struct {
	origins *tenant.Derived[map[string]map[string]bool] // tenant -> origin
}

// NewRegistered makes the rule.
func NewRegistered() *Registered {
	return &Registered{tenant.NewDerived(func(c *catalog.Catalog) map[string]map[string]bool {
		out := map[string]map[string]bool{}
		for _, t := range c.Tenants() {
			origins := map[string]bool{}
			for _, cl := range t.Clients() {
				if cl.Disabled {
					continue
				}
				for _, o := range cl.CORSOrigins {
					origins[o] = true
				}
			}
			delete(origins, "null")
			delete(origins, "*")
			out[t.ID] = origins
		}
		return out
	})}
}

// Middleware marks answers to registered origins as readable.
func (r *Registered) Middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Add("Vary", "Origin")
		if origin := c.Request().Header.Get("Origin"); origin != "" {
			t := tenant.Of(c)
			if r.origins.Of(t.Catalog)[t.ID][origin] {
				h.Set("Access-Control-Allow-Origin", origin)
				h.Set("Access-Control-Expose-Headers", exposedHeaders)
			}
		}
		return next(c)
	}
}

// Preflight answers OPTIONS for the given methods; whether the origin may go on
// was said by the middleware.
func Preflight(methods string) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set("Allow", methods)
		if h.Get("Access-Control-Allow-Origin") != "" {
			h.Set("Access-Control-Allow-Methods", methods)
			h.Set("Access-Control-Allow-Headers", allowedHeaders)
			h.Set("Access-Control-Max-Age", preflightMaxAge)
			h.Add("Vary", "Access-Control-Request-Method, Access-Control-Request-Headers")
		}
		return c.NoContent(http.StatusNoContent)
	}
}
