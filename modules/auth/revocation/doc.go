// Package revocation is the numbered log of what stopped being valid before it
// expired: sessions, grants, single tokens, and a user's tokens issued before
// an instant.
//
//	logout, revoke, code, refresh ──INSERT──> auth.revocation ──NOTIFY──> [Follower] of every process
//	                                                                        ├─> Revoked: userinfo, introspection
//	                                                                        └─> Feed: long poll of the edges
//
// The statement that ends a thing inserts the entry itself, in the same
// transaction, durably. Numbers are taken before they commit, so that a higher
// one may be visible first: a follower remembers the numbers that it has not
// seen below its highest, and asks for them until no transaction can hold them
// any more. A poll stands behind the notification.
//
// Invariants: an entry lives until every token that it could concern has
// expired ([EntryEnd]); a process that has not yet read the log once says so
// and does not pretend that nothing is revoked.
package revocation
