// Package user owns people: the rows of auth.users and auth.password, and what
// a phone number, an e-mail address or a username may look like.
//
// A person belongs to a user directory; tenants that share a directory share
// people. Every lookup names its directory, so equal addresses in two
// directories are two people.
//
// Invariants: a phone number is kept in E.164 form ("+" and 7 to 15 digits); an
// e-mail address is kept as it was given and compared in lower case; neither
// holds a control or formatting character, so that no address can break out of
// a message header or a log line. What is not of that form never reaches SQL.
//
// The administrative plane uses this package too (seeding, administration of
// users); passwords come in as hashes, made by package password.
package user
