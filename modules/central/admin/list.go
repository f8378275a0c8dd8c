package admin

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/request"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
)

// defaultPage is the size of a page that does not name its own. The largest,
// in the OpenAPI document, is 500: as many clients are about 1 MiB.
const defaultPage = 50

// listed is one page.
type listed struct {
	Items []json.RawMessage `json:"items"`
	Total int               `json:"total"`
	Next  string            `json:"next,omitempty"`
}

func (a *API) list(c echo.Context, k entityKind) error {
	params := request.Parameters(c)
	after, err := readCursor(params)
	if err != nil {
		return err
	}
	limit, keep := request.Limit(params, defaultPage), filter(k, params)
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return err
	}
	tenant := ""
	if !k.global {
		tenant = c.Param("tenant")
		if _, ok := v.Get(catalog.Ref{Kind: catalog.KindNameTenant, ID: tenant}); !ok {
			return notFound(catalog.Ref{Kind: catalog.KindNameTenant})
		}
	}
	reach := access.From(c).Reach("list-" + k.many)
	page := listed{Items: []json.RawMessage{}}
	last := ""
	for _, e := range v.List(k.name, tenant) {
		id := e.Spec.Ref().ID
		if k.name == catalog.KindNameTenant && !reach.Has(id) || !keep(e) {
			continue
		}
		page.Total++
		switch {
		case after != nil && id <= *after:
		case len(page.Items) == limit:
			page.Next = writeCursor(last)
		default:
			raw, err := render(v, e, "")
			if err != nil {
				return err
			}
			page.Items, last = append(page.Items, raw), id
		}
	}
	return c.JSON(http.StatusOK, page)
}

// A cursor is the last id of a page. It is encoded so that nobody takes it for
// a number of entities.
func writeCursor(id string) string { return base64.RawURLEncoding.EncodeToString([]byte(id)) }

func readCursor(params map[string]string) (*string, error) {
	text, ok := params["after"]
	if !ok {
		return nil, nil
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil || len(raw) == 0 {
		return nil, request.BadParameter("after", "is not the next of a page")
	}
	id := string(raw)
	return &id, nil
}

// filter makes the condition that a list's parameters ask for.
func filter(k entityKind, params map[string]string) func(change.Entry) bool {
	q := strings.ToLower(params["q"])
	return func(e change.Entry) bool {
		for _, name := range k.filters {
			want, ok := params[name]
			if !ok {
				continue
			}
			got, ok := member(e.Spec, name)
			if !ok || fmt.Sprint(got.Interface()) != want {
				return false
			}
		}
		return q == "" || strings.Contains(strings.ToLower(e.Spec.Ref().ID), q) || named(e.Spec, q)
	}
}

// named tells whether the entity's name, in any language, contains q.
func named(spec catalog.Entity, q string) bool {
	v, ok := member(spec, "name")
	if !ok {
		return false
	}
	switch v.Kind() {
	case reflect.String:
		return strings.Contains(strings.ToLower(v.String()), q)
	case reflect.Map:
		for _, key := range v.MapKeys() {
			if strings.Contains(strings.ToLower(v.MapIndex(key).String()), q) {
				return true
			}
		}
	}
	return false
}
