// Package requestobject reads signed request objects: authorization requests that
// a client sends as a JWT (RFC 9101, OpenID Connect Core section 6.1), at the
// authorization endpoint or pushed.
//
//	request ──> typ ──> alg ──> signature ──> iss, client_id ──> aud ──> times ──> parameters
//
// What comes out are the parameters of the object and nothing else: what is sent
// beside it does not count (section 6.3). They are validated like those of any
// request, by package authorize.
//
// Invariants: algorithm and keys come from the client's registration, never from
// the object; an object without a signature is refused, and so is any from a
// client that has no algorithm registered; an object holds no other, by value or
// by reference (section 4); one that names the client as its subject is refused,
// since it would pass for a client assertion elsewhere (section 10.8).
//
// Stricter than the text: iss, aud, client_id and exp are needed, and an object is
// good for an hour at most; fapi2 needs nbf too (FAPI 2.0 Message Signing section
// 5.3.1). Objects by reference and encrypted ones are not supported.
package requestobject
