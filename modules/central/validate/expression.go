package validate

import "versola/modules/central/catalog/rules"

// Rule checks a CEL expression of type bool: by compiling it as the edge does.
func Rule(s string) error {
	_, err := rules.Condition(s)
	return err
}

// Value checks a CEL expression of type string.
func Value(s string) error {
	_, err := rules.Value(s)
	return err
}

// Regexp checks a regular expression.
func Regexp(s string) error { return rules.Pattern(s) }
