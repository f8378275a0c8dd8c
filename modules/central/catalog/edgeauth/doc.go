// Package edgeauth is how an edge proves itself at the internal feeds (the
// catalog's in central, the revocations' in auth).
//
// An edge owns a private signature key, of which the catalog has the public
// part. With each request it sends a short-lived JSON Web Token that it signed:
//
//	Authorization: Bearer <JWS, typ versola-edge+jwt>
//	{"iss": edge, "sub": edge, "aud": "versola-internal", "iat": now, "exp": now+60s, "jti": ...}
//
// This is the client assertion of RFC 7523 section 3 in the place of a bearer
// token. Nothing shared is kept on either side, and rotating is publishing a
// second key.
//
// Invariants: the algorithm is the registered key's; the token's type keeps
// any other token of the deployment out, and keeps this one out everywhere
// else (RFC 8725 section 3.11); a token lives 60 seconds at the most, whatever
// it claims. Tokens are not remembered: a replay within that minute reads the
// same feed, whose secrets only the edge's own key opens.
package edgeauth
