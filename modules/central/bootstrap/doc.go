// Package bootstrap makes the first administrator of a deployment, and lets
// those who run it back in when every administrator is locked out.
//
//	versola bootstrap admin --email ...            the first one
//	versola bootstrap admin --email ... --recover  another, or the same again
//
// It works on the database, beside running processes or with none. What is
// missing of the system tenant is loaded first (package seed); what an operator
// has made of it is left alone.
//
// Invariants: the lock of configuration changes orders two that run at once, so
// that one administrator is made; without --recover nothing is done where there
// is an administrator, and nothing at all the second time for the same person;
// what is made, what ends with it and the audit entry are one transaction. The
// password is temporary, shown once, and has to be replaced at the first
// sign-in.
package bootstrap
