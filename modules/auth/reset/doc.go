// Package reset lets a person set a new password by a one-time link.
//
//	Links.Show / Links.Send ──> auth.password_reset (the token's hash)
//	                                    │
//	GET  /password/reset/{token}   puts the token into a cookie, 303      0 statements
//	GET  /password/reset           shows the form                         1
//	POST /password/reset           counts and reads, then sets            2 + what ends
//	GET  /password/reset/done      says that it worked                    0
//
// Administration makes links (package central/users): shown to who made it, or
// sent to the person by a channel of theirs. The routes are each tenant's.
//
// Invariants:
//
//   - Opening a link consumes nothing: mail scanners and previews do. The POST
//     from the page does, by one statement, together with the new password; of
//     several at once, one wins.
//   - The token has 256 bits and is hashed at rest. It leaves the address bar at
//     once, no page refers anywhere with it, and no log has it: a request is
//     logged by its route.
//   - A link works until its time is over, until it is used, a newer one is made,
//     or the password changes in another way; for a person who may sign in, at
//     the address of its tenant.
//   - With the new password everything ends that the old one gave: sessions,
//     refresh families, tokens, a temporary password; limits are forgotten.
//   - A POST carries a MAC over the token, so that a form is of this link, and is
//     counted per link before anything is hashed.
//   - A double click is one use: the second of a pair with the same password is
//     told the same.
package reset
