package edge_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"versola/modules/central/catalog"
)

// allow gives an endpoint of the resource "bank" a rule.
func (w *world) allow(id, rule string) {
	w.t.Helper()
	w.rule(id, func(e *catalog.EndpointSpec) { e.Allow = rule })
}

func TestRules_DecideBesidesRoles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allow("read", `request.parameters.id == user.id && token.client_id == "web"`)
	w.allow("list", `request.headers["X-Branch"] == "north" && request.query.limit == "10"`)
	w.allow("files", `request.parameters.path == "a/b" && !("cookie" in request.headers) && !("authorization" in request.headers) && !("x-forwarded-for" in request.headers)`)
	e, token := w.edge(), w.auth.bearer(nil)
	reader := w.auth.bearer(func(c map[string]any) { c["roles"] = []string{} })
	for name, c := range map[string]struct {
		path, token string
		headers     []string
		status      int
		reason      string
	}{
		"their own":               {"accounts/" + subject, token, nil, 200, ""},
		"their own, escaped":      {"accounts/%30" + subject[1:], token, nil, 200, ""},
		"another's":               {"accounts/7", token, nil, 403, "rule_denied"},
		"without a role":          {"accounts/" + subject, reader, nil, 403, "not_permitted"},
		"a service has no user":   {"accounts/robot", w.robot(), nil, 403, "rule_denied"},
		"headers in any case":     {"accounts?limit=10", token, []string{"x-bRANCH", "north"}, 200, ""},
		"another header":          {"accounts?limit=10", token, []string{"X-Branch", "south"}, 403, "rule_denied"},
		"no header":               {"accounts?limit=10", token, nil, 403, "rule_failed"},
		"a header twice":          {"accounts?limit=10", token, []string{"X-Branch", "north", "X-Branch", "south"}, 403, "rule_denied"},
		"another spelling":        {"accounts?limit=10", token, []string{"X_Branch", "north"}, 403, "rule_failed"},
		"no query":                {"accounts", token, []string{"X-Branch", "north"}, 403, "rule_failed"},
		"a query twice":           {"accounts?limit=10&limit=9", token, []string{"X-Branch", "north"}, 403, "rule_failed"},
		"another query twice":     {"accounts?limit=10&x=1&x=2", token, []string{"X-Branch", "north"}, 403, "rule_failed"},
		"a malformed query":       {"accounts?limit=10&x=%zz", token, []string{"X-Branch", "north"}, 403, "rule_failed"},
		"the rest of a path":      {"files/a/b", token, []string{"Cookie", "a=b", "X-Forwarded-For", "10.0.0.1"}, 200, ""},
		"another rest":            {"files/a/b/c", token, nil, 403, "rule_denied"},
		"an endpoint without one": {"stream/", token, nil, 404, "endpoint_unknown"},
	} {
		res := newBrowser(t).get(e.URL+"/resources/bank/"+c.path, append(c.headers, "Authorization", "Bearer "+c.token)...)
		if res.StatusCode != c.status || res.reason() != c.reason {
			t.Errorf("%s: %d %s, want %d %s", name, res.StatusCode, res.body, c.status, c.reason)
		}
	}
	if res := newBrowser(t).get(e.URL + "/resources/bank/accounts/7"); res.reason() != "no_credentials" {
		t.Errorf("nobody: %d %s", res.StatusCode, res.body)
	}
}

func TestRules_ExpressionThatDoesNotCompileClosesItsEndpointAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allow("read", `user.claims.department == "sales"`)
	w.rule("list", func(e *catalog.EndpointSpec) { e.Inject = []catalog.Injection{{Header: "X-A", Value: "1 +"}} })
	e, token := w.edge(), w.auth.bearer(nil)
	for path, reason := range map[string]string{"accounts/7": "rule_failed", "accounts": "rule_failed", "files/a": ""} {
		if res := newBrowser(t).get(e.URL+"/resources/bank/"+path, "Authorization", "Bearer "+token); res.reason() != reason {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.body)
		}
	}
}

func TestRules_ChangeWithTheCatalog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), w.auth.bearer(nil)
	for rule, reason := range map[string]string{"true": "", "false": "rule_denied", "": ""} {
		w.allow("read", rule)
		if res := newBrowser(t).get(e.URL+"/resources/bank/accounts/7", "Authorization", "Bearer "+token); res.reason() != reason {
			t.Errorf("%s: %d %s", rule, res.StatusCode, res.body)
		}
	}
}

func TestRules_BodyIsReadAndForwardedAsItCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allow("pay", `request.body.amount <= 100 && request.body.to != "eve"`)
	e, token := w.edge(), w.auth.bearer(nil)
	const asJSON = "application/json"
	for name, c := range map[string]struct {
		body, kind, reason string
		more               []string
	}{
		"a payment":                {`{ "amount": 100, "to" : "bob"}`, asJSON, "", nil},
		"with a charset":           {`{"amount":1,"to":"bob"}`, "Application/JSON; charset=UTF-8", "", nil},
		"of a JSON type":           {`{"amount":1.5,"to":"bob"}`, "application/merge-patch+json", "", nil},
		"too much":                 {`{"amount":101,"to":"bob"}`, asJSON, "rule_denied", nil},
		"too much, as a double":    {`{"amount":1e3,"to":"bob"}`, asJSON, "rule_denied", nil},
		"to eve":                   {`{"amount":1,"to":"\u0065ve"}`, asJSON, "rule_denied", nil},
		"twice":                    {`{"amount":1,"to":"bob","amount":1000}`, asJSON, "body_unreadable", nil},
		"twice, in another case":   {`{"amount":1,"to":"bob","Amount":1000}`, asJSON, "body_unreadable", nil},
		"twice, by an escape":      {`{"amount":1,"to":"bob","\u0061mount":1000}`, asJSON, "body_unreadable", nil},
		"not JSON":                 {`amount=1&to=bob`, asJSON, "body_unreadable", nil},
		"two documents":            {`{"amount":1,"to":"bob"}{"amount":1000}`, asJSON, "body_unreadable", nil},
		"deep":                     {strings.Repeat("[", 400) + strings.Repeat("]", 400), asJSON, "body_unreadable", nil},
		"a number that is too big": {`{"amount":99999999999999999999,"to":"bob"}`, asJSON, "body_unreadable", nil},
		"text for a number":        {`{"amount":"1","to":"bob"}`, asJSON, "rule_failed", nil},
		"without a member":         {`{"amount":1}`, asJSON, "rule_failed", nil},
		"another type":             {`{"amount":1,"to":"bob"}`, "text/plain", "rule_failed", nil},
		"no type":                  {`{"amount":1,"to":"bob"}`, "", "rule_failed", nil},
		"two types":                {`{"amount":1,"to":"bob"}`, asJSON, "rule_failed", []string{"Content-Type", "text/plain"}},
		"another charset":          {`{"amount":1,"to":"bob"}`, asJSON + "; charset=utf-16", "rule_failed", nil},
		"packed":                   {`{"amount":1,"to":"bob"}`, asJSON, "rule_failed", []string{"Content-Encoding", "gzip"}},
		"nothing":                  {"", asJSON, "rule_failed", nil},
	} {
		headers := append([]string{"Authorization", "Bearer " + token}, c.more...)
		if c.kind != "" {
			headers = append([]string{"Content-Type", c.kind}, headers...)
		}
		res := newBrowser(t).do(http.MethodPost, e.URL+"/resources/bank/payments", strings.NewReader(c.body), headers...)
		if res.reason() != c.reason {
			t.Errorf("%s: %d %s, want %s", name, res.StatusCode, res.body, c.reason)
			continue
		}
		if c.reason == "" {
			if got := res.reached(t); got.Body != c.body || got.Header["Content-Length"][0] != fmt.Sprint(len(c.body)) {
				t.Errorf("%s: the upstream got %q %v", name, got.Body, got.Header)
			}
		}
	}
}

func TestRules_BodyIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.allow("pay", `request.body.amount <= 100`)
	w.snapshot.Resources[0].Upstream.MaxBody = 0
	w.compile()
	e, token := w.edge(), w.auth.bearer(nil)
	body := func(n int) string { return `{"amount":1,"note":"` + strings.Repeat("x", n-22) + `"}` }
	send := func(n int, headers string, chunked bool) (int, string) {
		content, length := body(n), fmt.Sprintf("Content-Length: %d\r\n\r\n", n)
		if chunked {
			length = "Transfer-Encoding: chunked\r\n\r\n"
			content = fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, content)
		}
		return raw(t, e, "POST /resources/bank/payments HTTP/1.1\r\nHost: edge.test\r\nConnection: close\r\nContent-Type: application/json\r\nAuthorization: Bearer "+token+"\r\n"+headers+length+content)
	}
	for name, c := range map[string]struct {
		n       int
		chunked bool
		status  int
	}{
		"at the bound":               {256 << 10, false, 200},
		"over it":                    {256<<10 + 1, false, 413},
		"at it, of unknown length":   {256 << 10, true, 200},
		"over it, of unknown length": {256<<10 + 1, true, 413},
	} {
		if status, got := send(c.n, "", c.chunked); status != c.status {
			t.Errorf("%s: %d %.200s", name, status, got)
		}
	}
	w.rule("pay", func(s *catalog.EndpointSpec) { s.MaxBody = 64 })
	if status, got := send(65, "", true); status != http.StatusRequestEntityTooLarge {
		t.Errorf("over the endpoint's own: %d %s", status, got)
	}
	if status, got := send(64, "", true); status != http.StatusOK {
		t.Errorf("at the endpoint's own: %d %s", status, got)
	}
	// Nobody is permitted to make the edge read: roles come first.
	token = w.auth.bearer(func(c map[string]any) { c["roles"] = []string{"reader"} })
	if status, got := send(256<<10+1, "Expect: 100-continue\r\n", false); status != http.StatusForbidden {
		t.Errorf("not permitted: %d %s", status, got)
	}
}

func TestInject_SetsHeadersAndRemovesTheClientsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("list", func(e *catalog.EndpointSpec) {
		e.Inject = []catalog.Injection{
			{Header: "X-Account", Value: `user.id`},
			{Header: "X-Who", Value: `token.client_id + "/" + request.method + request.path`},
			{Header: "X-Empty", Value: `token.acr`},
			{Header: "x-limit", Value: `has(request.query.limit) ? request.query.limit : "20"`},
		}
	})
	e, token := w.edge(), w.auth.bearer(nil)
	forged := []string{"Authorization", "Bearer " + token, "Connection", "X-Who, x-account"}
	for _, name := range []string{"X-Account", "x-account", "X_Account", "X.ACCOUNT", "X-Empty", "X_empty", "X-Limit", "X_LIMIT"} {
		forged = append(forged, name, "forged")
	}
	forged = append(forged, "X-Accounts", "kept")
	got := newBrowser(t).get(e.URL+accounts+"?limit=5", forged...).reached(t)
	for name, want := range map[string]string{"X-Account": subject, "X-Who": "web/GET/accounts", "X-Limit": "5", "X-Accounts": "kept"} {
		if values := got.Header[name]; len(values) != 1 || values[0] != want {
			t.Errorf("%s is %q, want %q", name, values, want)
		}
	}
	// At every endpoint of the resource, and with a rule that sets nothing.
	other := newBrowser(t).get(e.URL+"/resources/bank/files/a", forged...).reached(t)
	for _, h := range []map[string][]string{got.Header, other.Header} {
		for name, values := range h {
			if values[0] == "forged" {
				t.Errorf("%s reached the upstream", name)
			}
		}
	}
}

func TestInject_ValueThatCannotBeAHeaderRefusesTheCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("home", func(e *catalog.EndpointSpec) {
		e.Inject = []catalog.Injection{{Header: "X-Name", Value: `has(request.query.name) ? request.query.name : user.id`}}
	})
	e := w.edge()
	for query, want := range map[string]string{"": "", "?name=a+b": "a b", "?name=%7e": "~"} {
		got := newBrowser(t).get(e.URL+"/resources/bank/"+query, "X-Name", "forged").reached(t)
		if values := got.Header["X-Name"]; len(values) > 1 || len(values) == 1 && values[0] != want || (len(values) == 0) != (want == "") {
			t.Errorf("%s: %q", query, values)
		}
	}
	for _, name := range []string{"a%0d%0aX-Evil:1", "a%0a", "a%00", "%09", "%c3%a9", "%20a", "a%20", "%7f", strings.Repeat("a", 4<<10+1)} {
		if res := newBrowser(t).get(e.URL + "/resources/bank/?name=" + name); res.reason() != "rule_failed" || res.StatusCode != http.StatusForbidden {
			t.Errorf("%.20q: %d %s", name, res.StatusCode, res.body)
		}
	}
}
