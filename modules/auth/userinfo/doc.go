// Package userinfo is the UserInfo endpoint (OpenID Connect Core section 5.3)
// as a resource protected by bearer tokens (RFC 6750) and by tokens that are bound
// to a key or certificate (RFC 9449 section 7, RFC 8705 section 3).
//
// A token comes in the Authorization header, or in the form body of a POST; one
// way at a time, and never in the query, which ends up in logs. It must be an
// access token of this tenant, about a person, with scope openid. Who
// presents a bound token has to prove that they hold the key.
//
// Invariants: one statement makes sure that the person is active, the grant
// not revoked and the session not ended, and reads the claims; scopes decide
// which are released (the catalog says which claims a scope has); sub is always
// there and always the token's.
package userinfo
