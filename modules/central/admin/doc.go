// Package admin is the administration API and its start page, read-only in
// this version.
//
//	GET /                          a page: tenants, clients, edges, revision
//	GET /v1/me                     who the caller is
//	GET /v1/tenants                all tenants
//	GET /v1/tenants/{id}/clients   a tenant's clients
//
// Callers are real identities: an access token (RFC 9068) of the system tenant
// for the audience "central", of a person with the role "admin" in it. The edge
// forwards it (resource "central", forward_token); a script may present it
// itself. Whether the token was revoked is the edge's to know; the listener is
// not public.
//
// Nothing here ever answers with a secret, sealed or not: answers are made of
// types of their own, never of the catalog's.
package admin
