// Package provider is the edge's side of auth's public protocol: it redeems
// authorization codes and refresh tokens at the token endpoint (RFC 6749
// sections 4.1.3 and 6, RFC 7636), authenticated as the preset's client, and
// validates what comes back: the ID token (OpenID Connect Core 1.0 section
// 3.1.3.7, and 12.2 for a refresh) and the access token.
//
// The issuer's public URL is where browsers are sent; back-channel calls may
// take another way to the same auth (a cluster's own address, or a direct
// handler in one process), set as a base URL. Errors say only what the caller
// must tell apart: a grant that is over ([ErrGrant]), an auth that cannot answer
// now ([ErrUnavailable]), and an answer that is not to be trusted ([ErrAnswer]).
package provider
