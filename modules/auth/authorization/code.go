package authorization

import (
	"io"
	"time"

	"versola/platform/id"
	"versola/platform/secret"
)

// MaxCodeTTL is the most that an authorization code lives, whatever a tenant
// configures (FAPI 2.0 section 5.3.2.1; RFC 6749 section 4.1.2 recommends ten
// minutes as the outer bound).
const MaxCodeTTL = 60 * time.Second

// CodeKept is how long a code's row outlives its creation (the row's
// expires_at). A second use within this time is told from a code that never
// was, and revokes what the first use gave (RFC 6749 section 4.1.2). A stolen
// code surfaces in a log or a history, so minutes are too short; a day's codes
// at 100 sign-ins per second would be 9 million rows, an hour's are 360,000.
const CodeKept = time.Hour

// NewCode makes an authorization code of 256 random bits, and the hash that its
// row is found by.
func NewCode(random io.Reader) (code string, hash []byte) {
	code = id.NewHandle(random)
	return code, CodeHash(code)
}

// CodeHash returns the key of a code's row.
func CodeHash(code string) []byte { return secret.Hash(code) }

// CodeTimes returns until when a code made at now works, given the tenant's
// setting, and until when its row is kept.
func CodeTimes(now time.Time, ttl time.Duration) (validUntil, expiresAt time.Time) {
	return now.Add(min(ttl, MaxCodeTTL)), now.Add(CodeKept)
}
