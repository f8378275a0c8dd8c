// Package store reads and writes central's tables.
//
// An entity is a row of its key and a document, the JSON form of its
// declaration (catalog.ClientSpec and so on). Reading is strict: a member that
// this program does not know, or a document that contradicts its row's key, is
// an error, never ignored.
//
// [Read] gives the whole configuration as one [catalog.Snapshot]; with [Load]
// it is of one instant, together with the revision that this instant has.
// Revisions are counted by triggers in the database, once per transaction that
// changes anything, under the lock of the one row of central.revision. A
// writer takes that lock first ([Lock]), so that what it read and validated is
// still true when it writes, and writes only what differs ([Put]), since every
// write is a new revision for every process.
package store
