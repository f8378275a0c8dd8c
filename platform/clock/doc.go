// Package clock is where time enters the program. Everything that has an
// expiry takes a [Clock], so that a test can move time instead of sleeping.
// It is the only package that may call time.Now (a linter holds the rest to it).
package clock
