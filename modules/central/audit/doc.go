// Package audit keeps the log of who did what: every administrative change and
// every security-relevant event, append-only and hash-chained.
//
// # Chain
//
// An entry is a number and a body, the JSON form of [Entry], kept byte for
// byte. Its hash is
//
//	SHA-256("versola audit 1\n" || hash of the entry before || number, 8 bytes big endian || body)
//
// so that editing, removing or reordering entries shows at the first one
// touched. The number and hash of the newest entry, the head, are kept in a row
// of their own together with a MAC under a key derived from keys.encryption:
// who can write to the database but has no configuration can neither append
// nor cut the end off unseen. Putting back an old copy of the whole database
// can only be seen from outside: [Log.Verify] takes an [Anchor] that was noted
// earlier ("versola audit verify" prints one).
//
// The database refuses to change or remove entries, except for the oldest ones
// through [Log.Retain], which notes in the head where the chain now begins.
// Triggers protect from mistakes; the chain is what shows intent.
//
// # Writing
//
// An administrative change is recorded within its own transaction ([Log.Append],
// [Log.Record]): both happen or neither does. Appenders queue on the head's row
// from there to their commit, so recording is the last thing a transaction
// does.
//
// Events of sign-in go through a [Sink]: a bounded buffer and one background
// writer for each process. It never blocks who signs in. When the database is
// away longer than the buffer lasts, events are dropped and counted, and the
// log says how many are missing and since when (action "audit.dropped"); when
// the process is killed, up to [flushEvery] of events are lost.
//
// # Secrets
//
// A change is kept as the members that differ, with those that may hold a
// secret redacted by name ([Difference]), whatever the caller has redacted
// already. A body is bounded by [maxBody]; a larger difference is cut and says
// so.
package audit
