// Package factor is the contract between the login engine and the ways to prove
// who a person is.
//
//	engine ──Begin──> what entering the factor stores, sends and costs
//	       ──Check──> what a submission proves
//	       ──Page───> what is shown
//
// A factor sees neither the request nor the database: the engine reads and
// writes for it, in the one or two statements that a step may take. That keeps
// the rules of a factor testable, and its steps atomic.
//
// Invariant: a factor behaves alike for everybody. [Subject] may be nobody, a
// disabled person, or one without the credential; Begin does not even see it.
package factor
