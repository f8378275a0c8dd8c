package config_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/platform/config"
	"versola/platform/secret"
)

type sample struct {
	Name    string   `yaml:"name" default:"a name" doc:"What it is called, a|b."`
	Count   int      `yaml:"count" default:"3"`
	Ratio   float64  `yaml:"ratio" default:"0.5"`
	On      bool     `yaml:"on" default:"true"`
	Hosts   []string `yaml:"hosts"`
	Outer   outer    `yaml:"outer" doc:"A group."`
	OuterBy string   `yaml:"outer_by"`
}

type outer struct {
	Key      secret.Text   `yaml:"key" doc:"A secret."`
	Keys     []secret.Text `yaml:"keys"`
	InnerOne string        `yaml:"inner_one"`
}

func (s *sample) Default(src *config.Source) {
	if !src.Has("outer_by") {
		s.OuterBy = "computed from " + s.Name
	}
}

func (s *sample) Validate(report func(path, message string)) {
	if s.Count < 0 {
		report("count", "must not be negative")
	}
	for _, h := range s.Hosts {
		if h == "bad" {
			report("hosts[1]", "is bad")
		}
	}
	if s.Outer.Key == "weak" {
		report("outer.key", "is weak")
	}
}

const canary = "s3cr3t-canary"

// write makes a configuration file with files beside it.
func write(t *testing.T, content string) string {
	t.Helper()
	dir := t.TempDir()
	for name, c := range map[string]string{
		"c.yaml": content, "key": canary + "\r\n", "keys": "one\n\n  two \n", "blank": " \n", "binary": "\xff\xfe" + canary,
		"large": strings.Repeat(canary, 10000),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(c), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "c.yaml")
}

func TestLoad_GoodFiles(t *testing.T) {
	t.Parallel()
	defaults := sample{Name: "a name", Count: 3, Ratio: 0.5, On: true, OuterBy: "computed from a name"}
	with := func(f func(*sample)) sample { s := defaults; f(&s); return s }
	for name, tt := range map[string]struct {
		file string
		env  []string
		want sample
	}{
		"empty":          {"", nil, defaults},
		"comments alone": {"# nothing\n---\n", nil, defaults},
		"nothing given":  {"name:\nouter:\nhosts: ~\n", nil, defaults},
		"byte order mark": {"\ufeffcount: 4\n", nil,
			with(func(s *sample) { s.Count = 4 })},
		"every kind": {"name: x\ncount: 0x10\nratio: 1\non: false\nhosts: [a, \"1\"]\nouter: {key: k, keys: [a, b], inner_one: 'yes'}\nouter_by: o\n", nil,
			sample{Name: "x", Count: 16, Ratio: 1, Hosts: []string{"a", "1"}, OuterBy: "o", Outer: outer{Key: "k", Keys: []secret.Text{"a", "b"}, InnerOne: "yes"}}},
		"empty string is a value": {`name: ""`, nil, with(func(s *sample) { s.Name = ""; s.OuterBy = "computed from " })},
		"empty list is a value":   {"hosts: []", nil, with(func(s *sample) { s.Hosts = []string{} })},
		"secrets from files": {"outer:\n  key_file: key\n  keys_file: ./keys\n", nil,
			with(func(s *sample) { s.Outer = outer{Key: canary, Keys: []secret.Text{"one", "two"}} })},
		"environment wins": {"name: file\nouter: {key_file: missing-but-overridden-is-still-a-mistake}\n", []string{"VERSOLA_NAME=env"},
			sample{}},
		"environment of every kind": {"count: 9", []string{
			"VERSOLA_COUNT=4", "VERSOLA_RATIO=0.25", "VERSOLA_ON=false", "VERSOLA_HOSTS=a, b", "VERSOLA_OUTER_KEY=a=b", "VERSOLA_OUTER_KEYS=x,y",
			"VERSOLA_OUTER_INNER_ONE=i", "VERSOLA_OUTER_BY=by", "VERSOLA_NAME=", "OTHER=1", "VERSOLA_CONFIG=x", "VERSOLA_POSTGRES_BIN=y", "garbage",
			"VERSOLA_AUTH_SERVICE_HOST=10.0.0.1", "VERSOLA_PORT=tcp://10.0.0.1:80", "VERSOLA_AUTH_PORT_8080_TCP_ADDR=10.0.0.1", "VERSOLA_EDGE_SERVICE_PORT_HTTP=80",
		}, sample{Name: "a name", Count: 4, Ratio: 0.25, Hosts: []string{"a", "b"}, OuterBy: "by",
			Outer: outer{Key: "a=b", Keys: []secret.Text{"x", "y"}, InnerOne: "i"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, _, problems := config.Load[sample](write(t, tt.file), tt.env)
			if name == "environment wins" {
				if len(problems) != 1 || got.Name != "env" {
					t.Fatalf("%q, %v", got.Name, problems)
				}
				return
			}
			if problems.Err() != nil {
				t.Fatal(problems)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLoad_WithoutAFile(t *testing.T) {
	t.Parallel()
	got, src, problems := config.Load[sample]("", []string{"VERSOLA_COUNT=7"}, config.Flag{Name: "--name", Path: "name", Value: "flag"}, config.Flag{Name: "--count", Path: "count"})
	if problems.Err() != nil || got.Count != 7 || got.Name != "flag" {
		t.Fatal(got, problems)
	}
	if o, ok := src.Origin("name"); !ok || o.File != "--name" || src.Has("ratio") {
		t.Fatal(o)
	}
}

func TestLoad_ProblemsWithTheirLine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		file string
		env  []string
		want []string // FILE stands for the path
	}{
		"unknown keys": {"nam: x\nouter:\n  kye: 1\n  inner_one: x\ninner_one: y\nzzz: 1\n", nil, []string{
			"FILE:1: nam: unknown key; did you mean name?",
			"FILE:3: outer.kye: unknown key; did you mean outer.key?",
			"FILE:5: inner_one: unknown key; did you mean outer.inner_one?",
			"FILE:6: zzz: unknown key",
		}},
		"the file of what is no secret": {"name_file: x\n", nil, []string{"FILE:1: name_file: unknown key"}},
		"doubled":                       {"name: a\ncount: 1\nname: b\n", nil, []string{"FILE:3: name: the key is given twice, first in line 1"}},
		"types": {"name: 12\ncount: x\nratio: [1]\non: yes\nhosts: a\nouter: 7\n", nil, []string{
			`FILE:1: name: must be a string (put it in quotes if it looks like something else), not "12"`,
			`FILE:2: count: must be a whole number, not "x"`,
			"FILE:3: ratio: must be a number",
			`FILE:4: on: must be true or false, not "yes"`,
			`FILE:5: hosts: must be a list, not "a"`,
			"FILE:6: outer: must be a group of keys",
		}},
		"numbers out of this world": {"count: 99999999999999999999\nratio: .nan\n", nil, []string{
			`FILE:1: count: must be a whole number, not "99999999999999999999"`,
			`FILE:2: ratio: must be a number, not ".nan"`,
		}},
		"tags": {"name: !foo x\ncount: !!str 3\nouter: !bar {}\nhosts: !!set {a}\n", nil, []string{
			`FILE:1: name: must be a string (put it in quotes if it looks like something else), not "x"`,
			`FILE:2: count: must be a whole number, not "3"`,
			"FILE:3: outer: must be a group of keys",
			"FILE:4: hosts: must be a list",
		}},
		"secrets of a wrong type stay hidden": {"outer:\n  key: [" + canary + "]\n  keys: [1234567, {a: " + canary + "}]\n", nil, []string{
			"FILE:2: outer.key: must be a string (put it in quotes if it looks like something else)",
			"FILE:3: outer.keys[0]: must be a string (put it in quotes if it looks like something else)",
			"FILE:3: outer.keys[1]: must be a string (put it in quotes if it looks like something else)",
		}},
		"a secret that looks like a number stays hidden": {"outer: {key: 123456789}", nil, []string{
			"FILE:1: outer.key: must be a string (put it in quotes if it looks like something else)",
		}},
		"elements": {"hosts:\n  - a\n  - 1\n  - ''\n", nil, []string{
			"FILE:3: hosts[1]: must be a string (put it in quotes if it looks like something else)",
		}},
		"empty element":      {"hosts:\n  - ''\n", nil, []string{"FILE:2: hosts: element 1 is empty"}},
		"both":               {"outer:\n  key_file: key\n  key: x\n", nil, []string{"FILE:3: outer.key: key_file is given as well, in line 2: give one of them"}},
		"anchors":            {"name: &a x\nouter_by: *a\n", nil, []string{"FILE:1: name: anchors and aliases are not supported: write the value out", "FILE:2: outer_by: anchors and aliases are not supported: write the value out"}},
		"merge":              {"outer: {inner_one: x}\n<<: {name: y}\n", nil, []string{"FILE:2: a key must be a plain word: anchors and merge keys are not supported"}},
		"odd keys":           {"? [a]\n: b\n1: x\n", nil, []string{"FILE:1: a key must be a plain word: anchors and merge keys are not supported", "FILE:3: a key must be a plain word: anchors and merge keys are not supported"}},
		"not a mapping":      {"- a\n- b\n", nil, []string{"FILE:1: must be a group of keys"}},
		"second document":    {"name: a\n---\nname: b\n", nil, []string{"FILE:2: a second document: a configuration file holds one"}},
		"broken second":      {"name: a\n---\n\tx: [\n", nil, []string{"FILE:3: not valid YAML: found character that cannot start any token"}},
		"syntax":             {"name: a\n  count: 1\n", nil, []string{"FILE:2: not valid YAML: mapping values are not allowed in this context"}},
		"not text":           {"name: a\ncount: \xff\n", nil, []string{"FILE:2: the file is not UTF-8 text"}},
		"control character":  {"name: \x00\n", nil, []string{"FILE:1: not valid YAML: control characters are not allowed"}},
		"undefined alias":    {"name: *nobody\n", nil, []string{"FILE:1: not valid YAML: unknown anchor 'nobody' referenced"}},
		"nested without end": {strings.Repeat("[", 200000), nil, []string{"FILE:1: not valid YAML: exceeded max depth of 10000"}},
		"too large":          {strings.Repeat("# x\n", 300000), nil, []string{"FILE: the file is larger than 1024 KiB, which no configuration is"}},
		"secret files": {"outer:\n  key_file: missing\n  keys_file: blank\n", nil, []string{
			"FILE:2: outer.key_file: cannot read DIR/missing: no such file or directory",
			"FILE:3: outer.keys_file: DIR/blank is empty",
		}},
		"secret file is no file":  {"outer: {key_file: .}", nil, []string{"FILE:1: outer.key_file: DIR is not a file"}},
		"secret file is no text":  {"outer: {key_file: binary}", nil, []string{"FILE:1: outer.key_file: DIR/binary is not valid text"}},
		"secret file is too much": {"outer: {key_file: large}", nil, []string{"FILE:1: outer.key_file: DIR/large is larger than 64 KiB"}},
		"secret file is a list":   {"outer: {key_file: [a]}", nil, []string{"FILE:1: outer.key_file: must be the path of a file"}},
		"validation": {"hosts:\n  - ok\n  - bad\nouter:\n  key: weak\ncount: -1\n", nil, []string{
			"FILE:3: hosts[1]: is bad",
			"FILE:5: outer.key: is weak",
			"FILE:6: count: must not be negative",
		}},
		"environment": {"count: 1\n", []string{
			"VERSOLA_COUNT=-5", "VERSOLA_RATIO=NaN", "VERSOLA_ON=1", "VERSOLA_HOSTS=a,,b", "VERSOLA_NMAE=x", "VERSOLA_OUTER_INNERONE=x",
			"VERSOLA_OUTER_KEY=x", "VERSOLA_OUTER_KEY_FILE=y", "VERSOLA_OUTER_KEYS_FILE=/missing", "VERSOLA_NAME=\xff",
		}, []string{
			"VERSOLA_COUNT: count: must not be negative",
			"VERSOLA_HOSTS: hosts: element 2 is empty",
			"VERSOLA_NAME: name: is not valid text",
			"VERSOLA_NMAE: unknown variable; did you mean VERSOLA_NAME?",
			`VERSOLA_ON: on: must be true or false, not "1"`,
			"VERSOLA_OUTER_INNERONE: unknown variable; did you mean VERSOLA_OUTER_INNER_ONE?",
			"VERSOLA_OUTER_KEYS_FILE: outer.keys_file: cannot read /missing: no such file or directory",
			"VERSOLA_OUTER_KEY_FILE: outer.key: given twice: VERSOLA_OUTER_KEY is set as well",
			`VERSOLA_RATIO: ratio: must be a number, not "NaN"`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := write(t, tt.file)
			_, _, problems := config.Load[sample](file, tt.env)
			text := strings.ReplaceAll(problems.Error(), file, "FILE")
			text = strings.ReplaceAll(text, filepath.Dir(file), "DIR")
			if diff := cmp.Diff(tt.want, strings.Split(text, "\n")); diff != "" {
				t.Error(diff)
			}
			if strings.Contains(text, canary) {
				t.Error("a secret is shown")
			}
		})
	}
}

func TestLoad_UnreadableFiles(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/nowhere/c.yaml": "/nowhere/c.yaml: cannot read the file: no such file or directory",
		"/":               "/: cannot read the file: is a directory",
		"/dev/zero":       "/dev/zero: the file is larger than 1024 KiB, which no configuration is",
	} {
		if _, _, problems := config.Load[sample](path, nil); problems.Error() != want {
			t.Errorf("got  %s\nwant %s", problems, want)
		}
	}
}

func TestLoad_APasteOfAnotherTypeIsNeverShownInFull(t *testing.T) {
	t.Parallel()
	_, _, problems := config.Load[sample](write(t, "count: "+strings.Repeat("x", 5000)+"\n"+strings.Repeat("k", 500)+": 1\n"), nil)
	if len(problems) != 2 || len(problems.Error()) > 500 {
		t.Fatal(len(problems), len(problems.Error()))
	}
}

func TestPrint_ShowsOriginsAndNoSecret(t *testing.T) {
	t.Parallel()
	file := write(t, "name: x\nouter:\n  key: "+canary+"\n  keys: ["+canary+"]\n")
	cfg, src, problems := config.Load[sample](file, []string{"VERSOLA_COUNT=8"})
	if problems.Err() != nil {
		t.Fatal(problems)
	}
	out, err := config.Print(cfg, src)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(out), file, "FILE")
	for _, want := range []string{"name: x # FILE:1\n", "count: 8 # VERSOLA_COUNT\n", "ratio: 0.5\n", "key: '[redacted]' # FILE:3\n", "outer_by: computed from x\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, canary) {
		t.Errorf("a secret is shown:\n%s", text)
	}
	if _, _, problems := config.Load[sample](write(t, string(out)), nil); problems.Err() != nil {
		t.Errorf("what is printed does not load: %v", problems)
	}
}

func TestReference_ListsEveryKey(t *testing.T) {
	t.Parallel()
	got := config.Reference[sample]()
	for _, want := range []string{
		"| `name` | `VERSOLA_NAME` | `a name` | What it is called, a\\|b. |\n",
		"| **`outer`** | | | A group. |\n",
		"| `outer.key`, `key_file` | `VERSOLA_OUTER_KEY`, `VERSOLA_OUTER_KEY_FILE` |  | A secret. |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %s:\n%s", want, got)
		}
	}
}

func FuzzLoad(f *testing.F) {
	for _, seed := range []string{"name: x", "outer: {key: x}", "a: &a [*a]", "? x", "- !!binary x", "hosts: [a", "%YAML 9.9\n---"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, content string) {
		_, _, problems := config.Load[sample](write(t, content), nil)
		_ = problems.Error()
	})
}
