// Package pgtest gives a test a real PostgreSQL database.
//
// Each test binary has one private cluster (package pgembed, without fsync),
// started by the first test that asks and removed at the end; when the binary
// is killed, the kernel stops the server. A set of migrations is applied once,
// to a template; a test's database is a copy of it, made in milliseconds, so
// every test begins with an empty database of its own and may run in parallel.
//
// Where PostgreSQL cannot be started tests fail, they are not skipped: a green
// run has tested against the real thing.
package pgtest
