package user

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxDepth bounds how deep a document may be nested before it is decoded.
const maxDepth = 16

// Decode reads a JSON document strictly: what is not UTF-8, unknown members,
// members that stand there twice, and anything behind are refused. Numbers of
// free values stay as they are written.
func Decode(raw []byte, into any) []Problem {
	if !utf8.Valid(raw) {
		return []Problem{{"", "is not UTF-8"}}
	}
	if p := doubled(raw); p != nil {
		return []Problem{*p}
	}
	err := strictly(raw, into)
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(err, &wrong):
		return []Problem{{pointerOf(wrong.Field), "is of the wrong type: " + wrong.Value}}
	case err != nil:
		if name := culprit(raw, into); name != "" {
			return []Problem{{"/" + escapePointer(name), "cannot be read: " + err.Error()}}
		}
		return []Problem{{"", "is not such a document: " + err.Error()}}
	}
	return nil
}

func strictly(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// culprit returns the member that alone is refused, where the decoder does not
// say (it does not where a value reads itself), or "".
func culprit(raw []byte, into any) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: members[name]})
		if err == nil && strictly(one, reflect.New(reflect.TypeOf(into).Elem()).Interface()) != nil {
			return name
		}
	}
	return ""
}

// doubled returns what is wrong with the form of a JSON document: a member that
// stands in an object twice (RFC 8259 section 4 leaves open which one counts),
// or too deep a nesting. What is not JSON at all is left to the decoder.
func doubled(raw []byte) *Problem {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	type level struct {
		seen map[string]bool // nil: an array
		name string          // the member being read
		key  bool            // a member's name comes next
	}
	var levels []level
	pointer := func() string {
		var b strings.Builder
		for _, l := range levels {
			if l.name != "" {
				b.WriteString("/" + escapePointer(l.name))
			}
		}
		return b.String()
	}
	for {
		token, err := d.Token()
		if err != nil {
			return nil
		}
		top := len(levels) - 1
		if delim, ok := token.(json.Delim); ok {
			switch delim {
			case '{', '[':
				if len(levels) == maxDepth {
					return &Problem{pointer(), fmt.Sprintf("is nested more than %d deep", maxDepth)}
				}
				l := level{}
				if delim == '{' {
					l.seen, l.key = map[string]bool{}, true
				}
				levels = append(levels, l)
				continue
			default:
				levels = levels[:top]
				top--
			}
		} else if name, ok := token.(string); ok && top >= 0 && levels[top].key {
			levels[top].name, levels[top].key = name, false
			if top == 0 {
				name = strings.ToLower(name) // as the decoder compares members
			}
			if levels[top].seen[name] {
				return &Problem{pointer(), "stands there twice"}
			}
			levels[top].seen[name] = true
			continue
		}
		if top < 0 {
			return trailing(d)
		}
		levels[top].key = levels[top].seen != nil
	}
}

// trailing tells of anything behind the document.
func trailing(d *json.Decoder) *Problem {
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return &Problem{"", "there is something behind the document"}
	}
	return nil
}

// pointerOf turns the path that encoding/json gives into a JSON pointer. It has
// the names of embedded types too, which no document has.
func pointerOf(field string) string {
	var b strings.Builder
	for name := range strings.SplitSeq(field, ".") {
		if name != "" && !strings.EqualFold(name, "document") {
			b.WriteString("/" + name)
		}
	}
	return b.String()
}
