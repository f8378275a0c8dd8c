// Package login signs people in: the engine that leads a browser from an
// authorization request to a code.
//
// A login is a conversation: one row, one browser, a small state machine. Its
// handle is in the path and its hash is the row's key; a cookie, set once and
// shared by all tabs, binds it to the browser. Routes, relative to the tenant's
// root:
//
//	route                             does                               statements
//	(Engine.Start)                    begins, 303 to identifier          1
//	GET  /login/{h}                   303 to what is next                1
//	GET  /login/{h}/identifier        asks who it is                     1
//	POST /login/{h}/identifier        looks up, enters the first factor  2
//	POST /login/{h}/choose            enters another factor, or the      2
//	                                  same once more (a new code)
//	GET  /login/{h}/{factor}          asks for the proof                 1
//	POST /login/{h}/{factor}          counts, checks; finishes           2
//	GET  /login/{h}/password/change   asks for a new password            1
//	POST /login/{h}/password/change   checks it; finishes                2
//	POST /login/{h}/cancel            access_denied to the client        2
//
// Steps never call each other. Every step returns to one dispatcher
// ([Engine.next]), which decides from the client's flow and what has been
// proven. A factor is its own package (otp, password) and one line in [New].
//
// Invariants:
//
//   - Every answer to a POST is a redirect, but for refusals that must be
//     statuses (429, 403, 503).
//   - A POST carries a MAC over (handle, browser), checked before the database
//     is touched, and the version of the conversation that its page showed. The
//     version moves with every step (UPDATE ... WHERE version = $n), so a double
//     click does a step once; the second lands on what is next. The second of
//     a pair that finished a sign-in gets the same answer once more, for
//     [replayFor].
//   - An attempt is counted, under locks, before it is checked (see throttle).
//   - Which page is next depends on the flow and on the kind of identifier,
//     never on the account: people who exist, do not exist, are disabled or
//     have no password cannot be told apart by status, body, time or next step.
//   - Finishing is one statement: the conversation is consumed, the session
//     created or renewed with a new secret, the code inserted, the counters of
//     the account reset; all or nothing. A password that was proven must be the
//     person's still: one that was replaced meanwhile proves nothing. A session
//     of somebody else in the same browser is then ended.
//   - An expired conversation starts its authorization request again.
//
// OpenID Connect Core 1.0 section 3.1.2.3; RFC 6749 section 4.1.2; RFC 9700.
package login
