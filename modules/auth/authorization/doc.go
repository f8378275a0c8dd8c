// Package authorization holds an authorization request and what answers it.
//
//	authorize ──[Request]──> login ──(finish)──> code ──[Responder]──> client
//	     └──── with a session, silently ────────────^
//
// A [Request] is validated once, by the authorize endpoint or when it is pushed
// (package par), and travels as a value from there: in a login conversation's row
// while a person signs in.
//
// It is answered by the client's response mode, with state and iss (RFC 9207): in
// the query or the fragment of the redirect URI, or by a form; as parameters, or
// as one JWT that the client's algorithm signs (JARM). A refusal goes the way that
// a code would have gone.
package authorization
