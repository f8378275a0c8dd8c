// Package dpop binds the provider's tokens to those who ask for them, and makes
// sure that who presents one holds what it is bound to (RFC 9449).
//
//	token endpoint   proof ──> nonce of ours? ──> first use? ──> cnf.jkt, token_type DPoP
//	userinfo         token with cnf.jkt ──> scheme DPoP, proof with ath, the same key
//
// What a proof must be is in platform/dpop; here is what a server adds.
//
// Nonces (section 8) keep proofs from being made in advance. A nonce is the
// number of a window of time and a MAC of it under the deployment's token keys:
// any process accepts what another gave out, nothing is stored, and a nonce
// ends with the clock. A proof without one is answered use_dpop_nonce with a
// nonce in DPoP-Nonce; each answer to a proof carries the current one.
//
// Invariants: "htu" is compared with the tenant's issuer as configured, never
// with Host; a used proof is refused in every process, until it is stale; a
// token with cnf is refused as a plain bearer token; where a client or a
// tenant wants bound tokens, no other is given out.
//
// Who must send the same key again: a code that was asked for with dpop_jkt is
// exchanged with that key (section 10, package code), and the refresh tokens of
// public clients stay with the key of their first (section 5, package refresh).
// A confidential client may change its key at a refresh: its refresh tokens
// are bound to its own authentication.
package dpop
