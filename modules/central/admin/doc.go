// Package admin is the administration API and its start page.
//
// The API is what the OpenAPI document (package openapi) says: a route is made
// for each of its operations that has a handler here or in what other parts of
// central bring ([Deps.Handlers]).
//
//	request -> authenticate -> authorize (admin/access) -> once (idempotency)
//	        -> handler: parse, change.Engine.Do, render
//
// Entities of all kinds are handled alike: a kind's name in paths is in
// [kinds], and what differs between kinds is theirs (catalog.Kind, validate).
// Reads come from the database's current revision, so that whoever writes reads
// what they wrote, whichever process answers.
//
// Invariants: every change goes through change.Engine, with the version that
// the caller saw (If-Match), and with the caller's right to grant what it
// grants checked under the lock; nothing answers with a secret but the request
// that made it.
package admin
