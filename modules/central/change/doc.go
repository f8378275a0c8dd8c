// Package change is the one way by which configuration changes.
//
//	ops ──Do──> lock revision, current view, overlay, versions, references,
//	            validate, compile, authorize, write what differs, audit, commit
//
// Invariants:
//
//   - all or nothing: the operations of one call are one transaction, and one
//     that fails changes nothing;
//   - writers queue on the row of central.revision, so that what was validated
//     is what is committed. The current configuration is kept in memory by its
//     revision: a change reads the tables only after another process wrote;
//   - what does not differ is not written, so the revision does not move;
//   - what is committed compiles, and nothing refers to what is not there;
//   - an entity's version is the revision of its last change: it never comes
//     back, also not after the entity was deleted and made again;
//   - the audit entries are part of the same transaction, and neither they nor
//     any error hold a secret.
package change
