package admin

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/idempotency"
	"versola/modules/central/admin/request"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/openapi"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/secret"
)

// Deps is what the API works with.
type Deps struct {
	Catalog *catalog.Holder
	Engine  *change.Engine
	Clock   clock.Clock
	Revoked access.Revoked     // nil: no token is
	URL     string             // where the API is called, for the proofs of bound tokens
	Proofs  dpop.Guard         // checks them
	Once    *idempotency.Store // nil: Idempotency-Key is ignored
	// SigningSecret makes the secret of a webhook that was just created.
	SigningSecret func(c echo.Context, webhook catalog.Ref) (secret.Text, error)
	// Handlers serve other parts' operations, by operationId.
	Handlers map[string]echo.HandlerFunc
}

// API is the administration API.
type API struct {
	Deps
	gate       *access.Gate
	operations []openapi.Operation
	handlers   map[string]echo.HandlerFunc
}

// New makes the API. Errors: an OpenAPI document that cannot be read, a
// handler of an operation that it does not have.
func New(d Deps) (*API, error) {
	operations, err := openapi.Operations()
	if err != nil {
		return nil, err
	}
	a := &API{Deps: d, gate: &access.Gate{Catalog: d.Catalog, Clock: d.Clock, Revoked: d.Revoked, URL: d.URL, Proofs: d.Proofs}, operations: operations}
	a.handlers = map[string]echo.HandlerFunc{
		"overview": a.overview, "openapi": describe, "me": a.me,
		"list-client-secrets": a.listSecrets, "create-client-secret": a.createSecret, "delete-client-secret": a.deleteSecret,
	}
	for _, k := range kinds {
		a.entity(k)
	}
	for id, h := range d.Handlers {
		a.handlers[id] = h
	}
	known := map[string]bool{}
	for _, op := range operations {
		known[op.ID] = true
	}
	for id := range a.handlers {
		if !known[id] {
			return nil, fmt.Errorf("the OpenAPI document has no operation %s", id)
		}
	}
	return a, nil
}

// Mount adds the routes.
func (a *API) Mount(g *echo.Group) {
	for _, op := range a.operations {
		h, ok := a.handlers[op.ID]
		switch {
		case !ok:
		case op.Public:
			g.Add(op.Method, route(op.Path), h, request.Described(op))
		default:
			chain := []echo.MiddlewareFunc{a.gate.Authenticate, a.gate.Authorize(op), request.Described(op)}
			if op.Idempotent && a.Once != nil {
				chain = append(chain, a.Once.Once(callerName))
			}
			g.Add(op.Method, route(op.Path), h, chain...)
		}
	}
}

// Unserved returns the operations of the document that have no handler.
func (a *API) Unserved() []string {
	var out []string
	for _, op := range a.operations {
		if a.handlers[op.ID] == nil {
			out = append(out, op.ID)
		}
	}
	return out
}

// route writes a path of the document as the router does: {name} is :name, and
// a colon is escaped.
func route(path string) string {
	return strings.NewReplacer(":", `\:`, "{", ":", "}", "").Replace(path)
}

func callerName(c echo.Context) string {
	w := access.From(c)
	return w.Client + " " + w.Subject
}

func describe(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", openapi.Document)
}

// me tells who calls and what they reach.
func (a *API) me(c echo.Context) error {
	answer := struct {
		*access.Caller
		Everywhere []string            `json:"everywhere"`
		Within     map[string][]string `json:"within"`
	}{access.From(c), []string{}, map[string][]string{}}
	for _, op := range a.operations {
		r := answer.Reach(op.ID)
		if r.All {
			answer.Everywhere = append(answer.Everywhere, op.ID)
		}
		for _, tenant := range r.Tenants {
			answer.Within[tenant] = append(answer.Within[tenant], op.ID)
		}
	}
	return c.JSON(http.StatusOK, answer)
}
