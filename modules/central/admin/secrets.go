package admin

import (
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/request"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/id"
)

func clientRef(c echo.Context) catalog.Ref {
	return catalog.Ref{Kind: catalog.KindNameClient, Tenant: c.Param("tenant"), ID: c.Param("id")}
}

func (a *API) listSecrets(c echo.Context) error {
	r := clientRef(c)
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return err
	}
	if _, ok := v.Get(r); !ok {
		return notFound(r)
	}
	return c.JSON(http.StatusOK, map[string]any{"items": secretViews(v, r)})
}

// createSecret gives a client a new current secret; the others stay valid
// until they are dropped.
func (a *API) createSecret(c echo.Context) error {
	r := clientRef(c)
	result, err := a.do(c, []change.Op{change.AddSecret{Client: r}})
	if err != nil {
		return changeError(err, r)
	}
	made := result.Changes[0].NewSecrets[0]
	c.Response().Header().Set("ETag", request.ETag(result.Changes[0].Version))
	c.Response().Header().Set(echo.HeaderLocation, "/v1/tenants/"+r.Tenant+"/clients/"+r.ID+"/secrets/"+made.ID.String())
	return c.JSON(http.StatusCreated, struct {
		ID      string    `json:"id"`
		Created time.Time `json:"created_at"`
		Secret  string    `json:"secret"`
	}{made.ID.String(), made.ID.Time().UTC(), made.Plain.Reveal()})
}

func (a *API) deleteSecret(c echo.Context) error {
	r := clientRef(c)
	which, err := id.ParseUUID(c.Param("secret"))
	if err != nil {
		return notFound(catalog.Ref{Kind: "secret"})
	}
	if _, err := a.do(c, []change.Op{change.DropSecret{Client: r, ID: which}}); err != nil {
		return changeError(err, r)
	}
	return c.NoContent(http.StatusNoContent)
}
