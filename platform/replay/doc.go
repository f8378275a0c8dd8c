// Package replay remembers what may be used once: the "jti" of a DPoP proof, of
// a client's assertion, of whatever else a stranger signs for one use.
//
//	Claim ──> in this process already? ──yes──> used
//	             │ no
//	             └──> batch ──> one INSERT ... ON CONFLICT DO NOTHING RETURNING ──> fresh, or used in another process
//
// A claim that this process has seen costs a map lookup. The others go to the
// database in batches: a statement takes all that arrived since the last one
// began, and one begins at most every two milliseconds, so that a claim waits
// for nothing at a low rate and costs a fraction of a statement at a high one.
//
// The table is UNLOGGED: it costs no WAL, and a crash of the database (or the
// promotion of a replica) empties it. The same empties the one row of
// replay_epoch; the first batch after that begins a new epoch, and whatever
// could have been used before it is refused for as long as it could still be
// used: what expires later than [Options.Longest] after the epoch's beginning
// cannot have been accepted earlier. So a crash costs the holders of short-lived
// proofs that many seconds, and lets nobody use one twice.
//
// Invariants: of any number of claims of the same thing, in any number of
// processes, one is told that it is fresh; a claim that failed with an error can
// be made again; memory is bounded, and what it forgets the database still
// knows; expired rows are the owner's to sweep (schema.replay, expires_at).
package replay
