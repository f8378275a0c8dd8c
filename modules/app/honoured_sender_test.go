package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

func senderExercises() map[string]exercise {
	return map[string]exercise{
		"DPoP": {[]string{"client.dpop_bound_access_tokens"}, clientDPoP},
	}
}

// proven posts to the token endpoint with a proof; the nonce that is asked for
// is learned on the way.
func (h *house) proven(t *testing.T, k *dpoptest.Key, id, secret string, form url.Values) (int, map[string]any) {
	t.Helper()
	nonce := ""
	for {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Issuer+"/token", strings.NewReader(form.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth(id, secret)
		r.Header.Set("DPoP", k.Proof(http.MethodPost, h.Issuer+"/token", h.Clock.Now(), dpoptest.Claims{"nonce": nonce}))
		page := apptest.NewBrowser(t).Do(r)
		answer := map[string]any{}
		if err := json.Unmarshal([]byte(page.Body), &answer); err != nil {
			t.Fatalf("%d %s", page.Status, page.Body)
		}
		if answer["error"] != "use_dpop_nonce" || nonce != "" {
			return page.Status, answer
		}
		nonce = page.Header.Get("DPoP-Nonce")
	}
}

// present sends a GET with an access token, and with a proof if there is one.
func present(t *testing.T, address, authorization, proof string) int {
	t.Helper()
	r := mustGet(t, address)
	r.Header.Set("Authorization", authorization)
	if proof != "" {
		r.Header.Set("DPoP", proof)
	}
	return apptest.NewBrowser(t).Do(r).Status
}

func clientDPoP(t *testing.T, h *house) {
	k := dpoptest.NewKey(t, jose.ES256)
	secret := h.client(t, h.web("bound").with(document{"dpop_bound_access_tokens": true}))
	b := apptest.NewBrowser(t)
	h.authorize(t, b, "bound", map[string]string{"dpop_jkt": k.Thumbprint})
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	page := b.Submit(map[string]string{"password": "wonderland-demo-1"})
	form := url.Values{"grant_type": {"authorization_code"}, "code": {answer(t, h, page).Get("code")}, "redirect_uri": {h.callback}, "code_verifier": {verifier}}
	if status, a := h.token(t, "bound", secret, form); status != http.StatusBadRequest || a["error"] != "invalid_dpop_proof" {
		t.Errorf("without a proof: %d %v", status, a)
	}
	if status, a := h.proven(t, dpoptest.NewKey(t, jose.ES256), "bound", secret, form); status != http.StatusBadRequest || a["error"] != "invalid_grant" {
		t.Errorf("with another key than dpop_jkt: %d %v", status, a)
	}
	status, tokens := h.proven(t, k, "bound", secret, form)
	access, _ := tokens["access_token"].(string)
	if status != http.StatusOK || tokens["token_type"] != "DPoP" {
		t.Fatalf("with a proof: %d %v", status, tokens)
	}
	if cnf, _ := payload(t, access)["cnf"].(map[string]any); cnf["jkt"] != k.Thumbprint {
		t.Errorf("cnf is %v", cnf)
	}
	accounts := h.Edge + "/resources/bank/accounts"
	proof := k.Proof(http.MethodGet, accounts, h.Clock.Now(), dpoptest.Token(access))
	if got := present(t, accounts, "DPoP "+access, proof); got != http.StatusOK {
		t.Errorf("at the edge: %d", got)
	}
	if got := present(t, accounts, "DPoP "+access, proof); got != http.StatusUnauthorized {
		t.Errorf("at the edge with the same proof again: %d", got)
	}
	for _, address := range []string{accounts, h.Issuer + "/userinfo"} {
		if got := present(t, address, "Bearer "+access, ""); got != http.StatusUnauthorized {
			t.Errorf("as bearer at %s: %d", address, got)
		}
	}
	h.administratorProves(t)
	d := document{"id": "of-bound", "edge": "local", "client": "bound", "redirect_uri": h.callback, "scopes": []string{"openid"}, "after_login": "/", "after_logout": "/"}
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/presets", d); page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, "dpop_bound_access_tokens") {
		t.Errorf("a preset of such a client: %d %s", page.Status, page.Body)
	}
}

// administratorProves calls the administration API itself with a bound token.
func (h *house) administratorProves(t *testing.T) {
	t.Helper()
	k := dpoptest.NewKey(t, jose.ES256)
	secret := operatorClient(t, h.System, h.admin, "bound-operator", "view-configuration", "use-api")
	endpoint := systemIssuer(h.System) + "/token"
	ask := func(nonce string) *apptest.Page {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, endpoint, strings.NewReader("grant_type=client_credentials"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("bound-operator", secret)
		r.Header.Set("DPoP", k.Proof(http.MethodPost, endpoint, h.Clock.Now(), dpoptest.Claims{"nonce": nonce}))
		return apptest.NewBrowser(t).Do(r)
	}
	var page *apptest.Page
	apptest.Eventually(t, 2*time.Second, "the operator's client", func() bool {
		page = ask("")
		return page.Header.Get("DPoP-Nonce") != ""
	})
	var tokens struct {
		Access string `json:"access_token"`
	}
	if page = ask(page.Header.Get("DPoP-Nonce")); json.Unmarshal([]byte(page.Body), &tokens) != nil || tokens.Access == "" {
		t.Fatalf("a bound token for an operator: %d %s", page.Status, page.Body)
	}
	tenants := h.Internal + "/v1/tenants"
	proof := k.Proof(http.MethodGet, tenants, h.Clock.Now(), dpoptest.Token(tokens.Access))
	apptest.Eventually(t, 2*time.Second, "the operator at the API", func() bool {
		proof = k.Proof(http.MethodGet, tenants, h.Clock.Now(), dpoptest.Token(tokens.Access))
		return present(t, tenants, "DPoP "+tokens.Access, proof) == http.StatusOK
	})
	if got := present(t, tenants, "DPoP "+tokens.Access, proof); got != http.StatusUnauthorized {
		t.Errorf("the API with the same proof again: %d", got)
	}
	if got := present(t, tenants, "Bearer "+tokens.Access, ""); got != http.StatusUnauthorized {
		t.Errorf("the API as bearer: %d", got)
	}
}
