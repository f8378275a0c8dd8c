// Package openapi holds the description of the administration API, an OpenAPI
// 3.1 document. It is the source: the routes are made from its operations, the
// resource "central" that edges guard has one endpoint for each, and tests hold
// requests and answers to its schemas.
//
// An operation's operationId is the id of its endpoint. "x-versola-filtered"
// marks operations without a tenant in their path that show a caller what they
// reach (see admin/access).
package openapi
