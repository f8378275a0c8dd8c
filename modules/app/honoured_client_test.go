package app_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/platform/jose"
)

// web is a client that most exercises change one setting of.
func (h *house) web(id string) document {
	return document{"id": id, "client_kind": "web", "auth_method": "client_secret_basic", "grant_types": []string{"authorization_code", "refresh_token"},
		"redirect_uris": []string{h.callback}, "scopes": []string{"openid", "profile", "email", "offline_access", "bank"}, "audiences": []string{"bank"}}
}

func clientExercises() map[string]exercise {
	return map[string]exercise{
		"kinds and authentication methods": {[]string{"client.client_kind", "client.auth_method"}, clientKinds},
		"grant types":                      {[]string{"client.grant_types", "client.response_types"}, clientGrants},
		"redirect URIs":                    {[]string{"client.redirect_uris"}, clientRedirects},
		"sign-out":                         {[]string{"client.post_logout_redirect_uris", "client.backchannel_logout_uri", "client.frontchannel_logout_uri"}, clientSignOut},
		"scopes and audiences":             {[]string{"client.scopes", "client.audiences"}, clientScopes},
		"a service client's permissions":   {[]string{"client.permissions"}, clientPermissions},
		"lifetime and algorithms":          {[]string{"client.access_token_ttl", "client.access_token_alg", "client.id_token_alg"}, clientTokens},
		"PKCE":                             {[]string{"client.require_pkce"}, clientPKCE},
		"origins":                          {[]string{"client.cors_origins"}, clientOrigins},
		"name and sign-in":                 {[]string{"client.name", "client.login.identifiers", "client.login.factors", "client.policy_uri", "client.tos_uri"}, clientSignIn},
		"disabled":                         {[]string{"client.disabled"}, clientDisabled},
	}
}

func clientKinds(t *testing.T, h *house) {
	post := h.web("kind-post").with(document{"auth_method": "client_secret_post"})
	secret := h.client(t, post)
	page := h.authorize(t, apptest.NewBrowser(t), "kind-post", nil)
	if page.Status != http.StatusOK {
		t.Errorf("the sign-in page: %d", page.Status)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "code": {"none"}, "redirect_uri": {h.callback}, "code_verifier": {verifier}}
	if status, a := h.token(t, "kind-post", secret, form); status != http.StatusUnauthorized || a["error"] != "invalid_client" {
		t.Errorf("a client of client_secret_post by the header: %d %v", status, a)
	}
	form.Set("client_secret", secret)
	if status, a := h.token(t, "kind-post", "", form); status != http.StatusBadRequest || a["error"] != "invalid_grant" {
		t.Errorf("a client of client_secret_post by the body: %d %v", status, a)
	}
	for _, kind := range []string{"native", "single-page"} {
		public := h.web("kind-" + kind).with(document{"client_kind": kind, "auth_method": "none"})
		if got := h.client(t, public); got != "" {
			t.Errorf("a %s client was given a secret", kind)
		}
		h.signIn(t, apptest.NewBrowser(t), "kind-"+kind, "", nil)
		h.refuses(t, public.with(document{"id": "other", "auth_method": "client_secret_basic"}), "/auth_method")
	}
	h.refuses(t, h.web("other").with(document{"auth_method": "none"}), "/auth_method")
	h.refuses(t, h.web("other").with(document{"client_kind": "toaster"}), "/client_kind")
	h.refuses(t, h.web("other").with(document{"auth_method": "guess"}), "/auth_method")
}

func clientGrants(t *testing.T, h *house) {
	codeOnly := h.web("grant-code").with(document{"grant_types": []string{"authorization_code"}, "scopes": []string{"openid"}, "response_types": []string{"code"}})
	secret := h.client(t, codeOnly)
	if tokens := h.signIn(t, apptest.NewBrowser(t), "grant-code", secret, nil); tokens["refresh_token"] != nil {
		t.Error("a client without the grant refresh_token was given a refresh token")
	}
	status, a := h.token(t, "grant-code", secret, url.Values{"grant_type": {"client_credentials"}})
	if status != http.StatusBadRequest || a["error"] != "unauthorized_client" {
		t.Errorf("a grant that the client does not have: %d %v", status, a)
	}
	service := h.client(t, document{"id": "grant-service", "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"}})
	if status, a := h.token(t, "grant-service", service, url.Values{"grant_type": {"client_credentials"}}); status != http.StatusOK {
		t.Errorf("client_credentials: %d %v", status, a)
	}
	if p := h.authorize(t, apptest.NewBrowser(t), "grant-service", nil); p.Status != http.StatusBadRequest {
		t.Errorf("a service client at the authorization endpoint: %d", p.Status)
	}
	if q := answer(t, h, h.authorize(t, apptest.NewBrowser(t), "grant-code", map[string]string{"response_type": "token"})); q.Get("error") == "" {
		t.Errorf("response_type=token was accepted: %v", q)
	}
	for field, d := range map[string]document{
		"/grant_types":    {"grant_types": []string{"password"}},
		"/response_types": {"response_types": []string{"token"}},
		"/scopes":         {"grant_types": []string{"authorization_code"}},
	} {
		h.refuses(t, h.web("other").with(d), field)
	}
	h.refuses(t, h.web("other").with(document{"grant_types": []string{}}), "/grant_types")
}

func clientRedirects(t *testing.T, h *house) {
	h.client(t, h.web("redirect"))
	for _, wrong := range []string{h.callback + "/", h.callback + "?x", strings.ToUpper(h.callback), "https://evil.example/callback"} {
		p := h.authorize(t, apptest.NewBrowser(t), "redirect", map[string]string{"redirect_uri": wrong})
		if p.Status != http.StatusBadRequest || !strings.HasPrefix(p.URL.String(), h.Issuer) {
			t.Errorf("redirect_uri %q: %d at %s", wrong, p.Status, p.URL)
		}
	}
	for _, wrong := range []string{"http://example.com/cb", "https://example.com/cb#f", "https://u:p@example.com/cb", "javascript:alert(1)", "https://*.example.com/cb", "/cb", ""} {
		h.refuses(t, h.web("other").with(document{"redirect_uris": []string{h.callback, wrong}}), "/redirect_uris/1")
	}
	h.refuses(t, h.web("other").with(document{"redirect_uris": []string{}}), "/redirect_uris")
}

func clientSignOut(t *testing.T, h *house) {
	notices := make(chan string, 4)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { notices <- r.PostFormValue("logout_token") }))
	defer receiver.Close()
	after := h.callback + "/bye"
	secret := h.client(t, h.web("sign-out").with(document{"post_logout_redirect_uris": []string{after}, "backchannel_logout_uri": receiver.URL + "/logout"}))
	b := apptest.NewBrowser(t)
	hint, _ := h.signIn(t, b, "sign-out", secret, nil)["id_token"].(string)
	wrong := b.Open(h.Issuer + "/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {after + "/x"}}.Encode())
	if !strings.HasPrefix(wrong.URL.String(), h.Issuer) {
		t.Errorf("sent on to an address that is not registered: %s", wrong.URL)
	}
	page := b.Open(h.Issuer + "/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {after}, "state": {"z"}}.Encode())
	if page.URL.String() != after+"?state=z" {
		t.Errorf("after sign-out: %d at %s", page.Status, page.URL)
	}
	select {
	case token := <-notices:
		if claims := payload(t, token); claims["aud"] != "sign-out" || claims["sid"] != payload(t, hint)["sid"] {
			t.Errorf("the logout token says %v", claims)
		}
	case <-time.After(10 * time.Second):
		t.Error("no logout notice came")
	}
	h.refuses(t, h.web("other").with(document{"post_logout_redirect_uris": []string{"ftp://x/"}}), "/post_logout_redirect_uris/0")
	h.refuses(t, h.web("other").with(document{"backchannel_logout_uri": "gopher://x"}), "/backchannel_logout_uri")

	frame := h.callback + "/clear?a=b"
	secret = h.client(t, h.web("framed").with(document{"post_logout_redirect_uris": []string{after}, "frontchannel_logout_uri": frame}))
	hint, _ = h.signIn(t, b, "framed", secret, nil)["id_token"].(string)
	page = b.Open(h.Issuer + "/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {after}}.Encode())
	sid, _ := payload(t, hint)["sid"].(string)
	if want := html.EscapeString(frame + "&" + url.Values{"iss": {h.Issuer}, "sid": {sid}}.Encode()); !strings.Contains(page.Body, want) || !strings.Contains(page.Body, after) {
		t.Errorf("%d %s, wanted a frame of %s", page.Status, page.Body, want)
	}
	h.refuses(t, h.web("other").with(document{"frontchannel_logout_uri": "https://elsewhere.example/"}), "/frontchannel_logout_uri")
}

func clientScopes(t *testing.T, h *house) {
	secret := h.client(t, h.web("scopes").with(document{"scopes": []string{"openid", "email"}, "audiences": []string{"bank", "urn:another"}}))
	tokens := h.signIn(t, apptest.NewBrowser(t), "scopes", secret, map[string]string{"scope": "openid email"})
	access, _ := tokens["access_token"].(string)
	if claims := payload(t, access); claims["scope"] != "openid email" || fmt.Sprint(claims["aud"]) != "[bank urn:another]" {
		t.Errorf("scope %v, aud %v", claims["scope"], claims["aud"])
	}
	if q := answer(t, h, h.authorize(t, apptest.NewBrowser(t), "scopes", map[string]string{"scope": "openid profile"})); q.Get("error") != "invalid_scope" {
		t.Errorf("a scope that the client does not have: %v", q)
	}
	h.refuses(t, h.web("other").with(document{"scopes": []string{"openid", "moon"}}), "/scopes/1")
	h.refuses(t, h.web("other").with(document{"audiences": []string{""}}), "/audiences/0")
}

func clientPermissions(t *testing.T, h *house) {
	d := document{"id": "permitted", "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"}, "audiences": []string{"bank"}}
	for id, want := range map[string]int{"permitted": http.StatusOK, "idle": http.StatusForbidden} {
		if d = d.with(document{"id": id, "permissions": []string{"read-accounts"}}); want != http.StatusOK {
			delete(d, "permissions")
		}
		secret := h.client(t, d)
		_, a := h.token(t, id, secret, url.Values{"grant_type": {"client_credentials"}})
		access, _ := a["access_token"].(string)
		apptest.Eventually(t, time.Second, "the edge to know "+id, func() bool {
			return bearer(t, h.Edge+"/resources/bank/accounts", access) == want
		})
	}
	h.refuses(t, d.with(document{"id": "other", "permissions": []string{"fly"}}), "/permissions/0")
	h.refuses(t, h.web("other").with(document{"permissions": []string{"read-accounts"}}), "/permissions")
}

func clientTokens(t *testing.T, h *house) {
	for _, alg := range jose.Algorithms() {
		id := "alg-" + strings.ToLower(string(alg))
		secret := h.client(t, h.web(id).with(document{"access_token_ttl": "2m0s", "access_token_alg": alg, "id_token_alg": alg}))
		tokens := h.signIn(t, apptest.NewBrowser(t), id, secret, nil)
		if tokens["expires_in"] != 120.0 {
			t.Errorf("expires_in is %v", tokens["expires_in"])
		}
		for _, name := range []string{"access_token", "id_token"} {
			token, _ := tokens[name].(string)
			if got := part(t, token, 0)["alg"]; got != string(alg) {
				t.Errorf("%s is signed with %v, not %s", name, got, alg)
			}
		}
		rp := newParty(t, h.System, id, secret, h.callback)
		idToken, _ := tokens["id_token"].(string)
		if _, err := rp.verifier.Verify(t.Context(), idToken); err != nil && alg != "EdDSA" {
			t.Errorf("%s: %v", alg, err)
		}
		access, _ := tokens["access_token"].(string)
		if got := bearer(t, h.Edge+"/resources/bank/accounts", access); got != http.StatusOK {
			t.Errorf("a call with a token signed by %s: %d", alg, got)
		}
	}
	h.refuses(t, h.web("other").with(document{"access_token_ttl": "1ms"}), "/access_token_ttl")
	for _, wrong := range []string{"none", "HS256", "es256"} {
		h.refuses(t, h.web("other").with(document{"access_token_alg": wrong}), "/access_token_alg")
		h.refuses(t, h.web("other").with(document{"id_token_alg": wrong}), "/id_token_alg")
	}
}

func clientPKCE(t *testing.T, h *house) {
	without := map[string]string{"code_challenge": "", "code_challenge_method": ""}
	h.client(t, h.web("pkce"))
	if q := answer(t, h, h.authorize(t, apptest.NewBrowser(t), "pkce", without)); q.Get("error") != "invalid_request" {
		t.Errorf("no code_challenge: %v", q)
	}
	h.client(t, h.web("no-pkce").with(document{"require_pkce": false}))
	if p := h.authorize(t, apptest.NewBrowser(t), "no-pkce", without); p.Status != http.StatusOK || !strings.Contains(p.URL.Path, "/login/") {
		t.Errorf("a client that need not send one: %d at %s", p.Status, p.URL)
	}
	h.refuses(t, h.web("other").with(document{"client_kind": "single-page", "auth_method": "none", "require_pkce": false}), "/require_pkce")
}

func clientOrigins(t *testing.T, h *house) {
	h.client(t, h.web("origins").with(document{"client_kind": "single-page", "auth_method": "none", "cors_origins": []string{"https://spa.example"}}))
	for origin, want := range map[string]string{"https://spa.example": "https://spa.example", "https://other.example": "", "null": ""} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Issuer+"/token", strings.NewReader("client_id=origins&grant_type=authorization_code"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", origin)
		if got := apptest.NewBrowser(t).Do(r).Header.Get("Access-Control-Allow-Origin"); got != want {
			t.Errorf("a page of %s: allowed origin %q", origin, got)
		}
	}
	for _, wrong := range []string{"*", "null", "https://spa.example/", "https://spa.example/x", "spa.example"} {
		h.refuses(t, h.web("other").with(document{"cors_origins": []string{wrong}}), "/cors_origins/0")
	}
}

func clientSignIn(t *testing.T, h *house) {
	h.client(t, h.web("by-phone").with(document{"name": document{"en": "Corner Shop", "ru": "Лавка"}, "policy_uri": "https://shop.example/privacy", "tos_uri": "https://shop.example/terms",
		"login": document{"identifiers": []string{"phone"}, "factors": []string{"otp"}}}))
	b := apptest.NewBrowser(t)
	page := h.authorize(t, b, "by-phone", map[string]string{"ui_locales": "ru"})
	if !strings.Contains(page.Body, "Лавка") {
		t.Errorf("the page does not name the client in Russian:\n%s", page.Body)
	}
	for _, link := range []string{"https://shop.example/privacy", "https://shop.example/terms"} {
		if !strings.Contains(page.Body, `href="`+link+`"`) {
			t.Errorf("the page does not link %s:\n%s", link, page.Body)
		}
	}
	if page = b.Submit(map[string]string{"identifier": "alice@example.com"}); strings.Contains(page.Body, `name="password"`) || strings.Contains(page.Body, `name="code"`) {
		t.Errorf("an e-mail address was taken by a client of phones:\n%s", page.Body)
	}
	if page = b.Submit(map[string]string{"identifier": "+77000000002"}); !strings.Contains(page.Body, `name="code"`) {
		t.Errorf("no code was asked for:\n%s", page.Body)
	}
	h.refuses(t, h.web("other").with(document{"login": document{"identifiers": []string{"shoe size"}}}), "/login/identifiers/0")
	h.refuses(t, h.web("other").with(document{"login": document{"factors": []string{"smile"}}}), "/login/factors/0")
	h.refuses(t, h.web("other").with(document{"policy_uri": "javascript:alert(1)"}), "/policy_uri")
	h.refuses(t, h.web("other").with(document{"tos_uri": "terms.html"}), "/tos_uri")
	h.refuses(t, h.web("other").with(document{"name": document{"not a language": "x"}}), "/name")
}

func clientDisabled(t *testing.T, h *house) {
	secret := h.client(t, h.web("off").with(document{"disabled": true}))
	if p := h.authorize(t, apptest.NewBrowser(t), "off", nil); p.Status != http.StatusBadRequest {
		t.Errorf("authorize: %d", p.Status)
	}
	if status, a := h.token(t, "off", secret, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"x"}}); status != http.StatusUnauthorized {
		t.Errorf("token: %d %v", status, a)
	}
}

// part returns a JWT's header (0) or claims (1), unverified.
func part(t *testing.T, token string, i int) map[string]any {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[i])
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]any{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func payload(t *testing.T, token string) map[string]any { return part(t, token, 1) }
