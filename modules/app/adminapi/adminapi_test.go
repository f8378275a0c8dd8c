package adminapi_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/app/adminapi"
)

func TestCommands_EveryOperationHasOneOfItsOwn(t *testing.T) {
	commands, err := adminapi.Commands()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, c := range commands {
		got[c.ID] = strings.TrimSpace(c.Group + " " + c.Name + " " + strings.Join(c.Args, " ") + " --" + strings.Join(c.Flags, " --"))
	}
	for id, want := range map[string]string{
		"list-clients": "clients list  --tenant", "get-tenant": "tenants get tenant --", "delete-client-secret": "clients delete-secret id secret --tenant",
		"end-user-session": "users end-session user session --directory", "get-directory": "directories get id --", "me": "me  --",
		"export-audit": "audit export  --", "retire-key": "keys retire id --", "create-texts": "texts create  --tenant",
	} {
		if got[id] != want {
			t.Errorf("%s is %q, expected %q", id, got[id], want)
		}
	}
}

func TestBody_JoinsAFileAndMembers(t *testing.T) {
	for name, c := range map[string]struct {
		raw  string
		set  []string
		want string // "" for a refusal
	}{
		"YAML":                {"id: a\nlogin: {factors: [password]}", nil, `{"id":"a","login":{"factors":["password"]}}`},
		"JSON":                {`{"id":"a"}`, nil, `{"id":"a"}`},
		"members":             {"id: a", []string{"b.c=1", "b.d=[x]", "e=true", "f=a=b", "g="}, `{"b":{"c":1,"d":["x"]},"e":true,"f":"a=b","g":null,"id":"a"}`},
		"nothing":             {"", nil, `{}`},
		"a list":              {"[1]", nil, ""},
		"two documents":       {"id: a\n---\nid: b", nil, ""},
		"duplicate keys":      {"id: a\nid: b", nil, ""},
		"a key of no text":    {"login: {1: x}", nil, ""},
		"member of no object": {"id: a", []string{"id.b=1"}, ""},
		"member without name": {"", []string{"=1"}, ""},
		"member of no YAML":   {"", []string{"a=[1"}, ""},
		"aliases that grow":   {"a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e,*e,*e]", nil, ""},
	} {
		got, err := adminapi.Body([]byte(c.raw), c.set)
		if (err == nil) != (c.want != "") || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

func TestPrint_WritesNothingThatSteersATerminal(t *testing.T) {
	name := "\x1b[2J\u009b\u202eevil\x7f"
	body, err := json.Marshal(map[string]any{"items": []any{map[string]any{"id": "1", "name": name}}, "next": "\x1b"})
	if err != nil {
		t.Fatal(err)
	}
	a := &adminapi.Answer{Body: body, Header: http.Header{"Content-Type": {"application/json"}}}
	for form, steers := range map[string]string{adminapi.Table: "\x1b\u009b\u202e\x7f", adminapi.YAML: "\x1b\u009b\x7f"} {
		var out bytes.Buffer
		if err := adminapi.Print(&out, a, form); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(out.String(), steers) || !strings.Contains(out.String(), "evil") {
			t.Errorf("%s: %q", form, out.String())
		}
	}
}

func TestPrint_YAMLKeepsTheOrderOfMembers(t *testing.T) {
	a := &adminapi.Answer{Body: []byte(`{"id":"b","a":["x"],"n":"1","e":[]}`), Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}}}
	var out bytes.Buffer
	if err := adminapi.Print(&out, a, ""); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("id: b\na:\n  - x\nn: \"1\"\ne: []\n", out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestPrint_TableHasAColumnForEachMemberThatFits(t *testing.T) {
	list := func(items ...string) *adminapi.Answer {
		return &adminapi.Answer{Body: []byte(`{"items":[` + strings.Join(items, ",") + `]}`), Header: http.Header{"Content-Type": {"application/json"}}}
	}
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		answer *adminapi.Answer
		want   string
	}{
		"nothing":       {list(), "(none)\n"},
		"empty objects": {list(`{}`), "\n\n"},
		"numbers and truth values": {list(`{"id":"a","n":1.5,"on":true,"no":null}`, `{"id":"bb","on":false,"n":12345678901234567890}`),
			"ID  N                     ON     NO\na   1.5                   true\nbb  12345678901234567890  false\n"},
		"texts by language and lists of texts": {list(`{"id":"a","name":{"en":"Shop","ru":"Магазин"},"scopes":["x","y"],"e":[]}`),
			"ID  NAME                 SCOPES  E\na   en=Shop, ru=Магазин  x, y\n"},
		"objects are left out":           {list(`{"id":"a","meta":{"version":1},"endpoints":[{"id":"x"}]}`), "ID\na\n"},
		"wide characters take two":       {list(`{"a":"日本","b":"x"}`, `{"a":"abc","b":"y"}`), "A     B\n日本  x\nabc   y\n"},
		"combining ones take none":       {list(`{"a":"e\u0301","b":"x"}`, `{"a":"ab","b":"y"}`), "A   B\ne\u0301   x\nab  y\n"},
		"a long one is cut":              {list(`{"a":"`+long+`","b":"1"}`, `{"a":"s","b":"2"}`), "A" + strings.Repeat(" ", 49) + "B\n" + long[:47] + "…  1\ns" + strings.Repeat(" ", 49) + "2\n"},
		"a wide long one is cut between": {list(`{"a":"`+strings.Repeat("日", 100)+`"}`, `{"a":"s"}`), "A\n" + strings.Repeat("日", 23) + "…\ns\n"},
		"hashes have no column":          {list(`{"a":"1","hash":"`+long+`"}`, `{"a":"2","hash":"`+long+`"}`), "A\n1\n2\n"},
		"newlines do not break the line": {list(`{"a":"x\ny\tz"}`), "A\nx\ufffdy\ufffdz\n"},
	} {
		var out bytes.Buffer
		if err := adminapi.Print(&out, c.answer, adminapi.Table); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, out.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte("id: a"), "a.b=1")
	f.Add([]byte(`{"a":[1]}`), "a.=x")
	f.Fuzz(func(t *testing.T, raw []byte, set string) {
		if got, err := adminapi.Body(raw, []string{set}); err == nil && !json.Valid(got) {
			t.Errorf("%q is no JSON", got)
		}
	})
}
