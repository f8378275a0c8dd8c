// Package keys rotates the deployment's signing keys.
//
//	          published            signs                published           gone
//	Rotate ──> next ── due_at ──> active ── the next ──> retiring ── due_at ──>
//	                                        one's due_at
//
// Invariants:
//
//   - a key is published before it signs, for longer than a relying party may
//     keep the key set ([MinPublish]), unless an operator cannot wait;
//   - a key that no longer signs is published until the longest-lived token that
//     it can have signed has expired ([MinRetire]);
//   - there is one active key and at most one next key for an algorithm; the
//     database's indexes hold this, and the change from one to the other is one
//     transaction, so that every process agrees: the catalog brings it to all of
//     them within a second, and the key of before verifies all that time;
//   - private keys never leave the database unsealed.
//
// Any process may take the steps that are due ([Rotator.Tick]); they queue on
// the lock of the configuration, and who comes second finds nothing to do. The
// schedule is [Policy]; every step is an entry of the audit log. The first keys
// are made by auth on its first start.
package keys
