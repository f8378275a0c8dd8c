// Package clientcredentials is the client credentials grant (RFC 6749 section
// 4.4): a confidential client gets a token for itself.
//
// Invariants: it touches no database; no refresh token and no ID token comes
// with it; scopes that only make sense with a person (openid, offline_access)
// are refused. What the client may do at a resource follows from its
// permissions in the catalog.
package clientcredentials
