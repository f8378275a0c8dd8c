// Package catalog is the configuration as the request paths see it: an
// immutable value behind an atomic pointer.
//
// Its life:
//
//	central's tables ──┐
//	feed from central ─┼─> [Snapshot] ──[Compiler.Compile]──> [Catalog] ──> [Holder]
//	copy on disk ──────┘    (plain)                          (resolved)     (pointer)
//
// A Snapshot is what is stored and sent: entities as they were declared, with
// their secrets still sealed. Compiling opens the secrets, resolves references
// and flattens roles into sets of endpoints, so that a request only looks up.
// Entities of two tenants may have equal ids; everything is found through its
// [Tenant].
//
// A change concerns few tenants: [Compiler.Advance] takes the others over from
// the catalog before.
//
// Invariants: a Catalog never changes after Compile returned it; its Revision
// only rises within one source; nothing in it prints a secret.
package catalog
