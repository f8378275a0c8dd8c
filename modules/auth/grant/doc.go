// Package grant is the token endpoint (RFC 6749 section 3.2): it parses the
// request once, lets the client authenticate, and hands over to the grant.
//
//	POST /token ─> parse ─> client.Authenticate ─> grant_type ─> dpop.Bind ─┬─> code
//	                                                                        ├─> refresh
//	                                                                        └─> clientcredentials
//
// Invariants: a parameter sent twice is refused, whatever its name is among
// those known; a grant that the client is not registered for is
// unauthorized_client; no proof is used up by a request that fails before; every answer carries Cache-Control: no-store.
package grant
