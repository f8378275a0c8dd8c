// Package identity is who an edge is: a private JSON Web Key Set with a key to
// sign (use "sig") and one or more to decrypt (use "enc"), EC P-256 both. The
// signature key authenticates the edge at the feeds of central and auth; the
// encryption keys open the client secrets that central sends it (JWE, RFC 7516,
// ECDH-ES+A256KW and A256GCM).
package identity
