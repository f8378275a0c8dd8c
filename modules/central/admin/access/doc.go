// Package access tells who calls the administration API and what they may do.
//
// A caller is a real identity: an access token (RFC 9068) of the tenant
// "system" for the audience "central", of a person or of a service client. It
// is verified with the deployment's keys, must not be revoked, and its client
// must still be enabled, also when the token comes directly and not through an
// edge. One that is bound to a key (RFC 9449) comes directly, with a proof for
// this API's configured URL: an edge keeps the proofs that are made for it.
//
// What the caller may do is what the catalog says, by the same evaluation as at
// an edge: an operation is the endpoint of the resource "central" that has its
// operationId. People reach it by their roles, service clients by their
// permissions. A role may be limited to one tenant (catalog.RoleSpec.Within);
// through it an operation is reached in that tenant alone:
//
//	path has {tenant}      the operation must be reached in that tenant
//	path has {directory}   ... in every tenant that has that user directory
//	"x-versola-filtered"   reached anywhere; the handler shows what [Reach] has
//	any other              reached everywhere
//
// The refusal is the same whether the tenant exists or not.
//
// Nobody grants more than they hold ([Caller.MayGive]): who gives a system
// role, or changes what such a role, permission or service client reaches,
// must reach all of it themselves. Everything else that belongs to the system
// tenant (its interactive clients, presets, resources, settings) could be used
// to take over an administrator's session and needs a caller who holds
// everything ([Caller.HoldsAll]); so does a tenant that shares the system
// tenant's user directory, since it decides how administrators sign in.
package access
