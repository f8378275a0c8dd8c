// Package password proves people by a password, and hashes passwords.
//
// [Hasher] makes and checks Argon2id hashes (RFC 9106) in PHC string format. The
// password is first keyed with the deployment's pepper (HMAC-SHA256), so that a
// copy of the database alone cannot be guessed against. A hash with other
// parameters than today's still verifies and reports that it wants to be
// renewed; the login engine does so in the statement that finishes the sign-in.
//
// A person who was imported brings a hash that another system made (bcrypt,
// scrypt, PBKDF2, Argon2; see [Adopt]). It is checked as it is, without the
// pepper, within limits of cost that are held at import and again at each
// check, and wants to be renewed at the first sign-in that it proves. Until
// then the time of a check tells that its account was imported.
//
// Hashing is expensive on purpose (about 25 ms and 19 MiB), so it is bounded: a
// few at a time, a short queue, and a deadline beyond which the caller is told
// to come back ([ErrBusy]). A storm of passwords never starves the rest.
//
// [Factor] is the login factor. It costs the same whoever is asked for: where
// there is no person, no password, or a disabled person, a dummy hash with
// today's parameters is verified. A temporary password lives beside the
// permanent one, does not lock it out, and makes its user choose a new one.
package password
