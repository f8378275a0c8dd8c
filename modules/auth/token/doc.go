// Package token makes and reads the provider's signed tokens.
//
//	access token   typ at+jwt      RFC 9068; for people also sid, gid, acr, amr,
//	                               auth_time, roles
//	ID token       typ JWT         OpenID Connect Core section 2
//	logout token   typ logout+jwt  OpenID Connect Back-Channel Logout section 2.4
//
// Invariants: each kind has its own "typ", and a reader accepts one kind only,
// so that no token passes for another (RFC 8725 section 3.11). The algorithm
// is the key's. A reader believes nothing before the signature has verified,
// and accepts only issuers of its own tenant. Payloads are written by hand, in
// one pass and without reflection, since a token endpoint does little else.
//
// gid, a private claim, names the row of auth.grants that a token came from: a
// replayed authorization code revokes that grant, and with it every token that
// states it.
package token
