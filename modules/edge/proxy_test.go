package edge_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// raw sends octets as they are and returns the status and the rest.
func raw(t testing.TB, e *running, request string) (status int, body string) {
	t.Helper()
	conn, err := net.Dial("tcp", e.Listener.Addr().String())
	must(t, err)
	defer func() { _ = conn.Close() }()
	must(t, conn.SetDeadline(time.Now().Add(10*time.Second))) //nolint:forbidigo // a socket's deadline is real time
	_, err = io.WriteString(conn, request)
	must(t, err)
	res, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		return 0, err.Error() // the server hung up: refused as well
	}
	defer func() { _ = res.Body.Close() }()
	content, _ := io.ReadAll(res.Body)
	return res.StatusCode, string(content)
}

// robot is a service client's token; it may read.
func (w *world) robot() string {
	return w.auth.bearer(func(c map[string]any) {
		c["sub"], c["client_id"] = "robot", "robot"
		for _, name := range []string{"sid", "gid", "roles"} {
			delete(c, name)
		}
	})
}

func TestTarget_HostileTargetsNeverReachTheUpstream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), w.robot()
	for _, line := range lines(t, "testdata/targets_refused.txt") {
		target := line
		if quoted, ok := strings.CutPrefix(line, "quoted:"); ok {
			_, err := fmt.Sscanf(quoted, "%q", &target)
			must(t, err)
		}
		status, body := raw(t, e, "GET "+target+" HTTP/1.1\r\nHost: edge.test\r\nAuthorization: Bearer "+token+"\r\nConnection: close\r\n\r\n")
		if status == http.StatusOK || status >= 500 || strings.Contains(body, `"target"`) {
			t.Errorf("%q: %d %s", target, status, body)
		}
	}
}

// What was matched is what the upstream got: the endpoint's decision was made
// on the very string that is forwarded.
func TestTarget_MatchedIsForwarded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), w.robot()
	for _, line := range lines(t, "testdata/targets_forwarded.txt") {
		target, want, ok := strings.Cut(line, " -> ")
		if !ok {
			want = target
		}
		for resource, base := range map[string]string{"bank": "", "forwarding": "/base"} {
			got := newBrowser(t).get(e.URL+"/resources/"+resource+target, "Authorization", "Bearer "+token).reached(t)
			if got.Target != base+want {
				t.Errorf("%s%s reached the upstream as %q, want %q", resource, target, got.Target, base+want)
			}
		}
	}
}

func TestDecision_Reasons(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	person := w.auth.bearer(nil)
	reader := w.auth.bearer(func(c map[string]any) { c["roles"] = []string{"reader"} })
	expired := w.auth.bearer(func(c map[string]any) { c["exp"] = w.clock.Now().Unix() })
	for name, c := range map[string]struct {
		method, path string
		token        string
		status       int
		reason       string
	}{
		"person reads":              {"GET", "bank/accounts", person, 200, ""},
		"person pays":               {"POST", "bank/payments", person, 200, ""},
		"HEAD is GET's":             {"HEAD", "bank/accounts", person, 200, ""},
		"service reads":             {"GET", "bank/accounts", w.robot(), 200, ""},
		"service may not pay":       {"POST", "bank/payments", w.robot(), 403, "not_permitted"},
		"reader reads":              {"GET", "bank/accounts/7", reader, 200, ""},
		"reader may not pay":        {"POST", "bank/payments", reader, 403, "not_permitted"},
		"no rule, closed":           {"GET", "bank/closed", person, 403, "not_permitted"},
		"public":                    {"GET", "bank/", "", 200, ""},
		"nobody":                    {"GET", "bank/accounts", "", 401, "no_credentials"},
		"unknown resource":          {"GET", "nothing/accounts", person, 404, "resource_unknown"},
		"unknown path":              {"GET", "bank/nothing", person, 404, "endpoint_unknown"},
		"unknown method":            {"DELETE", "bank/accounts", person, 404, "endpoint_unknown"},
		"case differs":              {"GET", "bank/Accounts", person, 404, "endpoint_unknown"},
		"trailing slash":            {"GET", "bank/accounts/", person, 404, "endpoint_unknown"},
		"lower-case method":         {"get", "bank/accounts", person, 405, ""},
		"expired":                   {"GET", "bank/accounts", expired, 401, "token_expired"},
		"garbage":                   {"GET", "bank/accounts", "x.y.z", 401, "token_invalid"},
		"garbage at public":         {"GET", "bank/", "x.y.z", 401, "token_invalid"},
		"unknown role":              {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["roles"] = []string{"root"} }), 403, "not_permitted"},
		"no roles":                  {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { delete(c, "roles") }), 403, "not_permitted"},
		"other audience":            {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["aud"] = "other" }), 403, "wrong_audience"},
		"audience as a string":      {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["aud"] = "bank" }), 200, ""},
		"other tenant":              {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["iss"], c["tenant"] = issuer+"/t/other", "other" }), 403, "wrong_tenant"},
		"tenant of other issuer":    {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["tenant"] = "other" }), 401, "token_invalid"},
		"unknown issuer":            {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["iss"] = "http://evil.test" }), 401, "token_invalid"},
		"unknown client":            {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["client_id"] = "deleted" }), 401, "client_disabled"},
		"bound to a key":            {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["cnf"] = map[string]any{"jkt": "x"} }), 401, "sender_constraint"},
		"bound to what we know not": {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["cnf"] = map[string]any{"jwk": map[string]any{}} }), 401, "token_invalid"},
		"from the future":           {"GET", "bank/accounts", w.auth.bearer(func(c map[string]any) { c["iat"] = w.clock.Now().Unix() + 60 }), 401, "token_invalid"},
		"ID token":                  {"GET", "bank/accounts", w.logoutToken("JWT", nil), 401, "token_invalid"},
		"logout token":              {"GET", "bank/accounts", w.logoutToken("logout+jwt", nil), 401, "token_invalid"},
	} {
		var headers []string
		if c.token != "" {
			headers = []string{"Authorization", "Bearer " + c.token}
		}
		res := newBrowser(t).do(c.method, e.URL+"/resources/"+c.path, nil, headers...)
		if res.StatusCode != c.status || c.method != "HEAD" && res.reason() != c.reason {
			t.Errorf("%s: %d %s, want %d %s", name, res.StatusCode, res.body, c.status, c.reason)
		}
		if challenge := res.Header.Get("WWW-Authenticate"); res.StatusCode == 401 && !strings.HasPrefix(challenge, `Bearer realm="bank"`) {
			t.Errorf("%s: WWW-Authenticate is %q", name, challenge)
		}
	}
}

func TestBearer_AuthorizationHeader(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b, token := w.edge(), newBrowser(t), w.auth.bearer(nil)
	b.signIn(w, e)
	for value, want := range map[string]int{
		"Bearer " + token: 200, "bearer " + token: 200, "BEARER  " + token: 200,
		"Bearer": 401, "Bearer ": 401, "Basic YTpi": 401, "DPoP " + token: 401, token: 401, "Bearer x " + token: 401, "Bearer " + token + ", Basic x": 401,
	} {
		// A bearer token that is no good does not fall back to the cookie.
		if res := b.get(e.URL+accounts, "Authorization", value); res.StatusCode != want {
			t.Errorf("%.20q: %d %s", value, res.StatusCode, res.body)
		}
	}
	if res := b.get(e.URL+accounts, "Authorization", "Bearer "+token, "Authorization", "Bearer "+token); res.reason() != "header_ambiguous" {
		t.Errorf("twice: %d %s", res.StatusCode, res.body)
	}
	// The bearer token wins over the cookie.
	got := b.get(e.URL+accounts, "Authorization", "Bearer "+w.robot()).reached(t)
	if v := got.Header["X-Versola-Subject"]; len(v) != 1 || v[0] != "robot" {
		t.Errorf("subject is %q", v)
	}
}

func TestBearer_RemovedKeyAndDisabledClientCountAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), "Bearer "+w.robot()
	get := func() *response { return newBrowser(t).get(e.URL+accounts, "Authorization", token) }
	get().reached(t)
	keys, clients := w.snapshot.Keys, slices.Clone(w.snapshot.Clients)
	w.snapshot.Keys = nil
	w.compile()
	if res := get(); res.reason() != "token_invalid" {
		t.Errorf("removed key: %d %s", res.StatusCode, res.body)
	}
	w.snapshot.Keys = keys
	w.snapshot.Clients = slices.Clone(clients)
	w.snapshot.Clients[1].Disabled = true
	w.compile()
	if res := get(); res.reason() != "client_disabled" {
		t.Errorf("disabled client: %d %s", res.StatusCode, res.body)
	}
	w.snapshot.Clients = clients
	w.snapshot.Clients[1].Permissions = nil
	w.compile()
	if res := get(); res.reason() != "not_permitted" {
		t.Errorf("permission withdrawn: %d %s", res.StatusCode, res.body)
	}
}

func TestHeaders_IdentityCannotBeSmuggled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), w.robot()
	for _, line := range lines(t, "testdata/headers_stripped.txt") {
		status, body := raw(t, e, "GET /resources/bank/accounts HTTP/1.1\r\nHost: edge.test\r\nAuthorization: Bearer "+token+
			"\r\nConnection: close\r\n"+strings.ReplaceAll(line, `\r\n`, "\r\n")+"\r\n\r\n")
		if strings.Contains(body, "smuggled") {
			t.Errorf("%q: %d, the upstream got %s", line, status, body)
		}
	}
}

func TestHeaders_ConnectionCannotRemoveOurs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	got := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+w.robot(),
		"Connection", "X-Versola-Subject, X-Versola-Tenant, X-Forwarded-For, Custom, Forwarded", "Custom", "hop").reached(t)
	for _, name := range []string{"X-Versola-Subject", "X-Versola-Tenant", "X-Forwarded-For", "Forwarded"} {
		if len(got.Header[name]) != 1 {
			t.Errorf("%s is %q", name, got.Header[name])
		}
	}
	if v, ok := got.Header["Custom"]; ok {
		t.Errorf("a hop-by-hop header went on: %q", v)
	}
}

func TestHeaders_OthersPassUntouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	got := newBrowser(t).get(e.URL+accounts+"?q=%2F..%2F&x=;&y", "Authorization", "Bearer "+w.robot(), "X-Custom", "a", "X-Custom", "b", "Accept", "x/y",
		"Idempotency-Key", "k", "If-None-Match", `"e"`, "X_Other", "u", "Cookie", "a=1; versola_edge_demo=s; b=2", "Cookie", "c=3").reached(t)
	for name, want := range map[string]string{"X-Custom": "a,b", "Accept": "x/y", "Idempotency-Key": "k", "If-None-Match": `"e"`, "X_other": "u"} {
		if v := strings.Join(got.Header[name], ","); v != want {
			t.Errorf("%s is %q", name, v)
		}
	}
	if v := strings.Join(got.Header["Cookie"], "; "); v != "a=1; b=2; c=3" {
		t.Errorf("Cookie is %q", v)
	}
	if got.Target != "/accounts?q=%2F..%2F&x=;&y" || got.Host != strings.TrimPrefix(w.upstream.URL, "http://") {
		t.Errorf("target %q, host %q", got.Target, got.Host)
	}
}

func TestHeaders_EdgeCookiesNeverPass(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snapshot.Presets[0].CookieName = "sid"
	w.compile()
	e := w.edge()
	for cookie, want := range map[string]string{
		"versola_edge_demo=x": "", "VERSOLA_edge=x": "", "__Host-versola_edge_demo=x": "", "__host-Versola_x=x": "", "__Secure-versola_x=x": "",
		"sid=x": "", "SID=x": "", "__Host-sid=x": "", "a=1;sid=x;b=2": "a=1;b=2", " versola_x =1; a=2": "a=2", "versola_edge_login; a=2": "a=2",
		"a=sid; b=versola_edge": "a=sid; b=versola_edge", ";;sid=x;;": "", "sidecar=1; xversola_=2": "sidecar=1; xversola_=2",
	} {
		got := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+w.robot(), "Cookie", cookie).reached(t)
		if v := strings.Join(got.Header["Cookie"], "|"); v != want {
			t.Errorf("%q became %q, want %q", cookie, v, want)
		}
	}
}

func TestHeaders_UpstreamCannotSetEdgeCookies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	res := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+w.robot())
	if got := res.Header.Values("Set-Cookie"); len(got) != 1 || got[0] != "theme=dark; Path=/" {
		t.Errorf("Set-Cookie is %q", got)
	}
}

func TestHeaders_ForwardedOnlyFromTrustedProxies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		e    *running
		want string
	}{
		"stranger":     {w.edge(), "127.0.0.1"},
		"trusted peer": {w.edge(trusted("127.0.0.0/8", "10.0.0.0/8")), "203.0.113.9, 10.1.1.1, 127.0.0.1"},
	} {
		got := newBrowser(t).get(c.e.URL+accounts, "Authorization", "Bearer "+w.robot(), "X-Forwarded-For", "evil, 198.51.100.1, 203.0.113.9, 10.1.1.1",
			"X-Forwarded-Host", "evil.test", "X-Forwarded-Proto", "evil", "X-Forwarded-Prefix", "/evil", "Forwarded", "for=evil", "X-Real-Ip", "evil").reached(t)
		if v := got.Header["X-Forwarded-For"]; len(v) != 1 || v[0] != c.want {
			t.Errorf("%s: X-Forwarded-For is %q", name, v)
		}
		if v := fmt.Sprint(got.Header["X-Forwarded-Host"], got.Header["X-Forwarded-Proto"]); v != "[edge.test] [http]" {
			t.Errorf("%s: host and proto are %s", name, v)
		}
		if strings.Contains(fmt.Sprint(got.Header), "evil") {
			t.Errorf("%s: the upstream got %v", name, got.Header)
		}
	}
}

func TestForwardToken_OnlyWhereTheResourceAsks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	for range 2 {
		got := b.get(e.URL + "/resources/forwarding/accounts").reached(t)
		if v := got.Header["Authorization"]; len(v) != 1 || !strings.HasPrefix(v[0], "Bearer ey") {
			t.Errorf("Authorization is %q", v)
		}
	}
	token := "Bearer " + w.robot()
	if got := b.get(e.URL+"/resources/forwarding/accounts", "Authorization", token).reached(t); got.Header["Authorization"][0] != token {
		t.Errorf("Authorization is %q", got.Header["Authorization"])
	}
	if got := b.get(e.URL + accounts).reached(t); len(got.Header["Authorization"]) != 0 {
		t.Errorf("Authorization is %q", got.Header["Authorization"])
	}
}

func TestCSRF_UnsafeMethodsWithACookieNeedThisOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	for name, c := range map[string]struct {
		headers []string
		status  int
	}{
		"nothing stated":     {nil, 403},
		"same-origin":        {[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		"origin":             {[]string{"Origin", publicURL}, 200},
		"both":               {[]string{"Origin", publicURL, "Sec-Fetch-Site", "same-origin"}, 200},
		"same-site":          {[]string{"Sec-Fetch-Site", "same-site"}, 403},
		"cross-site":         {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"foreign origin":     {[]string{"Origin", "http://evil.test"}, 403},
		"null":               {[]string{"Origin", "null"}, 403},
		"null, same-origin":  {[]string{"Origin", "null", "Sec-Fetch-Site", "same-origin"}, 200},
		"null, cross-site":   {[]string{"Origin", "null", "Sec-Fetch-Site", "cross-site"}, 403},
		"looks alike":        {[]string{"Origin", publicURL + ".evil.test"}, 403},
		"other scheme":       {[]string{"Origin", "https://edge.test"}, 403},
		"contradiction":      {[]string{"Origin", "http://evil.test", "Sec-Fetch-Site", "same-origin"}, 403},
		"site twice":         {[]string{"Sec-Fetch-Site", "same-origin", "Sec-Fetch-Site", "cross-site"}, 403},
		"origin twice":       {[]string{"Origin", publicURL, "Origin", "http://evil.test"}, 403},
		"strange site value": {[]string{"Sec-Fetch-Site", "Same-Origin"}, 403},
	} {
		res := b.do(http.MethodPost, e.URL+"/resources/bank/payments", strings.NewReader("{}"), c.headers...)
		if res.StatusCode != c.status || c.status == 403 && res.reason() != "csrf" {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
	// A token is not sent by a browser on its own.
	res := b.do(http.MethodPost, e.URL+"/resources/bank/payments", nil, "Authorization", "Bearer "+w.auth.bearer(nil), "Sec-Fetch-Site", "cross-site")
	res.reached(t)
}

func TestUnauthorized_PagesAreSentToTheSignInAndScriptsAreTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	const login = publicURL + "/login/demo"
	for name, c := range map[string]struct {
		method  string
		headers []string
		page    bool
	}{
		"navigation":         {"GET", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, true},
		"old browser":        {"GET", []string{"Accept", "text/html,*/*"}, true},
		"script":             {"GET", []string{"Sec-Fetch-Mode", "cors", "Accept", "text/html"}, false},
		"frame":              {"GET", []string{"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, false},
		"form":               {"POST", []string{"Sec-Fetch-Mode", "navigate", "Accept", "text/html"}, false},
		"nothing stated":     {"GET", nil, false},
		"a token that fails": {"GET", []string{"Sec-Fetch-Mode", "navigate", "Authorization", "Bearer x"}, false},
	} {
		path := "/resources/bank/accounts?x=1"
		if c.method == "POST" {
			path = "/resources/bank/payments"
		}
		res := newBrowser(t).do(c.method, e.URL+path, nil, c.headers...)
		if c.page {
			if got := res.Header.Get("Location"); res.StatusCode != 303 || got != login+"?return_to=%2Fresources%2Fbank%2Faccounts%3Fx%3D1" {
				t.Errorf("%s: %d to %q", name, res.StatusCode, got)
			}
			continue
		}
		if res.StatusCode != 401 || !strings.HasPrefix(res.Header.Get("Content-Type"), "application/problem+json") {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
}

func TestPermissions_SameDecisionAsACall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	if res := b.get(e.URL + "/permissions/me?resource=bank"); res.StatusCode != 401 {
		t.Errorf("nobody: %d", res.StatusCode)
	}
	w.auth.set(func() { w.auth.roles = []string{"reader"} })
	b.signIn(w, e)
	res := b.get(e.URL + "/permissions/me?resource=bank")
	if res.StatusCode != 200 || strings.Contains(res.body, `"pay"`) || strings.Contains(res.body, `"closed"`) || !strings.Contains(res.body, `"list"`) || !strings.Contains(res.body, `"home"`) {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	for query, status := range map[string]int{"": 400, "resource=a&resource=b": 400, "resource=nothing": 404} {
		if res := b.get(e.URL + "/permissions/me?" + query); res.StatusCode != status {
			t.Errorf("%q: %d", query, res.StatusCode)
		}
	}
}

func TestUpstream_FailuresAreProblems(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for path, want := range map[string]string{"/resources/gone/accounts": "502 upstream_unreachable", "/resources/slow/hold": "504 upstream_timeout"} {
		res := newBrowser(t).get(e.URL+path, "Authorization", "Bearer "+w.robot())
		if got := fmt.Sprint(res.StatusCode, " ", res.reason()); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func TestUpstream_TruncatedAnswerStaysTruncated(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/resources/bank/cut", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.robot())
	res, err := noRedirects.Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	if _, err := io.ReadAll(res.Body); err == nil {
		t.Error("a broken answer looks complete")
	}
}

func TestBody_LimitOfTheResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), "Bearer "+w.auth.bearer(nil)
	post := func(body io.Reader) *response {
		return newBrowser(t).do(http.MethodPost, e.URL+"/resources/bank/payments", body, "Authorization", token)
	}
	fits, over := strings.Repeat("a", 1<<10), strings.Repeat("a", 1<<10+1)
	if got := post(strings.NewReader(fits)).reached(t); got.Body != fits {
		t.Errorf("%d bytes arrived", len(got.Body))
	}
	if got := post(io.MultiReader(strings.NewReader(fits))).reached(t); got.Body != fits {
		t.Errorf("chunked: %d bytes arrived", len(got.Body))
	}
	for name, body := range map[string]io.Reader{"known length": strings.NewReader(over), "chunked": io.MultiReader(strings.NewReader(over))} {
		if res := post(body); res.StatusCode != http.StatusRequestEntityTooLarge || res.reason() != "body_too_large" {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
	}
}

func TestUpgrade_IsRefusedAndAnOfferOfHTTP2Ignored(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, token := w.edge(), "Bearer "+w.robot()
	res := newBrowser(t).get(e.URL+accounts, "Authorization", token, "Connection", "Upgrade", "Upgrade", "websocket")
	if res.StatusCode != http.StatusNotImplemented || res.reason() != "upgrade_not_allowed" {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	got := newBrowser(t).get(e.URL+accounts, "Authorization", token, "Connection", "Upgrade, HTTP2-Settings", "Upgrade", "h2c", "HTTP2-Settings", "x").reached(t)
	if len(got.Header["Upgrade"]) != 0 || len(got.Header["Http2-Settings"]) != 0 {
		t.Errorf("the upstream got %v", got.Header)
	}
}

func TestStream_EventsAreNotHeldBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/resources/bank/stream", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.robot())
	res, err := noRedirects.Do(r)
	must(t, err)
	defer func() { _ = res.Body.Close() }()
	events := bufio.NewReader(res.Body)
	for i := range 3 {
		line, err := events.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("event %d: %q, %v", i, line, err)
		}
		_, _ = events.ReadString('\n')
		w.upstream.next <- struct{}{} // the upstream sends the next only now
	}
}

func TestDisconnect_ReachesTheUpstream(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, e.URL+"/resources/bank/hold", nil)
	must(t, err)
	r.Header.Set("Authorization", "Bearer "+w.robot())
	if res, err := noRedirects.Do(r); err == nil {
		_ = res.Body.Close()
		t.Fatal("the held call was answered")
	}
	select {
	case <-w.upstream.gone:
	case <-time.After(2 * time.Second):
		t.Error("the upstream did not notice")
	}
}
