package app_test

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

func resourceExercises() map[string]exercise {
	return map[string]exercise{
		"an upstream and its endpoints": {[]string{"resource.name", "resource.audience", "resource.upstream.url", "resource.upstream.forward_token",
			"resource.endpoints.id", "resource.endpoints.method", "resource.endpoints.path", "resource.endpoints.public"}, resourceEndpoints},
		"bounds of calls": {[]string{"resource.upstream.connect_timeout", "resource.upstream.response_timeout", "resource.upstream.max_body",
			"resource.upstream.idle_timeout", "resource.endpoints.max_body", "resource.endpoints.timeout"}, resourceBounds},
		"an upstream's certificate": {[]string{"resource.upstream.tls.ca", "resource.upstream.tls.server_name"}, resourceTLS},
		"pages of other origins": {[]string{"resource.cors.origins", "resource.cors.headers", "resource.cors.expose_headers", "resource.cors.allow_credentials",
			"resource.cors.max_age"}, resourceCORS},
		"rules":            {[]string{"resource.endpoints.allow"}, resourceRules},
		"headers of rules": {[]string{"resource.endpoints.inject.header", "resource.endpoints.inject.value"}, resourceInjections},
		"a WebSocket":      {[]string{"resource.endpoints.websocket"}, resourceSocket},
		"a recent sign-in": {[]string{"resource.endpoints.step_up.max_age"}, resourceStepUp},
	}
}

// echo is an upstream that answers with what reached it.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	switch r.URL.Path {
	case "/slow":
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	case "/stall":
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-time.After(5 * time.Second):
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"target": r.RequestURI, "header": r.Header, "body": string(body)})
}

// upstream starts one.
func upstream(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(echo))
	t.Cleanup(s.Close)
	return s
}

// endpoints declares GET ones by their names.
func endpoints(names ...string) (out []document) {
	for _, n := range names {
		out = append(out, document{"id": n, "method": "GET", "path": "/" + n})
	}
	return out
}

// resource registers a resource of the demo tenant, a permission to all of it,
// and a service client that holds it, whose access token is returned.
func (h *house) resource(t *testing.T, d document) (token string) {
	t.Helper()
	id := d["id"].(string) //nolint:errcheck,forcetypeassert // a test
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/resources", d); page.Status != http.StatusCreated {
		t.Fatalf("register %s: %d %s", id, page.Status, page.Body)
	}
	refs := []string{}
	for _, e := range d["endpoints"].([]document) { //nolint:errcheck,forcetypeassert // a test
		refs = append(refs, fmt.Sprintf("%s:%s", id, e["id"]))
	}
	page := h.send(t, http.MethodPost, "/v1/tenants/demo/permissions", document{"id": id, "endpoints": refs})
	if page.Status != http.StatusCreated {
		t.Fatalf("register the permission: %d %s", page.Status, page.Body)
	}
	audience := id
	if a, ok := d["audience"].(string); ok {
		audience = a
	}
	secret := h.client(t, document{"id": "robot-" + id, "client_kind": "service", "auth_method": "client_secret_basic",
		"grant_types": []string{"client_credentials"}, "audiences": []string{audience}, "permissions": []string{id}})
	status, a := h.token(t, "robot-"+id, secret, url.Values{"grant_type": {"client_credentials"}})
	token, _ = a["access_token"].(string)
	if status != http.StatusOK || token == "" {
		t.Fatalf("token: %d %v", status, a)
	}
	apptest.Eventually(t, 2*time.Second, "the resource to be live", func() bool {
		return h.call(t, http.MethodGet, "/.well-known/oauth-protected-resource/resources/"+id, "", "").Status == http.StatusOK &&
			h.call(t, http.MethodGet, "/resources/"+id+"/not-there", "", token).reason() == "endpoint_unknown"
	})
	return token
}

// person lets alice use a resource too, and returns her access token for it.
func (h *house) person(t *testing.T, id string) string {
	t.Helper()
	var role struct {
		Permissions []string `json:"permissions"`
	}
	path := "/v1/tenants/demo/roles/customer"
	if err := json.Unmarshal([]byte(h.send(t, http.MethodGet, path, nil).Body), &role); err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(document{"permissions": append(role.Permissions, id)})
	if err != nil {
		t.Fatal(err)
	}
	if page := administer(t, h.System, h.admin, http.MethodPatch, path, "application/merge-patch+json", string(body)); page.Status != http.StatusOK {
		t.Fatalf("change the role: %d %s", page.Status, page.Body)
	}
	secret := h.client(t, h.web("person-"+id).with(document{"audiences": []string{id}}))
	token, _ := h.signIn(t, apptest.NewBrowser(t), "person-"+id, secret, nil)["access_token"].(string)
	return token
}

// result is an answer of the edge.
type result struct{ *apptest.Page }

func (r result) reason() string {
	var p struct{ Reason string }
	_ = json.Unmarshal([]byte(r.Body), &p)
	return p.Reason
}

// header returns what reached the echo under a header's name.
func (r result) header(name string) string {
	var e struct{ Header http.Header }
	_ = json.Unmarshal([]byte(r.Body), &e)
	return e.Header.Get(name)
}

// call sends a request to the edge; headers are pairs.
func (h *house) call(t *testing.T, method, path, body, token string, headers ...string) result {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, h.Edge+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return result{apptest.NewBrowser(t).Do(r)}
}

// wants checks what the edge says of a call.
func (r result) wants(t *testing.T, what string, status int, reason string) {
	t.Helper()
	if r.Status != status || r.reason() != reason {
		t.Errorf("%s: %d %s, want %d %s", what, r.Status, r.Body, status, reason)
	}
}

// refusesResource checks that a resource with a change is refused for a member.
func (h *house) refusesResource(t *testing.T, change document, pointer string) {
	t.Helper()
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/resources", document{"id": "other", "upstream": document{"url": "https://up.example"}, "endpoints": endpoints("a")}.with(change), pointer)
}

func resourceEndpoints(t *testing.T, h *house) {
	up := upstream(t)
	d := document{"id": "res-plain", "name": "Plain", "audience": "plain-api", "upstream": document{"url": up.URL + "/base", "forward_token": true},
		"endpoints": append(endpoints("a", "b"), document{"id": "open", "method": "GET", "path": "/open/{rest...}", "public": true})}
	token := h.resource(t, d)
	got := h.call(t, http.MethodGet, "/resources/res-plain/a?x=1", "", token)
	got.wants(t, "an endpoint", http.StatusOK, "")
	if !strings.Contains(got.Body, `"target":"/base/a?x=1"`) || got.header("Authorization") != "Bearer "+token {
		t.Errorf("the upstream got %s", got.Body)
	}
	h.call(t, http.MethodPost, "/resources/res-plain/a", "", token).wants(t, "another method", http.StatusNotFound, "endpoint_unknown")
	h.call(t, http.MethodGet, "/resources/res-plain/c", "", token).wants(t, "another path", http.StatusNotFound, "endpoint_unknown")
	h.call(t, http.MethodGet, "/resources/res-plain/a", "", "").wants(t, "nobody", http.StatusUnauthorized, "no_credentials")
	h.call(t, http.MethodGet, "/resources/res-plain/open/x/y", "", "").wants(t, "a public endpoint", http.StatusOK, "")
	h.call(t, http.MethodGet, "/resources/bank/accounts", "", token).wants(t, "another audience", http.StatusForbidden, "wrong_audience")
	if meta := h.call(t, http.MethodGet, "/.well-known/oauth-protected-resource/resources/res-plain", "", ""); !strings.Contains(meta.Body, `"resource_name":"Plain"`) {
		t.Errorf("metadata: %s", meta.Body)
	}
	h.refusesResource(t, document{"upstream": document{"url": "ftp://up.example"}}, "/upstream/url")
	h.refusesResource(t, document{"audience": "a b"}, "/audience")
	h.refusesResource(t, document{"name": strings.Repeat("n", 1000)}, "/name")
	h.refusesResource(t, document{"endpoints": []document{{"id": "A", "method": "GET", "path": "/a"}}}, "/endpoints/0/id")
	h.refusesResource(t, document{"endpoints": []document{{"id": "a", "method": "FETCH", "path": "/a"}}}, "/endpoints/0/method")
	h.refusesResource(t, document{"endpoints": []document{{"id": "a", "method": "GET", "path": "/a/../b"}}}, "/endpoints/0/path")
}

func resourceBounds(t *testing.T, h *house) {
	up := upstream(t)
	post := func(id string) document { return document{"id": id, "method": "POST", "path": "/" + id} }
	token := h.resource(t, document{"id": "res-bounds",
		"upstream": document{"url": up.URL, "connect_timeout": "1s", "response_timeout": "200ms", "idle_timeout": "200ms", "max_body": 16},
		"endpoints": append(endpoints("slow", "stall"), post("body"), post("small").with(document{"max_body": 4}),
			document{"id": "brief", "method": "PUT", "path": "/slow", "timeout": "100ms"})})
	at := "/resources/res-bounds/"
	h.call(t, http.MethodPost, at+"body", "0123456789abcdef", token).wants(t, "a body at the limit", http.StatusOK, "")
	h.call(t, http.MethodPost, at+"body", "0123456789abcdefg", token).wants(t, "a body over it", http.StatusRequestEntityTooLarge, "body_too_large")
	h.call(t, http.MethodPost, at+"small", "1234", token).wants(t, "the endpoint's own limit", http.StatusOK, "")
	h.call(t, http.MethodPost, at+"small", "12345", token).wants(t, "over the endpoint's own", http.StatusRequestEntityTooLarge, "body_too_large")
	h.call(t, http.MethodGet, at+"slow", "", token).wants(t, "a slow answer", http.StatusGatewayTimeout, "upstream_timeout")
	h.call(t, http.MethodPut, at+"slow", "", token).wants(t, "the endpoint's own timeout", http.StatusGatewayTimeout, "upstream_timeout")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Edge+at+"stall", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	res, err := apptest.NewBrowser(t).Client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if body, err := io.ReadAll(res.Body); err == nil || string(body) != "half" {
		t.Errorf("a stalled answer: %q, %v", body, err)
	}
	gone := h.resource(t, document{"id": "res-gone", "upstream": document{"url": "http://192.0.2.1", "connect_timeout": "100ms"}, "endpoints": endpoints("a")})
	if got := h.call(t, http.MethodGet, "/resources/res-gone/a", "", gone); got.Status != http.StatusGatewayTimeout && got.Status != http.StatusBadGateway {
		t.Errorf("an upstream that does not connect: %d %s", got.Status, got.Body)
	}
	for field, change := range map[string]document{
		"/upstream/connect_timeout":  {"upstream": document{"url": up.URL, "connect_timeout": "1h"}},
		"/upstream/response_timeout": {"upstream": document{"url": up.URL, "response_timeout": "1ms"}},
		"/upstream/idle_timeout":     {"upstream": document{"url": up.URL, "idle_timeout": "-1s"}},
		"/upstream/max_body":         {"upstream": document{"url": up.URL, "max_body": -1}},
		"/endpoints/0/max_body":      {"endpoints": []document{endpoints("a")[0].with(document{"max_body": -1})}},
		"/endpoints/0/timeout":       {"endpoints": []document{endpoints("a")[0].with(document{"timeout": "1h"})}},
	} {
		h.refusesResource(t, change, field)
	}
}

func resourceTLS(t *testing.T, h *house) {
	up := httptest.NewTLSServer(http.HandlerFunc(echo)) // of example.com
	t.Cleanup(up.Close)
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: up.Certificate().Raw}))
	for id, c := range map[string]struct {
		tls    document
		status int
		reason string
	}{
		"res-tls-known":   {document{"ca": ca, "server_name": "example.com"}, http.StatusOK, ""},
		"res-tls-name":    {document{"ca": ca, "server_name": "bank.example"}, http.StatusBadGateway, "upstream_failed"},
		"res-tls-unknown": {document{"server_name": "example.com"}, http.StatusBadGateway, "upstream_failed"},
	} {
		token := h.resource(t, document{"id": id, "upstream": document{"url": up.URL, "tls": c.tls}, "endpoints": endpoints("a")})
		h.call(t, http.MethodGet, "/resources/"+id+"/a", "", token).wants(t, id, c.status, c.reason)
	}
	for pointer, tls := range map[string]document{
		"/upstream/tls/ca":          {"ca": "no certificate"},
		"/upstream/tls/server_name": {"server_name": "*.example"},
	} {
		h.refusesResource(t, document{"upstream": document{"url": "https://up.example", "tls": tls}}, pointer)
	}
	h.refusesResource(t, document{"upstream": document{"url": "http://up.example", "tls": document{"ca": ca}}}, "/upstream/tls")
}

func resourceCORS(t *testing.T, h *house) {
	const page = "https://spa.example"
	token := h.resource(t, document{"id": "res-cors", "upstream": document{"url": upstream(t).URL}, "endpoints": endpoints("a"),
		"cors": document{"origins": []string{page}, "headers": []string{"Authorization"}, "expose_headers": []string{"X-Total"}, "allow_credentials": true, "max_age": "1m30s"}})
	ask := func(origin string) result {
		return h.call(t, http.MethodOptions, "/resources/res-cors/a", "", "", "Origin", origin, "Access-Control-Request-Method", "GET")
	}
	first := ask(page)
	first.wants(t, "a preflight", http.StatusNoContent, "")
	for name, want := range map[string]string{"Origin": page, "Headers": "Authorization", "Credentials": "true", "Methods": "GET, HEAD"} {
		if got := first.Header.Get("Access-Control-Allow-" + name); got != want {
			t.Errorf("allow %s: %q", name, got)
		}
	}
	if got := first.Header.Get("Access-Control-Max-Age"); got != "90" {
		t.Errorf("max age %q", got)
	}
	ask("https://evil.example").wants(t, "a preflight of another page", http.StatusForbidden, "origin_not_allowed")
	for origin, want := range map[string]string{page: page, "https://evil.example": "", "null": ""} {
		got := h.call(t, http.MethodGet, "/resources/res-cors/a", "", token, "Origin", origin)
		if got.Header.Get("Access-Control-Allow-Origin") != want || (got.Header.Get("Access-Control-Expose-Headers") == "X-Total") != (want != "") {
			t.Errorf("an answer to %s: %v", origin, got.Header)
		}
	}
	for pointer, cors := range map[string]document{
		"/cors/origins":          {"origins": []string{}},
		"/cors/origins/0":        {"origins": []string{"*"}},
		"/cors/origins/1":        {"origins": []string{page, "null"}},
		"/cors/headers/0":        {"origins": []string{page}, "headers": []string{"*"}},
		"/cors/expose_headers/0": {"origins": []string{page}, "expose_headers": []string{"a\nb"}},
		"/cors/max_age":          {"origins": []string{page}, "max_age": "9999h"},
	} {
		h.refusesResource(t, document{"cors": cors}, pointer)
	}
}

func resourceStepUp(t *testing.T, h *house) {
	d := document{"id": "res-step", "upstream": document{"url": upstream(t).URL},
		"endpoints": []document{endpoints("a")[0].with(document{"step_up": document{"max_age": "1h"}})}}
	token := h.resource(t, d)
	got := h.call(t, http.MethodGet, "/resources/res-step/a", "", token)
	got.wants(t, "a service, which never signs in", http.StatusUnauthorized, "insufficient_user_authentication")
	if c := got.Header.Get("WWW-Authenticate"); !strings.Contains(c, `max_age="3600"`) {
		t.Errorf("challenge: %s", c)
	}
	person := h.person(t, "res-step")
	apptest.Eventually(t, 2*time.Second, "a recent sign-in to pass", func() bool {
		return h.call(t, http.MethodGet, "/resources/res-step/a", "", person).Status == http.StatusOK
	})
	h.refusesResource(t, document{"endpoints": []document{endpoints("a")[0].with(document{"step_up": document{}})}}, "/endpoints/0/step_up")
	h.refusesResource(t, document{"endpoints": []document{endpoints("a")[0].with(document{"public": true, "step_up": document{"max_age": "1h"}})}}, "/endpoints/0/step_up")
}

func resourceRules(t *testing.T, h *house) {
	a := endpoints("a")[0]
	token := h.resource(t, document{"id": "res-rules", "upstream": document{"url": upstream(t).URL}, "endpoints": []document{
		a.with(document{"allow": `token.client_id == "robot-res-rules" && request.headers["x-branch"] == "north"`}),
		{"id": "pay", "method": "POST", "path": "/pay/{to}", "allow": `request.body.amount <= 100 && request.parameters.to != "eve"`}}})
	at := "/resources/res-rules/"
	h.call(t, http.MethodGet, at+"a", "", token, "X-BRANCH", "north").wants(t, "a rule that holds", http.StatusOK, "")
	h.call(t, http.MethodGet, at+"a", "", token, "X-Branch", "south").wants(t, "one that does not", http.StatusForbidden, "rule_denied")
	h.call(t, http.MethodGet, at+"a", "", token).wants(t, "one that cannot be evaluated", http.StatusForbidden, "rule_failed")
	pay := func(to, body string) result {
		return h.call(t, http.MethodPost, at+"pay/"+to, body, token, "Content-Type", "application/json")
	}
	if got := pay("bob", `{"amount": 7}`); got.Status != http.StatusOK || !strings.Contains(got.Body, `{\"amount\": 7}`) {
		t.Errorf("a payment: %d %s", got.Status, got.Body)
	}
	pay("bob", `{"amount": 700}`).wants(t, "too large a payment", http.StatusForbidden, "rule_denied")
	pay("eve", `{"amount": 7}`).wants(t, "a payment to eve", http.StatusForbidden, "rule_denied")
	pay("bob", `{"amount": 7, "amount": 700}`).wants(t, "an ambiguous payment", http.StatusBadRequest, "body_unreadable")
	for _, wrong := range []string{`token.subject == "x"`, `user.claims.a == "x"`, `token.sub`, `1`, `(`, `token.sub.matches(request.path)`, "true\x00"} {
		h.refusesResource(t, document{"endpoints": []document{a.with(document{"allow": wrong})}}, "/endpoints/0/allow")
	}
	h.refusesResource(t, document{"endpoints": []document{a.with(document{"allow": "true", "public": true})}}, "/endpoints/0/allow")
}

func resourceInjections(t *testing.T, h *house) {
	a := endpoints("a")[0]
	token := h.resource(t, document{"id": "res-inject", "upstream": document{"url": upstream(t).URL}, "endpoints": []document{
		a.with(document{"inject": []document{{"header": "X-Account", "value": `token.sub + "@" + token.tenant`}}}), endpoints("b")[0]}})
	for path, want := range map[string]string{"a": "robot-res-inject@demo", "b": ""} {
		got := h.call(t, http.MethodGet, "/resources/res-inject/"+path, "", token, "X-Account", "root", "X_Account", "root")
		got.wants(t, path, http.StatusOK, "")
		if got.header("X-Account") != want || strings.Contains(got.Body, `"root"`) {
			t.Errorf("%s: the upstream got %s", path, got.Body)
		}
	}
	for pointer, in := range map[string]document{
		"/endpoints/0/inject/0/header": {"header": "X-Versola-Subject", "value": `"a"`},
		"/endpoints/0/inject/0/value":  {"header": "X-A", "value": `1`},
	} {
		h.refusesResource(t, document{"endpoints": []document{a.with(document{"inject": []document{in}})}}, pointer)
	}
}

// resourceSocket opens a WebSocket with a service client's token, and disables
// the client.
func resourceSocket(t *testing.T, h *house) {
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	}))
	t.Cleanup(up.Close)
	a := endpoints("a", "b")
	token := h.resource(t, document{"id": "res-socket", "upstream": document{"url": up.URL}, "endpoints": []document{a[0].with(document{"websocket": true}), a[1]}})
	handshake := func(path string) (*http.Response, error) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Edge+"/resources/res-socket/"+path, nil)
		if err != nil {
			return nil, err
		}
		r.Header = http.Header{"Authorization": {"Bearer " + token}, "Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}}
		return http.DefaultTransport.RoundTrip(r)
	}
	refused, err := handshake("b")
	if err != nil || refused.StatusCode != http.StatusNotImplemented {
		t.Fatalf("at an endpoint without: %v, %v", refused, err)
	}
	_ = refused.Body.Close()
	open, err := handshake("a")
	if err != nil || open.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("a handshake: %v, %v", open, err)
	}
	conn, ok := open.Body.(io.ReadWriteCloser)
	if !ok {
		t.Fatal("the connection does not write")
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(conn, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	path := "/v1/tenants/demo/clients/robot-res-socket"
	if page := administer(t, h.System, h.admin, http.MethodPatch, path, "application/merge-patch+json", `{"disabled":true}`); page.Status != http.StatusOK {
		t.Fatalf("disable the client: %d %s", page.Status, page.Body)
	}
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		_, _ = io.Copy(io.Discard, conn)
	}()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Error("the connection of a disabled client is still open")
	}
	h.refusesResource(t, document{"endpoints": []document{{"id": "a", "method": "POST", "path": "/a", "websocket": true}}}, "/endpoints/0/websocket")
}
