// Package dpop verifies DPoP proofs (RFC 9449): signed statements by which
// the sender of a request shows that it holds a private key.
//
//	DPoP: base64url({"typ":"dpop+jwt","alg":...,"jwk":{...}}).base64url({"jti","htm","htu","iat","ath","nonce"}).signature
//
// [Verify] is a pure function of the proof, the request and the time: all of
// section 4.3. [Guard] adds the memory of used proofs (section 11.1) and what a
// resource asks of a token's presenter (section 7; certificates: RFC 8705
// section 3). Which nonces count is the caller's to say (sections 8 and 9).
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
