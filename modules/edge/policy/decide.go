package policy

import (
	"slices"
	"time"

	"versola/modules/central/catalog"
)

// Caller is who calls, as proven by a token.
type Caller struct {
	Tenant   *catalog.Tenant
	Audience []string
	Roles    []string // of a person, in Tenant
	// Service is the client of a token that no person stands behind; its
	// permissions are its own.
	Service *catalog.Client
	// SignedInAt is when the person proved who they are; zero: nobody did.
	SignedInAt time.Time
}

// May decides whether a caller (nil: nobody) may use an endpoint of a
// resource. An endpoint that no rule opens is closed.
func May(caller *Caller, r *catalog.Resource, e *catalog.EndpointSpec) Reason {
	switch {
	case e == nil:
		return EndpointUnknown
	case e.Public:
		return Public
	case caller == nil:
		return NoCredentials
	case caller.Tenant == nil || r.Owner == nil || caller.Tenant.ID != r.Owner.ID:
		return WrongTenant
	case !slices.Contains(caller.Audience, r.Audience):
		return WrongAudience
	}
	if caller.Service != nil {
		if r.Owner.PermissionsAllow(caller.Service.Permissions, r.ID, e.ID) {
			return Allowed
		}
		return NotPermitted
	}
	if r.Owner.RolesAllow(caller.Roles, r.ID, e.ID) {
		return Allowed
	}
	return NotPermitted
}

// Recent decides whether the caller's sign-in is as young as the endpoint asks
// (RFC 9470). A service client has none and never passes.
func Recent(caller *Caller, e *catalog.EndpointSpec, now time.Time) Reason {
	if e.StepUp == nil || e.StepUp.MaxAge == 0 {
		return Allowed
	}
	if caller == nil || caller.SignedInAt.IsZero() || now.Sub(caller.SignedInAt) > e.StepUp.MaxAge.D(0) {
		return SignInTooOld
	}
	return Allowed
}
