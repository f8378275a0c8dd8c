// Package client finds out which client is calling a back-channel endpoint
// (token, revocation) and makes it prove that (RFC 6749 section 2.3).
//
//	read ─> one method ─┬─> none                    a public client names itself
//	                    ├─> client_secret_basic     form-urlencoded inside, decoded strictly
//	                    ├─> client_secret_post
//	                    ├─> client_secret_jwt  ─┐   typ ─> alg ─> signature ─> aud ─> times ─> first use
//	                    └─> private_key_jwt    ─┘   (RFC 7523 sections 2.2 and 3)
//
// A client uses the one method it is registered for, and one at a time. With an
// assertion client_id may be left out: the client is the assertion's subject.
//
// Invariants: a secret is compared in constant time with every current one of
// the client; an unknown client, a disabled one, a wrong secret and a wrong
// method give the same answer, and after the same work where a secret was sent;
// the cause goes to the log alone; where Basic was used the refusal carries
// WWW-Authenticate (section 5.2).
//
// Assertions: algorithm and keys come from the client's registration, never
// from the assertion ("jku", "x5u" and "jwk" are not looked at); an HMAC is of a
// secret of at least 32 bytes and never of a public key; a jti counts once in
// all processes. Stricter than RFC 7523: jti is needed, and an assertion lives
// at most ten minutes. Key sets behind a jwks_uri are fetched once for all who
// wait, kept for minutes, asked for again when a signature does not verify, but
// not more often than every half minute, and kept through a failure of the
// client's server for hours.
package client
