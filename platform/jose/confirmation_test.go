package jose

import (
	"encoding/json"
	"errors"
	"testing"
)

func TestConfirmation_ReadsWhatItWrites(t *testing.T) {
	for want, c := range map[string]Confirmation{
		`{"jkt":"a"}`:                {JKT: "a"},
		`{"x5t#S256":"b"}`:           {X5T: "b"},
		`{"jkt":"a","x5t#S256":"b"}`: {JKT: "a", X5T: "b"},
	} {
		raw, err := json.Marshal(c)
		if err != nil || string(raw) != want {
			t.Errorf("wrote %s, want %s: %v", raw, want, err)
		}
		var got Confirmation
		if err := json.Unmarshal(raw, &got); err != nil || got != c || !got.Bound() {
			t.Errorf("read %+v of %s: %v", got, raw, err)
		}
	}
}

func TestConfirmation_PassesOverNothing(t *testing.T) {
	for _, raw := range []string{`{}`, `[]`, `"a"`, `{"jwk":{}}`, `{"jkt":"a","kid":"b"}`, `{"jkt":""}`, `{"jkt":1}`, `{"jkt":null}`, `{"jkt":"a","jkt":"a"}`} {
		var c Confirmation
		if err := c.UnmarshalJSON([]byte(raw)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v", raw, err)
		}
	}
}
