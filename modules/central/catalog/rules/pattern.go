package rules

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
)

// Bounds of patterns.
const (
	maxPattern = 1000
	// maxPatternSteps: a repeated repetition unfolds, (a{1000}){1000}.
	maxPatternSteps = 2000
)

// Pattern checks a regular expression (RE2, whose time is linear), and bounds
// what it unfolds to.
func Pattern(s string) error {
	if len(s) > maxPattern {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxPattern)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return fmt.Errorf("is not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return errors.New("is not a regular expression")
	}
	if n := len(program.Inst); n > maxPatternSteps {
		return fmt.Errorf("unfolds to %d steps, more than %d", n, maxPatternSteps)
	}
	if _, err := regexp.Compile(s); err != nil {
		return errors.New("is not a regular expression")
	}
	return nil
}
