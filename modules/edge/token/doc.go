// Package token reads access tokens (RFC 9068) at the edge: signature by the
// deployment's published keys, issuer of a tenant, lifetime.
//
// A token that was verified is remembered by its SHA-256 until it expires, in
// a bounded cache, so that a repeated call costs a hash and a map lookup. An
// entry counts only under the catalog it was verified with: when the keys or
// tenants change, everything is verified again. Revocation is not remembered
// here; it is asked on every call (package revocation).
package token
