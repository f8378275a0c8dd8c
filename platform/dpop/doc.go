// Package dpop verifies DPoP proofs (RFC 9449): signed statements by which
// the sender of a request shows that it holds a private key.
//
//	DPoP: base64url({"typ":"dpop+jwt","alg":...,"jwk":{...}}).base64url({"jti","htm","htu","iat","ath","nonce"}).signature
//
// [Verify] is a pure function of the proof, the request and the time. It checks
// all of section 4.3 but two things that need memory, which the caller does
// with what [Proof] says: that the nonce is one of the server's own (sections 8
// and 9), and that the jti was not seen before (section 11.1).
//
// Invariants: the algorithm must be among those that the caller allows, all
// of them asymmetric, and fit the key; the key is public, of a size that
// bounds what checking costs, and in the one encoding that a thumbprint has;
// a proof is one header of bounded size; "htu" is compared with the address
// that configuration gives, never with what the request says its host is.
//
// Departures: "iat" may be up to [MaxAge] old and [MaxAhead] in the future
// (section 11.1 leaves the window to the server); query and fragment of "htu",
// which should not be there, are passed over as section 4.3 asks.
package dpop
