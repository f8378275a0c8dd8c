package admin

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/keys"
)

// AuditHandlers serve the operations about the audit log. A tenant
// administrator sees the entries that concern their tenants.
func AuditHandlers(l *audit.Log) map[string]echo.HandlerFunc {
	within := func(operation string, h func(echo.Context, []string) error) echo.HandlerFunc {
		return func(c echo.Context) error { return h(c, access.From(c).Reach(operation).Tenants) }
	}
	return map[string]echo.HandlerFunc{
		"list-audit":      within("list-audit", l.HandleList),
		"get-audit-entry": within("get-audit-entry", l.HandleEntry),
		"export-audit": within("export-audit", func(c echo.Context, tenants []string) error {
			return l.HandleExport(c, tenants, audit.ActorOf(access.Actor(c)))
		}),
	}
}

// KeyHandlers serve the operations about the deployment's signing keys.
func KeyHandlers(r *keys.Rotator) map[string]echo.HandlerFunc {
	return map[string]echo.HandlerFunc{
		"list-keys": func(c echo.Context) error {
			list, err := r.List(c.Request().Context())
			return keyList(c, http.StatusOK, list, err)
		},
		"rotate-keys": func(c echo.Context) error { return rotateKeys(c, r) },
		"retire-key": func(c echo.Context) error {
			kid, err := url.PathUnescape(c.Param("id"))
			if err != nil {
				return notFound(catalog.Ref{Kind: "signing key"})
			}
			list, err := r.Retire(c.Request().Context(), keyCaller(c), kid)
			return keyList(c, http.StatusOK, list, err)
		},
	}
}

// rotation is what POST /v1/keys:rotate says.
type rotation struct {
	Algorithms []string `json:"algorithms"`
	// Publish is how long a key is published before it signs.
	Publish *catalog.Duration `json:"publish"`
}

func rotateKeys(c echo.Context, r *keys.Rotator) error {
	tree, err := readDocument(c, "application/json")
	if err != nil {
		return err
	}
	var in rotation
	var wrong document.Problems
	if err := document.Decode(tree, &in); errors.As(err, &wrong) {
		return invalid(wrong)
	}
	publish := keys.MinPublish
	if in.Publish != nil {
		publish = time.Duration(*in.Publish)
	}
	list, err := r.Rotate(c.Request().Context(), keyCaller(c), in.Algorithms, publish)
	return keyList(c, http.StatusOK, list, err)
}

func keyCaller(c echo.Context) keys.Caller {
	a := access.Actor(c)
	return keys.Caller{Actor: audit.ActorOf(a), Address: a.Address, RequestID: a.RequestID}
}

func keyList(c echo.Context, status int, list []keys.Key, err error) error {
	switch {
	case errors.Is(err, keys.ErrUnknown):
		return notFound(catalog.Ref{Kind: "signing key"})
	case errors.Is(err, keys.ErrAlgorithm):
		return invalid(document.Problems{{Pointer: "/algorithms", Detail: fmt.Sprint(err)}})
	case errors.Is(err, keys.ErrPublish):
		return invalid(document.Problems{{Pointer: "/publish", Detail: fmt.Sprint(err)}})
	case err != nil:
		return err
	}
	if list == nil {
		list = []keys.Key{}
	}
	slices.SortStableFunc(list, func(a, b keys.Key) int { return strings.Compare(a.Alg, b.Alg) })
	return c.JSON(status, map[string]any{"items": list})
}
