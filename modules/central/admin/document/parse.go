package document

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

const (
	// maxDepth bounds nesting: JSON Schemas are the deepest that is stored.
	maxDepth = 32
	// maxProblems bounds an answer; who sends more has sent something else.
	maxProblems = 100
)

// Problem is what is wrong with one part of a document.
type Problem struct{ Pointer, Detail string }

// Problems is everything that is wrong with a document.
type Problems []Problem

// Error has one line for each problem.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Pointer + ": " + one.Detail
	}
	return strings.Join(lines, "\n")
}

// ErrNotJSON reports what is no JSON document at all.
var ErrNotJSON = errors.New("is not a JSON document")

// Parse reads one document into maps, lists, texts, json.Number, booleans and
// nil. Errors: [ErrNotJSON], [Problems].
func Parse(raw []byte) (any, error) {
	if !utf8.Valid(raw) {
		return nil, fmt.Errorf("%w: it is not UTF-8", ErrNotJSON)
	}
	p := &parser{decoder: json.NewDecoder(bytes.NewReader(raw))}
	p.decoder.UseNumber()
	v, err := p.value("", 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotJSON, err)
	}
	if _, err := p.decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: there is something behind it", ErrNotJSON)
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return v, nil
}

type parser struct {
	decoder  *json.Decoder
	problems Problems
}

func (p *parser) fail(pointer, detail string) {
	if len(p.problems) < maxProblems {
		p.problems = append(p.problems, Problem{pointer, detail})
	}
}

func (p *parser) value(pointer string, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	t, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch v := t.(type) {
	case json.Delim:
		if v == '{' {
			return p.object(pointer, depth)
		}
		return p.list(pointer, depth)
	case string:
		p.text(pointer, v)
	}
	return t, nil
}

func (p *parser) text(pointer, s string) {
	if strings.ContainsRune(s, 0) {
		p.fail(pointer, "has a NUL character")
	}
}

func (p *parser) object(pointer string, depth int) (any, error) {
	out := map[string]any{}
	for p.decoder.More() {
		t, err := p.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := t.(string)
		at := Join(pointer, name)
		p.text(at, name)
		if _, twice := out[name]; twice {
			p.fail(at, "stands there twice")
		}
		if out[name], err = p.value(at, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := p.decoder.Token()
	return out, err
}

func (p *parser) list(pointer string, depth int) (any, error) {
	out := []any{}
	for p.decoder.More() {
		v, err := p.value(pointer+"/"+strconv.Itoa(len(out)), depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := p.decoder.Token()
	return out, err
}

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// Join adds a member's name to a pointer.
func Join(pointer, name string) string { return pointer + "/" + escaper.Replace(name) }

// Merge applies a merge patch (RFC 7396 section 2). It changes neither target
// nor patch.
func Merge(target, patch any) any {
	changes, ok := patch.(map[string]any)
	if !ok {
		return patch
	}
	out := map[string]any{}
	if before, ok := target.(map[string]any); ok {
		for name, v := range before {
			out[name] = v
		}
	}
	for name, v := range changes {
		if v == nil {
			delete(out, name)
		} else {
			out[name] = Merge(out[name], v)
		}
	}
	return out
}
