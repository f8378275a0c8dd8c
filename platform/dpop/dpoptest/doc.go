// Package dpoptest makes DPoP proofs, right and wrong ones, for tests.
package dpoptest
