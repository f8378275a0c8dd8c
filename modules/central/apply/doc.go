// Package apply makes the configuration what YAML documents declare.
//
// A document is one entity: "kind" (tenant, scope, resource, permission, role,
// client, preset, edge, user) and the members of its declaration, as in the
// types of package catalog. Files may hold several documents; a directory is
// every .yaml and .yml file in it.
//
//	files ──Parse──> Documents ──Apply──> operations ──package change──> Changes
//
// Invariants:
//
//   - all or nothing: one transaction, and a document with an error changes
//     nothing;
//   - every error is reported at once, with file and line. An unknown member, a
//     member written twice, an alias or an unknown ${VARIABLE} is an error. Secret
//     values do not appear in errors;
//   - applying twice changes nothing: what does not differ is not written, so
//     the revision does not move;
//   - what is committed compiles;
//   - what no document names stays as it is, unless it is pruned: from the tenants
//     that documents declare, or everything but the system tenant.
//
// A document replaces its entity whole, with two exceptions. A client without
// "secret" or "secrets" keeps those it has. A person is created and then left
// alone: people and administrators change them, and a re-applied file must not
// bring an old password or a withdrawn role back.
package apply
