// Package idempotency lets a request be sent again without being done again.
//
//	claim key ──> do it ──> keep the answer, sealed ──> answer
//	   └─ claimed: same request, answered  -> the same answer
//	               same request, not yet   -> 409 with Retry-After
//	               another request         -> 422
//
// A key is the caller's own: two callers may use the same one. Answers are kept
// for a day, sealed, since one may hold a client secret. Only success is kept:
// a request that failed may be corrected and sent under its key.
//
// A process that dies between the change and the keeping of its answer leaves
// the claim; after [stale] a repeated request is done anew and finds what exists
// already. Nothing is made twice silently, since ids are the caller's to choose.
package idempotency
