package app_test

import (
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/platform/dpop/dpoptest"
	"versola/platform/id"
	"versola/platform/jose"
)

func assertionExercises() map[string]exercise {
	return map[string]exercise{
		"assertions": {[]string{"client.jwks", "client.jwks_uri", "client.token_endpoint_auth_signing_alg"}, clientAssertions},
	}
}

// asserting asks for a token by an assertion that a key signs.
func (h *house) asserting(t *testing.T, client string, k *dpoptest.Key) (int, map[string]any) {
	t.Helper()
	now := time.Now()
	claims, err := json.Marshal(map[string]any{"iss": client, "sub": client, "aud": h.Issuer, "jti": id.Short(rand.Reader, 16), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()})
	if err != nil {
		t.Fatal(err)
	}
	return h.token(t, client, "", url.Values{"grant_type": {"client_credentials"},
		"client_assertion_type": {"urn:ietf:params:oauth:client-assertion-type:jwt-bearer"},
		"client_assertion":      {k.Sign(`{"alg":"`+string(k.Alg)+`"}`, string(claims))}})
}

func clientAssertions(t *testing.T, h *house) {
	right, wrong := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	rsa := dpoptest.NewKey(t, jose.PS256)
	set := document{"keys": []json.RawMessage{right.JWK}}
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(encode(t, set))) }))
	defer there.Close()
	service := document{"client_kind": "service", "auth_method": "private_key_jwt", "grant_types": []string{"client_credentials"}}
	for name, keys := range map[string]document{"assert-jwks": {"jwks": set}, "assert-uri": {"jwks_uri": there.URL + "/jwks"}} {
		if secret := h.client(t, service.with(keys).with(document{"id": name})); secret != "" {
			t.Errorf("%s was given a secret", name)
		}
		if status, a := h.asserting(t, name, right); status != http.StatusOK {
			t.Errorf("%s: %d %v", name, status, a)
		}
		if status, a := h.asserting(t, name, wrong); status != http.StatusUnauthorized || a["error"] != "invalid_client" {
			t.Errorf("%s, another key: %d %v", name, status, a)
		}
	}
	both := document{"keys": []json.RawMessage{[]byte(`{"kid":"rsa",` + string(rsa.JWK)[1:]), []byte(`{"kid":"ec",` + string(right.JWK)[1:])}}
	h.client(t, service.with(document{"id": "assert-alg", "jwks": both, "token_endpoint_auth_signing_alg": "PS256"}))
	if status, a := h.asserting(t, "assert-alg", rsa); status != http.StatusOK {
		t.Errorf("the registered algorithm: %d %v", status, a)
	}
	if status, a := h.asserting(t, "assert-alg", right); status != http.StatusUnauthorized {
		t.Errorf("another algorithm: %d %v", status, a)
	}
	secret := h.client(t, service.with(document{"id": "assert-mac", "auth_method": "client_secret_jwt", "token_endpoint_auth_signing_alg": "HS256"}))
	if status, a := h.token(t, "assert-mac", secret, url.Values{"grant_type": {"client_credentials"}}); status != http.StatusUnauthorized {
		t.Errorf("the secret of client_secret_jwt by Basic: %d %v", status, a)
	}
	h.refuses(t, service.with(document{"id": "other"}), "/jwks")
	h.refuses(t, service.with(document{"id": "other", "jwks": set, "jwks_uri": there.URL}), "/jwks_uri")
	h.refuses(t, service.with(document{"id": "other", "jwks": set, "token_endpoint_auth_signing_alg": "HS256"}), "/token_endpoint_auth_signing_alg")
	h.refuses(t, service.with(document{"id": "other", "jwks": set, "token_endpoint_auth_signing_alg": "PS256"}), "/jwks")
	h.refuses(t, service.with(document{"id": "other", "auth_method": "client_secret_jwt", "token_endpoint_auth_signing_alg": "HS512"}), "/token_endpoint_auth_signing_alg")
	h.refuses(t, h.web("other").with(document{"jwks": set}), "/jwks")
	h.discovers(t, "token_endpoint_auth_methods_supported", "private_key_jwt", "client_secret_jwt")
	h.discovers(t, "token_endpoint_auth_signing_alg_values_supported", "HS256", "ES256", "PS256", "RS256", "EdDSA")
}

// discovers checks that a member of the discovery document has values.
func (h *house) discovers(t *testing.T, member string, values ...string) {
	t.Helper()
	var doc map[string]json.RawMessage
	page := apptest.NewBrowser(t).Open(h.Issuer + "/.well-known/openid-configuration")
	if err := json.Unmarshal([]byte(page.Body), &doc); err != nil {
		t.Fatal(err)
	}
	var got []string
	if err := json.Unmarshal(doc[member], &got); err != nil {
		t.Fatalf("%s is %s", member, doc[member])
	}
	has := map[string]bool{}
	for _, v := range got {
		has[v] = true
	}
	for _, v := range values {
		if !has[v] {
			t.Errorf("%s lacks %s: %v", member, v, got)
		}
	}
}
