package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

func TestAPI_BoundTokensNeedAProofForEachCall(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	of := func(cnf map[string]any) string {
		return strings.TrimPrefix(f.token(t, "at+jwt", map[string]any{"cnf": cnf}), "Bearer ")
	}
	token, plain := of(map[string]any{"jkt": k.Thumbprint}), strings.TrimPrefix(f.as(t, "admin"), "Bearer ")
	ath := dpoptest.Token(token)
	proof := func(k *dpoptest.Key, method, path string, changes dpoptest.Claims) string {
		return k.Proof(method, apiURL+path, now, changes)
	}
	used := proof(k, "GET", "/v1/tenants", ath)
	if a := f.call(t, "DPoP "+token, http.MethodGet, "/v1/tenants?limit=1", nil, "DPoP", used, "Host", "evil.test"); a.Code != http.StatusOK {
		t.Fatalf("right: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, "dpop "+token, http.MethodGet, "/v1/me", nil, "DPoP", proof(k, "GET", "/v1/me", ath)); a.Code != http.StatusOK {
		t.Fatalf("scheme in lower case: %d %s", a.Code, a.Body)
	}
	for name, c := range map[string]struct{ authorization, proof, reason string }{
		"as bearer":            {"Bearer " + token, "", "sender_constraint"},
		"as bearer with proof": {"Bearer " + token, proof(k, "GET", "/v1/tenants", ath), "sender_constraint"},
		"without proof":        {"DPoP " + token, "", "proof_invalid"},
		"used before":          {"DPoP " + token, used, "proof_invalid"},
		"another key":          {"DPoP " + token, proof(other, "GET", "/v1/tenants", ath), "sender_constraint"},
		"without ath":          {"DPoP " + token, proof(k, "GET", "/v1/tenants", nil), "proof_invalid"},
		"another path":         {"DPoP " + token, proof(k, "GET", "/v1/me", ath), "proof_invalid"},
		"another method":       {"DPoP " + token, proof(k, "DELETE", "/v1/tenants", ath), "proof_invalid"},
		"the address of Host":  {"DPoP " + token, proof(k, "GET", "", ath.With("htu", "http://example.com/v1/tenants")), "proof_invalid"},
		"not bound":            {"DPoP " + plain, proof(k, "GET", "/v1/tenants", dpoptest.Token(plain)), "sender_constraint"},
		"to a certificate":     {"Bearer " + of(map[string]any{"x5t#S256": "x"}), "", "sender_constraint"},
		"to what is not known": {"Bearer " + of(map[string]any{"jwk": "x"}), "", "token_invalid"},
		"to nothing":           {"Bearer " + of(map[string]any{}), "", "token_invalid"},
	} {
		var headers []string
		if c.proof != "" {
			headers = []string{"DPoP", c.proof}
		}
		a := f.call(t, c.authorization, http.MethodGet, "/v1/tenants", nil, headers...)
		if a.Code != http.StatusUnauthorized || a.text("reason") != c.reason || !strings.Contains(a.Header().Get("WWW-Authenticate"), "DPoP ") {
			t.Errorf("%s: %d %s %q", name, a.Code, a.Body, a.Header().Get("WWW-Authenticate"))
		}
	}
}
