// Package adminapi is a client of the administration API for the command line.
//
//	profile file -> Profile -> Client: discovery, client credentials (RFC 6749
//	                                   section 4.4), one token kept in memory
//	OpenAPI document -> Command: a group, a name, arguments and flags for each
//	                             operation, by rule and not by hand
//
// Invariants: a secret comes from a file that only its owner reads, or from a
// variable, and goes to the token endpoint that the issuer itself names
// (RFC 8414 section 3.3), over https or to this machine; it reaches neither
// output nor errors. Nothing here knows an entity or an operation by name.
package adminapi
