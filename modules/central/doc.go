// Package central is the configuration store and its feed to the edges.
//
// Central's tables are the source of truth. This module keeps the process's
// [catalog.Holder] at what they say:
//
//	commit ──NOTIFY──> listener ─┐
//	             poll, every 5 s │   reload: read what is newer than the revision that
//	   listener (re)connected ───┼─> is known ──> compile the tenants concerned ──> feed, holder
//	 a change by this process ───┘                                              └─> copy on disk, later
//
// Invariants:
//
//   - a change is in the holder well within a second of its commit: a
//     notification starts a reload at once, those that come in the next 50 ms
//     share one; a change that this process makes is there before whoever made
//     it is answered;
//   - what is read and compiled piece by piece is what would be read and compiled
//     whole (property tests in packages store and catalog);
//   - a configuration that does not read or compile is never served: the last
//     good one stays, the fault is logged and counted (versola.catalog.reloads,
//     result "invalid"), and every poll tries again;
//   - without its database the process starts from the copy on disk and goes on
//     with what it has; the catalog's age is a metric;
//   - waiting feed requests are answered as soon as their listener drains.
//
// Entities are validated and written by packages apply and seed; stored by
// package store.
package central
