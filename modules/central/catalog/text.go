package catalog

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Text is a text for people, by language (BCP 47, as in "ru" or "pt-BR"); the
// language "" is that of a text in one language alone. In JSON and YAML it is
// a string, or an object of language -> string.
type Text map[string]string

// Plain returns a text in one language alone; none for "".
func Plain(s string) Text {
	if s == "" {
		return nil
	}
	return Text{"": s}
}

// In returns the text in the first of the languages that it is in, also
// without their regions; else its default.
func (t Text) In(languages ...string) string {
	for _, l := range languages {
		for {
			if s, ok := t[l]; ok && l != "" {
				return s
			}
			cut := strings.LastIndexByte(l, '-')
			if cut < 0 {
				break
			}
			l = l[:cut]
		}
	}
	return t.Default()
}

// Default returns the text for who speaks none of its languages: that of no
// language, English, or the first.
func (t Text) Default() string {
	for _, l := range []string{"", "en"} {
		if s, ok := t[l]; ok {
			return s
		}
	}
	for _, l := range slices.Sorted(maps.Keys(t)) {
		return t[l]
	}
	return ""
}

// MarshalJSON implements json.Marshaler.
func (t Text) MarshalJSON() ([]byte, error) {
	if s, ok := t[""]; len(t) == 0 || len(t) == 1 && ok {
		return json.Marshal(s)
	}
	return json.Marshal(map[string]string(t))
}

// UnmarshalJSON implements json.Unmarshaler.
func (t *Text) UnmarshalJSON(raw []byte) error {
	var one string
	if err := json.Unmarshal(raw, &one); err == nil {
		*t = Plain(one)
		return nil
	}
	var several map[string]string
	if err := json.Unmarshal(raw, &several); err != nil {
		return errors.New("is neither a text nor texts by language")
	}
	*t = several
	return nil
}
