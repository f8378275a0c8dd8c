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
	for e := range v.List(k.name, tenant) {
		id := e.Ref().ID
		if k.name == catalog.KindNameTenant && !reach.Has(id) || !keep(e) {
			continue
		}
		page.Total++
		switch {
		case after != nil && id <= *after:
		case len(page.Items) == limit:
			page.Next = writeCursor(last)
		default:
			raw, err := render(v, change.Entry{Spec: e, Meta: v.Meta(e.Ref())}, "")
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
func filter(k entityKind, params map[string]string) func(catalog.Entity) bool {
	type wanted struct {
		field int
		value string
	}
	var all []wanted
	for _, name := range k.filters {
		if value, ok := params[name]; ok {
			all = append(all, wanted{fieldOf(k.name, name), value})
		}
	}
	q, name := strings.ToLower(params["q"]), fieldOf(k.name, "name")
	return func(e catalog.Entity) bool {
		v := reflect.ValueOf(e).Elem()
		for _, w := range all {
			if w.field < 0 || fmt.Sprint(v.Field(w.field).Interface()) != w.value {
				return false
			}
		}
		return q == "" || strings.Contains(strings.ToLower(e.Ref().ID), q) || name >= 0 && says(v.Field(name), q)
	}
}

// fieldOf returns the index of a member of a kind's declarations; negative:
// they have none of that name.
func fieldOf(kind, name string) int {
	k, ok := catalog.KindOf(kind)
	if !ok {
		return -1
	}
	t := reflect.TypeOf(k.New()).Elem()
	for i := range t.NumField() {
		if tag, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); tag == name {
			return i
		}
	}
	return -1
}

// says tells whether a text, in any language, contains q.
func says(v reflect.Value, q string) bool {
	switch text := v.Interface().(type) {
	case string:
		return strings.Contains(strings.ToLower(text), q)
	case catalog.Text:
		for _, s := range text {
			if strings.Contains(strings.ToLower(s), q) {
				return true
			}
		}
	}
	return false
}
