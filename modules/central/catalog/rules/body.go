package rules

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxDepth bounds the nesting of a body; documents of APIs have under ten
// levels.
const maxDepth = 32

// ErrBody reports a body that expressions cannot be given.
var ErrBody = errors.New("the body is not JSON that every reader understands alike")

// Body reads a JSON text for [Request.Body]. Numbers written as integers are
// integers, others are doubles. Whatever two readers could take in two ways is
// refused: members that are there twice, also in another case, integers beyond
// 64 bits, damaged text. Errors: [ErrBody].
func Body(raw []byte) (any, error) {
	if !utf8.Valid(raw) || !json.Valid(raw) {
		return nil, ErrBody
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	v, err := value(d, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrBody, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, ErrBody
	}
	return v, nil
}

func value(d *json.Decoder, depth int) (any, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		if depth == maxDepth {
			return nil, errors.New("nested too deep")
		}
		if t == '[' {
			return array(d, depth)
		}
		return object(d, depth)
	case json.Number:
		return number(string(t))
	case string:
		return t, intact(t)
	default:
		return t, nil
	}
}

func array(d *json.Decoder, depth int) (any, error) {
	out := []any{}
	for d.More() {
		v, err := value(d, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	_, err := d.Token()
	return out, err
}

func object(d *json.Decoder, depth int) (any, error) {
	out, seen := map[string]any{}, map[string]struct{}{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return nil, err
		}
		name, ok := token.(string)
		if !ok {
			return nil, errors.New("a member without a name")
		}
		if err := intact(name); err != nil {
			return nil, err
		}
		// Some readers match names without case.
		folded := strings.Map(lowest, name)
		if _, twice := seen[folded]; twice {
			return nil, errors.New("a member is there twice")
		}
		seen[folded] = struct{}{}
		if out[name], err = value(d, depth+1); err != nil {
			return nil, err
		}
	}
	_, err := d.Token()
	return out, err
}

// lowest returns one of the runes that are equal but for their case.
func lowest(r rune) rune {
	least := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		least = min(least, next)
	}
	return least
}

// intact refuses text with the replacement character: half of a surrogate pair
// decodes to it, and to something else elsewhere.
func intact(s string) error {
	if strings.ContainsRune(s, utf8.RuneError) {
		return errors.New("damaged text")
	}
	return nil
}

// number reads a number as the integer or the double that it is.
func number(s string) (any, error) {
	if !strings.ContainsAny(s, ".eE") {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return nil, errors.New("an integer beyond 64 bits")
		}
		return n, nil
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, errors.New("a number beyond a double")
	}
	return f, nil
}
