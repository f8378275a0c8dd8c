// Package code is the authorization code grant: codes are created (for a silent
// sign-in) and exchanged.
//
//	created ──(exchange: every binding fits)──> used, with a grant ──(again)──> grant revoked
//
// A code is bound to tenant, client, redirect URI, PKCE challenge, session, and the
// DPoP key that the request named.
// The exchange is one statement: it claims the code with all its bindings as
// conditions, makes sure that the person may still sign in and the session
// still lives, and creates the grant. Nothing is read first, so of two
// exchanges at once one wins.
//
// Only when that statement claims nothing, a second one finds out why. A
// second use revokes the grant of the first, durably and with an entry in the
// revocation log, so that tokens which were issued die too (RFC 6749 section
// 4.1.2); only the client itself can cause that. What does not fit a code (a
// wrong verifier, redirect URI or client) leaves it usable by the rightful
// client: refused attempts change nothing.
//
// Implements RFC 6749 sections 4.1.3 and 4.1.4, RFC 7636 sections 4.5 and 4.6,
// OpenID Connect Core section 3.1.3, RFC 9449 section 10.
package code
