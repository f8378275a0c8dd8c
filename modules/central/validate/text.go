package validate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"versola/modules/central/catalog"
)

// Bounds of texts.
const (
	maxID    = 64  // a path segment and a metric label
	maxScope = 128 // several of them stand in one URL
	maxName  = 200 // fits a heading
	// E.164 numbers have 15 digits at the most.
	maxPhoneDigits = 15
	// A secret of fewer characters is guessed; RFC 6749 section 10.10 asks for
	// 128 bits, which is for the generator to give. 512 fits a header.
	minSecret = 12
	maxSecret = 512
)

// ID checks the id of an entity.
func ID(s string) error {
	switch {
	case s == "":
		return errors.New("is missing")
	case len(s) > maxID:
		return fmt.Errorf("has %d characters, more than %d", len(s), maxID)
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_' && c != '.') {
			return fmt.Errorf("%q is not an id: lower-case letters, digits, '-', '_' and '.', beginning with a letter or digit", s)
		}
	}
	return nil
}

// ScopeID checks the name of a scope: a scope-token (RFC 6749 section 3.3).
func ScopeID(s string) error {
	if s == "" {
		return errors.New("is missing")
	}
	if len(s) > maxScope {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxScope)
	}
	for i := range len(s) {
		if c := s[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
			return fmt.Errorf("%q is not a scope name: printable ASCII without space, quote and backslash", s)
		}
	}
	return nil
}

// Name checks a text that people see; it may be empty.
func Name(s string) error {
	if !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
		return errors.New("has control characters")
	}
	if utf8.RuneCountInString(s) > maxName {
		return fmt.Errorf("has more than %d characters", maxName)
	}
	return nil
}

// maxLanguages: a text in every language of the European Union, and some.
const maxLanguages = 50

// text checks a text that people see, in every language that it is in.
func (p problems) text(field string, t catalog.Text) { p.texts(field, t, Name) }

// texts checks each language of a text.
func (p problems) texts(field string, t catalog.Text, check func(string) error) {
	if len(t) > maxLanguages {
		p.add(field, "is in %d languages, more than %d", len(t), maxLanguages)
		return
	}
	for _, l := range slices.Sorted(maps.Keys(t)) {
		at := field
		if l != "" {
			at += "." + l
			if err := Language(l); err != nil {
				p.err(at, err)
				continue
			}
		}
		p.err(at, check(t[l]))
	}
	if _, ok := t[""]; ok && len(t) > 1 {
		p.add(field, "has a text without a language beside those with one")
	}
}

// Language checks a language tag in its canonical form (BCP 47).
func Language(s string) error {
	tag, err := language.Parse(s)
	if err != nil || len(s) > maxID || s == "und" {
		return fmt.Errorf("%q is not a language tag such as en or pt-BR (BCP 47)", s)
	}
	if tag.String() != s {
		return fmt.Errorf("%q is written %q (BCP 47)", s, tag)
	}
	return nil
}

// PhonePrefix checks the beginning of a number in E.164.
func PhonePrefix(s string) error {
	digits, ok := strings.CutPrefix(s, "+")
	if !ok || digits == "" || len(digits) > maxPhoneDigits || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return fmt.Errorf("%q is not a prefix such as +7 (E.164)", s)
	}
	return nil
}

// Secret checks a client secret: characters of RFC 6749 appendix A.2, 12 to
// 512 of them. The error does not show it.
func Secret(s string) error {
	if len(s) < minSecret || len(s) > maxSecret {
		return fmt.Errorf("must have %d to %d characters", minSecret, maxSecret)
	}
	for i := range len(s) {
		if s[i] < 0x20 || s[i] > 0x7e {
			return errors.New("may only have printable ASCII characters")
		}
	}
	return nil
}
