// Package app is the composition root: it turns a role and a configuration
// into modules, listeners and background work, and is the only package that
// knows several modules.
//
//	role      modules           listeners
//	auth      auth + central    auth, internal (central API and feeds), diagnostics
//	edge      edge              edge, diagnostics
//	central   central           internal, diagnostics
//	all       all of them       all of them, one process
//
// Everything is wired here once, from constructors that return concrete types;
// nothing is looked up at run time. Shutdown goes in order: readiness is
// withdrawn, listeners stop accepting and drain, background work ends, pools
// close, and last the private database stops.
package app
