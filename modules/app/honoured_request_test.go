package app_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

func requestExercises() map[string]exercise {
	return map[string]exercise{
		"pushed requests":            {[]string{"client.require_pushed_authorization_requests"}, clientPushed},
		"a tenant's pushed requests": {[]string{"tenant.settings.require_pushed_authorization_requests", "tenant.settings.pushed_request_ttl"}, tenantPushed},
		"signed answers":             {[]string{"client.authorization_signed_response_alg"}, clientSignedAnswers},
		"request objects":            {[]string{"client.request_object_signing_alg", "client.require_signed_request_object"}, clientObjects},
	}
}

// push pushes the usual request of a client, with changes.
func (h *house) push(t *testing.T, id, secret string, changes map[string]string) (int, map[string]any) {
	t.Helper()
	form := h.request(id, changes)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Issuer+"/par", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		r.SetBasicAuth(id, secret)
	}
	page := apptest.NewBrowser(t).Do(r)
	answer := map[string]any{}
	if err := json.Unmarshal([]byte(page.Body), &answer); err != nil {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	return page.Status, answer
}

// opens opens a pushed request.
func (h *house) opens(t *testing.T, b *apptest.Browser, id string, pushed map[string]any) *apptest.Page {
	t.Helper()
	uri, _ := pushed["request_uri"].(string)
	return b.Open(h.Issuer + "/authorize?" + url.Values{"client_id": {id}, "request_uri": {uri}}.Encode())
}

// signsIn goes on from the first page of a sign-in, and returns the tokens.
func (h *house) signsIn(t *testing.T, b *apptest.Browser, id, secret string) map[string]any {
	t.Helper()
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	code := answer(t, h, b.Submit(map[string]string{"password": "wonderland-demo-1"})).Get("code")
	status, tokens := h.token(t, id, secret, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.callback}, "code_verifier": {verifier}})
	if status != http.StatusOK {
		t.Fatalf("exchange: %d %v", status, tokens)
	}
	return tokens
}

func clientPushed(t *testing.T, h *house) {
	secret := h.client(t, h.web("pushing").with(document{"require_pushed_authorization_requests": true}))
	b := apptest.NewBrowser(t)
	if q := answer(t, h, h.authorize(t, b, "pushing", nil)); q.Get("error") != "invalid_request" || q.Get("state") != "s" {
		t.Errorf("a request that was not pushed: %v", q)
	}
	status, pushed := h.push(t, "pushing", secret, nil)
	if status != http.StatusCreated || pushed["expires_in"] != 60.0 {
		t.Fatalf("push: %d %v", status, pushed)
	}
	if p := h.opens(t, apptest.NewBrowser(t), "pushing", pushed); p.Status != http.StatusOK {
		t.Errorf("opened before: %d", p.Status)
	}
	h.opens(t, b, "pushing", pushed)
	h.signsIn(t, b, "pushing", secret)
	if p := h.opens(t, b, "pushing", pushed); p.Status != http.StatusBadRequest || p.URL.Path != "/authorize" {
		t.Errorf("a spent request: %d at %s", p.Status, p.URL)
	}
	if status, a := h.push(t, "pushing", secret, map[string]string{"redirect_uri": "https://evil.example/"}); status != http.StatusBadRequest || a["error"] != "invalid_request" {
		t.Errorf("a request that /authorize would refuse: %d %v", status, a)
	}
	if status, a := h.push(t, "pushing", "wrong", nil); status != http.StatusUnauthorized || a["error"] != "invalid_client" {
		t.Errorf("a wrong secret: %d %v", status, a)
	}
	h.refuses(t, document{"id": "other", "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"},
		"require_pushed_authorization_requests": true}, "/require_pushed_authorization_requests")
	d := document{"id": "of-pushing", "edge": "local", "client": "pushing", "redirect_uri": h.callback, "scopes": []string{"openid"}, "after_login": "/", "after_logout": "/"}
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/presets", d); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, "require_pushed_authorization_requests") {
		t.Errorf("a preset of such a client: %d %s", page.Status, page.Body)
	}
}

// tenantPushed has a tenant without presets: edges do not push.
func tenantPushed(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	settings := document{"require_pushed_authorization_requests": true, "pushed_request_ttl": "2m0s"}
	d := document{"id": "pushers", "name": "Pushers", "security_profile": "standard", "directory": "demo", "settings": settings}
	if page := h.send(t, http.MethodPost, "/v1/tenants", d); page.Status != http.StatusCreated {
		t.Fatalf("make the tenant: %d %s", page.Status, page.Body)
	}
	h.at(t, "pushers", "scopes", document{"id": "openid"})
	page := h.send(t, http.MethodPost, "/v1/tenants/pushers/clients", h.web("app").with(document{"scopes": []string{"openid"}}))
	var made struct {
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(page.Body), &made); err != nil || page.Status != http.StatusCreated {
		t.Fatalf("register: %d %s", page.Status, page.Body)
	}
	h.Issuer += "/t/pushers"
	var status int
	var pushed map[string]any
	apptest.Eventually(t, 2*time.Second, "the tenant", func() bool {
		status, pushed = h.push(t, "app", made.Secret, nil)
		return status == http.StatusCreated
	})
	if pushed["expires_in"] != 120.0 {
		t.Errorf("expires_in is %v", pushed["expires_in"])
	}
	if q := answer(t, h, h.authorize(t, apptest.NewBrowser(t), "app", nil)); q.Get("error") != "invalid_request" {
		t.Errorf("a request that was not pushed: %v", q)
	}
	h.Clock.Advance(119 * time.Second)
	if p := h.opens(t, apptest.NewBrowser(t), "app", pushed); p.Status != http.StatusOK {
		t.Errorf("after 119 s of 120: %d", p.Status)
	}
	h.Clock.Advance(time.Second)
	if p := h.opens(t, apptest.NewBrowser(t), "app", pushed); p.Status != http.StatusBadRequest {
		t.Errorf("after 120 s of 120: %d", p.Status)
	}
	h.refusesSettings(t, document{"pushed_request_ttl": "10m"}, document{"pushed_request_ttl": "1s"})
	h.refusesSettings(t, document{"pushed_request_ttl": "-1m"}, document{"pushed_request_ttl": "soon"})
}

// clientSignedAnswers verifies answers as a relying party does: by the published
// keys.
func clientSignedAnswers(t *testing.T, h *house) {
	for id, alg := range map[string]string{"answered-ps": "PS256", "answered-ed": "EdDSA", "answered-usual": "RS256"} {
		d := h.web(id).with(document{"authorization_signed_response_alg": alg})
		if id == "answered-usual" {
			delete(d, "authorization_signed_response_alg")
		}
		secret := h.client(t, d)
		b := apptest.NewBrowser(t)
		h.authorize(t, b, id, map[string]string{"response_mode": "jwt"})
		b.Submit(map[string]string{"identifier": "alice@example.com"})
		page := b.Submit(map[string]string{"password": "wonderland-demo-1"})
		got := h.signedAnswer(t, id, alg, answer(t, h, page).Get("response"))
		code, _ := got["code"].(string)
		if page.URL.Query().Has("code") || got["state"] != "s" {
			t.Errorf("%s: %s", id, page.URL)
		}
		status, tokens := h.token(t, id, secret, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.callback}, "code_verifier": {verifier}})
		if status != http.StatusOK {
			t.Errorf("%s: exchange: %d %v", id, status, tokens)
		}
		refused := answer(t, h, h.authorize(t, b, id, map[string]string{"response_mode": "query.jwt", "scope": "nothing"}))
		if got := h.signedAnswer(t, id, alg, refused.Get("response")); got["error"] != "invalid_scope" || refused.Has("error") {
			t.Errorf("%s: a refusal: %v", id, got)
		}
	}
	for _, alg := range []string{"none", "HS256", "RS512", "es256"} {
		h.refuses(t, h.web("other").with(document{"authorization_signed_response_alg": alg}), "/authorization_signed_response_alg")
	}
	h.refuses(t, document{"id": "other", "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"},
		"authorization_signed_response_alg": "ES256"}, "/authorization_signed_response_alg")
	h.discovers(t, "response_modes_supported", "query", "fragment", "form_post", "jwt", "query.jwt", "fragment.jwt", "form_post.jwt")
	h.discovers(t, "authorization_signing_alg_values_supported", "RS256", "PS256", "ES256", "EdDSA")
}

// signedAnswer verifies a signed answer to a client and returns its claims.
func (h *house) signedAnswer(t *testing.T, id, alg, raw string) map[string]any {
	t.Helper()
	set, err := jose.SignatureKeys([]byte(apptest.NewBrowser(t).Open(h.Issuer + "/.well-known/jwks.json").Body))
	if err != nil {
		t.Fatal(err)
	}
	header, body, err := jose.NewKeySet(set...).Verify(raw, "")
	claims := map[string]any{}
	if err != nil || string(header.Alg) != alg || json.Unmarshal(body, &claims) != nil {
		t.Fatalf("signed by %q: %s: %v", header.Alg, body, err)
	}
	exp, _ := claims["exp"].(float64)
	if now := float64(h.Clock.Now().Unix()); claims["iss"] != h.Issuer || claims["aud"] != id || exp <= now || exp > now+600 {
		t.Errorf("claims %v", claims)
	}
	return claims
}

// object signs a request object of a client, with the usual parameters and
// changes; an empty text leaves one out.
func (h *house) object(t *testing.T, k *dpoptest.Key, id string, changes map[string]any) string {
	t.Helper()
	now := h.Clock.Now()
	claims := document{"iss": id, "aud": h.Issuer, "nbf": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	for name, v := range h.request(id, nil) {
		claims[name] = v[0]
	}
	return k.Sign(`{"alg":"`+string(k.Alg)+`","typ":"oauth-authz-req+jwt"}`, encode(t, claims.with(changes)))
}

func clientObjects(t *testing.T, h *house) {
	right, wrong := dpoptest.NewKey(t, jose.PS256), dpoptest.NewKey(t, jose.PS256)
	set := document{"keys": []json.RawMessage{right.JWK}}
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(encode(t, set))) }))
	defer there.Close()
	signing := document{"request_object_signing_alg": "PS256", "require_signed_request_object": true}
	for id, keys := range map[string]document{"object-jwks": {"jwks": set}, "object-uri": {"jwks_uri": there.URL + "/jwks"}} {
		secret := h.client(t, h.web(id).with(signing).with(keys))
		b := apptest.NewBrowser(t)
		b.Open(h.Issuer + "/authorize?" + url.Values{"client_id": {id}, "scope": {"nothing"}, "request": {h.object(t, right, id, nil)}}.Encode())
		h.signsIn(t, b, id, secret)
		if q := answer(t, h, h.authorize(t, b, id, nil)); q.Get("error") != "invalid_request" {
			t.Errorf("%s, an unsigned request: %v", id, q)
		}
		if q := answer(t, h, h.authorize(t, b, id, map[string]string{"request": h.object(t, wrong, id, nil)})); q.Get("error") != "invalid_request_object" {
			t.Errorf("%s, signed by another key: %v", id, q)
		}
		if status, a := h.push(t, id, secret, nil); status != http.StatusBadRequest || a["error"] != "invalid_request" {
			t.Errorf("%s, an unsigned request, pushed: %d %v", id, status, a)
		}
		status, pushed := h.push(t, id, secret, map[string]string{"request": h.object(t, right, id, map[string]any{"state": "inner"})})
		if q := answer(t, h, h.opens(t, b, id, pushed)); status != http.StatusCreated || q.Get("state") != "inner" || q.Get("code") == "" {
			t.Errorf("%s, a signed request, pushed: %d %v, %v", id, status, pushed, q)
		}
	}
	h.client(t, h.web("objectless"))
	if q := answer(t, h, h.authorize(t, apptest.NewBrowser(t), "objectless", map[string]string{"request": h.object(t, right, "objectless", nil)})); q.Get("error") != "request_not_supported" {
		t.Errorf("of a client without an algorithm: %v", q)
	}
	both := h.web("other").with(signing).with(document{"jwks": set})
	h.refuses(t, both.with(document{"request_object_signing_alg": "ES256"}), "/jwks")
	h.refuses(t, both.with(document{"request_object_signing_alg": "none"}), "/request_object_signing_alg")
	h.refuses(t, both.with(document{"request_object_signing_alg": "HS256"}), "/request_object_signing_alg")
	h.refuses(t, both.with(document{"request_object_signing_alg": ""}), "/require_signed_request_object")
	h.refuses(t, h.web("other").with(signing), "/jwks")
	h.refuses(t, h.web("other").with(document{"jwks_uri": there.URL}), "/jwks_uri")
	h.refuses(t, document{"id": "other", "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"},
		"jwks": set, "request_object_signing_alg": "PS256"}, "/request_object_signing_alg")
	d := document{"id": "of-object", "edge": "local", "client": "object-jwks", "redirect_uri": h.callback, "scopes": []string{"openid"}, "after_login": "/", "after_logout": "/"}
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/presets", d); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, "require_signed_request_object") {
		t.Errorf("a preset of such a client: %d %s", page.Status, page.Body)
	}
	h.discovers(t, "request_object_signing_alg_values_supported", "RS256", "PS256", "ES256", "EdDSA")
}
