// Package session owns a browser's sign-in: the rows of auth.session and the
// cookie that names one.
//
// The cookie is base64url of user_id (16 bytes) || session_id (16) || secret
// (32). The row is found by its primary key and keeps the SHA-256 of the secret,
// so that a copy of the database opens no session and no cookie can be guessed.
//
// A session belongs to a user directory: tenants that share one share sign-in,
// and in another the cookie is worthless. It lives until its absolute end, until
// it was idle for too long, until it is ended, or until its person is disabled.
//
// Every authentication makes a new secret, which makes every cookie from before
// it worthless (OWASP: session fixation). Creating and renewing sessions is part
// of the one statement that finishes a sign-in (package login); this package
// makes the values for it ([NewSecret], [Cookie]).
package session
