package config

import (
	"cmp"
	"reflect"
	"slices"
	"strings"
)

// Prefix begins the name of every environment variable of the configuration.
const Prefix = "VERSOLA_"

// Validator checks a loaded configuration. It reports each problem with the
// path of the key (an element as "edge.trusted_proxies[1]"); a message never
// shows a secret.
type Validator interface {
	Validate(report func(path, message string))
}

// Defaulter completes a configuration with defaults that depend on other
// values. It runs before validation.
type Defaulter interface {
	Default(src *Source)
}

// Flag is a value given on the command line: the strongest source.
type Flag struct {
	Name  string // as the person wrote it: "--role"
	Path  string // the key it sets
	Value string // as an environment variable would give it; "" sets nothing
}

// Origin is where a value came from.
type Origin struct {
	File string // the file, the environment variable or the flag
	Line int    // in the file, else 0
}

// Source tells where each value came from.
type Source struct {
	File    string // the configuration file; "" when there is none
	origins map[string]Origin
}

// Has tells whether the key was given, by the file, the environment or a flag.
func (s *Source) Has(path string) bool {
	_, ok := s.origins[path]
	return ok
}

// Origin returns where the key's value came from; ok is false for a default.
func (s *Source) Origin(path string) (o Origin, ok bool) {
	o, ok = s.origins[path]
	return o, ok
}

// nearest is the origin of a key, of an element of it, or of the group that it
// is in.
func (s *Source) nearest(path string) Origin {
	for p := path; p != ""; p = parent(p) {
		if o, ok := s.origins[p]; ok {
			return o
		}
	}
	return Origin{File: s.File}
}

// parent of "a.b[1]" is "a.b", of "a.b" is "a", of "a" is "".
func parent(path string) string { return path[:max(strings.LastIndexAny(path, ".["), 0)] }

// loader collects values and problems.
type loader struct {
	schema   *schema
	source   *Source
	value    reflect.Value
	problems Problems
	bad      map[string]bool // paths with a problem already
}

func (l *loader) report(o Origin, path, message string) {
	l.problems = append(l.problems, Problem{File: o.File, Line: o.Line, Path: path, Message: message})
	l.bad[path] = true
}

// Default returns a configuration with the defaults of its tags alone.
func Default[T any]() *T {
	cfg := new(T)
	l := &loader{schema: schemaOf(reflect.TypeFor[T](), Prefix), value: reflect.ValueOf(cfg).Elem()}
	l.defaults()
	return cfg
}

// Load reads a configuration from file ("" for none) and env (as os.Environ
// gives it), with flags over both. Where problems are returned the value is
// incomplete and must not be used.
func Load[T any](file string, env []string, flags ...Flag) (*T, *Source, Problems) {
	cfg := new(T)
	l := &loader{
		schema: schemaOf(reflect.TypeFor[T](), Prefix),
		source: &Source{File: file, origins: map[string]Origin{}},
		value:  reflect.ValueOf(cfg).Elem(),
		bad:    map[string]bool{},
	}
	l.defaults()
	readable := true
	if file != "" {
		readable = l.readFile(file)
	}
	l.readEnv(env)
	for _, f := range flags {
		if target := l.leaf(f.Path); target != nil && f.Value != "" {
			l.setText(target, f.Value, Origin{File: f.Name})
		}
	}
	// A file that cannot be read at all leaves nothing to validate.
	if readable {
		l.finish(cfg)
	}
	l.problems.sort(file)
	return cfg, l.source, l.problems
}

func (l *loader) leaf(path string) *field {
	i := slices.IndexFunc(l.schema.leafs, func(f *field) bool { return f.path == path })
	if i < 0 {
		return nil
	}
	return l.schema.leafs[i]
}

func (l *loader) defaults() {
	for _, f := range l.schema.leafs {
		if f.def != "" {
			if message := assign(l.value.FieldByIndex(f.index), f.kind, f.def); message != "" {
				panic("config: default of " + f.path + " " + message)
			}
		}
	}
}

// finish applies the struct's own defaults and rules. A key that has a problem
// already is not reported again.
func (l *loader) finish(cfg any) {
	if d, ok := cfg.(Defaulter); ok {
		d.Default(l.source)
	}
	v, ok := cfg.(Validator)
	if !ok {
		return
	}
	known := l.bad
	l.bad = map[string]bool{}
	v.Validate(func(path, message string) {
		for p := path; p != ""; p = parent(p) {
			if known[p] {
				return
			}
		}
		l.report(l.source.nearest(path), path, message)
	})
}

// foreign are variables with the prefix that are not keys.
var foreign = []string{"VERSOLA_CONFIG", "VERSOLA_POSTGRES_BIN"}

func (l *loader) readEnv(env []string) {
	type variable struct{ name, value string }
	set := map[*field]variable{}
	env = slices.Clone(env)
	slices.SortStableFunc(env, func(a, b string) int {
		an, _, _ := strings.Cut(a, "=")
		bn, _, _ := strings.Cut(b, "=")
		return cmp.Compare(an, bn)
	})
	for _, entry := range env {
		name, value, _ := strings.Cut(entry, "=")
		// An empty variable sets nothing: that is how templates leave one out.
		if !strings.HasPrefix(name, Prefix) || value == "" || slices.Contains(foreign, name) {
			continue
		}
		f := l.schema.env[name]
		switch {
		case f == nil && serviceLink(name):
		case f == nil:
			message := "unknown variable"
			if near := l.schema.suggestEnv(name); near != "" {
				message += "; did you mean " + near + "?"
			}
			l.report(Origin{File: name}, "", message)
		case set[f].name != "" && set[f].name != name:
			l.report(Origin{File: name}, f.path, "given twice: "+set[f].name+" is set as well")
		default:
			set[f] = variable{name, value}
			l.setEnv(f, name, value)
		}
	}
}

func (l *loader) setEnv(f *field, name, value string) {
	if name != f.env { // ..._FILE
		l.setFromFile(f, value, Origin{File: name})
		return
	}
	l.setText(f, value, Origin{File: name})
}

// setText sets a field from the text of a variable or a flag.
func (l *loader) setText(f *field, value string, o Origin) {
	if message := assign(l.value.FieldByIndex(f.index), f.kind, value); message != "" {
		l.report(o, f.path, message)
	}
	l.source.origins[f.path] = o
}
