// Package keys makes the deployment's signing keys and publishes them.
//
// On first start an active key is made for each algorithm of [Algorithms] and
// stored in central.signing_key, sealed. One unique index decides when several
// processes start at once: whoever comes second throws its key away. The
// catalog brings the keys to every process, and they are published at jwks.json
// all of them: those that will sign, that sign and that have signed, so that
// what is in use verifies.
package keys
