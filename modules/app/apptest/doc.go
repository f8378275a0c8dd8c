// Package apptest runs a whole Versola inside a test: every role on free
// loopback ports, a real PostgreSQL, the demo tenant and its bank; and it has a
// [Browser] that walks pages as a person without JavaScript would.
package apptest
