package access

import (
	"fmt"
	"slices"
	"strings"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
)

// MayChange tells whether the caller may make changes of configuration,
// beyond reaching the operation: it is the change engine's Authorize. Errors:
// [*NotHeld].
func (w *Caller) MayChange(before, after *change.View, changes []change.Change) error {
	for _, c := range changes {
		if c.Action == change.Unchanged {
			continue
		}
		if err := w.mayChange(before, after, c); err != nil {
			return fmt.Errorf("%s %w", c.Ref, err)
		}
	}
	return nil
}

func (w *Caller) mayChange(before, after *change.View, c change.Change) error {
	switch was, is := spec(before, c.Ref), spec(after, c.Ref); c.Ref.Kind {
	case catalog.KindNameTenant:
		if c.Ref.ID == catalog.SystemTenant || signsInSystem(before, was) || signsInSystem(after, is) {
			return w.HoldsAll()
		}
		return w.mayChangeTenant(was, is)
	case catalog.KindNameEdge:
		// An edge is sent the secrets of the clients that it signs people in with.
		if servesSystem(before, c.Ref.ID) || servesSystem(after, c.Ref.ID) {
			return w.HoldsAll()
		}
		return nil
	default:
		if c.Ref.Tenant != catalog.SystemTenant {
			if c.Ref.Kind == catalog.KindNameWebhook && is != nil {
				// It is told what the audit log has of the tenant.
				return w.holds(Resource, "list-audit", c.Ref.Tenant)
			}
			return nil
		}
		return w.mayChangeSystem(after, was, is)
	}
}

// mayChangeSystem is for what belongs to the system tenant. Taking away never
// grants; anything but roles, permissions and services could be used to act as
// another administrator.
func (w *Caller) mayChangeSystem(after *change.View, was, is catalog.Entity) error {
	switch s := is.(type) {
	case *catalog.RoleSpec:
		return w.holdPermissions(after, s.Permissions, s.Within)
	case *catalog.PermissionSpec:
		return w.holdEndpoints(s.Endpoints, "")
	case *catalog.ClientSpec:
		if service(s) && (was == nil || service(was)) {
			return w.holdPermissions(after, s.Permissions, "")
		}
	case nil:
		switch was.(type) {
		case *catalog.RoleSpec, *catalog.PermissionSpec:
			return nil
		}
		if service(was) {
			return nil
		}
	}
	return w.HoldsAll()
}

// service tells whether nobody signs in through a client.
func service(e catalog.Entity) bool {
	c, ok := e.(*catalog.ClientSpec)
	return ok && !slices.ContainsFunc(c.GrantTypes, func(g string) bool { return g != catalog.GrantClientCredentials })
}

func (w *Caller) mayChangeTenant(was, is catalog.Entity) error {
	before, _ := was.(*catalog.TenantSpec)
	after, _ := is.(*catalog.TenantSpec)
	if before == nil || after == nil {
		return nil // creation and deletion need to be reached everywhere
	}
	if before.Directory == after.Directory && before.Edge == after.Edge {
		return nil
	}
	// Another user directory or edge is outside of the tenant.
	for _, op := range []string{"replace-tenant", "update-tenant"} {
		if w.Reach(op).All {
			return nil
		}
	}
	return &NotHeld{Endpoint: Resource + ":replace-tenant"}
}

func (w *Caller) holdPermissions(v *change.View, permissions []string, within string) error {
	for _, p := range permissions {
		e, ok := spec(v, catalog.Ref{Kind: catalog.KindNamePermission, Tenant: catalog.SystemTenant, ID: p}).(*catalog.PermissionSpec)
		if !ok {
			continue // validation refuses it
		}
		if err := w.holdEndpoints(e.Endpoints, within); err != nil {
			return err
		}
	}
	return nil
}

func (w *Caller) holdEndpoints(endpoints []string, within string) error {
	for _, ref := range endpoints {
		resource, endpoint, _ := strings.Cut(ref, ":")
		if err := w.holds(resource, endpoint, within); err != nil {
			return err
		}
	}
	return nil
}

// spec returns an entity, or nil.
func spec(v *change.View, r catalog.Ref) catalog.Entity {
	e, ok := v.Get(r)
	if !ok {
		return nil
	}
	return e.Spec
}

func servesSystem(v *change.View, edge string) bool {
	t, ok := spec(v, catalog.Ref{Kind: catalog.KindNameTenant, ID: catalog.SystemTenant}).(*catalog.TenantSpec)
	return ok && t.Edge == edge
}

// signsInSystem tells whether a tenant has the user directory of the system
// tenant. Tenants that share one share sign-in: who decides how people sign in
// to such a tenant decides how administrators do.
func signsInSystem(v *change.View, tenant catalog.Entity) bool {
	t, ok := tenant.(*catalog.TenantSpec)
	return ok && directory(t) == directory(spec(v, catalog.Ref{Kind: catalog.KindNameTenant, ID: catalog.SystemTenant}))
}

// directory returns the user directory of a tenant; empty: of none.
func directory(tenant catalog.Entity) (name string) {
	if tenant == nil {
		return ""
	}
	tenant.Refers(func(_ string, to catalog.Ref) {
		if to.Kind == catalog.KindNameDirectory {
			name = to.ID
		}
	})
	return name
}
