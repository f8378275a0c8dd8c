// Package logout ends browser sessions: at the person's wish, and when auth
// says so.
//
//   - GET, POST /logout/{preset}: the edge session ends at once, in every
//     process; then the browser goes to auth's end session endpoint with the
//     ID token as hint (OpenID Connect RP-Initiated Logout 1.0). What another
//     site asks for is confirmed by the person first.
//   - POST /logout/backchannel: a logout token from auth (OpenID Connect
//     Back-Channel Logout 1.0 section 2.6), for one session or for all of a
//     subject. Each token works once.
//   - GET /logout/frontchannel: in a frame of auth's page (OpenID Connect
//     Front-Channel Logout 1.0); it ends only sessions of the browser that shows
//     it, and only if they are the ones named.
package logout
