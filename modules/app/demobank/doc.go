// Package demobank is the upstream of the demo: a small bank that knows
// nothing of sign-in.
//
//	GET  /accounts                      the customer's accounts
//	GET  /accounts/{id}/transactions    newest first
//	GET  /cards, /profile
//	POST /payments                      moves money out of an account
//	GET  /app/, /app/app.js, /app/app.css   the page that uses all that
//
// Who calls stands in X-Versola-Subject, which only the edge sets; without it
// every API call is 401. Each subject is a customer with accounts of their own,
// made from the subject the first time it is seen and kept in memory: a bounded
// number of them, the longest unseen goes first. Money is counted in cents and
// written as decimal text.
//
// The page calls the API at /resources/bank/ by fetch, signs in by going to
// /login/demo and out by a POST to /logout/demo. Its Content-Security-Policy
// allows its own files and nothing inline.
package demobank
