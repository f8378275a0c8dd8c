package audit_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/central/audit"
)

func TestDifference_ListsMembersAndRedactsSecrets(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ before, after, want string }{
		"equal":          {`{"a":1,"b":[1,2]}`, `{"b":[1,2],"a":1}`, `null`},
		"changed":        {`{"a":{"b":1}}`, `{"a":{"b":2}}`, `[{"pointer":"/a/b","before":1,"after":2}]`},
		"added":          {`{}`, `{"a":null}`, `[{"pointer":"/a"}]`},
		"gone":           {`{"a":"x"}`, `{}`, `[{"pointer":"/a","before":"x"}]`},
		"type changed":   {`{"a":"1"}`, `{"a":1}`, `[{"pointer":"/a","before":"1","after":1}]`},
		"created":        {``, `{"a":1,"b":"x"}`, `[{"pointer":"/a","after":1},{"pointer":"/b","after":"x"}]`},
		"deleted":        {`{"a":1}`, ``, `[{"pointer":"/a","before":1}]`},
		"list":           {`{"a":["x"]}`, `{"a":["x","y"]}`, `[{"pointer":"/a","before":["x"],"after":["x","y"]}]`},
		"list with ids":  {`{"a":[{"id":"x","v":1},{"id":"y","v":2}]}`, `{"a":[{"id":"y","v":3}]}`, `[{"pointer":"/a/0","before":{"id":"x","v":1}},{"pointer":"/a/0/v","before":2,"after":3}]`},
		"pointer":        {`{"a/b":{"~":1}}`, `{"a/b":{"~":2}}`, `[{"pointer":"/a~1b/~0","before":1,"after":2}]`},
		"big number":     {`{"a":9007199254740992}`, `{"a":9007199254740993}`, `[{"pointer":"/a","before":9007199254740992,"after":9007199254740993}]`},
		"false":          {`{"a":true}`, `{"a":false}`, `[{"pointer":"/a","before":true,"after":false}]`},
		"secret":         {`{"secret":"old"}`, `{"secret":"new"}`, `[{"pointer":"/secret","before":"[redacted]","after":"[redacted]"}]`},
		"secret object":  {`{"password":{"x":"old"}}`, `{"password":{"x":"new"}}`, `[{"pointer":"/password","before":"[redacted]","after":"[redacted]"}]`},
		"secret inside":  {`{}`, `{"a":[{"Client_Secret":"s"}]}`, `[{"pointer":"/a","after":[{"Client_Secret":"[redacted]"}]}]`},
		"private JWK":    {`{}`, `{"jwks":{"keys":[{"kty":"EC","x":"1","d":"private"}]}}`, `[{"pointer":"/jwks","after":{"keys":[{"d":"[redacted]","kty":"EC","x":"1"}]}}]`},
		"set for first":  {`{"secret":""}`, `{"secret":"new"}`, `[{"pointer":"/secret","before":"","after":"[redacted]"}]`},
		"whole document": {`[1]`, `[2]`, `[{"pointer":"","before":[1],"after":[2]}]`},
	} {
		got, err := audit.Difference(json.RawMessage(tc.before), json.RawMessage(tc.after))
		raw, _ := json.Marshal(got)
		if diff := cmp.Diff(tc.want, string(raw)); err != nil || diff != "" {
			t.Errorf("%s: %v %s", name, err, diff)
		}
	}
	if _, err := audit.Difference(json.RawMessage(`{`), nil); err == nil {
		t.Error("half a document")
	}
	deep := strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000)
	if got, err := audit.Difference(json.RawMessage(deep), nil); err != nil || len(got) != 1 {
		t.Errorf("a deep document: %d, %v", len(got), err)
	}
}
