package token

import (
	"encoding/json"
	"strconv"

	"versola/platform/jose"
)

// object writes a JSON object member by member.
type object struct{ b []byte }

func newObject() *object { return &object{b: append(make([]byte, 0, 768), '{')} }

func (o *object) name(n string) {
	if len(o.b) > 1 {
		o.b = append(o.b, ',')
	}
	o.b = append(o.b, '"')
	o.b = append(o.b, n...)
	o.b = append(o.b, '"', ':')
}

func (o *object) text(name, v string) {
	o.name(name)
	o.b = appendText(o.b, v)
}

// optional writes a text that is not empty.
func (o *object) optional(name, v string) {
	if v != "" {
		o.text(name, v)
	}
}

func (o *object) number(name string, v int64) {
	o.name(name)
	o.b = strconv.AppendInt(o.b, v, 10)
}

func (o *object) list(name string, vs []string) {
	o.name(name)
	o.b = append(o.b, '[')
	for i, v := range vs {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendText(o.b, v)
	}
	o.b = append(o.b, ']')
}

// audience writes one audience as a string and several as an array (RFC 7519
// section 4.1.3).
func (o *object) audience(vs []string) {
	if len(vs) == 1 {
		o.text("aud", vs[0])
		return
	}
	o.list("aud", vs)
}

func (o *object) raw(name, v string) {
	o.name(name)
	o.b = append(o.b, v...)
}

// confirmation writes "cnf" (RFC 7800), if there is one.
func (o *object) confirmation(c jose.Confirmation) {
	if !c.Bound() {
		return
	}
	inner := &object{b: []byte{'{'}}
	inner.optional("jkt", c.JKT)
	inner.optional("x5t#S256", c.X5T)
	o.raw("cnf", string(inner.end()))
}

func (o *object) end() []byte { return append(o.b, '}') }

func appendText(b []byte, v string) []byte {
	for i := range len(v) {
		if c := v[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			quoted, err := json.Marshal(v)
			if err != nil {
				panic(err) // a string always marshals
			}
			return append(b, quoted...)
		}
	}
	b = append(b, '"')
	b = append(b, v...)
	return append(b, '"')
}
