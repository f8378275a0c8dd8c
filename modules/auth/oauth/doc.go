// Package oauth holds what every endpoint of the provider shares: the one typed
// error, how it is written as JSON, and how parameters are read.
//
// Invariants: a parameter sent twice is an error (RFC 6749 section 3.1 and
// 3.2); a description is printable ASCII, names the parameter and never
// contains a value that a stranger sent or a secret; every JSON answer carries
// Cache-Control: no-store (RFC 6749 section 5.1).
package oauth
