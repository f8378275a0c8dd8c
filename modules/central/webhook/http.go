package webhook

import (
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/request"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/secret"
)

// defaultPage is the size of a page that does not name its own.
const defaultPage = 50

// Handlers are the handlers by operationId. The router authenticates and
// authorizes before them (see admin/access).
func (w *Webhooks) Handlers() map[string]echo.HandlerFunc {
	return map[string]echo.HandlerFunc{
		"list-webhook-secrets":     w.listSecrets,
		"create-webhook-secret":    w.createSecret,
		"delete-webhook-secret":    w.deleteSecret,
		"list-webhook-deliveries":  w.listDeliveries,
		"get-webhook-delivery":     w.getDelivery,
		"retry-webhook-delivery":   w.retryDelivery,
		"discard-webhook-delivery": w.discardDelivery,
		"ping-webhook":             w.ping,
	}
}

// FirstSecret makes the secret of a webhook that was just created.
func (w *Webhooks) FirstSecret(c echo.Context, r catalog.Ref) (secret.Text, error) {
	_, plain, err := w.NewSecret(c.Request().Context(), entryOf(c, r, "webhook.secret_created"), r.Tenant, r.ID)
	return plain, err
}

func ref(c echo.Context) catalog.Ref {
	return catalog.Ref{Kind: catalog.KindNameWebhook, Tenant: c.Param("tenant"), ID: c.Param("id")}
}

// entryOf is the entry of the audit log for what a request does to a webhook.
func entryOf(c echo.Context, r catalog.Ref, action string) audit.Entry {
	a := access.Actor(c)
	return audit.Entry{Action: action, Actor: audit.ActorOf(a), Tenant: r.Tenant, Address: a.Address, RequestID: a.RequestID,
		Object: &audit.Object{Kind: r.Kind, Tenant: r.Tenant, ID: r.ID}}
}

func (w *Webhooks) listSecrets(c echo.Context) error {
	r := ref(c)
	list, err := w.Secrets(c.Request().Context(), r.Tenant, r.ID)
	if err != nil {
		return answer(err)
	}
	return c.JSON(http.StatusOK, map[string]any{"items": list})
}

func (w *Webhooks) createSecret(c echo.Context) error {
	r := ref(c)
	made, plain, err := w.NewSecret(c.Request().Context(), entryOf(c, r, "webhook.secret_created"), r.Tenant, r.ID)
	if err != nil {
		return answer(err)
	}
	c.Response().Header().Set(echo.HeaderLocation, path(r)+"/secrets/"+made.ID.String())
	return c.JSON(http.StatusCreated, struct {
		ID      id.UUID   `json:"id"`
		Created time.Time `json:"created_at"`
		Secret  string    `json:"secret"`
	}{made.ID, made.Created, plain.Reveal()})
}

func (w *Webhooks) deleteSecret(c echo.Context) error {
	r := ref(c)
	which, err := id.ParseUUID(c.Param("secret"))
	if err != nil {
		return answer(ErrNotFound)
	}
	if err := w.DropSecret(c.Request().Context(), entryOf(c, r, "webhook.secret_dropped"), r.Tenant, r.ID, which); err != nil {
		return answer(err)
	}
	return c.NoContent(http.StatusNoContent)
}

func (w *Webhooks) listDeliveries(c echo.Context) error {
	r, params := ref(c), request.Parameters(c)
	after, limit := id.Nil, request.Limit(params, defaultPage)
	if text, given := params["after"]; given {
		var err error
		if after, err = id.ParseUUID(text); err != nil {
			return request.BadParameter("after", "is not the next of a page")
		}
	}
	list, total, err := w.List(c.Request().Context(), r.Tenant, r.ID, params["state"], after, limit+1)
	if err != nil {
		return answer(err)
	}
	page := struct {
		Items []Delivery `json:"items"`
		Total int64      `json:"total"`
		Next  string     `json:"next,omitempty"`
	}{list, total, ""}
	if len(list) > limit {
		page.Items, page.Next = list[:limit], list[limit-1].ID.String()
	}
	return c.JSON(http.StatusOK, page)
}

// one does something with the delivery that the path names.
func one(c echo.Context, do func(r catalog.Ref, which id.UUID) error) error {
	which, err := id.ParseUUID(c.Param("delivery"))
	if err != nil {
		return answer(ErrNotFound)
	}
	return answer(do(ref(c), which))
}

func (w *Webhooks) getDelivery(c echo.Context) error {
	return one(c, func(r catalog.Ref, which id.UUID) error {
		d, err := w.Get(c.Request().Context(), r.Tenant, r.ID, which)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, d)
	})
}

func (w *Webhooks) retryDelivery(c echo.Context) error {
	return one(c, func(r catalog.Ref, which id.UUID) error {
		d, err := w.Retry(c.Request().Context(), entryOf(c, r, "webhook.delivery_retried"), r.Tenant, r.ID, which)
		if err != nil {
			return err
		}
		return c.JSON(http.StatusOK, d)
	})
}

func (w *Webhooks) discardDelivery(c echo.Context) error {
	return one(c, func(r catalog.Ref, which id.UUID) error {
		if err := w.Discard(c.Request().Context(), entryOf(c, r, "webhook.delivery_discarded"), r.Tenant, r.ID, which); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
}

func (w *Webhooks) ping(c echo.Context) error {
	r := ref(c)
	d, err := w.Ping(c.Request().Context(), entryOf(c, r, "webhook.pinged"), r.Tenant, r.ID)
	if err != nil {
		return answer(err)
	}
	c.Response().Header().Set(echo.HeaderLocation, path(r)+"/deliveries/"+d.ID.String())
	return c.JSON(http.StatusAccepted, d)
}

func path(r catalog.Ref) string {
	return "/v1/tenants/" + url.PathEscape(r.Tenant) + "/webhooks/" + url.PathEscape(r.ID)
}

// answer turns the package's errors into problem documents.
func answer(err error) error {
	p := &httpserver.Problem{Cause: err}
	switch {
	case errors.Is(err, ErrNotFound):
		p.Status, p.Reason, p.Detail = http.StatusNotFound, "not_found", "there is no such webhook, secret or delivery"
	case errors.Is(err, ErrBusy):
		p.Status, p.Reason, p.Detail = http.StatusConflict, "busy", ErrBusy.Error()
	case errors.Is(err, ErrLastSecret):
		p.Status, p.Reason, p.Detail = http.StatusConflict, "last_secret", ErrLastSecret.Error()
	case errors.Is(err, ErrTooMany):
		p.Status, p.Reason, p.Detail = http.StatusConflict, "too_many", ErrTooMany.Error()
	default:
		return err
	}
	p.Title = http.StatusText(p.Status)
	return p
}
