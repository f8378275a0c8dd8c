package policy

import (
	"strings"
	"unicode/utf8"
)

// maxTarget bounds a request target, as common servers do (RFC 9110 section
// 4.1 recommends at least 8000).
const maxTarget = 8 << 10

// Target is a request target in its one spelling.
type Target struct {
	// Escaped is the canonical path: the octets that are matched and, under
	// the upstream's base path, forwarded. It starts with "/".
	Escaped string
	// Segments are Escaped's, decoded; a trailing slash shows as a last empty
	// one, and "/" has none.
	Segments []string
	// Query is the raw query without "?"; it is forwarded untouched.
	Query string
	// HasQuery tells a target with an empty query from one with none.
	HasQuery bool
}

// Decoded returns the path with its escapes decoded.
func (t Target) Decoded() string { return "/" + strings.Join(t.Segments, "/") }

// Canonical reads a request target in origin-form (RFC 9112 section 3.2.1).
// The Reason is [Allowed], or why the target is refused.
func Canonical(target string) (Target, Reason) {
	if len(target) > maxTarget {
		return Target{}, TargetLength
	}
	if target == "" || target[0] != '/' {
		return Target{}, TargetForm
	}
	path, query, hasQuery := strings.Cut(target, "?")
	for i := range len(query) {
		if c := query[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return Target{}, TargetCharacter
		}
	}
	t := Target{Query: query, HasQuery: hasQuery}
	if reason := t.readPath(path); reason != Allowed {
		return Target{}, reason
	}
	return t, Allowed
}

// readPath fills Escaped and Segments. The common path needs no rewriting and
// is kept as it came.
func (t *Target) readPath(path string) Reason {
	if path == "/" {
		t.Escaped = "/"
		return Allowed
	}
	t.Segments = make([]string, 0, 8)
	rest := path[1:]
	var rewritten []byte // the canonical spelling, once it differs from path
	done := 1
	for {
		segment, tail, more := strings.Cut(rest, "/")
		plain, reason := checkSegment(segment)
		if reason != Allowed {
			return reason
		}
		decoded, escaped := segment, segment
		if !plain {
			if decoded, escaped, reason = rewriteSegment(segment); reason != Allowed {
				return reason
			}
		}
		if escaped != segment && rewritten == nil {
			rewritten = append(make([]byte, 0, len(path)+16), path[:done]...)
		}
		if rewritten != nil {
			rewritten = append(rewritten, escaped...)
			if more {
				rewritten = append(rewritten, '/')
			}
		}
		// An empty segment is fine at the end alone: a trailing slash.
		if decoded == "." || decoded == ".." || decoded == "" && more {
			return TargetSegment
		}
		t.Segments = append(t.Segments, decoded)
		if !more {
			break
		}
		done += len(segment) + 1
		rest = tail
	}
	t.Escaped = path
	if rewritten != nil {
		t.Escaped = string(rewritten)
	}
	return Allowed
}

// Classes of octets in a path segment.
const (
	refused  = iota
	literal  // unreserved, sub-delims without ";", ":" and "@" (RFC 3986 section 3.3)
	encodeIt // sent raw by browsers (WHATWG URL), but not a pchar: escaped by us
	escape   // "%"
)

var classes = func() (t [256]byte) {
	for c := byte('a'); c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = literal, literal
	}
	for c := byte('0'); c <= '9'; c++ {
		t[c] = literal
	}
	for _, c := range []byte("-._~!$&'()*+,=:@") {
		t[c] = literal
	}
	for _, c := range []byte(`"<>[]^{|}` + "`") {
		t[c] = encodeIt
	}
	t['%'] = escape
	return t
}()

// checkSegment tells whether a segment needs no rewriting, or is refused.
func checkSegment(s string) (plain bool, r Reason) {
	plain = true
	for i := range len(s) {
		switch classes[s[i]] {
		case refused:
			return false, TargetCharacter
		case literal:
		default:
			plain = false
		}
	}
	return plain, Allowed
}

// rewriteSegment decodes a segment and writes its canonical form: escapes of
// unreserved characters decoded, others in upper case (RFC 3986 section 6.2.2).
func rewriteSegment(s string) (decoded, escaped string, r Reason) {
	dec, esc := make([]byte, 0, len(s)), make([]byte, 0, len(s)+8)
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch classes[c] {
		case literal:
			dec, esc = append(dec, c), append(esc, c)
			continue
		case escape:
			if i+2 >= len(s) || !isHex(s[i+1]) || !isHex(s[i+2]) {
				return "", "", TargetEscape
			}
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			// "%25" and two digits decode to an escape: somebody counts on a
			// second decoding.
			if c == '%' && i+4 < len(s) && isHex(s[i+3]) && isHex(s[i+4]) {
				return "", "", TargetEscape
			}
			i += 2
		}
		switch {
		case c < ' ' || c == 0x7f:
			return "", "", TargetCharacter
		case c == '/' || c == '\\' || c == ';':
			return "", "", TargetEscape
		}
		dec = append(dec, c)
		if unreserved(c) {
			esc = append(esc, c)
		} else {
			const digits = "0123456789ABCDEF"
			esc = append(esc, '%', digits[c>>4], digits[c&15])
		}
	}
	if !utf8.Valid(dec) {
		return "", "", TargetEscape // an overlong form is another spelling of "/" or "."
	}
	return string(dec), string(esc), Allowed
}

func unreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_' || c == '~'
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// Below returns the target under its first n segments, which it must have: the
// path that is left, with the same query.
func (t Target) Below(n int) Target {
	rest := t.Escaped
	for range n {
		next := strings.IndexByte(rest[1:], '/')
		if next < 0 {
			rest = "/"
			break
		}
		rest = rest[1+next:]
	}
	out := Target{Escaped: rest, Query: t.Query, HasQuery: t.HasQuery}
	if rest != "/" {
		out.Segments = t.Segments[n:]
	}
	return out
}
