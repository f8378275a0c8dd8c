// Package par is the pushed authorization request endpoint (RFC 9126).
//
//	POST /par ──> client authentication ──> the whole request, as /authorize validates it
//	          ──> DPoP key ──> 201 request_uri, expires_in
//
//	/authorize?client_id&request_uri ──> opened, as often as it takes ──> answered: spent
//
// The request is validated once, here, by the same code as at the authorization
// endpoint, and kept under the hash of 256 random bits; what comes to the
// authorization endpoint is read from the row alone. Only the client that pushed
// a request can open it: for others it does not exist, and their attempts change
// nothing.
//
// A request_uri opens a sign-in until valid_until, as often as it takes (a
// browser that reloads, a link that is opened twice: section 4). It is spent by
// the statement that answers the request: the one that finishes the sign-in, that
// creates a code silently, or that ends it with an error. Of several sign-ins of
// one request one is answered. A sign-in that has begun may take longer than the
// request_uri is good for: it keeps the row.
//
// Invariants: a request_uri inside is refused (section 2.1); a key that is named
// twice, by a proof and by dpop_jkt, is the same (RFC 9449 section 10.1); one
// statement for each push, one more than without for each visit to the
// authorization endpoint.
package par
