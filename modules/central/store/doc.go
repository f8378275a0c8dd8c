// Package store reads and writes central's tables.
//
// An entity is a row of its key and a document, the JSON form of its
// declaration (catalog.ClientSpec and so on). Reading is strict: a member that
// this program does not know, or a document that contradicts its row's key, is
// an error, never ignored.
//
// [Read] gives the whole configuration as a [State]: a [catalog.Snapshot] and
// what the rows say of its entities. [LoadState] gives it as of one instant;
// [Source] keeps the newest for the whole process. Of a state that is known
// only what differs is read: triggers in the database note what each of the
// last thousand revisions created, changed or deleted (central.change).
//
// Revisions are counted by those triggers, once per transaction that changes
// anything, under the lock of the one row of central.revision, so they rise in
// the order of the commits. A revision's number and its token are its [Mark]:
// a database restored from a backup counts the same numbers again, and is
// noticed. A writer takes that lock first ([Lock]), so that what it read and
// validated is still true when it writes, and writes only what differs
// ([Writes]), since every write is a new revision for every process.
package store
