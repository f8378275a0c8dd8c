package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app"
	"versola/modules/app/apptest"
)

func tenantExercises() map[string]exercise {
	const s = "tenant.settings."
	return map[string]exercise{
		"a tenant's lifetimes of tokens": {[]string{s + "access_token_ttl", s + "id_token_ttl", s + "code_ttl", s + "refresh_grace", s + "refresh_idle_ttl", s + "refresh_absolute_ttl"}, tenantTokens},
		"a tenant's sessions":            {[]string{s + "session_idle_ttl", s + "session_absolute_ttl", s + "login_ttl", s + "offline_survives_logout"}, tenantSessions},
		"one-time codes":                 {[]string{s + "phone_prefixes", s + "otp.length", s + "otp.ttl", s + "otp.attempts", s + "otp.resend_after"}, tenantCodes},
		"passwords":                      {[]string{s + "password_policy.min_length", s + "password_policy.pattern"}, tenantPasswords},
		"a tenant":                       {[]string{"tenant.name", "tenant.security_profile", "tenant.directory", "tenant.edge", "directory.name"}, tenantItself},
	}
}

// settings changes those of the demo tenant.
func (h *house) settings(t *testing.T, d document) {
	t.Helper()
	h.patch(t, document{"settings": d})
}

// refusesSettings checks that each setting of the demo tenant is refused by its
// pointer.
func (h *house) refusesSettings(t *testing.T, wrong ...document) {
	t.Helper()
	for _, d := range wrong {
		page := administer(t, h.System, h.admin, http.MethodPatch, "/v1/tenants/demo", "application/merge-patch+json", encode(t, document{"settings": d}))
		pointer := "/settings"
		for inner := any(d); ; {
			m, ok := inner.(document)
			if !ok {
				break
			}
			for k, v := range m {
				pointer, inner = pointer+"/"+k, v
			}
		}
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, `"pointer":"`+pointer) {
			t.Errorf("settings %v: want 422 at %s, got %d %s", d, pointer, page.Status, page.Body)
		}
	}
}

func (h *house) refresh(t *testing.T, id, secret string, token any) (int, map[string]any) {
	t.Helper()
	value, _ := token.(string)
	return h.token(t, id, secret, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {value}})
}

func tenantTokens(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	h.settings(t, document{"access_token_ttl": "1m30s", "id_token_ttl": "80s", "code_ttl": "10s", "refresh_grace": "5s", "refresh_idle_ttl": "20m", "refresh_absolute_ttl": "50m"})
	secret := h.client(t, h.web("usual"))
	tokens := h.signIn(t, apptest.NewBrowser(t), "usual", secret, nil)
	idToken, _ := tokens["id_token"].(string)
	claims := payload(t, idToken)
	exp, _ := claims["exp"].(float64)
	iat, _ := claims["iat"].(float64)
	if tokens["expires_in"] != 90.0 || exp-iat != 80 {
		t.Errorf("access tokens live %v s, ID tokens %v s", tokens["expires_in"], exp-iat)
	}

	b := apptest.NewBrowser(t)
	h.signIn(t, b, "usual", secret, nil)
	code := answer(t, h, h.authorize(t, b, "usual", nil)).Get("code")
	h.Clock.Advance(11 * time.Second)
	form := url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.callback}, "code_verifier": {verifier}}
	if status, a := h.token(t, "usual", secret, form); status != http.StatusBadRequest || a["error"] != "invalid_grant" {
		t.Errorf("a code of 11 s of 10: %d %v", status, a)
	}

	lost := h.signIn(t, apptest.NewBrowser(t), "usual", secret, nil)["refresh_token"]
	for _, k := range []struct {
		after  time.Duration
		status int
	}{{0, http.StatusOK}, {4 * time.Second, http.StatusOK}, {20 * time.Second, http.StatusBadRequest}} {
		h.Clock.Advance(k.after)
		if status, a := h.refresh(t, "usual", secret, lost); status != k.status {
			t.Errorf("a refresh token once more after %v: %d %v", k.after, status, a)
		}
	}
	h.familiesEnd(t, "usual", secret)
	h.refusesSettings(t, document{"access_token_ttl": "1s"}, document{"id_token_ttl": "30h"}, document{"code_ttl": "61s"}, document{"refresh_grace": "1h"},
		document{"refresh_idle_ttl": "1ms"}, document{"refresh_absolute_ttl": "-1h"})
}

// familiesEnd checks a client whose refresh token families live 20 minutes
// unused and 50 minutes in all.
func (h *house) familiesEnd(t *testing.T, id, secret string) {
	t.Helper()
	used := h.signIn(t, apptest.NewBrowser(t), id, secret, nil)["refresh_token"]
	unused := h.signIn(t, apptest.NewBrowser(t), id, secret, nil)["refresh_token"]
	for range 3 { // the family is used each 15 minutes, until the 45th
		h.Clock.Advance(15 * time.Minute)
		status, a := h.refresh(t, id, secret, used)
		if status != http.StatusOK {
			t.Fatalf("a family that is used: %d %v", status, a)
		}
		used = a["refresh_token"]
	}
	if status, a := h.refresh(t, id, secret, unused); status != http.StatusBadRequest || a["error"] != "invalid_grant" {
		t.Errorf("a family unused for 45 minutes of 20: %d %v", status, a)
	}
	h.Clock.Advance(6 * time.Minute)
	if status, a := h.refresh(t, id, secret, used); status != http.StatusBadRequest || a["error"] != "invalid_grant" {
		t.Errorf("a family of 51 minutes of 50: %d %v", status, a)
	}
}

func tenantSessions(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	h.settings(t, document{"session_idle_ttl": "10m", "session_absolute_ttl": "25m", "login_ttl": "2m"})
	secret := h.client(t, h.web("usual").with(document{"post_logout_redirect_uris": []string{h.callback}}))
	silent := func(b *apptest.Browser) string {
		return answer(t, h, h.authorize(t, b, "usual", map[string]string{"prompt": "none"})).Get("error")
	}
	idle, used := apptest.NewBrowser(t), apptest.NewBrowser(t)
	h.signIn(t, idle, "usual", secret, nil)
	h.signIn(t, used, "usual", secret, nil)
	for _, after := range []time.Duration{8, 8} {
		h.Clock.Advance(after * time.Minute)
		if got := silent(used); got != "" {
			t.Errorf("a session that is used: %s", got)
		}
	}
	if got := silent(idle); got != "login_required" {
		t.Errorf("a session idle for 16 minutes of 10: %q", got)
	}
	h.Clock.Advance(9*time.Minute + time.Second)
	if got := silent(used); got != "login_required" {
		t.Errorf("a session of 25 minutes and a second: %q", got)
	}

	slow := apptest.NewBrowser(t)
	h.authorize(t, slow, "usual", nil)
	h.Clock.Advance(3 * time.Minute)
	if page := slow.Submit(map[string]string{"identifier": "alice@example.com"}); !strings.Contains(page.Body, `name="identifier"`) || !strings.Contains(page.Body, `id="error"`) {
		t.Errorf("a conversation of 3 minutes of 2 does not begin again: %d at %s\n%s", page.Status, page.URL, page.Body)
	}

	for survives, want := range map[bool]int{false: http.StatusBadRequest, true: http.StatusOK} {
		h.settings(t, document{"offline_survives_logout": survives})
		h.client(t, h.web(map[bool]string{false: "ends", true: "survives"}[survives])) // live after the setting
		b := apptest.NewBrowser(t)
		tokens := h.signIn(t, b, "usual", secret, map[string]string{"scope": "openid offline_access"})
		hint, _ := tokens["id_token"].(string)
		b.Open(h.Issuer + "/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {h.callback}}.Encode())
		if status, a := h.refresh(t, "usual", secret, tokens["refresh_token"]); status != want {
			t.Errorf("offline access after a sign-out, offline_survives_logout %v: %d %v", survives, status, a)
		}
	}
	h.refusesSettings(t, document{"session_idle_ttl": "1ms"}, document{"session_absolute_ttl": "200000h"}, document{"login_ttl": "2h"}, document{"offline_survives_logout": "yes"})
}

func tenantCodes(t *testing.T, _ *house) {
	h := newHouse(t) // whose tenant it changes
	h.settings(t, document{"phone_prefixes": []string{"+7700"}, "otp": document{"ttl": "2m", "attempts": 2, "resend_after": "1m40s"}})
	h.client(t, h.web("codes").with(document{"login": document{"identifiers": []string{"phone"}, "factors": []string{"otp"}}}))
	ask := func() *apptest.Browser {
		b := apptest.NewBrowser(t)
		h.authorize(t, b, "codes", nil)
		b.Submit(map[string]string{"identifier": "+77000000001"})
		return b
	}
	abroad := apptest.NewBrowser(t)
	h.authorize(t, abroad, "codes", nil)
	if page := abroad.Submit(map[string]string{"identifier": "+442071838750"}); !strings.Contains(page.Body, `id="error"`) {
		t.Errorf("a number that may not sign in:\n%s", page.Body)
	}
	b := ask()
	for range 2 {
		b.Submit(map[string]string{"code": "000000"})
	}
	if page := b.Submit(map[string]string{"code": "123456"}); !strings.Contains(page.Body, "no longer") {
		t.Errorf("the right code after two wrong ones of 2: %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	h.Clock.Advance(2 * time.Hour) // past every limit
	b = ask()
	h.Clock.Advance(99 * time.Second)
	if page := b.Submit(map[string]string{"factor": "otp"}); page.Status != http.StatusTooManyRequests {
		t.Errorf("a new code after 99 s of 100: %d", page.Status)
	}
	h.Clock.Advance(22 * time.Second)
	if page := b.Submit(map[string]string{"code": "123456"}); !strings.Contains(page.Body, "no longer") {
		t.Errorf("a code of 121 s of 120: %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	h.refusesSettings(t, document{"otp": document{"ttl": "1h"}}, document{"otp": document{"attempts": 0.5}}, document{"otp": document{"resend_after": "1s"}}, document{"otp": document{"length": 3}},
		document{"phone_prefixes": []string{"7700"}})

	real := house{System: apptest.Start(t, func(c *app.Config) { c.Auth.OTP.Provider = "none" }), callback: h.callback}
	real.admin = signInAdmin(t, real.System)
	real.settings(t, document{"otp": document{"length": 8}})
	real.client(t, real.web("codes").with(document{"login": document{"identifiers": []string{"phone"}, "factors": []string{"otp"}}}))
	b = apptest.NewBrowser(t)
	real.authorize(t, b, "codes", nil)
	if page := b.Submit(map[string]string{"identifier": "+77000000001"}); !strings.Contains(page.Body, `data-digits="8"`) {
		t.Errorf("a code of 8 digits:\n%s", page.Body)
	}
}

func tenantPasswords(t *testing.T, _ *house) {
	h := newHouse(t) // whose tenant it changes
	h.settings(t, document{"password_policy": document{"min_length": 14, "pattern": "[0-9]"}})
	alice := find(t, h.System, h.admin, "alice")
	page := h.send(t, http.MethodPost, alice+"/password", document{})
	if page.Status != http.StatusOK {
		t.Fatalf("reset: %d %s", page.Status, page.Body)
	}
	var made struct {
		Password string `json:"temporary_password"`
	}
	if err := json.Unmarshal([]byte(page.Body), &made); err != nil {
		t.Fatal(err)
	}
	h.client(t, h.web("passwords"))
	b := apptest.NewBrowser(t)
	h.authorize(t, b, "passwords", nil)
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	b.Submit(map[string]string{"password": made.Password})
	for _, wrong := range []string{"thirteen-1234", "no digit is in here"} {
		if page := b.Submit(map[string]string{"new_password": wrong}); !strings.Contains(page.Body, `id="error"`) {
			t.Errorf("%q was accepted: at %s", wrong, page.URL)
		}
	}
	if page := b.Submit(map[string]string{"new_password": "fourteen-letters-1"}); page.URL.Path != "/callback" {
		t.Errorf("a good one: %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	h.refusesSettings(t, document{"password_policy": document{"min_length": 7}}, document{"password_policy": document{"pattern": "("}})
}

func tenantItself(t *testing.T, h *house) {
	if page := h.send(t, http.MethodPost, "/v1/directories", document{"id": "people", "name": document{"en": "People", "ru": "Люди"}}); page.Status != http.StatusCreated {
		t.Fatalf("directory: %d %s", page.Status, page.Body)
	}
	create := func(d document) {
		t.Helper()
		if page := h.send(t, http.MethodPost, "/v1/tenants", d); page.Status != http.StatusCreated {
			t.Fatalf("tenant: %d %s", page.Status, page.Body)
		}
	}
	create(document{"id": "sister", "name": "Sister Bank", "security_profile": "standard", "directory": "demo", "edge": "local"})
	create(document{"id": "stranger", "name": "Stranger", "security_profile": "standard", "directory": "people"})
	for _, tenant := range []string{"sister", "stranger"} {
		h.at(t, tenant, "scopes", document{"id": "openid"})
		h.at(t, tenant, "resources", document{"id": "bank-" + tenant, "upstream": document{"url": "http://" + h.Config.Demo.UpstreamListen}, "endpoints": []document{{"id": "list", "method": "GET", "path": "/accounts", "public": true}}})
		d := h.web("shared")
		delete(d, "audiences")
		h.at(t, tenant, "clients", d.with(document{"scopes": []string{"openid"}, "client_kind": "single-page", "auth_method": "none"}))
	}
	// The sister's people are the demo tenant's; the stranger's are others.
	for tenant, want := range map[string]bool{"sister": true, "stranger": false} {
		b := apptest.NewBrowser(t)
		apptest.Eventually(t, 2*time.Second, "the tenant", func() bool {
			q := url.Values{"client_id": {"shared"}, "response_type": {"code"}, "redirect_uri": {h.callback}, "scope": {"openid"}, "code_challenge": {challenge}, "code_challenge_method": {"S256"}}
			return b.Open(h.Issuer+"/t/"+tenant+"/authorize?"+q.Encode()).Status == http.StatusOK
		})
		b.Submit(map[string]string{"identifier": "bob@example.com"})
		if page := b.Submit(map[string]string{"password": "builder-demo-1"}); (page.URL.Path == "/callback") != want {
			t.Errorf("a person of directory demo at tenant %s: %d at %s", tenant, page.Status, page.URL)
		}
	}
	// Only a tenant of this edge has its resources there.
	for tenant, missing := range map[string]bool{"sister": false, "stranger": true} {
		if page := apptest.NewBrowser(t).Open(h.Edge + "/resources/bank-" + tenant + "/accounts"); (page.Status == http.StatusNotFound) != missing {
			t.Errorf("a resource of tenant %s at the edge: %d", tenant, page.Status)
		}
	}
	refuse := func(d document, pointer string) {
		t.Helper()
		h.refusesAt(t, http.MethodPost, "/v1/tenants", document{"id": "other", "name": "Other", "security_profile": "standard"}.with(d), pointer)
	}
	refuse(document{"name": "a\nb"}, "/name")
	refuse(document{"security_profile": "lax"}, "/security_profile")
	refuse(document{"security_profile": "fapi2"}, "/security_profile")
	refuse(document{"directory": "../x"}, "/directory")
	refuse(document{"edge": "nowhere"}, "/edge")
	h.refusesAt(t, http.MethodPost, "/v1/directories", document{"id": "x", "name": strings.Repeat("x", 201)}, "/name")
}

// at makes an entity of a tenant.
func (h *house) at(t *testing.T, tenant, many string, d document) {
	t.Helper()
	if page := h.send(t, http.MethodPost, "/v1/tenants/"+tenant+"/"+many, d); page.Status != http.StatusCreated {
		t.Fatalf("POST %s/%s: %d %s", tenant, many, page.Status, page.Body)
	}
}
