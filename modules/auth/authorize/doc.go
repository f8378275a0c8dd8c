// Package authorize is the authorization endpoint (RFC 6749 section 3.1, OpenID
// Connect Core section 3.1.2): it validates a request once and decides who
// answers it.
//
//	                        ┌─ client_id or redirect_uri wrong ──> error page, 400, never a redirect
//	GET, POST /authorize ───┼─ anything else wrong ──────────────> back to the client with error, state, iss
//	                        ├─ a session that will do ───────────> code, silently
//	                        ├─ prompt=none ──────────────────────> login_required
//	                        └─ otherwise ────────────────────────> login, with the validated request
//
// A session will do unless the request asks for interaction (prompt), is about
// another person (id_token_hint), or wants a younger sign-in (max_age).
//
// Invariants: redirect URIs compare byte for byte; a known parameter sent twice
// is an error; what is not supported is refused by name (request, request_uri,
// registration, response types and modes, plain PKCE); a silent sign-in takes
// two statements, the start of a login one more than reading the session.
//
// "claims" is not supported and is ignored, as OpenID Connect Core section 5.5
// asks ("SHOULD return a set of Claims"); acr_values are voluntary (section
// 3.1.2.1) and travel to the login. Stricter than the text: state is limited to
// 2048 bytes. Looser: it may be any UTF-8 without control characters, not only
// VSCHAR (RFC 6749 appendix A.5), since it only travels percent-encoded.
package authorize
