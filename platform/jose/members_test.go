package jose

import (
	"bytes"
	"encoding/json"
	"testing"
)

// byDecoder is what [Members] has to agree with: the standard decoder, which
// is slower.
func byDecoder(raw []byte) (map[string]json.RawMessage, bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	members := map[string]json.RawMessage{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, false
		}
		name, ok := t.(string)
		if _, twice := members[name]; !ok || twice {
			return nil, false
		}
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, false
		}
		members[name] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	return members, json.Valid(raw)
}

func agrees(t *testing.T, raw []byte) {
	t.Helper()
	got, err := Members(raw)
	want, ok := byDecoder(raw)
	if (err == nil) != ok || ok && len(got) != len(want) {
		t.Fatalf("%q: %v, %v; the decoder: %v, %v", raw, got, err, want, ok)
	}
	if !ok {
		return
	}
	for name, v := range want {
		if !bytes.Equal(got[name], v) {
			t.Fatalf("%q: member %q is %q, not %q", raw, name, got[name], v)
		}
	}
}

// objects are what to begin with.
var objects = []string{
	`{}`, ` { } `, `{"a":1}`, `{"a":"b","c":"d"}`, `{ "a" : "b" , "c" : [1,{"d":"}"}] , "e":{"f":"\"]"} , "g":null,"h":true ,"i":-1.5e3}`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"a\"b":1}`, `{"\\":"\\"}`, "{\"й\":1}", "{\"\xff\":1,\"\xfe\":2}", `{"":""}`,
	``, `[]`, `null`, `"a"`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":1}{}`, `{"a":1} x`, `{a:1}`, `{"a":1`, `{"a":[}`, "{\"a\":\"\x00\"}",
	`{"a":{"b":{"c":[[[]]]}},"d":[]}`, "{\"a\"\t:\r\n1\n}",
}

func TestMembers_AgreesWithTheStandardDecoder(t *testing.T) {
	for _, text := range objects {
		agrees(t, []byte(text))
	}
}

func FuzzMembers(f *testing.F) {
	for _, text := range objects {
		f.Add([]byte(text))
	}
	f.Fuzz(agrees)
}
