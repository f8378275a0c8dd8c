package password

import (
	"regexp"
	"strconv"
	"unicode/utf8"

	"versola/modules/central/catalog"
)

// Policy is what a tenant asks of the passwords that people choose.
type Policy struct {
	// Min is how long one has to be, in characters.
	Min     int
	pattern *regexp.Regexp // nil: anything
}

// PolicyOf returns a tenant's policy.
func PolicyOf(t *catalog.Tenant) Policy {
	p := Policy{Min: MinLength, pattern: t.PasswordPattern}
	if s := t.Settings.PasswordPolicy; s != nil {
		p.Min = max(int(s.MinLength), MinLength)
	}
	return p
}

// Problem returns the key of the text that says why a password may not be
// chosen, or "". The text's placeholders are filled by [Policy.Args].
func (p Policy) Problem(chosen string) string {
	switch {
	case CheckLength(chosen) != nil, utf8.RuneCountInString(chosen) < p.Min:
		return "error.new_password_length"
	case p.pattern != nil && !p.pattern.MatchString(chosen):
		return "error.new_password_pattern"
	}
	return ""
}

// Args fill in the placeholders of what [Policy.Problem] returns.
func (p Policy) Args() []string {
	return []string{"min", strconv.Itoa(p.Min), "max", strconv.Itoa(MaxLength)}
}
