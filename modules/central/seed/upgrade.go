package seed

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/configs"
	"versola/modules/central/apply"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
)

// administration is the file that follows from the OpenAPI document.
const administration = "administration.yaml"

// Prefixes of the names under which central.seed knows what a deployment was
// given. What an operator has taken away since is known still, and does not
// come back.
const (
	operationPrefix  = "system/operation/"
	permissionPrefix = "system/permission/"
	rolePrefix       = "system/role/"
)

// central is the resource whose endpoints are the operations.
var central = catalog.Ref{Kind: catalog.KindNameResource, Tenant: catalog.SystemTenant, ID: "central"}

// builtIn names what there is of operations, permissions and roles among
// entities.
func builtIn(entities []catalog.Entity) []string {
	var names []string
	for _, e := range entities {
		r := e.Ref()
		if r.Tenant != catalog.SystemTenant {
			continue
		}
		switch s := e.(type) {
		case *catalog.ResourceSpec:
			if r == central {
				for _, endpoint := range s.Endpoints {
					names = append(names, operationPrefix+endpoint.ID)
				}
			}
		case *catalog.PermissionSpec:
			names = append(names, permissionPrefix+s.ID)
		case *catalog.RoleSpec:
			names = append(names, rolePrefix+s.ID)
		}
	}
	return names
}

const noteSQL = `INSERT INTO central.seed (name, applied_at) SELECT unnest($1::text[]), $2 ON CONFLICT DO NOTHING`

// note remembers what a deployment was given.
func note(ctx context.Context, tx pgx.Tx, now time.Time, names []string) error {
	if _, err := tx.Exec(ctx, noteSQL, names, now); err != nil {
		return fmt.Errorf("note what is seeded: %w", err)
	}
	return nil
}

// unknownSQL returns which names a deployment was not given yet, and whether
// it was given any at all.
const unknownSQL = `SELECT array(SELECT n FROM unnest($1::text[]) AS n WHERE NOT EXISTS (SELECT FROM central.seed WHERE name = n)),
	EXISTS (SELECT FROM central.seed WHERE name LIKE '` + operationPrefix + `%')`

// Upgrade brings a deployment that an older program seeded what is new in the
// administration API: an endpoint for each new operation, which joins the
// permissions that it belongs to, and new permissions, which join the roles that
// they belong to. Permissions and roles that an operator deleted stay deleted,
// and what is there already is not changed otherwise. It returns the names of
// what was new: nothing, with one statement, on every start but the first of a
// newer program.
func Upgrade(ctx context.Context, d Deps) ([]string, error) {
	docs, err := apply.ParseFS(without{FS: configs.System(), names: []string{"system.yaml", "edge.yaml", "administrator.yaml"}},
		Params{CentralURL: "http://localhost"}.variables()) // where the resource is, is not looked at
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", administration, err)
	}
	if err := docs.Err(); err != nil {
		return nil, fmt.Errorf("read %s: %w", administration, err)
	}
	return upgrade(ctx, d, docs.Entities())
}

func upgrade(ctx context.Context, d Deps, entities []catalog.Entity) (added []string, err error) {
	names := builtIn(entities)
	var unknown []string
	var any bool
	if err := d.DB.QueryRow(ctx, unknownSQL, names).Scan(&unknown, &any); err != nil {
		return nil, fmt.Errorf("look for what is new: %w", err)
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	err = pgx.BeginFunc(ctx, d.DB, func(tx pgx.Tx) error {
		view, err := d.Applier.Engine.Locked(ctx, tx)
		if err != nil {
			return err
		}
		// Somebody may have been quicker.
		if err := tx.QueryRow(ctx, unknownSQL, names).Scan(&unknown, &any); err != nil {
			return fmt.Errorf("look for what is new: %w", err)
		}
		e, ok := view.Get(central)
		if !ok || len(unknown) == 0 {
			return nil // not seeded, or not any more
		}
		u := &upgrading{view: view, resource: e.Spec.(*catalog.ResourceSpec), entities: entities, unknown: unknown} //nolint:errcheck,forcetypeassert // the kind's type
		if !any {
			u.assume()
		}
		ops := u.ops()
		added = u.added
		if _, err := d.Applier.Engine.In(ctx, tx, change.System("upgrade"), ops, change.Options{}); err != nil {
			return err
		}
		return note(ctx, tx, d.Clock.Now(), unknown)
	})
	if err != nil {
		return nil, fmt.Errorf("bring what is new in the administration API: %w", err)
	}
	return added, nil
}

// upgrading is one upgrade in the making.
type upgrading struct {
	view     *change.View
	resource *catalog.ResourceSpec
	entities []catalog.Entity // as this program would seed them
	unknown  []string         // what the deployment was not given yet

	assumed []string // taken for known
	added   []string
}

// assume takes for known what a deployment may have been given before that was
// noted: everything but operations that it has no endpoint for.
func (u *upgrading) assume() {
	for _, name := range u.unknown {
		id, operation := strings.CutPrefix(name, operationPrefix)
		if !operation || u.has(id) {
			u.assumed = append(u.assumed, name)
		}
	}
}

func (u *upgrading) has(operation string) bool {
	return slices.ContainsFunc(u.resource.Endpoints, func(e catalog.EndpointSpec) bool { return e.ID == operation })
}

func (u *upgrading) isNew(name string) bool {
	return slices.Contains(u.unknown, name) && !slices.Contains(u.assumed, name)
}

// ops returns the operations that bring what is new.
func (u *upgrading) ops() []change.Op {
	var ops []change.Op
	for _, e := range u.entities {
		var put catalog.Entity
		switch s := e.(type) {
		case *catalog.ResourceSpec:
			put = u.endpoints(s)
		case *catalog.PermissionSpec:
			put = u.permission(s)
		case *catalog.RoleSpec:
			put = u.role(s)
		}
		if put != nil {
			ops = append(ops, change.Put{Spec: put})
		}
	}
	return ops
}

// endpoints returns the resource with what is new, or nil.
func (u *upgrading) endpoints(built *catalog.ResourceSpec) catalog.Entity {
	is := *u.resource
	is.Endpoints = slices.Clone(is.Endpoints)
	for _, e := range built.Endpoints {
		if !u.isNew(operationPrefix+e.ID) || u.has(e.ID) {
			continue
		}
		is.Endpoints = append(is.Endpoints, e)
		u.added = append(u.added, operationPrefix+e.ID)
	}
	if len(is.Endpoints) == len(u.resource.Endpoints) {
		return nil
	}
	return &is
}

// permission returns a permission that is new, or one with new operations, or
// nil.
func (u *upgrading) permission(built *catalog.PermissionSpec) catalog.Entity {
	entry, there := u.view.Get(built.Ref())
	switch {
	case !there && u.isNew(permissionPrefix+built.ID):
		u.added = append(u.added, permissionPrefix+built.ID)
		return u.only(built)
	case !there:
		return nil
	}
	was := entry.Spec.(*catalog.PermissionSpec) //nolint:errcheck,forcetypeassert // the kind's type
	is := *was
	is.Endpoints = slices.Clone(was.Endpoints)
	for _, ref := range built.Endpoints {
		_, operation, _ := strings.Cut(ref, ":")
		if u.isNew(operationPrefix+operation) && !slices.Contains(is.Endpoints, ref) {
			is.Endpoints = append(is.Endpoints, ref)
		}
	}
	if len(is.Endpoints) == len(was.Endpoints) {
		return nil
	}
	return &is
}

// only leaves out of a new permission the operations that an operator took away.
func (u *upgrading) only(built *catalog.PermissionSpec) catalog.Entity {
	is := *built
	is.Endpoints = slices.DeleteFunc(slices.Clone(built.Endpoints), func(ref string) bool {
		_, operation, _ := strings.Cut(ref, ":")
		return !u.has(operation) && !u.isNew(operationPrefix+operation)
	})
	return &is
}

// role returns a role that is new, or one with new permissions, or nil.
func (u *upgrading) role(built *catalog.RoleSpec) catalog.Entity {
	entry, there := u.view.Get(built.Ref())
	gone := func(permission string) bool {
		_, has := u.view.Get(catalog.Ref{Kind: catalog.KindNamePermission, Tenant: catalog.SystemTenant, ID: permission})
		return !has && !u.isNew(permissionPrefix+permission)
	}
	switch {
	case !there && u.isNew(rolePrefix+built.ID):
		u.added = append(u.added, rolePrefix+built.ID)
		is := *built
		is.Permissions = slices.DeleteFunc(slices.Clone(built.Permissions), gone)
		return &is
	case !there:
		return nil
	}
	was := entry.Spec.(*catalog.RoleSpec) //nolint:errcheck,forcetypeassert // the kind's type
	is := *was
	is.Permissions = slices.Clone(was.Permissions)
	for _, p := range built.Permissions {
		if u.isNew(permissionPrefix+p) && !slices.Contains(is.Permissions, p) {
			is.Permissions = append(is.Permissions, p)
		}
	}
	if len(is.Permissions) == len(was.Permissions) {
		return nil
	}
	return &is
}
