package document

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/central/catalog"
)

func TestParse_RefusesWhatParsersDisagreeAbout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in      string
		pointer string // "-": no JSON at all
	}{
		"empty":                {"", "-"},
		"two documents":        {"{} {}", "-"},
		"a trailing comma":     {`{"a":1,}`, "-"},
		"not UTF-8":            {"{\"a\":\"\xff\"}", "-"},
		"nested deep":          {strings.Repeat("[", 100_000), "-"},
		"a member twice":       {`{"a":[{"b":1,"b":2}]}`, "/a/0/b"},
		"a NUL":                {`{"a":"x\u0000"}`, "/a"},
		"a NUL in a name":      {`{"a/\u0000":1}`, "/a~1\x00"},
		"twice by an escape":   {`{"ab":1,"\u0061b":2}`, "/ab"},
		"an unfinished text":   {`{"a":"`, "-"},
		"a number like no one": {`{"a":01}`, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(c.in))
			var problems Problems
			switch {
			case c.pointer == "-" && !errors.Is(err, ErrNotJSON):
				t.Errorf("%v", err)
			case c.pointer != "-" && (!errors.As(err, &problems) || problems[0].Pointer != c.pointer):
				t.Errorf("%v", err)
			}
		})
	}
}

func TestDecode_NamesEveryMemberThatIsWrong(t *testing.T) {
	t.Parallel()
	tree, err := Parse([]byte(`{"id":7,"ID":"x","grant_types":["a",1,null],"access_token_ttl":"soon","require_pkce":"no",
		"login":{"factor":[]},"redirect_uris":"u"}`))
	if err != nil {
		t.Fatal(err)
	}
	var problems Problems
	if err := Decode(tree, &catalog.ClientSpec{}); !errors.As(err, &problems) {
		t.Fatal(err)
	}
	var got []string
	for _, p := range problems {
		got = append(got, p.Pointer)
	}
	want := []string{"/ID", "/access_token_ttl", "/grant_types/1", "/grant_types/2", "/id", "/login/factor", "/redirect_uris", "/require_pkce"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// The examples of RFC 7396 appendix A.
func TestMerge_IsThatOfRFC7396(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{`{"a":"b"}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"b"}`, `{"b":"c"}`, `{"a":"b","b":"c"}`}, {`{"a":"b"}`, `{"a":null}`, `{}`},
		{`{"a":"b","b":"c"}`, `{"a":null}`, `{"b":"c"}`}, {`{"a":["b"]}`, `{"a":"c"}`, `{"a":"c"}`}, {`{"a":"c"}`, `{"a":["b"]}`, `{"a":["b"]}`},
		{`{"a":{"b":"c"}}`, `{"a":{"b":"d","c":null}}`, `{"a":{"b":"d"}}`}, {`{"a":[{"b":"c"}]}`, `{"a":[1]}`, `{"a":[1]}`},
		{`["a","b"]`, `["c","d"]`, `["c","d"]`}, {`{"a":"b"}`, `["c"]`, `["c"]`}, {`{"e":null}`, `{"a":1}`, `{"a":1,"e":null}`},
		{`[1,2]`, `{"a":"b","c":null}`, `{"a":"b"}`}, {`{}`, `{"a":{"bb":{"ccc":null}}}`, `{"a":{"bb":{}}}`},
	} {
		target, err1 := Parse([]byte(c[0]))
		patch, err2 := Parse([]byte(c[1]))
		got, err3 := json.Marshal(Merge(target, patch))
		if err := errors.Join(err1, err2, err3); err != nil || string(got) != c[2] {
			t.Errorf("%s + %s = %s, want %s (%v)", c[0], c[1], got, c[2], err)
		}
	}
}
