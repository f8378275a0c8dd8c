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
	case !covers(caller.Audience, r):
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

// covers tells whether an audience has the resource: by its name for tokens, or
// by its resource indicator (RFC 8707 section 2).
func covers(audience []string, r *catalog.Resource) bool {
	return slices.Contains(audience, r.Audience) || r.URI != "" && slices.Contains(audience, r.URI)
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
