package rules

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// Bounds of expressions. They run for every request.
const (
	maxLength  = 4000
	maxNesting = 50
	// maxCost is in CEL's units, about one for each step and one for each ten
	// characters that a step reads: some milliseconds at the most. A rule that
	// compares a few values costs about ten.
	maxCost = 50_000
)

// Errors of an evaluation. They carry no value of the request.
var (
	ErrCost   = errors.New("the expression took more steps than it may")
	ErrFailed = errors.New("the expression could not be evaluated: a member was not there, was there twice, or was of another type")
)

// Expression is a compiled expression. It is immutable and safe for concurrent
// use.
type Expression struct {
	program cel.Program
	body    bool
}

// NeedsBody tells whether the expression reads request.body.
func (e *Expression) NeedsBody() bool { return e.body }

// Condition compiles an expression of type bool.
func Condition(s string) (*Expression, error) { return compile(s, cel.BoolType) }

// Value compiles an expression of type string.
func Value(s string) (*Expression, error) { return compile(s, cel.StringType) }

// environment is what expressions may use.
var environment = sync.OnceValues(func() (*cel.Env, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, err
	}
	return cel.NewEnv(
		cel.CustomTypeProvider(provider{registry}),
		cel.CustomTypeAdapter(registry),
		cel.Variable("token", types.NewObjectType(typeToken)),
		cel.Variable("user", types.NewObjectType(typeUser)),
		cel.Variable("request", types.NewObjectType(typeRequest)),
		cel.ParserRecursionLimit(maxNesting),
		cel.ParserExpressionSizeLimit(maxLength),
	)
})

func compile(s string, want *cel.Type) (*Expression, error) {
	if strings.TrimSpace(s) == "" {
		return nil, errors.New("is empty")
	}
	if len(s) > maxLength {
		return nil, fmt.Errorf("has %d characters, more than %d", len(s), maxLength)
	}
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("prepare expressions: %w", err)
	}
	checked, issues := env.Compile(s)
	if err := issues.Err(); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		return nil, fmt.Errorf("is not an expression: %s", strings.TrimPrefix(first, "ERROR: <input>:"))
	}
	if got := checked.OutputType(); !got.IsExactType(want) && !got.IsExactType(cel.DynType) {
		return nil, fmt.Errorf("is of type %s: %s is needed", got, want)
	}
	found, err := inspect(checked.NativeRep())
	if err != nil {
		return nil, err
	}
	program, err := env.Program(checked, cel.EvalOptions(cel.OptOptimize), cel.CostLimit(maxCost))
	if err != nil {
		return nil, errors.New("cannot be prepared")
	}
	return &Expression{program: program, body: found.body}, nil
}

// found is what an expression was seen to use.
type found struct{ body bool }

// inspect looks through an expression: whether it reads the body, and that the
// whole of an object is not taken as a value, which nothing can be done with.
func inspect(checked *ast.AST) (f found, err error) {
	selected := map[int64]bool{} // operands of a selection
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch e.Kind() {
		case ast.SelectKind:
			operand := e.AsSelect().Operand()
			selected[operand.ID()] = true
			if e.AsSelect().FieldName() == "body" && checked.GetType(operand.ID()).TypeName() == typeRequest {
				f.body = true
			}
		case ast.CallKind:
			if call := e.AsCall(); call.FunctionName() == overloads.Matches && err == nil {
				err = literalPattern(call)
			}
		case ast.StructKind:
			err = errors.Join(err, fmt.Errorf("makes a %s, which only a call has", e.AsStruct().TypeName()))
		case ast.IdentKind:
			if checked.GetType(e.ID()).Kind() == types.StructKind && !selected[e.ID()] && err == nil {
				err = fmt.Errorf("uses %q as a whole: name a member, such as %s", e.AsIdent(), example[e.AsIdent()])
			}
		default:
		}
	}))
	return f, err
}

var example = map[string]string{"token": "token.sub", "user": "user.id", "request": "request.method"}

// literalPattern checks the pattern of a call of matches.
func literalPattern(call ast.CallExpr) error {
	args := call.Args()
	pattern := args[len(args)-1]
	if pattern.Kind() != ast.LiteralKind {
		return errors.New("has a pattern of matches() that is not a literal: a request must not choose it")
	}
	text, ok := pattern.AsLiteral().(types.String)
	if !ok {
		return errors.New("has a pattern of matches() that is not text")
	}
	if err := Pattern(string(text)); err != nil {
		return fmt.Errorf("has a pattern of matches() that %w", err)
	}
	return nil
}

// Bool evaluates a condition. Errors: [ErrCost], [ErrFailed].
func (e *Expression) Bool(in *Input) (bool, error) {
	v, err := e.eval(in)
	if err != nil {
		return false, err
	}
	b, ok := v.(types.Bool)
	if !ok {
		return false, ErrFailed
	}
	return bool(b), nil
}

// Text evaluates a value. Errors: [ErrCost], [ErrFailed].
func (e *Expression) Text(in *Input) (string, error) {
	v, err := e.eval(in)
	if err != nil {
		return "", err
	}
	s, ok := v.(types.String)
	if !ok {
		return "", ErrFailed
	}
	return string(s), nil
}

func (e *Expression) eval(in *Input) (ref.Val, error) {
	v, _, err := e.program.Eval(in)
	switch {
	case err == nil:
		return v, nil
	case strings.Contains(err.Error(), "cost limit exceeded"): // cel has no error of its own for it
		return nil, ErrCost
	default:
		return nil, ErrFailed
	}
}
