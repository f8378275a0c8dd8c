package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Decode fills into, a pointer to a struct, from what [Parse] returned. Members
// have exactly the names of the struct's json tags. A null leaves a member as
// it is. Errors: [Problems].
func Decode(tree, into any) error {
	d := &decoder{}
	v := reflect.ValueOf(into).Elem()
	if _, ok := tree.(map[string]any); !ok {
		return Problems{{"", "is not an object"}}
	}
	d.value("", tree, v)
	if len(d.problems) > 0 {
		return d.problems
	}
	return nil
}

type decoder struct{ parser }

var (
	rawType  = reflect.TypeFor[json.RawMessage]()
	jsonType = reflect.TypeFor[json.Unmarshaler]()
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) value(at string, tree any, v reflect.Value) {
	if tree == nil {
		return
	}
	switch t := v.Type(); {
	case t.Kind() == reflect.Pointer:
		p := reflect.New(t.Elem())
		d.value(at, tree, p.Elem())
		v.Set(p)
		return
	case t == rawType, reflect.PointerTo(t).Implements(jsonType):
		d.own(at, tree, v)
		return
	case reflect.PointerTo(t).Implements(textType):
		text, ok := tree.(string)
		if !ok {
			d.fail(at, "is not a text")
			return
		}
		if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(text)); err != nil { //nolint:errcheck,forcetypeassert // it implements it
			d.fail(at, err.Error())
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.object(at, tree, v)
	case reflect.Slice:
		d.list(at, tree, v)
	case reflect.Map:
		d.dictionary(at, tree, v)
	case reflect.Interface:
		v.Set(reflect.ValueOf(tree))
	default:
		d.scalar(at, tree, v)
	}
}

// own lets a type read its part itself.
func (d *decoder) own(at string, tree any, v reflect.Value) {
	raw, err := json.Marshal(tree)
	if err == nil {
		err = json.Unmarshal(raw, v.Addr().Interface())
	}
	if err != nil {
		d.fail(at, err.Error())
	}
}

func (d *decoder) object(at string, tree any, v reflect.Value) {
	members, ok := tree.(map[string]any)
	if !ok {
		d.fail(at, "is not an object")
		return
	}
	fields := map[string]reflect.Value{}
	collect(v, fields)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		field, known := fields[name]
		if !known {
			d.fail(Join(at, name), "is not known")
			continue
		}
		d.value(Join(at, name), members[name], field)
	}
}

// collect finds the fields by their json tags; embedded structs count as their
// members.
func collect(v reflect.Value, fields map[string]reflect.Value) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			collect(v.Field(i), fields)
		case f.IsExported() && name != "" && name != "-":
			fields[name] = v.Field(i)
		}
	}
}

func (d *decoder) list(at string, tree any, v reflect.Value) {
	items, ok := tree.([]any)
	if !ok {
		d.fail(at, "is not a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(items), len(items))
	for i, item := range items {
		p := at + "/" + strconv.Itoa(i)
		if item == nil {
			d.fail(p, "is null")
			continue
		}
		d.value(p, item, out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) dictionary(at string, tree any, v reflect.Value) {
	members, ok := tree.(map[string]any)
	if !ok {
		d.fail(at, "is not an object")
		return
	}
	out := reflect.MakeMap(v.Type())
	for _, name := range slices.Sorted(maps.Keys(members)) {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(Join(at, name), members[name], item)
		out.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), item)
	}
	v.Set(out)
}

func (d *decoder) scalar(at string, tree any, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if text, ok := tree.(string); ok {
			v.SetString(text)
			return
		}
		d.fail(at, "is not a text")
	case reflect.Bool:
		if b, ok := tree.(bool); ok {
			v.SetBool(b)
			return
		}
		d.fail(at, "is not true or false")
	case reflect.Int, reflect.Int64:
		n, ok := tree.(json.Number)
		i, err := strconv.ParseInt(string(n), 10, 64)
		if !ok || err != nil {
			d.fail(at, "is not a whole number")
			return
		}
		v.SetInt(i)
	case reflect.Float64:
		n, ok := tree.(json.Number)
		f, err := n.Float64()
		if !ok || err != nil {
			d.fail(at, "is not a number")
			return
		}
		v.SetFloat(f)
	default:
		d.fail(at, fmt.Sprintf("cannot be set (%s)", v.Kind()))
	}
}
