package edge_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// rule changes an endpoint of the resource "bank".
func (w *world) rule(id string, change func(*catalog.EndpointSpec)) {
	w.t.Helper()
	endpoints := append([]catalog.EndpointSpec(nil), w.snapshot.Resources[0].Endpoints...)
	for i := range endpoints {
		if endpoints[i].ID == id {
			change(&endpoints[i])
		}
	}
	w.snapshot.Resources[0].Endpoints = endpoints
	w.compile()
}

func TestEndpoint_MaxBodyIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("pay", func(e *catalog.EndpointSpec) { e.MaxBody = 8 })
	e, token := w.edge(), w.auth.bearer(nil)
	pay := func(resource, body string) *response {
		return newBrowser(t).do(http.MethodPost, e.URL+"/resources/"+resource+"/payments", strings.NewReader(body), "Authorization", "Bearer "+token)
	}
	if got := pay("bank", "12345678").reached(t); got.Body != "12345678" {
		t.Errorf("the upstream got %q", got.Body)
	}
	if res := pay("bank", "123456789"); res.reason() != "body_too_large" {
		t.Errorf("over the limit: %d %s", res.StatusCode, res.body)
	}
	if got := pay("forwarding", "123456789").reached(t); got.Body != "123456789" {
		t.Errorf("the other resource got %q", got.Body)
	}
	status, body := raw(t, e, "POST /resources/bank/payments HTTP/1.1\r\nHost: edge.test\r\nAuthorization: Bearer "+token+
		"\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n9\r\n123456789\r\n0\r\n\r\n")
	if status != http.StatusRequestEntityTooLarge {
		t.Errorf("of unknown length: %d %s", status, body)
	}
}

func TestEndpoint_TimeoutIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("hold", func(e *catalog.EndpointSpec) { e.Timeout = catalog.Duration(100 * time.Millisecond) })
	e := w.edge()
	res := newBrowser(t).get(e.URL+"/resources/bank/hold", "Authorization", "Bearer "+w.auth.bearer(nil))
	if res.reason() != "upstream_timeout" || res.StatusCode != http.StatusGatewayTimeout {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

func TestStepUp_TokenOfAnOldSignInIsChallenged(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.rule("pay", func(e *catalog.EndpointSpec) { e.StepUp = &catalog.StepUp{MaxAge: catalog.Duration(5 * time.Minute)} })
	w.snapshot.Roles = append(w.snapshot.Roles, catalog.RoleSpec{Tenant: "demo", ID: "nobody"})
	w.compile()
	e := w.edge()
	at := func(age time.Duration) string {
		return w.auth.bearer(func(c map[string]any) { c["auth_time"] = w.clock.Now().Add(-age).Unix() })
	}
	for name, c := range map[string]struct {
		token  string
		reason string
	}{
		"recent":             {at(time.Minute), ""},
		"old":                {at(6 * time.Minute), "insufficient_user_authentication"},
		"without a sign-in":  {w.auth.bearer(nil), "insufficient_user_authentication"},
		"not permitted":      {w.auth.bearer(func(c map[string]any) { c["roles"] = []string{"nobody"} }), "not_permitted"},
		"a service, no role": {w.robot(), "not_permitted"},
	} {
		res := newBrowser(t).do(http.MethodPost, e.URL+"/resources/bank/payments", nil, "Authorization", "Bearer "+c.token)
		if res.reason() != c.reason {
			t.Errorf("%s: %d %s", name, res.StatusCode, res.body)
		}
		challenge := res.Header.Get("WWW-Authenticate")
		if asked := strings.Contains(challenge, `error="insufficient_user_authentication"`) && strings.Contains(challenge, `max_age="300"`); asked != (res.StatusCode == 401) {
			t.Errorf("%s: challenge is %q", name, challenge)
		}
	}
}

func TestStepUp_PageIsSentToSignInAgainAndBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snapshot.Presets[0].AfterLogin = publicURL + "/app"
	w.rule("list", func(e *catalog.EndpointSpec) { e.StepUp = &catalog.StepUp{MaxAge: catalog.Duration(time.Minute)} })
	w.auth.change = func(id, access map[string]any) {
		signedIn := w.clock.Now().Add(-2 * time.Minute).Unix()
		id["auth_time"], access["auth_time"] = signedIn, signedIn
	}
	e, b := w.edge(), newBrowser(t)
	asked := b.start(e, "")
	b.get(e.URL + "/complete?" + w.auth.answer(asked).Encode())
	script := b.get(e.URL + accounts)
	if script.StatusCode != http.StatusUnauthorized || !strings.Contains(script.body, `"login_url":"`+publicURL+`/login/demo?max_age=60"`) {
		t.Errorf("script: %d %s", script.StatusCode, script.body)
	}
	page := b.get(e.URL+accounts+"?a=b", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	to, err := url.Parse(page.Header.Get("Location"))
	must(t, err)
	if page.StatusCode != http.StatusSeeOther || to.Path != "/login/demo" || to.Query().Get("max_age") != "60" || to.Query().Get("return_to") != accounts+"?a=b" {
		t.Fatalf("page: %d to %q", page.StatusCode, to)
	}
	w.auth.set(func() { w.auth.change = nil })
	w.auth.set(func() {
		w.auth.change = func(_, access map[string]any) { access["auth_time"] = w.clock.Now().Unix() }
	})
	again := b.start(e, "?"+to.RawQuery)
	if again.Get("max_age") != "60" {
		t.Errorf("auth is asked for max_age %q", again.Get("max_age"))
	}
	res := b.get(e.URL + "/complete?" + w.auth.answer(again).Encode())
	if !strings.HasSuffix(res.Header.Get("Location"), accounts+"?a=b") {
		t.Errorf("back to %q", res.Header.Get("Location"))
	}
	b.get(e.URL + accounts).reached(t)
}
