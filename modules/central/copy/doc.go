// Package copy keeps the last good configuration on disk, so that a process
// starts while its source is away.
//
// The file is a [catalog.Snapshot] in JSON, sealed with a key derived from the
// deployment's encryption keys: it holds client secrets and signing keys (each
// sealed again inside) and is of no use without those keys. It is replaced by
// an atomic rename, so that a reader sees the old or the new one whole, also
// after a crash; its mode is 0600.
//
// What is served does not wait for it: [File.Run] writes the newest snapshot
// that [File.Keep] was given, a tenth of the time at the most, and the last one
// when the process stops.
package copy
