package jose

import (
	"encoding/json"
	"errors"
	"time"
)

// Period is when a signed statement counts. A time that it does not state is
// zero.
type Period struct{ Expires, NotBefore, Issued time.Time }

// ReadPeriod reads the times of a statement that counts now, as far as two clocks
// may be apart: exp, which must be there and not past, and nbf and iat, which must
// not be in the future (RFC 7519 sections 4.1.4 to 4.1.6). Errors: such that can
// be said to a stranger, and go on "the statement ...".
func ReadPeriod(claims map[string]json.RawMessage, now time.Time, skew time.Duration) (Period, error) {
	var p Period
	var ok bool
	if p.Expires, ok = NumericDate(claims["exp"]); !ok {
		return Period{}, errors.New("has no exp that is a time")
	}
	if !now.Before(p.Expires.Add(skew)) {
		return Period{}, errors.New("has expired: exp is past")
	}
	for _, begin := range []struct {
		name string
		into *time.Time
	}{{"nbf", &p.NotBefore}, {"iat", &p.Issued}} {
		raw, there := claims[begin.name]
		if !there {
			continue
		}
		if *begin.into, ok = NumericDate(raw); !ok || begin.into.After(now.Add(skew)) {
			return Period{}, errors.New("is not good yet: " + begin.name + " is in the future, or no time")
		}
	}
	return p, nil
}
