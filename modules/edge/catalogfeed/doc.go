// Package catalogfeed keeps the catalog of an edge that has no central in its
// process: it long-polls central's feed with the revision it has
// (If-None-Match), authenticated by the edge's own key, compiles what comes and
// sets it in the holder. It asks for what differs (A-IM, RFC 3229), so that a
// change costs what it changes; a difference that does not fit what it has is
// an error, and after an error it asks for all.
//
// The last good snapshot is kept on disk, sealed with a key derived from the
// edge's session keys and replaced by rename, so that an edge starts and serves
// while central is away; what is served does not wait for the disk. Starting
// never waits for central. A snapshot that does not compile is reported and the
// current catalog stays.
package catalogfeed
