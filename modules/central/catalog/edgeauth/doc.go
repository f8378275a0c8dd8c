// Package edgeauth proves which edge is calling at an internal feed.
//
// An edge signs a short-lived JWT with its own private key for each call:
//
//	header   typ versola-edge+jwt, alg and kid of a registered "sig" key
//	claims   iss = sub = edge id, aud = versola-internal, iat, exp, jti
//
// The key set comes from the catalog and never from the token, and the
// algorithm from the key's registration. A token lives at most a minute, and
// the feeds that it opens only read, so a jti is required but not remembered.
package edgeauth
