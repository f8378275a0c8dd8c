package edge_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"versola/modules/central/catalog"
)

const page = "https://app.example"

// shared lets pages of an origin call the resource "bank".
func (w *world) shared(credentials bool) {
	w.t.Helper()
	w.snapshot.Resources[0].CORS = &catalog.CORSSpec{Origins: []string{page, "https://other.example:8443"}, Headers: []string{"Authorization", "X-Trace"},
		Expose: []string{"X-Total"}, Credentials: credentials, MaxAge: catalog.Duration(60e9)}
	w.compile()
}

func TestCORS_PreflightNeedsNoToken(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shared(true)
	e := w.edge()
	ask := func(target, origin, method string, more ...string) *response {
		return newBrowser(t).do(http.MethodOptions, e.URL+target, nil, append([]string{"Origin", origin, "Access-Control-Request-Method", method}, more...)...)
	}
	ok := ask("/resources/bank/payments", page, "POST", "Access-Control-Request-Headers", "authorization,x-trace")
	want := map[string]string{"Access-Control-Allow-Origin": page, "Access-Control-Allow-Credentials": "true", "Access-Control-Allow-Methods": "POST",
		"Access-Control-Allow-Headers": "Authorization, X-Trace", "Access-Control-Max-Age": "60"}
	for name, value := range want {
		if got := ok.Header.Values(name); len(got) != 1 || got[0] != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if ok.StatusCode != http.StatusNoContent || !slices.Contains(ok.Header.Values("Vary"), "Origin") {
		t.Errorf("%d, Vary %q", ok.StatusCode, ok.Header.Values("Vary"))
	}
	for name, c := range map[string]struct {
		res    *response
		reason string
	}{
		"another origin":       {ask("/resources/bank/payments", "https://evil.example", "POST"), "origin_not_allowed"},
		"null":                 {ask("/resources/bank/payments", "null", "POST"), "origin_not_allowed"},
		"a longer name":        {ask("/resources/bank/payments", page+".evil.example", "POST"), "origin_not_allowed"},
		"another port":         {ask("/resources/bank/payments", page+":444", "POST"), "origin_not_allowed"},
		"another scheme":       {ask("/resources/bank/payments", "http://app.example", "POST"), "origin_not_allowed"},
		"another case":         {ask("/resources/bank/payments", "https://APP.example", "POST"), "origin_not_allowed"},
		"star":                 {ask("/resources/bank/payments", "*", "POST"), "origin_not_allowed"},
		"another method":       {ask("/resources/bank/payments", page, "DELETE"), "endpoint_unknown"},
		"an unknown path":      {ask("/resources/bank/nothing", page, "GET"), "endpoint_unknown"},
		"two origins":          {ask("/resources/bank/payments", page, "POST", "Origin", page), "header_ambiguous"},
		"two methods":          {ask("/resources/bank/payments", page, "POST", "Access-Control-Request-Method", "GET"), "header_ambiguous"},
		"resource without it":  {ask("/resources/slow/payments", page, "POST"), "endpoint_unknown"},
		"a hostile path":       {ask("/resources/bank/%2e%2e/payments", page, "POST"), "target_segment"},
		"a resource not there": {ask("/resources/none/payments", page, "POST"), "resource_unknown"},
	} {
		if c.res.reason() != c.reason || c.res.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %d %s, origin %q", name, c.res.StatusCode, c.res.body, c.res.Header.Get("Access-Control-Allow-Origin"))
		}
	}
}

func TestCORS_AnswersAndRefusalsCanBeReadByListedPagesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shared(false)
	e, token := w.edge(), w.auth.bearer(nil)
	for name, c := range map[string]struct {
		origin, token string
		status        int
		shared        bool
	}{
		"an answer":              {page, token, 200, true},
		"a refusal":              {page, "", 401, true},
		"a bad token":            {page, "x", 401, true},
		"another page":           {"https://evil.example", token, 200, false},
		"another page's refusal": {"https://evil.example", "", 401, false},
		"null":                   {"null", token, 200, false},
		"no page":                {"", token, 200, false},
	} {
		headers := []string{}
		if c.origin != "" {
			headers = append(headers, "Origin", c.origin)
		}
		if c.token != "" {
			headers = append(headers, "Authorization", "Bearer "+c.token)
		}
		res := newBrowser(t).get(e.URL+accounts, headers...)
		var want []string
		if c.shared {
			want = []string{c.origin}
		}
		if got := res.Header.Values("Access-Control-Allow-Origin"); res.StatusCode != c.status || !slices.Equal(got, want) {
			t.Errorf("%s: %d, allowed %q, want %d %q", name, res.StatusCode, got, c.status, want)
		}
		if got := res.Header.Get("Access-Control-Expose-Headers"); (got == "X-Total") != c.shared {
			t.Errorf("%s: exposes %q", name, got)
		}
		if res.Header.Get("Access-Control-Allow-Credentials") != "" || !slices.Contains(res.Header.Values("Vary"), "Origin") {
			t.Errorf("%s: credentials %q, Vary %q", name, res.Header.Get("Access-Control-Allow-Credentials"), res.Header.Values("Vary"))
		}
	}
}

func TestCORS_UpstreamCannotOpenWhatTheResourceDoesNot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("files", func(e *catalog.EndpointSpec) { e.Public = true })
	e := w.edge()
	open := newBrowser(t).get(e.URL+"/resources/bank/files/cors", "Origin", "https://evil.example")
	if open.Header.Get("Access-Control-Allow-Origin") != "*" || open.Header.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("without a setting: %v", open.Header)
	}
	w.shared(true)
	for from, want := range map[string][]string{"https://evil.example": nil, page: {page}} {
		res := newBrowser(t).get(e.URL+"/resources/bank/files/cors", "Origin", from)
		if got := res.Header.Values("Access-Control-Allow-Origin"); !slices.Equal(got, want) {
			t.Errorf("%s: %q", from, got)
		}
		if got := res.Header.Values("Access-Control-Allow-Credentials"); len(got) != len(want) {
			t.Errorf("%s: credentials %q", from, got)
		}
	}
}

// An unsafe call with the session's cookie is let in from listed pages, and
// only where the resource takes credentials from them.
func TestCORS_ListedPageMayChangeThingsWithTheCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.shared(true)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	pay := func(origin string) *response {
		return b.do(http.MethodPost, e.URL+"/resources/bank/payments", strings.NewReader("{}"), "Origin", origin, "Sec-Fetch-Site", "same-site")
	}
	pay(page).reached(t)
	for _, from := range []string{"https://evil.example", "null", ""} {
		if res := pay(from); res.reason() != "csrf" {
			t.Errorf("from %q: %d %s", from, res.StatusCode, res.body)
		}
	}
	w.shared(false)
	if res := pay(page); res.reason() != "csrf" {
		t.Errorf("without credentials: %d %s", res.StatusCode, res.body)
	}
}
