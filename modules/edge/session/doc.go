// Package session holds browser sessions at the edge.
//
// A session is an opaque cookie of 256 random bits; its row (edge.session) is
// found by the cookie's SHA-256 and keeps the tokens sealed. What a proxied
// call needs of it (claims, expiry, version; the access token only where some
// resource forwards it) is kept in a bounded cache in memory: the first call
// costs one statement, a repeated one none.
//
// Consistency across processes:
//
//   - Ending a session deletes the row and notifies (versola_edge_session) in
//     one statement; every process drops its entry. A process that lost its
//     listener drops everything when it reconnects, and no entry outlives
//     maxCached. Ending a session at auth additionally reaches every edge by
//     the revocation feed, which is asked on every call.
//   - A load that was under way while something was dropped is not cached.
//   - A refreshed row has a new version. A process with the old one finds that
//     out when its access token nears its end, and reads the row again.
//
// Refresh: within refreshAhead of the access token's end it starts in the
// background and calls go on; once the token is over they wait. In a process
// one refresh runs per session; across processes the row's lease decides, and
// who has not got it waits for the row's next version. The lease runs on the
// database's clock, the one that all processes share.
//
//	auth answers tokens         -> row updated, version+1, lease released
//	auth says invalid_grant     -> row deleted, session ended
//	anything else               -> row kept, lease released; the session is
//	                               served while its token lives, then 503
//
// A session never ends because auth, the network or the database is away.
package session
