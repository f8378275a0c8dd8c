package policy

import (
	"errors"
	"fmt"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/rules"
)

// maxInjected bounds the value of an injected header: common servers take 8 KiB
// for all headers together.
const maxInjected = 4 << 10

// Rules are the expressions of an endpoint, compiled. They are immutable.
type Rules struct {
	allow  *rules.Expression // nil: none
	inject []injection
	body   bool
	broken bool // one did not compile, so the endpoint is closed
}

type injection struct {
	header string
	value  *rules.Expression
}

// NeedsBody tells whether an expression reads the body.
func (r *Rules) NeedsBody() bool { return r.body }

// Expressions compiles the expressions of one catalog after the other: one that
// was there before is not compiled again, one that is gone is forgotten.
type Expressions struct {
	before, now map[expression]*rules.Expression
}

type expression struct {
	text      string
	condition bool
}

// Next begins the next catalog.
func (c *Expressions) Next() { c.before, c.now = c.now, map[expression]*rules.Expression{} }

func (c *Expressions) compile(text string, condition bool) (*rules.Expression, error) {
	key := expression{text, condition}
	e, ok := c.now[key]
	if !ok {
		e, ok = c.before[key]
	}
	if !ok {
		var err error
		if condition {
			e, err = rules.Condition(text)
		} else {
			e, err = rules.Value(text)
		}
		if err != nil {
			return nil, err
		}
	}
	c.now[key] = e
	return e, nil
}

// Rules compiles an endpoint's expressions; nil: it has none. With an error,
// the rules deny: registration refuses what does not compile, so the endpoint
// was registered by another version.
func (c *Expressions) Rules(e *catalog.EndpointSpec) (*Rules, error) {
	if e.Allow == "" && len(e.Inject) == 0 {
		return nil, nil
	}
	out := &Rules{}
	if e.Allow != "" {
		allow, err := c.compile(e.Allow, true)
		if err != nil {
			return &Rules{broken: true}, fmt.Errorf("allow: %w", err)
		}
		out.allow, out.body = allow, allow.NeedsBody()
	}
	for _, in := range e.Inject {
		value, err := c.compile(in.Value, false)
		if err != nil {
			return &Rules{broken: true}, fmt.Errorf("inject %s: %w", in.Header, err)
		}
		out.inject = append(out.inject, injection{in.Header, value})
		out.body = out.body || value.NeedsBody()
	}
	return out, nil
}

// Satisfied decides whether a call holds the endpoint's allow expression (nil:
// no rules). What cannot be evaluated denies; the error says why.
func Satisfied(r *Rules, in *rules.Input) (Reason, error) {
	switch {
	case r == nil:
		return Allowed, nil
	case r.broken:
		return RuleFailed, errBroken
	case r.allow == nil:
		return Allowed, nil
	}
	ok, err := r.allow.Bool(in)
	switch {
	case err != nil:
		return RuleFailed, fmt.Errorf("allow: %w", err)
	case !ok:
		return RuleDenied, nil
	}
	return Allowed, nil
}

var (
	errBroken = errors.New("an expression of the endpoint does not compile")
	errUnfit  = errors.New("the value is too long, or has a character that a header cannot have")
)

// Header is one that a rule sets; without a value, the upstream gets none of
// that name.
type Header struct{ Name, Value string }

// Injected evaluates the headers that an endpoint's rules set. The Reason is
// [Allowed], or the call is refused.
func Injected(r *Rules, in *rules.Input) ([]Header, Reason, error) {
	if r == nil {
		return nil, Allowed, nil
	}
	out := make([]Header, 0, len(r.inject))
	for _, i := range r.inject {
		value, err := i.value.Text(in)
		if err == nil && !fitsHeader(value) {
			err = errUnfit
		}
		if err != nil {
			return nil, RuleFailed, fmt.Errorf("inject %s: %w", i.header, err)
		}
		if value != "" {
			out = append(out, Header{i.header, value})
		}
	}
	return out, Allowed, nil
}

// fitsHeader tells whether every reader takes a field value for the same text:
// visible ASCII, with spaces inside (RFC 9110 section 5.5).
func fitsHeader(s string) bool {
	if len(s) > maxInjected || s != "" && (s[0] == ' ' || s[len(s)-1] == ' ') {
		return false
	}
	for i := range len(s) {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
