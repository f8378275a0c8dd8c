// Package id makes identifiers: random handles that nobody can guess, and
// time-ordered UUIDs (version 7, RFC 9562) for rows.
package id
