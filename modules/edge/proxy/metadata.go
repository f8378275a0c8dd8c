package proxy

import (
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/edge/policy"
)

// metadataPath is where a resource's metadata is: the well-known name comes
// before the resource's own path (RFC 9728 section 3.1).
const metadataPath = "/.well-known/oauth-protected-resource/" + prefix + "/"

// Metadata handles GET /.well-known/oauth-protected-resource/resources/{resource}
// (RFC 9728 section 3.2): who issues tokens for a resource, and how they are
// sent.
func (h *Handler) Metadata(c echo.Context) error {
	routes := h.routes()
	if routes == nil {
		return refuse(policy.CatalogMissing, nil)
	}
	name := c.Param("resource")
	candidates := routes.byID[name]
	if len(candidates) == 0 {
		return refuse(policy.ResourceUnknown, nil)
	}
	issuers := make([]string, 0, len(candidates))
	for _, r := range candidates {
		issuers = append(issuers, r.resource.Owner.Issuer)
	}
	out := struct {
		Resource string   `json:"resource"`
		Servers  []string `json:"authorization_servers"`
		Methods  []string `json:"bearer_methods_supported"`
		Algs     []string `json:"dpop_signing_alg_values_supported"`
		Name     string   `json:"resource_name,omitempty"`
	}{h.d.PublicURL + "/" + prefix + "/" + name, issuers, []string{"header"}, strings.Split(routes.algs(name), " "), ""}
	if len(candidates) == 1 {
		out.Name = candidates[0].resource.Name
	}
	return c.JSON(http.StatusOK, out)
}
