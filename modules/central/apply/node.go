package apply

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"versola/modules/central/catalog"
)

// decoder reads a YAML node into a Go value, strictly, collecting every error.
// It is our own because the library's strict mode needs the text again for each
// document, names Go types in its messages and cannot replace variables.
type decoder struct {
	file  string
	vars  map[string]string
	errs  *Errors
	lines map[string]int // field -> line, as problems name fields
	// broken are the fields that could not be read: what validation thinks of
	// their absence is of no interest.
	broken map[string]bool
}

func (d *decoder) fail(n *yaml.Node, field, format string, args ...any) {
	msg := fmt.Sprintf(format, args...)
	if field != "" {
		msg = field + ": " + msg
		d.broken[field] = true
	}
	*d.errs = append(*d.errs, Error{File: d.file, Line: n.Line, Message: msg})
}

// plain refuses what makes a document mean more than it says.
func (d *decoder) plain(n *yaml.Node, field string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		d.fail(n, field, "anchors and aliases are not supported")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		d.fail(n, field, "has no value")
	case strings.HasPrefix(n.Tag, "!") && !strings.HasPrefix(n.Tag, "!!"):
		d.fail(n, field, "tag %s is not supported", n.Tag)
	default:
		return true
	}
	return false
}

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	textType = reflect.TypeFor[catalog.Text]()
)

func (d *decoder) value(n *yaml.Node, v reflect.Value, field string) {
	if field != "" {
		d.lines[field] = n.Line
	}
	if !d.plain(n, field) {
		return
	}
	switch {
	case v.Type() == rawType:
		d.raw(n, v, field)
		return
	case v.Type() == textType && n.Kind == yaml.ScalarNode:
		if text, ok := d.text(n, field, "a text"); ok {
			v.Set(reflect.ValueOf(catalog.Plain(text)))
		}
		return
	case v.Kind() == reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem(), field)
		v.Set(p)
		return
	}
	if u, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if text, ok := d.text(n, field, "a text"); ok {
			if err := u.UnmarshalText([]byte(text)); err != nil {
				d.fail(n, field, "%s", err)
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.mapping(n, v, field)
	case reflect.Slice:
		d.sequence(n, v, field)
	case reflect.Map:
		d.dictionary(n, v, field)
	case reflect.Interface:
		if x := d.any(n, field); x != nil {
			v.Set(reflect.ValueOf(x))
		}
	default:
		d.scalar(n, v, field)
	}
}

func (d *decoder) scalar(n *yaml.Node, v reflect.Value, field string) {
	switch v.Kind() {
	case reflect.String:
		if text, ok := d.text(n, field, "a text"); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		text, ok := d.text(n, field, "true or false")
		if !ok {
			return
		}
		if text != "true" && text != "false" {
			d.fail(n, field, "is not true or false")
			return
		}
		v.SetBool(text == "true")
	case reflect.Int64:
		text, ok := d.text(n, field, "a number")
		if !ok {
			return
		}
		i, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			d.fail(n, field, "is not a whole number")
			return
		}
		v.SetInt(i)
	default:
		d.fail(n, field, "cannot be set") // a declaration with a type that no document holds
	}
}

// text returns a scalar as it was written, variables replaced.
func (d *decoder) text(n *yaml.Node, field, want string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, field, "is not %s", want)
		return "", false
	}
	return d.expand(n, field)
}

// expand replaces ${NAME}; "$${" stands for "${".
func (d *decoder) expand(n *yaml.Node, field string) (string, bool) {
	var out strings.Builder
	rest, ok := n.Value, true
	for {
		i := strings.Index(rest, "${")
		if i < 0 {
			out.WriteString(rest)
			return out.String(), ok
		}
		if i > 0 && rest[i-1] == '$' {
			out.WriteString(rest[:i-1] + "${")
			rest = rest[i+2:]
			continue
		}
		end := strings.IndexByte(rest[i:], '}')
		if end < 0 {
			d.fail(n, field, "has a variable without its closing brace")
			return "", false
		}
		name := rest[i+2 : i+end]
		value, known := d.vars[name]
		if !known {
			d.fail(n, field, "there is no variable ${%.64s}", name)
			ok = false
		}
		out.WriteString(rest[:i] + value)
		rest = rest[i+end+1:]
	}
}

// mapping reads a struct by its yaml tags. Embedded structs count as their
// members.
func (d *decoder) mapping(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "is not a mapping")
		return
	}
	members := map[string]reflect.Value{}
	collect(v, members)
	d.entries(n, field, func(key string, keyNode, value *yaml.Node) {
		at := join(field, key)
		member, ok := members[key]
		if !ok {
			d.fail(keyNode, "", "unknown member %q", at)
			return
		}
		d.value(value, member, at)
		d.lines[at] = keyNode.Line
	})
}

// entries calls f for each member of a mapping whose names are distinct texts.
func (d *decoder) entries(n *yaml.Node, field string, f func(key string, keyNode, value *yaml.Node)) {
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if key.Kind != yaml.ScalarNode || !d.plain(key, field) || key.Tag == "!!merge" {
			d.fail(key, field, "has a member whose name is not a plain text")
			continue
		}
		if line, twice := seen[key.Value]; twice {
			d.fail(key, "", "member %q is there twice, first in line %d", join(field, key.Value), line)
			continue
		}
		seen[key.Value] = key.Line
		f(key.Value, key, value)
	}
}

func collect(v reflect.Value, members map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case f.Anonymous:
			collect(v.Field(i), members)
		case name != "" && name != "-":
			members[name] = v.Field(i)
		}
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.SequenceNode {
		d.fail(n, field, "is not a list")
		return
	}
	list := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
	for i, item := range n.Content {
		d.value(item, list.Index(i), fmt.Sprintf("%s[%d]", field, i))
	}
	v.Set(list)
}

func (d *decoder) dictionary(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, field, "is not a mapping")
		return
	}
	out := reflect.MakeMap(v.Type())
	d.entries(n, field, func(key string, _, value *yaml.Node) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(value, item, join(field, key))
		out.SetMapIndex(reflect.ValueOf(key), item)
	})
	v.Set(out)
}

// any reads a free value as JSON has it. Dates stay texts.
func (d *decoder) any(n *yaml.Node, field string) any {
	if !d.plain(n, field) {
		return nil
	}
	switch n.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		d.entries(n, field, func(key string, _, value *yaml.Node) { out[key] = d.any(value, join(field, key)) })
		return out
	case yaml.SequenceNode:
		out := make([]any, len(n.Content))
		for i, item := range n.Content {
			out[i] = d.any(item, fmt.Sprintf("%s[%d]", field, i))
		}
		return out
	}
	if n.Tag == "!!bool" || n.Tag == "!!int" || n.Tag == "!!float" {
		var x any
		if err := n.Decode(&x); err == nil {
			if _, err := json.Marshal(x); err == nil { // no infinity
				return x
			}
		}
		d.fail(n, field, "is not a number")
		return nil
	}
	text, _ := d.expand(n, field)
	return text
}

// raw reads JSON: as YAML, or as a text that holds it.
func (d *decoder) raw(n *yaml.Node, v reflect.Value, field string) {
	if n.Kind != yaml.ScalarNode {
		if x := d.any(n, field); x != nil {
			if raw, err := json.Marshal(x); err == nil {
				v.SetBytes(raw)
			}
		}
		return
	}
	text, ok := d.expand(n, field)
	if !ok {
		return
	}
	if !json.Valid([]byte(text)) {
		d.fail(n, field, "is not JSON")
		return
	}
	v.SetBytes([]byte(text))
}

func join(field, key string) string {
	if field == "" {
		return key
	}
	return field + "." + key
}

// lineOf returns the line of a field, or of what it is a part of.
func lineOf(lines map[string]int, field string, def int) int {
	for field != "" {
		if line, ok := lines[field]; ok {
			return line
		}
		cut := slices.Max([]int{strings.LastIndexByte(field, '.'), strings.LastIndexByte(field, '[')})
		if cut < 0 {
			break
		}
		field = field[:cut]
	}
	return def
}
