package access

import (
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/httpserver"
)

const (
	// Resource is the system tenant's resource whose endpoints are the API's
	// operations.
	Resource = "central"
	// Audience is the "aud" of tokens for this API.
	Audience = "central"
)

// Caller is who calls, as proven by the token, and what they reach.
type Caller struct {
	Subject string   `json:"sub"`
	Client  string   `json:"client_id"`
	Tenant  string   `json:"tenant"`
	Roles   []string `json:"roles"`

	service     bool
	permissions []string // of a service client
	catalog     *catalog.Catalog
	system      *catalog.Tenant
}

const callerKey = "versola.admin.caller"

// From returns the request's caller; there is one behind [Gate.Authenticate].
func From(c echo.Context) *Caller {
	who, _ := c.Get(callerKey).(*Caller)
	return who
}

// Service tells whether the caller is a service client.
func (w *Caller) Service() bool { return w.service }

// Actor returns the caller as the log of changes names them.
func Actor(c echo.Context) change.Actor {
	w := From(c)
	a := change.Actor{Kind: "user", Tenant: w.Tenant, ID: w.Subject, RequestID: httpserver.RequestID(c)}
	if w.service {
		a.Kind = "client"
	}
	if addr := httpserver.ClientAddr(c); addr.IsValid() {
		a.Address = addr.String()
	}
	return a
}

// Reach is where an operation is reached: everywhere, or in some tenants.
type Reach struct {
	All     bool
	Tenants []string // ordered; empty where All
}

// None tells whether the operation is not reached at all.
func (r Reach) None() bool { return !r.All && len(r.Tenants) == 0 }

// Has tells whether the operation is reached in a tenant.
func (r Reach) Has(tenant string) bool { return r.All || slices.Contains(r.Tenants, tenant) }

// Reach returns where the caller reaches an operation.
func (w *Caller) Reach(operation string) Reach { return w.reach(Resource, operation) }

func (w *Caller) reach(resource, endpoint string) Reach {
	if w.service {
		return Reach{All: w.system.PermissionsAllow(w.permissions, resource, endpoint)}
	}
	var r Reach
	for _, role := range w.Roles {
		if !w.system.RolesAllow([]string{role}, resource, endpoint) {
			continue
		}
		within := w.system.RoleWithin(role)
		if within == "" {
			return Reach{All: true}
		}
		r.Tenants = append(r.Tenants, within)
	}
	slices.Sort(r.Tenants)
	r.Tenants = slices.Compact(r.Tenants)
	return r
}

// ReachesDirectory tells whether the caller reaches an operation in every
// tenant that has a user directory. One that no tenant has is reached from
// everywhere alone.
func (w *Caller) ReachesDirectory(operation, directory string) bool {
	r := w.Reach(operation)
	if r.All {
		return true
	}
	found := false
	for _, t := range w.catalog.Tenants() {
		if t.Directory != directory {
			continue
		}
		if !r.Has(t.ID) {
			return false
		}
		found = true
	}
	return found
}

// NotHeld reports a grant of more than the caller holds.
type NotHeld struct {
	Endpoint string // "resource:endpoint"
	Within   string // the tenant that it is granted in; empty: all
}

// Error names the endpoint.
func (e *NotHeld) Error() string {
	if e.Within != "" {
		return fmt.Sprintf("reaches %s in tenant %s, which you do not", e.Endpoint, e.Within)
	}
	return fmt.Sprintf("reaches %s, which you do not", e.Endpoint)
}

// holds tells whether the caller reaches an endpoint of the system tenant
// within a tenant; empty: everywhere.
func (w *Caller) holds(resource, endpoint, within string) error {
	r := w.reach(resource, endpoint)
	if r.All || within != "" && r.Has(within) {
		return nil
	}
	return &NotHeld{Endpoint: resource + ":" + endpoint, Within: within}
}

// MayGive tells whether the caller may give roles of a tenant to somebody, take
// them away, or act on an account that has them: whoever can reset a password
// can sign in with it. For roles of the system tenant the caller must hold all
// that the roles reach; other tenants' roles reach nothing here. Errors:
// [*NotHeld].
func (w *Caller) MayGive(tenant string, roles []string) error {
	if tenant != catalog.SystemTenant {
		return nil
	}
	for _, role := range roles {
		within := w.system.RoleWithin(role)
		for _, r := range w.system.Resources() {
			for _, e := range r.Endpoints {
				if !w.system.RolesAllow([]string{role}, r.ID, e.ID) {
					continue
				}
				if err := w.holds(r.ID, e.ID, within); err != nil {
					return fmt.Errorf("the role %s %w", role, err)
				}
			}
		}
	}
	return nil
}

// HoldsAll tells whether the caller reaches every endpoint of the system
// tenant everywhere. Errors: [*NotHeld].
func (w *Caller) HoldsAll() error {
	for _, r := range w.system.Resources() {
		for _, e := range r.Endpoints {
			if err := w.holds(r.ID, e.ID, ""); err != nil {
				return err
			}
		}
	}
	return nil
}

// Refused turns a refusal into the problem that the caller is answered with;
// other errors stay as they are.
func Refused(err error) error {
	var held *NotHeld
	if !errors.As(err, &held) {
		return err
	}
	return &httpserver.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden,
		Reason: "not_held", Detail: "nobody grants more than they hold: " + err.Error()}
}
