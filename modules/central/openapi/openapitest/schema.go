package openapitest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"versola/modules/central/openapi"
)

// schemas are the document's, by name.
func schemas(t testing.TB) map[string]any {
	t.Helper()
	var doc struct {
		Components struct {
			Schemas map[string]any `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(openapi.Document, &doc); err != nil {
		t.Fatal(err)
	}
	return doc.Components.Schemas
}

// Enums returns the enumerations of a schema's members, by the path of each,
// such as "settings.otp.channels": of a list, those of its items.
func Enums(t testing.TB, name string) map[string][]string {
	t.Helper()
	all, out := schemas(t), map[string][]string{}
	var visit func(path string, s map[string]any)
	visit = func(path string, s map[string]any) {
		s = follow(all, s)
		if list, ok := s["enum"].([]any); ok {
			for _, v := range list {
				out[path] = append(out[path], fmt.Sprint(v))
			}
		}
		if items, ok := s["items"].(map[string]any); ok {
			visit(path, items)
		}
		members, _ := s["properties"].(map[string]any)
		for member, of := range members {
			if inner, ok := of.(map[string]any); ok {
				visit(strings.TrimPrefix(path+"."+member, "."), inner)
			}
		}
	}
	top, ok := all[name].(map[string]any)
	if !ok {
		t.Fatalf("the document has no schema %s", name)
	}
	visit("", top)
	return out
}

func follow(all, s map[string]any) map[string]any {
	if ref, ok := s["$ref"].(string); ok {
		if to, ok := all[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any); ok {
			return to
		}
	}
	return s
}

// Struct holds a schema of the document to a Go type, member by member: names,
// types, and which may be null. extra are members that the schema has besides.
func Struct(t testing.TB, name string, of reflect.Type, extra ...string) {
	t.Helper()
	all := schemas(t)
	s, ok := all[name].(map[string]any)
	if !ok {
		t.Errorf("the document has no schema %s", name)
		return
	}
	c := comparison{t: t, all: all}
	c.object(name, s, of, extra)
}

type comparison struct {
	t   testing.TB
	all map[string]any
}

func (c comparison) object(at string, s map[string]any, of reflect.Type, extra []string) {
	c.t.Helper()
	members, _ := s["properties"].(map[string]any)
	if s["type"] != "object" || s["additionalProperties"] != false {
		c.t.Errorf("%s: is not an object without other members", at)
	}
	seen := map[string]bool{}
	for _, name := range extra {
		seen[name] = true
	}
	for _, f := range reflect.VisibleFields(of) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" || name == "" || seen[name] {
			continue
		}
		seen[name] = true
		member, ok := members[name].(map[string]any)
		if !ok {
			c.t.Errorf("%s has no %s, which the Go type has", at, name)
			continue
		}
		c.value(at+"."+name, member, f.Type, strings.Contains(options, "omit"))
	}
	for name := range members {
		if !seen[name] {
			c.t.Errorf("%s has %s, which the Go type does not have", at, name)
		}
	}
	required, _ := s["required"].([]any)
	for _, name := range required {
		if members[fmt.Sprint(name)] == nil {
			c.t.Errorf("%s: requires %v, which it does not have", at, name)
		}
	}
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[encoding.TextMarshaler]()
	jsonType = reflect.TypeFor[json.Marshaler]()
)

func (c comparison) value(at string, s map[string]any, of reflect.Type, left bool) {
	c.t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	s = follow(c.all, s)
	types := typesOf(s)
	var want string
	switch {
	case of == rawType:
		want = "object"
	case of.Implements(textType):
		want = "string"
	case of.Implements(jsonType):
		return // writes itself: a text in several languages
	case of.Kind() == reflect.Slice:
		want = "array"
		if items, ok := s["items"].(map[string]any); ok {
			c.value(at+"[]", items, of.Elem(), true)
		} else {
			c.t.Errorf("%s: does not say what it lists", at)
		}
	case of.Kind() == reflect.Map:
		want = "object"
	case of.Kind() == reflect.Struct:
		c.object(at, s, of, nil)
		return
	default:
		want = map[reflect.Kind]string{reflect.String: "string", reflect.Bool: "boolean", reflect.Int64: "integer", reflect.Int: "integer"}[of.Kind()]
	}
	if !slices.Contains(types, want) {
		c.t.Errorf("%s: is of %v in the document and %s in Go", at, types, want)
	}
	// A list, map or document that is never left out is null where there is none.
	nullable := !left && (of.Kind() == reflect.Slice || of.Kind() == reflect.Map)
	if slices.Contains(types, "null") != nullable {
		c.t.Errorf("%s: may be null in Go is %v, and in the document %v", at, nullable, types)
	}
}

func typesOf(s map[string]any) []string {
	switch v := s["type"].(type) {
	case string:
		return []string{v}
	case []any:
		out := map[string]bool{}
		for _, one := range v {
			out[fmt.Sprint(one)] = true
		}
		return slices.Sorted(maps.Keys(out))
	}
	return nil
}
