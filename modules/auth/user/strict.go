package user

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxDepth bounds how deep a document may be nested before it is decoded.
const maxDepth = 16

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
