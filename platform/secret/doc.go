// Package secret holds what must not leak and the keys that protect it.
//
// [Text] is a string that never prints itself. [Keyring] seals and opens with
// AES-256-GCM under rotating keys (the first seals, every one opens). [MAC]
// authenticates with HMAC-SHA256 under rotating keys. [Derive] makes a key of
// its own for each purpose, so that one configured key never serves two.
package secret
