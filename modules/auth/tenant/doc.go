// Package tenant finds the tenant that a request to auth is for.
//
// The root tenant is served at the issuer's root, every other under
// /t/{tenant}; both have the same routes. The tenant is request data: handlers
// read it with [Of].
package tenant
