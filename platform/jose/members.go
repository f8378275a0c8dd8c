package jose

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Members reads a JSON object whose member names must be distinct (RFC 8725
// section 3.1, RFC 7515 section 4). The values are parts of raw. Errors:
// [ErrMalformed].
//
// The standard library checks the syntax; that it is walked by hand saves most
// of what its decoder would allocate, for each token three times over.
func Members(raw []byte) (map[string]json.RawMessage, error) {
	if !json.Valid(raw) {
		return nil, fmt.Errorf("%w: not a JSON object", ErrMalformed)
	}
	w := walk{raw: raw}
	if w.peek() != '{' {
		return nil, fmt.Errorf("%w: not a JSON object", ErrMalformed)
	}
	w.at++
	members := map[string]json.RawMessage{}
	for w.peek() != '}' {
		if w.peek() == ',' {
			w.at++
		}
		name, err := w.name()
		if err != nil {
			return nil, err
		}
		if _, twice := members[name]; twice {
			return nil, fmt.Errorf("%w: member %.64q twice", ErrMalformed, name)
		}
		w.peek()
		w.at++ // the colon
		members[name] = w.value()
	}
	return members, nil
}

// walk goes through JSON that is known to be valid.
type walk struct {
	raw []byte
	at  int
}

// peek passes over white space and returns the byte after it.
func (w *walk) peek() byte {
	for {
		switch c := w.raw[w.at]; c {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return c
		}
	}
}

// name reads a member's name.
func (w *walk) name() (string, error) {
	w.peek()
	start := w.at
	plain := w.text()
	if plain {
		return string(w.raw[start+1 : w.at-1]), nil
	}
	var name string
	if err := json.Unmarshal(w.raw[start:w.at], &name); err != nil {
		return "", fmt.Errorf("%w: a member's name", ErrMalformed)
	}
	return name, nil
}

// text passes over a string; plain tells that it stands for its own bytes.
func (w *walk) text() (plain bool) {
	plain = true
	for w.at++; ; w.at++ {
		switch c := w.raw[w.at]; {
		case c == '"':
			w.at++
			return plain
		case c == '\\':
			plain = false
			w.at++ // what follows is no end
		case c >= utf8.RuneSelf:
			plain = false
		}
	}
}

// value passes over a value and returns it.
func (w *walk) value() json.RawMessage {
	w.peek()
	start, depth := w.at, 0
	for w.at < len(w.raw) {
		switch w.raw[w.at] {
		case '"':
			w.text()
			if depth == 0 {
				return w.raw[start:w.at:w.at]
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth < 0 { // of the object around a bare value
				return w.raw[start:w.at:w.at]
			}
			if depth == 0 {
				w.at++
				return w.raw[start:w.at:w.at]
			}
		case ',', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return w.raw[start:w.at:w.at]
			}
		}
		w.at++
	}
	return w.raw[start:w.at:w.at]
}
