package texts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Channels that messages go by.
const (
	SMS   = "sms"
	Email = "email"
)

// Channels lists them.
func Channels() []string { return []string{SMS, Email} }

// Template is what a tenant says in a message instead of the product's words.
type Template struct {
	Message string // one of [Messages]
	Channel string // one of [Channels]
	// Subject, of e-mail, and Body by language; "" is every other language.
	Subject, Body map[string]string
}

// messages that the product sends, and the keys of their texts:
// "message.<name>.subject" and "message.<name>.text".
var messages = []string{"otp", "password_reset"}

// Messages lists the names of the messages that there are.
func Messages() []string { return slices.Clone(messages) }

// messageKey is a part of a message.
type messageKey struct{ message, channel, part, locale string }

const (
	partSubject = "subject"
	partText    = "text"
)

func compile(list []Template) map[messageKey]string {
	out := map[messageKey]string{}
	for _, t := range list {
		for l, s := range t.Subject {
			out[messageKey{t.Message, t.Channel, partSubject, l}] = s
		}
		for l, s := range t.Body {
			out[messageKey{t.Message, t.Channel, partText, l}] = s
		}
	}
	return out
}

// Message returns the words of a message in a language: the tenant's template
// of the channel, else the text of the catalogue. Only e-mail has a subject.
func (t *Texts) Message(locale, name, channel string, pairs ...string) (subject, text string) {
	if channel == Email {
		subject = t.part(locale, name, channel, partSubject, pairs)
	}
	return subject, t.part(locale, name, channel, partText, pairs)
}

func (t *Texts) part(locale, name, channel, part string, pairs []string) string {
	for l := locale; ; {
		if own, ok := t.templates[messageKey{name, channel, part, l}]; ok {
			return fillIn(own, pairs)
		}
		if l == "" {
			break
		}
		l = l[:max(strings.LastIndexByte(l, '-'), 0)] // without its region, and at last of no language
	}
	return t.Get(locale, "message."+name+"."+part, pairs...)
}

// CheckMessage checks a template's subject or body, where part is "subject" or
// "text". The message has to be one of [Messages].
func CheckMessage(name, part, text string) error { return Check("message."+name+"."+part, text) }

// Check checks what a tenant says instead of the product's text of a key.
func Check(key, text string) error {
	usual, ok := Product().byName[defaultLocale][key]
	if !ok {
		return errors.New("is not the key of a text")
	}
	known := placeholders(usual)
	message, isSubject := strings.CutSuffix(key, "."+partSubject)
	if isSubject { // what the message says, its subject may say too
		known = placeholders(Product().byName[defaultLocale][message+"."+partText])
	}
	long := strings.HasPrefix(key, "message.") && strings.HasSuffix(key, "."+partText)
	if !long && utf8.RuneCountInString(text) > maxPageText {
		return fmt.Errorf("has more than %d characters", maxPageText)
	}
	switch {
	case blank(text):
		return errors.New("is empty")
	case !utf8.ValidString(text), strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) && (r != '\n' || !long) }):
		return errors.New("has control characters")
	}
	used := placeholders(text)
	for _, name := range slices.Sorted(maps.Keys(used)) {
		if !known[name] {
			return fmt.Errorf("has the placeholder {%.40s}; this text has %s", name, listed(known))
		}
	}
	for _, name := range []string{"code", "link"} {
		if long && known[name] && !used[name] {
			return fmt.Errorf("lacks the placeholder {%s}, without which the person cannot go on", name)
		}
	}
	return nil
}
