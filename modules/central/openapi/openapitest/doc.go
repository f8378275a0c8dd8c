// Package openapitest holds the administration API to its OpenAPI document in
// tests: what was sent and answered ([Contract]), and the Go types that are
// read and written ([Struct]).
//
// Invariants: every answer is checked, refusals too; what was sent is checked
// where it was accepted; an operation counts as called once it was accepted.
package openapitest
