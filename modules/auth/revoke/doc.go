// Package revoke is the revocation endpoint (RFC 7009).
//
// A refresh token ends its whole family and, by the revocation log, the access
// tokens that came from it (section 2.1); an access token ends alone. The kind
// of a token shows in its form, so that token_type_hint is not needed and not
// looked at. An unknown, malformed or expired token is a success (section 2.2);
// another client's is refused and stays as it is (section 2.1). Revocations are
// durable, and count in this process before the answer is sent.
package revoke
