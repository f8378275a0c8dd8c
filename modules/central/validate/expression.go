package validate

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
)

// Bounds of expressions. They run for every request.
const (
	maxExpression  = 4000
	maxNesting     = 50
	maxRegexp      = 1000
	maxRegexpNodes = 2000 // a repeated repetition unfolds: (a{1000}){1000}
)

// environment is what rules of endpoints may use: the claims of the access
// token, those of the person, and the request (method, path, parameters,
// query, headers, host, address).
var environment = sync.OnceValues(func() (*cel.Env, error) {
	object := cel.MapType(cel.StringType, cel.DynType)
	return cel.NewEnv(
		cel.Variable("token", object),
		cel.Variable("user", object),
		cel.Variable("request", object),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(maxExpression),
	)
})

// Rule checks a CEL expression of type bool.
func Rule(s string) error { return expression(s, cel.BoolType) }

// Value checks a CEL expression of type string.
func Value(s string) error { return expression(s, cel.StringType) }

func expression(s string, want *cel.Type) error {
	if strings.TrimSpace(s) == "" {
		return errors.New("is empty")
	}
	if len(s) > maxExpression {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxExpression)
	}
	env, err := environment()
	if err != nil {
		return fmt.Errorf("prepare expressions: %w", err)
	}
	ast, issues := env.Compile(s)
	if err := issues.Err(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return fmt.Errorf("is not an expression: %s", strings.TrimPrefix(first, "ERROR: <input>:"))
	}
	if got := ast.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return fmt.Errorf("is of type %s: %s is needed", got, want)
	}
	return nil
}

// Regexp checks a regular expression (RE2, whose time is linear), and bounds
// what it unfolds to.
func Regexp(s string) error {
	if len(s) > maxRegexp {
		return fmt.Errorf("has %d characters, more than %d", len(s), maxRegexp)
	}
	tree, err := syntax.Parse(s, syntax.Perl)
	if err != nil {
		return fmt.Errorf("is not a regular expression: %s", strings.TrimPrefix(err.Error(), "error parsing regexp: "))
	}
	program, err := syntax.Compile(tree.Simplify())
	if err != nil {
		return errors.New("is not a regular expression")
	}
	if n := len(program.Inst); n > maxRegexpNodes {
		return fmt.Errorf("unfolds to %d steps, more than %d", n, maxRegexpNodes)
	}
	if _, err := regexp.Compile(s); err != nil {
		return errors.New("is not a regular expression")
	}
	return nil
}
