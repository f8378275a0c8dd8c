package admin

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/admin/request"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/httpserver"
	"versola/platform/secret"
)

// entityKind is a kind of entity as paths and operationIds have it.
type entityKind struct {
	name   string // of catalog.Kind
	one    string // in operationIds: "get-<one>"
	many   string // in operationIds and paths
	global bool
	// filters are query parameters that a list can be narrowed by: members of
	// the declaration.
	filters []string
}

// kinds are all kinds that the API administers.
var kinds = []entityKind{
	{name: catalog.KindNameTenant, one: "tenant", many: "tenants", global: true, filters: []string{"edge", "directory"}},
	{name: catalog.KindNameEdge, one: "edge", many: "edges", global: true},
	{name: catalog.KindNameDirectory, one: "directory", many: "directories", global: true},
	{name: catalog.KindNameClient, one: "client", many: "clients", filters: []string{"client_kind", "disabled"}},
	{name: catalog.KindNameScope, one: "scope", many: "scopes"},
	{name: catalog.KindNameResource, one: "resource", many: "resources"},
	{name: catalog.KindNamePermission, one: "permission", many: "permissions"},
	{name: catalog.KindNameRole, one: "role", many: "roles"},
	{name: catalog.KindNamePreset, one: "preset", many: "presets", filters: []string{"edge", "client"}},
	{name: catalog.KindNameClaim, one: "claim", many: "claims"},
	{name: catalog.KindNameDetailType, one: "authorization-detail-type", many: "authorization-detail-types"},
	{name: catalog.KindNameTheme, one: "theme", many: "themes"},
	{name: catalog.KindNameTexts, one: "texts", many: "texts"},
	{name: catalog.KindNameTemplate, one: "template", many: "templates", filters: []string{"channel", "message"}},
	{name: catalog.KindNameWebhook, one: "webhook", many: "webhooks", filters: []string{"disabled"}},
}

// entity makes the handlers of a kind.
func (a *API) entity(k entityKind) {
	a.handlers["list-"+k.many] = func(c echo.Context) error { return a.list(c, k) }
	a.handlers["get-"+k.one] = func(c echo.Context) error { return a.get(c, k) }
	a.handlers["create-"+k.one] = func(c echo.Context) error { return a.create(c, k) }
	a.handlers["replace-"+k.one] = func(c echo.Context) error { return a.replace(c, k) }
	a.handlers["update-"+k.one] = func(c echo.Context) error { return a.update(c, k) }
	a.handlers["delete-"+k.one] = func(c echo.Context) error { return a.remove(c, k) }
}

// ref returns what the path names.
func (k entityKind) ref(c echo.Context) (catalog.Ref, error) {
	r := catalog.Ref{Kind: k.name}
	param := "id"
	if k.name == catalog.KindNameTenant {
		param = "tenant"
	} else if !k.global {
		r.Tenant = c.Param("tenant")
	}
	// The router matches the path as it was sent.
	var err error
	if r.ID, err = url.PathUnescape(c.Param(param)); err != nil {
		return r, notFound(r)
	}
	return r, nil
}

// path returns where an entity is.
func (k entityKind) path(r catalog.Ref) string {
	if k.global {
		return "/v1/" + k.many + "/" + url.PathEscape(r.ID)
	}
	return "/v1/tenants/" + url.PathEscape(r.Tenant) + "/" + k.many + "/" + url.PathEscape(r.ID)
}

func (a *API) get(c echo.Context, k entityKind) error {
	r, err := k.ref(c)
	if err != nil {
		return err
	}
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return err
	}
	e, ok := v.Get(r)
	if !ok {
		return notFound(r)
	}
	tag := request.ETag(e.Version)
	c.Response().Header().Set("ETag", tag)
	if request.NoneMatch(c, tag) {
		return c.NoContent(http.StatusNotModified)
	}
	return writeEntity(c, http.StatusOK, v, e, "")
}

func (a *API) create(c echo.Context, k entityKind) error {
	tree, err := readDocument(c, "application/json")
	if err != nil {
		return err
	}
	spec, err := k.decode(c, tree, nil)
	if err != nil {
		return err
	}
	r := spec.Ref()
	ops := []change.Op{change.Put{Spec: spec, CreateOnly: true}}
	if client, ok := spec.(*catalog.ClientSpec); ok && client.AuthMethod.HasSecret() {
		ops = append(ops, change.AddSecret{Client: r})
	}
	result, err := a.do(c, ops)
	if err != nil {
		return changeError(err, r)
	}
	c.Response().Header().Set(echo.HeaderLocation, k.path(r))
	var plain secret.Text
	if made := result.Changes[0].NewSecrets; len(made) > 0 {
		plain = made[0].Plain
	}
	if r.Kind == catalog.KindNameWebhook {
		// Without it the webhook is there all the same, and can be given one.
		if plain, err = a.SigningSecret(c, r); err != nil {
			httpserver.NoteError(c, err)
		}
	}
	return a.writeCurrent(c, http.StatusCreated, r, result, plain)
}

// target names the entity that a request changes and the version that it has
// to have; 0: any.
func (a *API) target(c echo.Context, k entityKind) (r catalog.Ref, version int64, err error) {
	if r, err = k.ref(c); err != nil {
		return r, 0, err
	}
	version, err = a.ifMatch(c, r)
	return r, version, err
}

func (a *API) replace(c echo.Context, k entityKind) error {
	r, version, err := a.target(c, k)
	if err != nil {
		return err
	}
	tree, err := readDocument(c, "application/json")
	if err != nil {
		return err
	}
	spec, err := k.decode(c, tree, &r)
	if err != nil {
		return err
	}
	return a.put(c, spec, version)
}

func (a *API) update(c echo.Context, k entityKind) error {
	r, version, err := a.target(c, k)
	if err != nil {
		return err
	}
	patch, err := readDocument(c, "application/merge-patch+json")
	if err != nil {
		return err
	}
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return err
	}
	e, ok := v.Get(r)
	if !ok {
		return notFound(r)
	}
	before, err := treeOf(e.Spec)
	if err != nil {
		return err
	}
	spec, err := k.decode(c, document.Merge(before, patch), &r)
	if err != nil {
		return err
	}
	if version == 0 {
		version = e.Version // the patch was laid over this one
	}
	return a.put(c, spec, version)
}

func (a *API) put(c echo.Context, spec catalog.Entity, version int64) error {
	r := spec.Ref()
	ops := []change.Op{change.Put{Spec: spec, IfVersion: version}}
	result, err := a.do(c, ops)
	if err != nil {
		return changeError(err, r)
	}
	return a.writeCurrent(c, http.StatusOK, r, result, "")
}

func (a *API) remove(c echo.Context, k entityKind) error {
	r, version, err := a.target(c, k)
	if err != nil {
		return err
	}
	if _, err := a.do(c, []change.Op{change.Delete{Ref: r, IfVersion: version}}); err != nil {
		return changeError(err, r)
	}
	return c.NoContent(http.StatusNoContent)
}

// do changes the configuration as the caller.
func (a *API) do(c echo.Context, ops []change.Op) (*change.Result, error) {
	return a.Engine.Do(c.Request().Context(), access.Actor(c), ops, change.Options{Authorize: access.From(c).MayChange})
}

// writeCurrent answers with an entity as a change left it.
func (a *API) writeCurrent(c echo.Context, status int, r catalog.Ref, result *change.Result, plain secret.Text) error {
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return err
	}
	e, ok := v.Get(r)
	if !ok {
		return notFound(r) // somebody deleted it just now
	}
	c.Response().Header().Set("ETag", request.ETag(result.Changes[0].Version))
	return writeEntity(c, status, v, e, plain)
}

// readOnly are members that answers have and requests may repeat.
var readOnly = []string{"meta", "secrets", "client_secret", "signing_secret"}

// decode reads a declaration of the kind. r is what the path names; nil: the
// document names it.
func (k entityKind) decode(c echo.Context, tree any, r *catalog.Ref) (catalog.Entity, error) {
	kind, ok := catalog.KindOf(k.name)
	if !ok {
		return nil, errors.New("no such kind: " + k.name)
	}
	members, ok := tree.(map[string]any)
	if !ok {
		return nil, invalid(document.Problems{{Pointer: "", Detail: "is not an object"}})
	}
	own := make(map[string]any, len(members))
	for name, v := range members {
		own[name] = v
	}
	spec := kind.New()
	for _, name := range readOnly {
		if name == "meta" || fieldOf(k.name, name) < 0 || k.name == catalog.KindNameClient {
			delete(own, name)
		}
	}
	var problems document.Problems
	if !k.global {
		problems = fixed(own, "tenant", c.Param("tenant"), problems)
	}
	if r != nil {
		problems = fixed(own, "id", r.ID, problems)
	}
	if err := document.Decode(own, spec); err != nil {
		var more document.Problems
		if !errors.As(err, &more) {
			return nil, err
		}
		problems = append(problems, more...)
	}
	if len(problems) > 0 {
		return nil, invalid(problems)
	}
	return spec, nil
}

// fixed fills in a member that the path has, which the document may repeat.
func fixed(own map[string]any, name, value string, problems document.Problems) document.Problems {
	if v, ok := own[name]; ok && v != value {
		problems = append(problems, document.Problem{Pointer: "/" + name, Detail: "is not what the path says; it cannot be changed"})
	}
	own[name] = value
	return problems
}

// treeOf returns a declaration as a document, without secrets.
func treeOf(e catalog.Entity) (any, error) {
	raw, err := json.Marshal(withoutSecrets(e))
	if err != nil {
		return nil, err
	}
	return document.Parse(raw)
}

func withoutSecrets(e catalog.Entity) catalog.Entity {
	client, ok := e.(*catalog.ClientSpec)
	if !ok {
		return e
	}
	bare := *client
	bare.Secrets = nil
	return &bare
}
