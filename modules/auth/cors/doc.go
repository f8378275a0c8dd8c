// Package cors lets browsers of other origins call the provider (the Fetch
// standard's CORS protocol).
//
// Discovery and the key set are for every origin ([Any]); the token, userinfo
// and revocation endpoints for origins that a client of the tenant has
// registered ([Registered]). Credentials (cookies) are never allowed: those
// endpoints do not read any. "null" is never an origin that is let in.
package cors
