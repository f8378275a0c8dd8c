package rules

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

func input() *Input {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	body, _ := Body([]byte(`{"amount":100,"rate":0.5,"to":{"iban":"DE1"},"tags":["a","b"],"note":null,"9":1}`))
	return &Input{
		Token: Token{Issuer: "https://i", Subject: "alice", ClientID: "web", Tenant: "demo", Scope: "openid bank", Audience: []string{"bank"}, AMR: []string{"otp"},
			Roles: []string{"customer", "admin"}, AuthTime: at, IssuedAt: at, ExpiresAt: at.Add(time.Minute), Person: true},
		Request: Request{Method: "POST", Path: "/accounts/alice/a/b", Template: "/accounts/{id}/{rest...}", Segments: []string{"accounts", "alice", "a", "b"},
			RawQuery: "limit=10&name=A%20B", Address: "192.0.2.7", Time: at, Body: body,
			Header:  http.Header{"X-Branch": {"north"}, "X-Many": {"a", "b"}, "Cookie": {"secret"}},
			Visible: func(name string) bool { return name != "Cookie" }},
	}
}

func TestCondition_SaysWhatTheRequestIs(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		`token.sub == request.parameters.id`:                                                   true,
		`request.parameters.rest == "a/b"`:                                                     true,
		`request.parameters["id"] == "bob"`:                                                    false,
		`"admin" in token.roles && request.method == "POST"`:                                   true,
		`token.scopes.exists(s, s == "bank") && token.scope.startsWith("open")`:                true,
		`user.id == "alice" && "customer" in user.roles`:                                       true,
		`token.amr.exists(a, a == "otp")`:                                                      true,
		`has(token.acr)`:                                                                       false,
		`token.acr == "high" || token.client_id == "web"`:                                      true,
		`request.headers["x-branch"] == "north" && request.headers["X-BRANCH"] == "north"`:     true,
		`"X-branch" in request.headers && !("x-none" in request.headers)`:                      true,
		`has(request.headers.cookie) || "cookie" in request.headers`:                           false,
		`request.headers["x-many"] == "a, b"`:                                                  true,
		`int(request.query.limit) <= 50 && request.query.name == "A B"`:                        true,
		`has(request.query.none)`:                                                              false,
		`request.body.amount <= 1000 && request.body.rate < 1.0`:                               true,
		`request.body.amount == 100.0 && request.body.to.iban.matches("^DE[0-9]+$")`:           true,
		`request.body.tags == ["a", "b"] && request.body.note == null && has(request.body.to)`: true,
		`request.time - token.auth_time < duration("5m") && token.exp > request.time`:          true,
		`request.headers.all(n, n != "Cookie" && n != "X-Branch")`:                             true,
		`request.address == "192.0.2.7" && request.path.endsWith("/b")`:                        true,
		`request.time.getHours("Europe/Berlin") == 13`:                                         true,
	} {
		e, err := Condition(s)
		if err != nil {
			t.Errorf("%s: %v", s, err)
			continue
		}
		if got, err := e.Bool(input()); err != nil || got != want {
			t.Errorf("%s is %v, %v", s, got, err)
		}
		if e.NeedsBody() != strings.Contains(s, "body") {
			t.Errorf("%s: needs the body: %v", s, e.NeedsBody())
		}
	}
}

func TestCondition_WhatCannotRunIsRefused(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		``:                                        "is empty",
		"  ":                                      "is empty",
		`token.sub`:                               "is of type string",
		`1 + 1`:                                   "is of type int",
		`token.sub ==`:                            "is not an expression",
		`os.exit()`:                               "is not an expression",
		`env.PASSWORD == "x"`:                     "is not an expression",
		`token.subject == "x"`:                    "is not an expression",
		`user.claims.department == "sales"`:       "is not an expression",
		`token["sub"] == "x"`:                     "is not an expression",
		`request.parameters.id == 1`:              "is not an expression",
		`size(token.roles) > "1"`:                 "is not an expression",
		`token == token`:                          "as a whole",
		`dyn(token).sub == "x"`:                   "as a whole",
		`[request].exists(r, r.body == 1)`:        "as a whole",
		`versola.Token{sub: "x"}.sub == "x"`:      "makes a versola.Token",
		`token.sub.matches(request.path)`:         "not a literal",
		`matches(token.sub, request.path)`:        "not a literal",
		`token.sub.matches("(")`:                  "",
		`token.sub.matches("(a{1000}){1000}")`:    "",
		strings.Repeat("true || ", 1000) + "true": "characters, more than",
		strings.Repeat("(", 400) + "true" + strings.Repeat(")", 400): "is not an expression",
		"true\x00": "is not an expression",
		"\xff":     "is not an expression",
	} {
		if _, err := Condition(s); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", s, err, want)
		}
	}
	if _, err := Value(`true`); err == nil {
		t.Error("a header's value is a bool")
	}
}

func TestValue_IsText(t *testing.T) {
	t.Parallel()
	e, err := Value(`token.sub + ":" + string(request.body.amount)`)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := e.Text(input()); got != "alice:100" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}

// Whatever goes wrong is an error, which denies.
func TestBool_WhatIsNotThereOrAmbiguousIsAnError(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule   string
		change func(*Input)
	}{
		"no such parameter":      {`request.parameters.other == "a"`, nil},
		"no such header":         {`request.headers["x-none"] != "a"`, nil},
		"a header kept back":     {`request.headers.cookie != "a"`, nil},
		"no such query":          {`request.query.none != "a"`, nil},
		"no body":                {`request.body.amount < 1000`, func(in *Input) { in.Request.Body = nil }},
		"no such body member":    {`request.body.limit < 1000`, nil},
		"another type":           {`request.body.to < 1000`, nil},
		"not a truth":            {`request.body.amount`, nil},
		"not a number":           {`int(request.query.limit) < 50`, func(in *Input) { in.Request.RawQuery = "limit=x" }},
		"a query twice":          {`request.query.limit == "10"`, func(in *Input) { in.Request.RawQuery = "limit=10&limit=1000" }},
		"another query twice":    {`request.query.limit == "10"`, func(in *Input) { in.Request.RawQuery = "limit=10&a=1&a=2" }},
		"twice by escapes":       {`request.query.limit == "10"`, func(in *Input) { in.Request.RawQuery = "limit=10&%6cimit=1000" }},
		"a malformed query":      {`request.query.limit == "10"`, func(in *Input) { in.Request.RawQuery = "limit=10&a=%zz" }},
		"a query by semicolons":  {`request.query.limit == "10"`, func(in *Input) { in.Request.RawQuery = "limit=10;limit=1000" }},
		"never signed in":        {`token.auth_time > timestamp("2020-01-01T00:00:00Z")`, func(in *Input) { in.Token.AuthTime = time.Time{} }},
		"division by nothing":    {`10 / (request.body.amount - 100) == 1`, nil},
		"an overflow":            {`9223372036854775807 + request.body.amount > 0`, nil},
		"an index out of bounds": {`request.body.tags[7] == "a"`, nil},
	} {
		e, err := Condition(c.rule)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		in := input()
		if c.change != nil {
			c.change(in)
		}
		for range 2 { // the same again, from what the input remembers
			if ok, err := e.Bool(in); ok || !errors.Is(err, ErrFailed) {
				t.Errorf("%s: %v, %v", name, ok, err)
			}
		}
	}
}

func TestBool_CostIsLimited(t *testing.T) {
	t.Parallel()
	for _, rule := range []string{
		`request.body.l.all(a, request.body.l.all(b, request.body.l.all(c, a + b + c >= 0)))`,
		`request.body.l.map(a, request.body.l.map(b, request.body.l)).size() > 0`,
		`request.body.l.all(a, request.path.contains("x" + string(a)) || true)`,
	} {
		e, err := Condition(rule)
		if err != nil {
			t.Fatal(err)
		}
		in := input()
		in.Request.Path = strings.Repeat("y", 8<<10)
		in.Request.Body, err = Body([]byte(`{"l":[` + strings.Repeat("1,", 2000) + `1]}`))
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := e.Bool(in); ok || !errors.Is(err, ErrCost) {
			t.Errorf("%s: %v, %v", rule, ok, err)
		}
	}
}

func TestBody_IsReadInOneWayOnly(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{
		`{}`: true, `[]`: true, `"a"`: true, `null`: true, ` {"a":1} `: true, `{"a":{"b":1},"c":{"b":2}}`: true, `{"a":9223372036854775807,"b":-9223372036854775808}`: true,
		`{"a":1e3}`: true, `{"a":"\u00e9\ud83d\ude00"}`: true,
		``: false, `{`: false, `{} {}`: false, `{}x`: false, `{'a':1}`: false, `{"a":1,}`: false, `[1,,2]`: false, `{"a":01}`: false, `NaN`: false, `// c`: false,
		`{"a":1,"a":2}`: false, `{"a":1,"A":2}`: false, `{"a":1,"\u0061":2}`: false, `{"k":1,"` + "\u212a" + `":2}`: false, `{"x":{"a":1,"a":1}}`: false, `[{"a":1,"a":1}]`: false,
		`{"a":9223372036854775808}`: false, `{"a":1e999}`: false, `{"a":"\ud800"}`: false, "{\"a\":\"\xff\"}": false, "\ufeff{}": false,
		strings.Repeat("[", maxDepth) + strings.Repeat("]", maxDepth):     true,
		strings.Repeat("[", maxDepth+1) + strings.Repeat("]", maxDepth+1): false,
		strings.Repeat(`{"a":`, 9999) + "1" + strings.Repeat("}", 9999):   false,
		strings.Repeat("[", 100_000):                                      false,
	} {
		if _, err := Body([]byte(s)); (err == nil) != ok || err != nil && !errors.Is(err, ErrBody) {
			t.Errorf("%.40q: %v", s, err)
		}
	}
}

func FuzzBody(f *testing.F) {
	f.Add([]byte(`{"a":[1,2.5,"x",null,true,{"b":{}}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		v, err := Body(raw)
		if err != nil {
			return
		}
		e, err := Condition(`request.body == request.body`)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Bool(&Input{Request: Request{Body: v}}); err != nil && !errors.Is(err, ErrCost) && !errors.Is(err, ErrFailed) {
			t.Fatal(err)
		}
	})
}

func FuzzCondition(f *testing.F) {
	for _, s := range []string{`token.sub == request.parameters.id`, `request.body.a.b[0] > 1 && has(request.query.x)`, `"a".matches("b")`, `[1].map(x, x)`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		e, err := Condition(s)
		if err != nil {
			return
		}
		if _, err := e.Bool(input()); err != nil && !errors.Is(err, ErrCost) && !errors.Is(err, ErrFailed) {
			t.Fatal(err)
		}
	})
}

func BenchmarkCompile(b *testing.B) {
	for b.Loop() {
		if _, err := Condition(`token.sub == request.parameters.id && "customer" in token.roles`); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkBool(b *testing.B) {
	e, err := Condition(`token.sub == request.parameters.id && "customer" in token.roles`)
	if err != nil {
		b.Fatal(err)
	}
	from := input()
	b.ReportAllocs()
	for b.Loop() {
		in := Input{Token: from.Token, Request: from.Request}
		if ok, err := e.Bool(&in); !ok || err != nil {
			b.Fatal(err)
		}
	}
}
