// Package export writes the configuration as the documents that package apply
// reads.
//
// The same configuration gives the same bytes: one document per entity, in the
// order of kinds, tenants and ids, members in the order of their declaration.
// Applied to an empty database they reproduce the configuration, and exported
// from there they are the same again.
//
// A client's secrets are written only where that is asked for. Else its
// document says generate_secret: applied where the client has a secret, that
// one stays; applied elsewhere, the client gets one that nobody knows yet, and
// a new one is made for it by the admin API. Signing keys and people are no
// part of it: the first never leave the database, the second are not
// configuration.
package export
