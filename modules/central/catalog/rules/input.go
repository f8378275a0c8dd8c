package rules

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// Token are the claims of an access token; the zero value: there is none.
type Token struct {
	Issuer, Subject, ClientID, Tenant, ID, SessionID, GrantID, Scope, ACR string
	Audience, AMR, Roles                                                  []string
	AuthTime, IssuedAt, ExpiresAt                                         time.Time
	// Person tells that somebody signed in for it.
	Person bool
}

// Request is a call.
type Request struct {
	Method   string
	Path     string // below the resource, decoded
	Template string // of the endpoint
	Segments []string
	RawQuery string
	Header   http.Header
	// Visible tells whether expressions may see a header.
	Visible func(name string) bool
	Address string
	Time    time.Time
	Body    any // as [Body] returns it; nil: none
}

// Input is what one call hands to its expressions. It is not safe for
// concurrent use.
type Input struct {
	Token   Token
	Request Request

	headers    map[string]string
	query      map[string]string
	queryErr   error
	parameters map[string]string
}

// ResolveName implements cel.Activation.
func (in *Input) ResolveName(name string) (any, bool) {
	switch name {
	case "token", "user", "request":
		return in, true
	}
	return nil, false
}

// Parent implements cel.Activation.
func (in *Input) Parent() cel.Activation { return nil }

// Names of the types of the variables.
const (
	typeToken   = "versola.Token"
	typeUser    = "versola.User"
	typeRequest = "versola.Request"
)

// provider knows the members of the variables, besides CEL's own types.
type provider struct{ *types.Registry }

// FindStructType implements types.Provider.
func (p provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := members[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Registry.FindStructType(name)
}

// FindStructFieldNames implements types.Provider.
func (p provider) FindStructFieldNames(name string) ([]string, bool) {
	fields, ok := members[name]
	if !ok {
		return p.Registry.FindStructFieldNames(name)
	}
	names := make([]string, 0, len(fields))
	for n := range fields {
		names = append(names, n)
	}
	return names, true
}

// FindStructFieldType implements types.Provider.
func (p provider) FindStructFieldType(name, field string) (*types.FieldType, bool) {
	fields, ok := members[name]
	if !ok {
		return p.Registry.FindStructFieldType(name, field)
	}
	f, ok := fields[field]
	return f, ok
}

// NewValue implements types.Provider: nobody makes a variable's type.
func (p provider) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := members[name]; ok {
		return types.NewErr("not to be made")
	}
	return p.Registry.NewValue(name, fields)
}

var (
	errAbsent = errors.New("no such member")
	errInput  = errors.New("not an input")

	texts  = types.NewListType(types.StringType)
	byName = types.NewMapType(types.StringType, types.StringType)
)

// member makes a member of a variable; get returns false for what is not
// there.
func member(t *types.Type, get func(*Input) (any, bool, error)) *types.FieldType {
	return &types.FieldType{
		Type: t,
		IsSet: func(target any) bool {
			in, ok := target.(*Input)
			if !ok {
				return false
			}
			_, there, err := get(in)
			return there && err == nil
		},
		GetFrom: func(target any) (any, error) {
			in, ok := target.(*Input)
			if !ok {
				return nil, errInput
			}
			v, there, err := get(in)
			if err == nil && v == nil && !there {
				err = errAbsent
			}
			return v, err
		},
	}
}

// text is a member of type string; not there, it is "".
func text(get func(*Input) string) *types.FieldType {
	return member(types.StringType, func(in *Input) (any, bool, error) {
		s := get(in)
		return s, s != "", nil
	})
}

// list is a member of type list(string).
func list(get func(*Input) []string) *types.FieldType {
	return member(texts, func(in *Input) (any, bool, error) {
		l := get(in)
		if l == nil {
			l = []string{}
		}
		return l, len(l) > 0, nil
	})
}

// instant is a member of type timestamp; to read one that is not there is an
// error.
func instant(get func(*Input) time.Time) *types.FieldType {
	return member(types.TimestampType, func(in *Input) (any, bool, error) {
		t := get(in)
		if t.IsZero() {
			return nil, false, nil
		}
		return t, true, nil
	})
}

// members of the variables.
var members = map[string]map[string]*types.FieldType{
	typeToken: {
		"iss":       text(func(in *Input) string { return in.Token.Issuer }),
		"sub":       text(func(in *Input) string { return in.Token.Subject }),
		"aud":       list(func(in *Input) []string { return in.Token.Audience }),
		"client_id": text(func(in *Input) string { return in.Token.ClientID }),
		"tenant":    text(func(in *Input) string { return in.Token.Tenant }),
		"jti":       text(func(in *Input) string { return in.Token.ID }),
		"sid":       text(func(in *Input) string { return in.Token.SessionID }),
		"gid":       text(func(in *Input) string { return in.Token.GrantID }),
		"scope":     text(func(in *Input) string { return in.Token.Scope }),
		"scopes":    list(func(in *Input) []string { return strings.Fields(in.Token.Scope) }),
		"roles":     list(func(in *Input) []string { return in.Token.Roles }),
		"acr":       text(func(in *Input) string { return in.Token.ACR }),
		"amr":       list(func(in *Input) []string { return in.Token.AMR }),
		"auth_time": instant(func(in *Input) time.Time { return in.Token.AuthTime }),
		"iat":       instant(func(in *Input) time.Time { return in.Token.IssuedAt }),
		"exp":       instant(func(in *Input) time.Time { return in.Token.ExpiresAt }),
	},
	typeUser: {
		"id":    text(func(in *Input) string { return in.ofPerson(in.Token.Subject) }),
		"roles": list(func(in *Input) []string { return in.Token.Roles }),
	},
	typeRequest: {
		"method":     text(func(in *Input) string { return in.Request.Method }),
		"path":       text(func(in *Input) string { return in.Request.Path }),
		"address":    text(func(in *Input) string { return in.Request.Address }),
		"time":       instant(func(in *Input) time.Time { return in.Request.Time }),
		"parameters": member(byName, func(in *Input) (any, bool, error) { return in.pathParameters(), true, nil }),
		"query":      member(byName, func(in *Input) (any, bool, error) { q, err := in.parameterOnce(); return q, err == nil, err }),
		"headers":    member(byName, func(in *Input) (any, bool, error) { return in.lowerHeaders(), true, nil }),
		"body":       member(types.DynType, func(in *Input) (any, bool, error) { return in.bodyOrNull(), in.Request.Body != nil, nil }),
	},
}

// ofPerson returns s where a person stands behind the token.
func (in *Input) ofPerson(s string) string {
	if in.Token.Person {
		return s
	}
	return ""
}

func (in *Input) bodyOrNull() any {
	if in.Request.Body == nil {
		return types.NullValue
	}
	return in.Request.Body
}

// pathParameters reads the values that the template's names had in the path.
func (in *Input) pathParameters() map[string]string {
	if in.parameters != nil {
		return in.parameters
	}
	in.parameters = map[string]string{}
	at := 0
	for segment := range strings.SplitSeq(strings.TrimPrefix(in.Request.Template, "/"), "/") {
		name, ok := strings.CutPrefix(segment, "{")
		if ok && at <= len(in.Request.Segments) {
			name = strings.TrimSuffix(name, "}")
			if rest, all := strings.CutSuffix(name, "..."); all {
				in.parameters[rest] = strings.Join(in.Request.Segments[at:], "/")
			} else if at < len(in.Request.Segments) {
				in.parameters[name] = in.Request.Segments[at]
			}
		}
		at++
	}
	return in.parameters
}

var errTwice = errors.New("a parameter is there twice")

// parameterOnce reads the query. A name that is there twice is an error: one
// reader takes the first and another the last.
func (in *Input) parameterOnce() (map[string]string, error) {
	if in.query != nil || in.queryErr != nil {
		return in.query, in.queryErr
	}
	values, err := url.ParseQuery(in.Request.RawQuery)
	if err != nil {
		in.queryErr = err
		return nil, err
	}
	in.query = make(map[string]string, len(values))
	for name, list := range values {
		if len(list) > 1 {
			in.query, in.queryErr = nil, errTwice
			return nil, errTwice
		}
		in.query[name] = list[0]
	}
	return in.query, nil
}

// lowerHeaders are the visible headers by their names in lower case; several
// of a name are joined as RFC 9110 section 5.2 says.
func (in *Input) lowerHeaders() traits.Mapper {
	if in.headers == nil {
		in.headers = make(map[string]string, len(in.Request.Header))
		for name, values := range in.Request.Header {
			if in.Request.Visible == nil || in.Request.Visible(name) {
				in.headers[strings.ToLower(name)] = strings.Join(values, ", ")
			}
		}
	}
	return caseless{types.NewStringStringMap(types.DefaultTypeAdapter, in.headers)}
}

// caseless is a map whose keys are in lower case and are found in any.
type caseless struct{ traits.Mapper }

func fold(key ref.Val) ref.Val {
	if s, ok := key.(types.String); ok {
		return types.String(strings.ToLower(string(s)))
	}
	return key
}

// Contains implements traits.Container.
func (c caseless) Contains(key ref.Val) ref.Val { return c.Mapper.Contains(fold(key)) }

// Get implements traits.Indexer.
func (c caseless) Get(key ref.Val) ref.Val { return c.Mapper.Get(fold(key)) }

// Find implements traits.Mapper.
func (c caseless) Find(key ref.Val) (ref.Val, bool) { return c.Mapper.Find(fold(key)) }
