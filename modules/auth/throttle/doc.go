// Package throttle limits how often an account may be tried.
//
// What is counted is an account: a keyed hash of (directory, kind, identifier),
// whether or not anybody has that identifier, so that a limit tells nothing
// about who exists. The counting itself is the SQL function auth.charge, which a
// login step calls inside the statement that it needs anyway:
//
//	... LATERAL auth.charge(key, $rules, $now) -> (allowed, retry_at)
//
// Invariants: an attempt is counted before it is checked, under the lock of the
// account's row, so that parallel attempts never exceed the allowance; a refused
// attempt changes nothing, so that nobody prolongs a victim's rest; a completed
// sign-in deletes the row. Where both a code and a password can be guessed, the
// guesses also count together ("guess").
package throttle
