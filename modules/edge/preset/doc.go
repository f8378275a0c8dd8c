// Package preset signs browsers in: authorization code flow with PKCE for a
// preset of this edge (RFC 6749 section 4.1, RFC 7636, RFC 9207, OpenID Connect
// Core 1.0 section 3.1).
//
//	GET /login/{preset}  -> row in edge.login (state, nonce, verifier), browser
//	                        cookie, 303 to auth
//	GET /complete        -> row claimed, code redeemed, session made, cookie
//	                        set, 303 to the application
//
// Invariants: a login is found by its state and the browser that started it,
// and claimed by one DELETE, so it works once and nowhere else; a stranger who
// has the state cannot even spend it. The row's nonce and verifier are sealed.
// Several tabs of one browser are several rows under one browser cookie. Where
// to go afterwards is a canonical path on the preset's own origin, or what the
// preset says.
package preset
