package user

import (
	"errors"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kind says what an identifier is. The values are those of a client's login
// flow.
type Kind string

// The kinds.
const (
	KindPhone    Kind = "phone"
	KindEmail    Kind = "email"
	KindUsername Kind = "username"
)

// Identifier is a normalised way to name a person.
type Identifier struct {
	Kind  Kind   `json:"kind"`
	Value string `json:"value"` // phone: E.164; e-mail: as given
}

// Key returns the form in which identifiers are compared.
func (i Identifier) Key() string {
	if i.Kind == KindPhone {
		return i.Value
	}
	return strings.ToLower(i.Value)
}

// Masked returns a form for logs: enough to recognise, too little to use.
func (i Identifier) Masked() string {
	if i.Kind == KindEmail {
		local, domain := splitEmail(i.Value)
		_, n := utf8.DecodeRuneInString(local)
		return local[:n] + "***@" + domain
	}
	if len(i.Value) < 6 {
		return "***"
	}
	return i.Value[:3] + "***" + i.Value[len(i.Value)-2:]
}

// Errors of parsing.
var (
	ErrPhone    = errors.New("a phone number is + and 7 to 15 digits, country code first")
	ErrEmail    = errors.New("not an e-mail address")
	ErrUsername = errors.New("a username is 1 to 64 letters, digits and . _ -")
)

// Bounds of identifiers.
const (
	// minPhoneDigits and maxPhoneDigits: the longest E.164 number has 15
	// digits; the shortest subscriber numbers in use have 7 with their country
	// code.
	minPhoneDigits = 7
	maxPhoneDigits = 15
	// maxInput bounds what is looked at, before anything else: separators
	// included, no phone number or address is longer.
	maxInput = 320
	// maxEmail and maxEmailLocal are the limits of RFC 5321 section 4.5.3.1.
	maxEmail      = 254
	maxEmailLocal = 64
	maxUsername   = 64
)

// ParsePhone normalises a phone number to E.164. Spaces, dashes, dots and
// parentheses between the digits are dropped; nothing is guessed: a number
// without "+" and its country code is refused. Errors: [ErrPhone].
func ParsePhone(text string) (string, error) {
	text = strings.TrimSpace(text)
	if len(text) > maxInput || !strings.HasPrefix(text, "+") {
		return "", ErrPhone
	}
	out := make([]byte, 1, maxPhoneDigits+1)
	out[0] = '+'
	for _, r := range text[1:] {
		switch {
		case r >= '0' && r <= '9':
			if len(out) > maxPhoneDigits {
				return "", ErrPhone
			}
			out = append(out, byte(r)) //nolint:gosec // an ASCII digit
		case r == ' ', r == '-', r == '(', r == ')', r == '.', r == '\u00a0', r == '\u2011', r == '\u202f':
		default:
			return "", ErrPhone
		}
	}
	if len(out)-1 < minPhoneDigits || out[1] == '0' {
		return "", ErrPhone
	}
	return string(out), nil
}

// ParseEmail checks an e-mail address and trims space around it. An
// internationalised domain stays as it was given. Errors: [ErrEmail].
func ParseEmail(text string) (string, error) {
	text = strings.TrimSpace(text)
	local, domain := splitEmail(text)
	if len(text) > maxEmail || len(local) > maxEmailLocal || local == "" || domain == "" || !utf8.ValidString(text) {
		return "", ErrEmail
	}
	for _, r := range text {
		if unicode.IsSpace(r) || notGraphic(r) || strings.ContainsRune(`"(),:;<>[\]`, r) {
			return "", ErrEmail
		}
	}
	if strings.Contains(local, "@") || badDots(local) || badDots(domain) {
		return "", ErrEmail
	}
	for label := range strings.SplitSeq(domain, ".") {
		if len(label) > 63 || strings.HasPrefix(label, "-") || strings.HasSuffix(label, "-") || !isDomainLabel(label) {
			return "", ErrEmail
		}
	}
	return text, nil
}

// ParseUsername checks a username. It can be neither an address nor a phone
// number. Errors: [ErrUsername].
func ParseUsername(text string) (string, error) {
	if text == "" || len(text) > maxUsername || !utf8.ValidString(text) {
		return "", ErrUsername
	}
	for _, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("._-", r) {
			return "", ErrUsername
		}
	}
	return text, nil
}

// ParseIdentifier reads what a person typed: an address where there is an "@",
// a phone number otherwise. Errors: [ErrEmail], [ErrPhone].
func ParseIdentifier(text string) (Identifier, error) {
	if strings.Contains(text, "@") {
		v, err := ParseEmail(text)
		return Identifier{KindEmail, v}, err
	}
	v, err := ParsePhone(text)
	return Identifier{KindPhone, v}, err
}

func splitEmail(text string) (local, domain string) {
	i := strings.LastIndexByte(text, '@')
	if i < 0 {
		return "", ""
	}
	return text[:i], text[i+1:]
}

func badDots(s string) bool {
	return strings.HasPrefix(s, ".") || strings.HasSuffix(s, ".") || strings.Contains(s, "..")
}

// isDomainLabel lets ASCII labels be letters, digits and hyphens; other scripts
// are left to the mail system.
func isDomainLabel(label string) bool {
	for _, r := range label {
		if r < utf8.RuneSelf && r != '-' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			return false
		}
	}
	return label != ""
}
