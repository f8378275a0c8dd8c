// Package scaletest writes a configuration of the size that a deployment may
// have, for the benchmarks that say what that size costs.
package scaletest
