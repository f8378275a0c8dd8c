package audit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

const (
	// Redacted stands for a value that may be a secret.
	Redacted = "[redacted]"
	// maxDepth is where a difference stops looking into members: no entity
	// nests deeper, and what does is compared whole.
	maxDepth = 8
	// maxChanges bounds the members of one difference.
	maxChanges = 1000
)

// sensitive are members whose values are redacted, wherever they stand: those
// that hold secrets and the private members of a JSON Web Key (RFC 7518).
var sensitive = map[string]bool{ //nolint:gochecknoglobals // a table
	"secret": true, "client_secret": true, "sealed": true, "password": true, "temporary_password": true, "password_hash": true,
	"token": true, "private_key": true, "private_keys": true, "pepper": true, "api_key": true, "authorization": true,
	"d": true, "p": true, "q": true, "dp": true, "dq": true, "qi": true, "k": true, "oth": true,
}

// Difference returns the members that differ between two JSON documents, nil
// where there is none, with secrets redacted. Lists are compared whole, except
// those of objects with an "id", which are compared one by one. Errors: a
// document that is not JSON.
func Difference(before, after json.RawMessage) ([]FieldChange, error) {
	a, err := decode(before)
	if err != nil {
		return nil, fmt.Errorf("read the document before: %w", err)
	}
	b, err := decode(after)
	if err != nil {
		return nil, fmt.Errorf("read the document after: %w", err)
	}
	d := &difference{}
	d.compare("", "", a, b, 0)
	slices.SortStableFunc(d.changes, func(x, y FieldChange) int { return strings.Compare(x.Pointer, y.Pointer) })
	return d.changes, nil
}

// absent stands for a member that is not there; a null is.
type absent struct{}

func decode(raw json.RawMessage) (any, error) {
	if len(raw) == 0 {
		return absent{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber() // a number is kept as it was written
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}

type difference struct{ changes []FieldChange }

func (d *difference) compare(pointer, name string, a, b any, depth int) {
	if reflect.DeepEqual(a, b) || len(d.changes) == maxChanges {
		return
	}
	// A document that came or went is kept member by member too.
	x, xOK := object(a, depth)
	y, yOK := object(b, depth)
	if xOK && yOK && depth < maxDepth && !sensitive[name] {
		for _, m := range union(x, y) {
			d.compare(pointer+"/"+escape(m), m, member(x, m), member(y, m), depth+1)
		}
		return
	}
	if i, ok := identified(a); ok && depth < maxDepth {
		if j, ok := identified(b); ok {
			d.lists(pointer, i, j, depth)
			return
		}
	}
	c := FieldChange{Pointer: pointer}
	if _, none := a.(absent); !none {
		c.Before = redact(name, a)
	}
	if _, none := b.(absent); !none {
		c.After = redact(name, b)
	}
	d.changes = append(d.changes, c)
}

// lists compares elements by their ids; the pointer names the place in the
// later list, or in the earlier one for an element that is gone.
func (d *difference) lists(pointer string, before, after []any, depth int) {
	idOf := func(e any) any { return e.(map[string]any)["id"] } //nolint:errcheck,forcetypeassert // identified has looked
	was := map[any]any{}
	for _, e := range before {
		was[idOf(e)] = e
	}
	is := map[any]bool{}
	for n, e := range after {
		is[idOf(e)] = true
		from, ok := was[idOf(e)]
		if !ok {
			from = absent{}
		}
		d.compare(pointer+"/"+strconv.Itoa(n), "", from, e, depth+1)
	}
	for n, e := range before {
		if !is[idOf(e)] {
			d.compare(pointer+"/"+strconv.Itoa(n), "", e, absent{}, depth+1)
		}
	}
}

// identified tells whether v is a list of objects with ids of their own.
func identified(v any) ([]any, bool) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, false
	}
	seen := map[string]bool{}
	for _, e := range list {
		m, _ := e.(map[string]any)
		id, ok := m["id"].(string)
		if !ok || seen[id] {
			return nil, false
		}
		seen[id] = true
	}
	return list, true
}

// object returns the members of v; a whole document that is absent has none.
func object(v any, depth int) (map[string]any, bool) {
	if _, none := v.(absent); none && depth == 0 {
		return nil, true
	}
	m, ok := v.(map[string]any)
	return m, ok
}

func member(m map[string]any, name string) any {
	if v, ok := m[name]; ok {
		return v
	}
	return absent{}
}

func union(a, b map[string]any) []string {
	var names []string
	for n := range a {
		names = append(names, n)
	}
	for n := range b {
		if _, both := a[n]; !both {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	return names
}

func escape(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}

// redact returns v without secrets. Empty values say nothing and stay.
func redact(name string, v any) any {
	if sensitive[strings.ToLower(name)] {
		switch v {
		case nil, "", false:
			return v
		}
		return Redacted
	}
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, m := range v {
			out[k] = redact(k, m)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = redact("", v[i])
		}
		return out
	}
	return v
}
