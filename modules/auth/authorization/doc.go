// Package authorization holds an authorization request and what answers it.
//
//	authorize ──[Request]──> login ──(finish)──> code ──[Respond]──> client
//	     └──── with a session, silently ────────────^
//
// A [Request] is validated once, by the authorize endpoint, and travels as a
// value from there: in a login conversation's row while a person signs in. It
// is answered by the client's response mode with state and iss (RFC 9207).
package authorization
