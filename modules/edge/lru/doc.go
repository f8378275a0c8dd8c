// Package lru is a bounded map from 32-byte hashes to values. When it is full
// the entry that was unused for longest goes. It is split into shards, each
// with its own lock, so that requests seldom wait for one another.
package lru
