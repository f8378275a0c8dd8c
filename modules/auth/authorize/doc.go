// Package authorize is the authorization endpoint (RFC 6749 section 3.1, OpenID
// Connect Core section 3.1.2): it validates a request once and decides who
// answers it.
//
//	                        ┌─ client_id or redirect_uri wrong ──> error page, 400, never a redirect
//	                        ├─ request_uri spent or foreign ─────> error page
//	GET, POST /authorize ───┼─ anything else wrong ──────────────> back to the client with error, state, iss
//	                        ├─ a session that will do ───────────> code, silently
//	                        ├─ prompt=none ──────────────────────> login_required
//	                        └─ otherwise ────────────────────────> login, with the validated request
//
// The request is one that the client pushed (package par), one in a signed object
// (package requestobject), or the parameters themselves; [Requests] validates the
// last two, and what is pushed.
//
// A session will do unless the request asks for interaction (prompt), is about
// another person (id_token_hint), or wants a younger sign-in (max_age).
//
// Invariants: redirect URIs compare byte for byte; a known parameter sent twice
// is an error; what is not supported is refused by name (request_uri, but for a
// pushed one, registration, response types and modes, plain PKCE); a silent
// sign-in takes two statements, the start of a login one more than reading the
// session, and a pushed request one more.
//
// "claims" is not supported and is ignored, as OpenID Connect Core section 5.5
// asks ("SHOULD return a set of Claims"); acr_values are voluntary (section
// 3.1.2.1) and travel to the login. Stricter than the text: state is limited to
// 2048 bytes. Looser: it may be any UTF-8 without control characters, not only
// VSCHAR (RFC 6749 appendix A.5), since it only travels percent-encoded.
package authorize
