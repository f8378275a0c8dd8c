// Package logout ends sessions and tells everyone: OpenID Connect RP-Initiated
// Logout 1.0, Back-Channel Logout 1.0 and Front-Channel Logout 1.0.
//
//	/logout ─> who asks? ─> whose session? ──sure──> [Ender.End] ─> back to the client, or signed-out page
//	                              └──doubtful──> confirmation page ──POST with its csrf──^
//
// Sure means: an id_token_hint of ours (an expired one will do) that is about
// the very session of the browser's cookie, a client that exists, and a
// post_logout_redirect_uri that is registered with it, or none. Anything else
// asks the person. The confirmation's csrf value is a MAC of the session
// cookie, so that only the page that we showed to this session confirms it.
// Nobody is ever sent to an address that is not registered with the client.
//
// Where the cookie is missing or names no session here, a sure request ends the
// session that the hint names: a POST from another site carries no SameSite=Lax
// cookie, and tenants with separate directories share one cookie. For the same
// reason a POST without cookie and hint comes back as a GET, which does carry it.
//
// Ending is one durable statement: session ended, its grants revoked (those
// with offline access survive where the tenant says so), an entry in the revocation log, and a notice
// for each client that took part and wants to hear. Notices are delivered by
// [Notifier], in parallel, with a timeout, again and again with growing pauses
// until they are accepted or a day has passed; what waits for a client that does
// not answer waits together. A notice is claimed by moving
// its next attempt into the future, so that a process that dies loses nothing.
//
// Clients that clear their own state in the browser are opened in frames of the
// page after the sign-out, which goes on when all have answered, or after a few
// seconds. It is the browser's word alone: a session that ends elsewhere has none.
package logout
