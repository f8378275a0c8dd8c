package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

func rightExercises() map[string]exercise {
	return map[string]exercise{
		"scopes and claims": {[]string{"scope.description", "scope.claims", "claim.name", "claim.description"}, scopesAndClaims},
		"roles":             {[]string{"permission.endpoints", "role.permissions", "role.within"}, rolesAndPermissions},
		"presets": {[]string{"preset.edge", "preset.client", "preset.redirect_uri", "preset.scopes", "preset.after_login", "preset.after_logout", "preset.after_error",
			"preset.cookie_name", "preset.session_ttl"}, presets},
		"edges": {[]string{"edge.jwks"}, edges},
	}
}

func scopesAndClaims(t *testing.T, h *house) {
	h.create(t, "claims", document{"id": "loyalty_tier", "name": document{"en": "Loyalty tier", "ru": "Уровень"}, "description": "How often you come"})
	h.create(t, "scopes", document{"id": "loyalty", "description": document{"en": "Your loyalty tier"}, "claims": []string{"loyalty_tier", "given_name"}})
	alice := find(t, h.System, h.admin, "alice")
	page := administer(t, h.System, h.admin, http.MethodPatch, alice, "application/merge-patch+json", `{"claims":{"loyalty_tier":"gold"}}`)
	if page.Status != http.StatusOK {
		t.Fatalf("give alice a claim: %d %s", page.Status, page.Body)
	}
	secret := h.client(t, h.web("loyal").with(document{"scopes": []string{"openid", "loyalty"}}))
	for scope, want := range map[string]any{"openid loyalty": "gold", "openid": nil} {
		tokens := h.signIn(t, apptest.NewBrowser(t), "loyal", secret, map[string]string{"scope": scope})
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Issuer+"/userinfo", nil)
		if err != nil {
			t.Fatal(err)
		}
		access, _ := tokens["access_token"].(string)
		r.Header.Set("Authorization", "Bearer "+access)
		claims := map[string]any{}
		if err := json.Unmarshal([]byte(apptest.NewBrowser(t).Do(r).Body), &claims); err != nil || claims["loyalty_tier"] != want || claims["email"] != nil {
			t.Errorf("userinfo for %q: %v, %v", scope, claims, err)
		}
	}
	discovery := apptest.NewBrowser(t).Open(h.Issuer + "/.well-known/openid-configuration").Body
	if !strings.Contains(discovery, `"loyalty"`) || !strings.Contains(discovery, `"loyalty_tier"`) {
		t.Errorf("discovery: %s", discovery)
	}
	// The texts are for people who administer, and come back as they were given.
	for path, want := range map[string]string{"claims/loyalty_tier": "Уровень", "scopes/loyalty": "Your loyalty tier"} {
		if page := h.send(t, http.MethodGet, "/v1/tenants/demo/"+path, nil); !strings.Contains(page.Body, want) {
			t.Errorf("%s: %s", path, page.Body)
		}
	}
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/scopes", document{"id": "forged", "claims": []string{"email", "sub"}}, "/claims/1")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/scopes", document{"id": "two words"}, "/id")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/scopes", document{"id": "x", "description": document{"english": "x"}}, "/description")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/claims", document{"id": "x", "name": "a\nb"}, "/name")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/claims", document{"id": "x", "description": strings.Repeat("x", 201)}, "/description")
}

func rolesAndPermissions(t *testing.T, h *house) {
	h.create(t, "permissions", document{"id": "see-cards", "endpoints": []string{"bank:list-cards"}})
	h.create(t, "roles", document{"id": "card-holder", "permissions": []string{"see-cards"}})
	bob := find(t, h.System, h.admin, "bob")
	page := administer(t, h.System, h.admin, http.MethodPatch, bob, "application/merge-patch+json", `{"roles":{"demo":["card-holder"]}}`)
	if page.Status != http.StatusOK {
		t.Fatalf("give bob a role: %d %s", page.Status, page.Body)
	}
	secret := h.client(t, h.web("cards"))
	b := apptest.NewBrowser(t)
	h.authorize(t, b, "cards", nil)
	b.Submit(map[string]string{"identifier": "bob@example.com"})
	code := answer(t, h, b.Submit(map[string]string{"password": "builder-demo-1"})).Get("code")
	_, tokens := h.token(t, "cards", secret, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.callback}, "code_verifier": {verifier}})
	access, _ := tokens["access_token"].(string)
	for path, want := range map[string]int{"cards": http.StatusOK, "accounts": http.StatusForbidden} {
		if got := bearer(t, h.Edge+"/resources/bank/"+path, access); got != want {
			t.Errorf("%s with the role: %d, want %d", path, got, want)
		}
	}
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/permissions", document{"id": "x", "endpoints": []string{"bank:fly"}}, "/endpoints/0")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/roles", document{"id": "x", "permissions": []string{"fly"}}, "/permissions/0")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/roles", document{"id": "x", "within": "demo"}, "/within")
	h.refusesAt(t, http.MethodPost, "/v1/tenants/system/roles", document{"id": "x", "within": "nowhere"}, "/within")

	// A role of the system tenant within demo: its holder sees demo alone.
	h.at(t, "system", "roles", document{"id": "demo-viewer", "within": "demo", "permissions": []string{"use-api", "view-configuration"}})
	page = administer(t, h.System, h.admin, http.MethodPost, "/v1/directories/system/users", "application/json",
		`{"email":"viewer@versola.local","email_verified":true,"password":"viewer-password-1","roles":{"system":["demo-viewer"]}}`)
	if page.Status != http.StatusCreated {
		t.Fatalf("make a person: %d %s", page.Status, page.Body)
	}
	viewer := apptest.NewBrowser(t)
	viewer.Open(h.Edge + "/login/admin")
	viewer.Submit(map[string]string{"identifier": "viewer@versola.local"})
	viewer.Submit(map[string]string{"password": "viewer-password-1"})
	if page := administer(t, h.System, viewer, http.MethodGet, "/v1/tenants/demo/clients", "", ""); page.Status != http.StatusOK {
		t.Errorf("the tenant of the role: %d %s", page.Status, page.Body)
	}
	if page := administer(t, h.System, viewer, http.MethodGet, "/v1/tenants/system/clients", "", ""); page.Status == http.StatusOK {
		t.Errorf("another tenant: %d %s", page.Status, page.Body)
	}
}

func presets(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	d := h.web("browser").with(document{"redirect_uris": []string{h.Edge + "/complete"}, "post_logout_redirect_uris": []string{h.Edge + "/resources/bank-app/?bye"}})
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/clients", d); page.Status != http.StatusCreated {
		t.Fatalf("client: %d %s", page.Status, page.Body)
	}
	preset := document{"id": "second", "edge": "local", "client": "browser", "redirect_uri": h.Edge + "/complete", "scopes": []string{"openid", "email"},
		"after_login": h.Edge + "/resources/bank-app/?hello", "after_logout": h.Edge + "/resources/bank-app/?bye", "after_error": h.Edge + "/resources/bank-app/?sorry",
		"cookie_name": "second-session", "session_ttl": "30m0s"}
	h.create(t, "presets", preset)
	b := apptest.NewBrowser(t)
	apptest.Eventually(t, 2*time.Second, "the preset", func() bool { return b.Open(h.Edge+"/login/second").Status == http.StatusOK })
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	page := b.Submit(map[string]string{"password": "wonderland-demo-1"})
	if page.URL.String() != h.Edge+"/resources/bank-app/?hello" {
		t.Fatalf("after sign-in: %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	if !b.HasCookie(h.Edge, "second-session") {
		t.Error("the session's cookie has another name")
	}
	call := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Edge+"/resources/bank/accounts", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "application/json")
		return b.Do(r).Status
	}
	h.Clock.Advance(29 * time.Minute)
	if got := call(); got != http.StatusOK {
		t.Errorf("a session of 29 minutes of 30: %d", got)
	}
	h.Clock.Advance(2 * time.Minute)
	if got := call(); got != http.StatusUnauthorized {
		t.Errorf("a session of 31 minutes of 30: %d", got)
	}
	cancelled := apptest.NewBrowser(t)
	cancelled.Open(h.Edge + "/login/second")
	if page := cancelled.SubmitTo("/cancel", nil); !strings.HasPrefix(page.URL.String(), h.Edge+"/resources/bank-app/?") || !strings.Contains(page.URL.RawQuery, "sorry") {
		t.Errorf("after a cancelled sign-in: %d at %s", page.Status, page.URL)
	}
	refuse := func(changes document, pointer string) {
		t.Helper()
		h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/presets", preset.with(document{"id": "third", "cookie_name": "third"}).with(changes), pointer)
	}
	refuse(document{"edge": "nowhere"}, "/edge")
	refuse(document{"client": "nobody"}, "/client")
	refuse(document{"redirect_uri": h.Edge + "/other"}, "/redirect_uri")
	refuse(document{"scopes": []string{"openid", "moon"}}, "/scopes/1")
	refuse(document{"after_login": "javascript:alert(1)"}, "/after_login")
	refuse(document{"after_logout": "//evil.example"}, "/after_logout")
	refuse(document{"after_error": "ftp://x"}, "/after_error")
	refuse(document{"cookie_name": "a b"}, "/cookie_name")
	refuse(document{"cookie_name": "second-session"}, "/cookie_name")
	refuse(document{"session_ttl": "1ms"}, "/session_ttl")
}

// edges: who has no key that the catalog knows is sent nothing. That an edge of
// known keys is sent its own is shown by every other exercise.
func edges(t *testing.T, h *house) {
	for _, wrong := range []any{document{"keys": []any{}}, document{}, "x", document{"keys": []document{{"kty": "oct", "k": "AAAA"}}},
		document{"keys": []document{{"kty": "EC", "crv": "P-256", "use": "sig", "x": "AA", "y": "AA"}}}} {
		h.refusesAt(t, http.MethodPost, "/v1/edges", document{"id": "other", "jwks": wrong}, "/jwks")
	}
	page := h.send(t, http.MethodGet, "/v1/edges/local", nil)
	if page.Status != http.StatusOK || strings.Contains(page.Body, `"d":`) || !strings.Contains(page.Body, `"use":"enc"`) {
		t.Errorf("the edge: %d %s", page.Status, page.Body)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.Internal+"/internal/catalog", nil)
	if err != nil {
		t.Fatal(err)
	}
	if page := apptest.NewBrowser(t).Do(r); page.Status != http.StatusUnauthorized {
		t.Errorf("the catalog's feed for a stranger: %d %s", page.Status, page.Body)
	}
}
