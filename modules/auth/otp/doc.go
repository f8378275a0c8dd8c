// Package otp proves people by a one-time code that is sent to their phone
// number or e-mail address.
//
// A challenge lives in its conversation's state: the MAC of (conversation,
// nonce, code), when it was sent and until when it works. The code itself exists
// in the message only. A code works once, in its own conversation, and for as
// long and as many tries as the tenant's settings say; a new one can be asked
// for after a time of theirs, which the server enforces. What they leave out is
// [defaultDigits], [catalog.DefaultOTPTTL], [defaultTries] and [defaultResend].
//
// Nobody learns from this factor who exists: a challenge is made for every
// identifier, the message is queued only for a person (by the engine's
// statement), and a challenge of nobody is never met.
package otp
