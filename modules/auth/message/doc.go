// Package message sends people messages: one-time codes now, notices later.
//
//	login step ──[Outbox.Seal]──> auth.message (in the step's own statement)
//	                                   │ claimed: FOR UPDATE SKIP LOCKED
//	     Outbox.Wake ──> [Outbox.Run] ─┴─> [Sender] ──> deleted
//
// Nothing is sent inside a request. The queue's table is unlogged: after a crash
// of the database a person asks for another code. What waits there is sealed
// with the deployment's encryption key, bound to the row's id.
//
// Invariants: a message is claimed by one process at a time (its next_at is
// moved into the future when it is claimed, so that a process which dies only
// delays it); it is tried at most [maxAttempts] times and never after it has
// expired. Delivery is at least once.
package message
