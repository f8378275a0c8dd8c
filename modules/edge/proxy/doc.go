// Package proxy carries calls to the APIs behind the edge.
//
//	/resources/{resource}/{path...}
//	  1. the target in its one spelling, or 400     (policy.Canonical)
//	  2. the resource and its endpoint, or 404      (policy.Table); a preflight
//	     of a page that the resource lists is answered here (cors)
//	  3. who calls: a bearer token (RFC 6750) or one that is bound to a key and
//	     comes with a proof for this call (RFC 9449), else the session cookie of
//	     a preset of the resource's tenant; revocations are asked every time
//	  4. an unsafe method with a cookie must come from this origin
//	  5. may they: roles, permissions, audience     (policy.May)
//	  6. limits of one caller (limit), the endpoint's expressions; a body is read only if one needs it
//	     (policy.Satisfied), then a recent sign-in (policy.Recent), then the
//	     headers that expressions set
//	  7. forwarded and streamed back
//
// What an upstream receives: exactly the path that was matched; the identity
// of the caller in X-Versola-* headers, which no client can set in any
// spelling; no cookie of the edge and no Authorization, unless the resource asks
// for the caller's access token; X-Forwarded-* and Forwarded as the edge knows
// them. Headers that make frameworks see another path or method are removed:
// they would undo the decision. Bodies stream both ways and are never
// re-serialised; a client that hangs up cancels the call.
//
// A WebSocket is opened where the endpoint allows it, and is decided on again
// every half second: it is cut when its caller could not open it now.
//
// Refusals are problem documents (RFC 9457) with a reason from policy's closed
// set. A page navigation without a session is sent to the sign-in, a script
// gets 401 and where that is (login_url).
//
// The overhead histogram has the time from the request's arrival to the
// upstream call and from its answer to the first byte sent: not the upstream's
// own.
package proxy
