// Package client finds out which client is calling a back-channel endpoint
// (token, revocation) and makes it prove that (RFC 6749 section 2.3).
//
// Methods: client_secret_basic (form-urlencoded inside, decoded strictly),
// client_secret_post, none for public clients. A client uses the one method it
// is registered for, and one at a time.
//
// Invariants: a secret is compared in constant time with every current one of
// the client; an unknown client, a disabled one, a wrong secret and a wrong
// method give the same answer after the same work; where Basic was used the
// refusal carries WWW-Authenticate (section 5.2).
package client
