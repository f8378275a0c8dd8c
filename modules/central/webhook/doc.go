// Package webhook tells other systems what happened: signed, retried from a
// durable queue, never in anybody's way.
//
//	audit log ──[Dispatcher]──> central.webhook_delivery ──[Deliverer]──> POST to the webhook's address
//	(the events)  a cursor      (the queue, one row for             signed, retried, at last dead
//	                             each webhook and event)
//
// The audit log is the outbox. Its entries are numbered without gaps in the
// order of their commits, in the transaction of what they record, so that
// following the numbers loses nothing, and who changes something or signs in
// waits for nothing of this package.
//
// A webhook is told the events of its own tenant; one of the system tenant is
// told all. Its pattern is an action ("client.updated"), the beginning of
// actions ("client.*") or "*".
//
// A delivery is signed as Standard Webhooks 1.0 describes:
//
//	webhook-id         the delivery's id, the same for each attempt
//	webhook-timestamp  of the attempt, Unix seconds
//	webhook-signature  "v1," + base64(HMAC-SHA256(secret, id + "." + timestamp + "." + body)), one for each living secret
//
// so that a receiver refuses what is old, and knows what it has had. An answer
// of 2xx within [attemptTimeout] is a delivery; redirects are not followed.
// What was not delivered is tried again with growing pauses, [maxAttempts] times
// in about a day and a half, and is then dead: kept, to be looked at, retried or
// discarded. An event may arrive twice and out of order.
//
// Invariants: of several processes one alone has a delivery at a time (a lease
// longer than an attempt); a receiver that is slow or fails holds up only
// itself; an address on a private network is refused (see platform/outbound); a
// secret is shown once and kept sealed; an error that is kept or logged never
// has the address, which may hold a token.
package webhook
