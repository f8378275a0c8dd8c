package proxy

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"versola/modules/edge/policy"
	"versola/platform/clock"
)

// permitted is an endpoint that the caller may use.
type permitted struct {
	ID     string `json:"id"`
	Method string `json:"method"`
	Path   string `json:"path"`
}

// Permissions handles GET /permissions/me?resource=...: which endpoints of a
// resource the caller may use, by the same decision as a call.
func (h *Handler) Permissions(c echo.Context) error {
	x := &exchange{start: clock.Monotonic(), path: c.Request().URL.EscapedPath()}
	names := c.QueryParams()["resource"]
	if len(names) != 1 || names[0] == "" {
		return echo.NewHTTPError(http.StatusBadRequest, "resource is required, once")
	}
	if x.routes = h.routes(); x.routes == nil {
		return refuse(policy.CatalogMissing, nil)
	}
	candidates := x.routes.byID[names[0]]
	if len(candidates) == 0 {
		return refuse(policy.ResourceUnknown, nil)
	}
	if refusal := h.identify(c, x, names[0], candidates); refusal != nil && refusal.Reason != policy.EndpointUnknown {
		refusal.Navigate = "" // an answer for scripts
		return refusal
	}
	out := struct {
		Tenant    string      `json:"tenant"`
		Resource  string      `json:"resource"`
		Subject   string      `json:"subject"`
		Endpoints []permitted `json:"endpoints"`
	}{x.route.resource.Tenant, names[0], x.caller.claims.Subject, []permitted{}}
	for i := range x.route.resource.Endpoints {
		e := &x.route.resource.Endpoints[i]
		if policy.May(x.caller.policy(), x.route.resource, e).Passes() {
			out.Endpoints = append(out.Endpoints, permitted{e.ID, e.Method, e.Path})
		}
	}
	c.Response().Header().Set("Cache-Control", "no-store")
	return c.JSON(http.StatusOK, out)
}
