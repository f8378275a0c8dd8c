package jose

import (
	"encoding/json"
	"math"
	"time"
)

// Text reads a member that must be a JSON string; null is none.
func Text(raw json.RawMessage) (string, bool) {
	if len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}

// lastSecond keeps times in the range that arithmetic with them is exact in:
// the year 9999.
const lastSecond = 253402300799

// NumericDate reads a member that must be a time (RFC 7519 section 2): a number
// of seconds, which may have a fraction.
func NumericDate(raw json.RawMessage) (time.Time, bool) {
	if len(raw) == 0 || raw[0] != '-' && (raw[0] < '0' || raw[0] > '9') {
		return time.Time{}, false
	}
	var v float64
	if err := json.Unmarshal(raw, &v); err != nil || v < 0 || v > lastSecond {
		return time.Time{}, false
	}
	whole, fraction := math.Modf(v)
	return time.Unix(int64(whole), int64(fraction*float64(time.Second))).UTC(), true
}

// Texts reads a member that is a string or a list of strings, as "aud" is (RFC
// 7519 section 4.1.3); single tells that it is no list.
func Texts(raw json.RawMessage) (list []string, single, ok bool) {
	if s, is := Text(raw); is {
		return []string{s}, true, true
	}
	var members []json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, false, false
	}
	for _, m := range members {
		s, is := Text(m)
		if !is {
			return nil, false, false
		}
		list = append(list, s)
	}
	return list, false, true
}
