package jose

import (
	"crypto/hmac"
	"crypto/sha256"
)

// HS256 is HMAC with SHA-256 (RFC 7518 section 3.2). It is none of
// [Algorithms]: no key that is published verifies with it, only
// [Parsed.Authentic] does, with a secret.
const HS256 Algorithm = "HS256"

// MinSecret is the least length of a secret, in bytes: that of the hash (RFC
// 7518 section 3.2).
const MinSecret = sha256.Size

// Authentic tells whether the token has an HMAC of [HS256] with a secret; one
// that is shorter than [MinSecret] makes none.
func (p Parsed) Authentic(secret []byte) bool {
	if p.Header.Alg != HS256 || len(secret) < MinSecret {
		return false
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write(p.input)
	return hmac.Equal(mac.Sum(nil), p.signature)
}
