// Package event says what happened to the security of a person's account: who
// signed in or did not, whose session ended and why, whose token was used twice.
//
//	login, logout, grant, revoke ──> [Sink.Take] ──> the audit log, by whoever the process is wired to
//
// Invariants:
//
//   - the kinds are a closed set, and so are reasons, so that they can be
//     filtered, counted and subscribed to;
//   - an event has no secret, and of an identifier only its masked form, and
//     that only where no person is known by it;
//   - taking one never waits and costs no statement of the request;
//   - a stranger causes no more events than there are attempts that the throttle
//     lets through: what it turns away is not an event, and the second use of a
//     code or refresh token is one event however often it is repeated.
package event
