package config

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	"versola/platform/secret"
)

// kind is the type of a field.
type kind int

const (
	kindString kind = iota
	kindInt
	kindFloat
	kindBool
	kindDuration
	kindSecret
	kindStrings
	kindSecrets
	kindStruct
)

// wanted says what a value of the kind looks like.
func (k kind) wanted() string {
	switch k {
	case kindInt:
		return "a whole number"
	case kindFloat:
		return "a number"
	case kindBool:
		return "true or false"
	case kindDuration:
		return "a duration such as 90s, 10m or 24h"
	case kindStrings, kindSecrets:
		return "a list"
	case kindStruct:
		return "a group of keys"
	}
	return "a string (put it in quotes if it looks like something else)"
}

func (k kind) secret() bool { return k == kindSecret || k == kindSecrets }
func (k kind) list() bool   { return k == kindStrings || k == kindSecrets }

// fileSuffix makes the key of a secret the key of its file.
const fileSuffix = "_file"

// field is one key of the schema.
type field struct {
	path     string // "edge.database.url"
	name     string // its last part
	env      string // "VERSOLA_EDGE_DATABASE_URL"
	kind     kind
	index    []int // of reflect.Value.FieldByIndex
	def, doc string
	children []*field
}

// schema is the struct's keys.
type schema struct {
	root  field
	leafs []*field // in the struct's order
	env   map[string]*field
}

// schemaOf reads the schema of a struct type. It panics on a struct that is no
// schema: that is a mistake in the program, found by its first test.
func schemaOf(t reflect.Type, prefix string) *schema {
	s := &schema{root: field{kind: kindStruct}, env: map[string]*field{}}
	s.add(&s.root, t, prefix)
	return s
}

func (s *schema) add(parent *field, t reflect.Type, prefix string) {
	for i := range t.NumField() {
		sf := t.Field(i)
		name := sf.Tag.Get("yaml")
		if name == "" || strings.Contains(name, ",") {
			panic(fmt.Sprintf("config: field %s.%s needs a plain yaml tag", t, sf.Name))
		}
		f := &field{
			path: join(parent.path, name), name: name, kind: kindOf(sf.Type),
			index: append(append([]int{}, parent.index...), i),
			def:   sf.Tag.Get("default"), doc: sf.Tag.Get("doc"),
		}
		parent.children = append(parent.children, f)
		if f.kind == kindStruct {
			s.add(f, sf.Type, prefix)
			continue
		}
		f.env = prefix + strings.ToUpper(strings.ReplaceAll(f.path, ".", "_"))
		s.leafs = append(s.leafs, f)
		names := []string{f.env}
		if f.kind.secret() {
			names = append(names, f.env+strings.ToUpper(fileSuffix))
		}
		for _, n := range names {
			if other := s.env[n]; other != nil {
				panic(fmt.Sprintf("config: %s names both %s and %s", n, other.path, f.path))
			}
			s.env[n] = f
		}
	}
}

func kindOf(t reflect.Type) kind {
	switch t {
	case reflect.TypeFor[secret.Text]():
		return kindSecret
	case reflect.TypeFor[[]secret.Text]():
		return kindSecrets
	case reflect.TypeFor[[]string]():
		return kindStrings
	case reflect.TypeFor[time.Duration]():
		return kindDuration
	}
	switch t.Kind() { //nolint:exhaustive // the rest is refused
	case reflect.String:
		return kindString
	case reflect.Int:
		return kindInt
	case reflect.Float64:
		return kindFloat
	case reflect.Bool:
		return kindBool
	case reflect.Struct:
		return kindStruct
	}
	panic(fmt.Sprintf("config: a field of type %s is not supported", t))
}

// child finds a key under f, or the secret that "<key>_file" belongs to.
func (f *field) child(name string) (c *field, isFile bool) {
	for _, c := range f.children {
		if c.name == name {
			return c, false
		}
		if c.kind.secret() && c.name+fileSuffix == name {
			return c, true
		}
	}
	return nil, false
}

func join(parent, name string) string {
	if parent == "" {
		return name
	}
	return parent + "." + name
}

// suggest finds the key that an unknown one under f was probably meant to be,
// "" when none is near.
func (s *schema) suggest(f *field, name string) string {
	best, least := "", max(len(name)/3, 1)+1
	for _, c := range f.children {
		if d := distance(name, c.name); d < least {
			best, least = c.path, d
		}
	}
	if best != "" {
		return best
	}
	for _, l := range s.leafs { // the right key in the wrong place
		if l.name == name {
			return l.path
		}
	}
	return ""
}

func (s *schema) suggestEnv(name string) string {
	best, least := "", max(len(name)/5, 1)+1
	for n := range s.env {
		if d := distance(name, n); d < least || d == least && n < best {
			best, least = n, d
		}
	}
	return best
}

// distance is the number of edits between two keys: a character put in, left
// out or exchanged, or two neighbours swapped. Long ones are cut: a key is
// short, and a hostile one must not cost time.
func distance(a, b string) int {
	a, b = a[:min(len(a), 80)], b[:min(len(b), 80)]
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
