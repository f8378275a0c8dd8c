// Package seed loads the built-in tenants into an empty deployment, once.
//
// What was loaded is noted in central.seed, in the transaction that loads it:
// the note is claimed by one INSERT, which makes a second process wait for the
// first and then do nothing. After that the configuration is the operator's: a
// restart, also of a newer program, never touches it again.
//
// The documents are in package configs and go through package apply like any
// operator's.
package seed
