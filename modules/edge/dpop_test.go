package edge_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// bound makes an access token that is bound to a key.
func (w *world) bound(k *dpoptest.Key, change func(map[string]any)) string {
	return w.auth.bearer(func(c map[string]any) {
		c["cnf"] = map[string]any{"jkt": k.Thumbprint}
		if change != nil {
			change(c)
		}
	})
}

// proof makes a right proof for a call.
func (w *world) proof(k *dpoptest.Key, method, path, token string) string {
	return k.Proof(method, publicURL+path, w.clock.Now(), dpoptest.Token(token))
}

func TestDPoP_ABoundTokenWithItsProofPassesAndTheProofStaysHere(t *testing.T) {
	w := newWorld(t)
	e, other := w.edge(), w.edge()
	b := newBrowser(t)
	for _, alg := range jose.Algorithms() {
		k := dpoptest.NewKey(t, alg)
		token := w.bound(k, nil)
		for i, scheme := range []string{"DPoP", "dpop", "DPOP"} {
			proof := w.proof(k, "GET", accounts, token)
			if res := b.get(e.URL+accounts+"?x="+scheme, "Authorization", scheme+" "+token, "DPoP", proof); res.StatusCode != http.StatusOK {
				t.Fatalf("%s as %s: %d %s", alg, scheme, res.StatusCode, res.body)
			}
			for name, from := range map[string]*running{"here": e, "in another process": other} {
				if res := b.get(from.URL+accounts, "Authorization", "DPoP "+token, "DPoP", proof); res.StatusCode != 401 || res.reason() != "proof_invalid" {
					t.Errorf("%s, call %d again %s: %d %s", alg, i, name, res.StatusCode, res.body)
				}
			}
		}
	}
	k := dpoptest.NewKey(t, jose.ES256)
	token := w.bound(k, nil)
	res := b.get(e.URL+"/resources/forwarding/accounts", "Authorization", "DPoP "+token, "DPoP", w.proof(k, "GET", "/resources/forwarding/accounts", token))
	var got reached
	must(t, json.Unmarshal([]byte(res.body), &got))
	if !slices.Equal(got.Header["Authorization"], []string{"DPoP " + token}) {
		t.Errorf("upstream was told %q", got.Header["Authorization"])
	}
	for name := range got.Header {
		if strings.EqualFold(name, "dpop") {
			t.Errorf("upstream was sent %s", name)
		}
	}
	res = b.get(e.URL+"/permissions/me?resource=bank", "Authorization", "DPoP "+token, "DPoP", w.proof(k, "GET", "/permissions/me", token))
	if res.StatusCode != http.StatusOK {
		t.Errorf("permissions: %d %s", res.StatusCode, res.body)
	}
	if res = b.do("HEAD", e.URL+accounts, nil, "Authorization", "DPoP "+token, "DPoP", w.proof(k, "HEAD", accounts, token)); res.StatusCode != http.StatusOK {
		t.Errorf("HEAD: %d", res.StatusCode)
	}
}

func TestDPoP_Refusals(t *testing.T) {
	w := newWorld(t)
	e := w.edge()
	k, other := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	token, plain := w.bound(k, nil), w.auth.bearer(nil)
	make := func(k *dpoptest.Key, changes dpoptest.Claims) string {
		return k.Proof("GET", publicURL+accounts, w.clock.Now(), changes)
	}
	ath := dpoptest.Token(token)
	expired := w.bound(k, func(c map[string]any) { c["exp"] = w.clock.Now().Unix() })
	byCertificate := w.auth.bearer(func(c map[string]any) { c["cnf"] = map[string]any{"x5t#S256": "x"} })
	both := w.bound(k, func(c map[string]any) { c["cnf"] = map[string]any{"jkt": k.Thumbprint, "x5t#S256": "x"} })
	for name, c := range map[string]struct {
		headers []string
		reason  string
		code    string
	}{
		"as bearer":                   {[]string{"Authorization", "Bearer " + token}, "sender_constraint", "invalid_token"},
		"as bearer, with proof":       {[]string{"Authorization", "Bearer " + token, "DPoP", make(k, ath)}, "sender_constraint", "invalid_token"},
		"no proof":                    {[]string{"Authorization", "DPoP " + token}, "proof_invalid", "invalid_dpop_proof"},
		"two proofs":                  {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath), "DPoP", make(k, ath)}, "proof_invalid", "invalid_dpop_proof"},
		"garbage":                     {[]string{"Authorization", "DPoP " + token, "DPoP", "x.y.z"}, "proof_invalid", "invalid_dpop_proof"},
		"another key":                 {[]string{"Authorization", "DPoP " + token, "DPoP", make(other, ath)}, "sender_constraint", "invalid_token"},
		"without ath":                 {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, nil)}, "proof_invalid", "invalid_dpop_proof"},
		"ath of another token":        {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, dpoptest.Token(plain))}, "proof_invalid", "invalid_dpop_proof"},
		"another method":              {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath.With("htm", "POST"))}, "proof_invalid", "invalid_dpop_proof"},
		"another path":                {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath.With("htu", publicURL+"/resources/bank/"))}, "proof_invalid", "invalid_dpop_proof"},
		"another resource":            {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath.With("htu", publicURL+"/resources/slow/accounts"))}, "proof_invalid", "invalid_dpop_proof"},
		"the address of Host":         {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath.With("htu", e.URL+accounts)), "X-Forwarded-Host", "evil.test"}, "proof_invalid", "invalid_dpop_proof"},
		"old":                         {[]string{"Authorization", "DPoP " + token, "DPoP", make(k, ath.With("iat", w.clock.Now().Unix()-61))}, "proof_invalid", "invalid_dpop_proof"},
		"a plain token as bound":      {[]string{"Authorization", "DPoP " + plain, "DPoP", make(k, dpoptest.Token(plain))}, "sender_constraint", "invalid_token"},
		"expired":                     {[]string{"Authorization", "DPoP " + expired, "DPoP", make(k, dpoptest.Token(expired))}, "token_expired", "invalid_token"},
		"nothing after DPoP":          {[]string{"Authorization", "DPoP", "DPoP", make(k, ath)}, "token_invalid", "invalid_token"},
		"a certificate's":             {[]string{"Authorization", "Bearer " + byCertificate}, "sender_constraint", "invalid_token"},
		"a key's and a certificate's": {[]string{"Authorization", "DPoP " + both, "DPoP", make(k, dpoptest.Token(both))}, "sender_constraint", "invalid_token"},
	} {
		res := newBrowser(t).get(e.URL+accounts, c.headers...)
		challenge := res.Header.Get("WWW-Authenticate")
		if res.StatusCode != 401 || res.reason() != c.reason || !strings.Contains(challenge, `error="`+c.code+`"`) {
			t.Errorf("%s: %d %s %q, want %s", name, res.StatusCode, res.body, challenge, c.reason)
		}
		if !strings.Contains(challenge, "DPoP realm=\"bank\"") || !strings.Contains(challenge, `algs="ES256 RS256 PS256 EdDSA"`) {
			t.Errorf("%s: the challenge does not offer DPoP: %q", name, challenge)
		}
		if strings.HasPrefix(c.headers[1], "DPoP") && !strings.HasPrefix(challenge, "DPoP ") {
			t.Errorf("%s: the challenge is not for DPoP: %q", name, challenge)
		}
	}
	if res := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+plain, "DPoP", "garbage"); res.StatusCode != http.StatusOK {
		t.Errorf("a plain token beside a proof that nobody asked for: %d %s", res.StatusCode, res.body)
	}
}

func TestDPoP_TheTokenIsVerifiedOnceAndTheProofEachTime(t *testing.T) {
	w := newWorld(t)
	e := w.edge()
	b, k := newBrowser(t), dpoptest.NewKey(t, jose.ES256)
	token := w.bound(k, nil)
	before := e.db.Statements()
	const calls = 5
	for range calls {
		if res := b.get(e.URL+accounts, "Authorization", "DPoP "+token, "DPoP", w.proof(k, "GET", accounts, token)); res.StatusCode != http.StatusOK {
			t.Fatalf("%d %s", res.StatusCode, res.body)
		}
	}
	if n := e.db.Statements() - before; n > calls {
		t.Errorf("%d calls took %d statements, want one each at the most", calls, n)
	}
}

func TestDPoP_AnUnreachableMemoryOfProofsIsAPassingFault(t *testing.T) {
	w := newWorld(t)
	e := w.edge()
	k := dpoptest.NewKey(t, jose.ES256)
	token := w.bound(k, nil)
	if _, err := e.db.Exec(t.Context(), "ALTER TABLE edge.replay RENAME TO away"); err != nil {
		t.Fatal(err)
	}
	proof := w.proof(k, "GET", accounts, token)
	res := newBrowser(t).get(e.URL+accounts, "Authorization", "DPoP "+token, "DPoP", proof)
	if res.StatusCode != http.StatusServiceUnavailable || res.reason() != "store_unavailable" || res.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	if _, err := e.db.Exec(t.Context(), "ALTER TABLE edge.away RENAME TO replay"); err != nil {
		t.Fatal(err)
	}
	if res = newBrowser(t).get(e.URL+accounts, "Authorization", "DPoP "+token, "DPoP", proof); res.StatusCode != http.StatusOK {
		t.Errorf("the same call again: %d %s", res.StatusCode, res.body)
	}
}

func TestDPoP_TheMetadataNamesTheAlgorithms(t *testing.T) {
	w := newWorld(t)
	var got struct {
		Algs []string `json:"dpop_signing_alg_values_supported"`
	}
	res := newBrowser(t).get(w.edge().URL + "/.well-known/oauth-protected-resource/resources/bank")
	if err := json.Unmarshal([]byte(res.body), &got); err != nil || len(got.Algs) != 4 {
		t.Errorf("%v %s", err, res.body)
	}
}
