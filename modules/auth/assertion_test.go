package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"versola/modules/auth/client"
	"versola/modules/central/catalog"
	"versola/platform/dpop/dpoptest"
	"versola/platform/id"
	"versola/platform/jose"
)

// macClient authenticates by client_secret_jwt; its secret is long enough.
const macClient = "a-client-of-client-secret-jwt"

// signers are clients that authenticate by assertions: "signer" has a key for
// each algorithm, "remote" has its keys behind an address.
type signers struct {
	*rig
	keys   map[jose.Algorithm]*dpoptest.Key
	served atomic.Value // the document behind the address
	asked  atomic.Int64
	down   atomic.Bool
}

func newSigners(t testing.TB) *signers {
	t.Helper()
	s := &signers{keys: map[jose.Algorithm]*dpoptest.Key{}}
	for _, alg := range jose.Algorithms() {
		s.keys[alg] = dpoptest.NewKey(t, alg)
	}
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		s.asked.Add(1)
		if s.down.Load() {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		_, _ = w.Write(s.served.Load().([]byte)) //nolint:errcheck // a test
	}))
	t.Cleanup(there.Close)
	s.serve("first", s.keys[jose.ES256])
	var all []json.RawMessage
	for alg, k := range s.keys {
		all = append(all, named(t, string(alg), k))
	}
	set, err := json.Marshal(map[string]any{"keys": all})
	must(t, err)
	s.rig = newRig(t, func(c *catalog.Snapshot) {
		service := catalog.ClientSpec{Tenant: "demo", Kind: catalog.KindService, AuthMethod: catalog.AuthPrivateKeyJWT, GrantTypes: []string{catalog.GrantClientCredentials}}
		for _, spec := range []catalog.ClientSpec{
			{ID: "signer", JWKS: set}, {ID: "strict", JWKS: set, AuthSigningAlg: "PS256"}, {ID: "remote", JWKSURI: there.URL},
			{ID: macClient, AuthMethod: catalog.AuthSecretJWT}, {ID: "short", AuthMethod: catalog.AuthSecretJWT}, {ID: "idle", JWKS: set, Disabled: true},
		} {
			more := service
			more.ID, more.JWKS, more.JWKSURI, more.AuthSigningAlg, more.Disabled = spec.ID, spec.JWKS, spec.JWKSURI, spec.AuthSigningAlg, spec.Disabled
			if spec.AuthMethod != "" {
				more.AuthMethod = spec.AuthMethod
			}
			c.Clients = append(c.Clients, more)
		}
	})
	return s
}

// named is the public key with an id, and no algorithm.
func named(t testing.TB, kid string, k *dpoptest.Key) json.RawMessage {
	t.Helper()
	members := map[string]any{}
	must(t, json.Unmarshal(k.JWK, &members))
	members["kid"] = kid
	raw, err := json.Marshal(members)
	must(t, err)
	return raw
}

// serve changes the document behind the address.
func (s *signers) serve(kid string, k *dpoptest.Key) {
	raw, err := json.Marshal(map[string]any{"keys": []json.RawMessage{named(k, kid, k)}})
	must(k, err)
	s.served.Store(raw)
}

// claims are those of a right assertion, with changes; nil takes one away.
func (s *signers) claims(sub string, changes map[string]any) map[string]any {
	now := s.clock.Now()
	c := map[string]any{"iss": sub, "sub": sub, "aud": issuer, "jti": id.Short(rand.Reader, 16), "iat": now.Unix(), "exp": now.Add(time.Minute).Unix()}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// assertion signs claims with the key of an algorithm.
func (s *signers) assertion(alg jose.Algorithm, header, claims map[string]any) string {
	s.Helper()
	h := map[string]any{"alg": alg}
	maps.Copy(h, header)
	maps.DeleteFunc(h, func(_ string, v any) bool { return v == nil })
	rawHeader, err := json.Marshal(h)
	must(s, err)
	raw, err := json.Marshal(claims)
	must(s, err)
	return s.keys[alg].Sign(string(rawHeader), string(raw))
}

// mac makes an assertion with an HMAC.
func mac(t testing.TB, key []byte, header string, claims map[string]any) string {
	t.Helper()
	raw, err := json.Marshal(claims)
	must(t, err)
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(raw)
	h := hmac.New(sha256.New, key)
	h.Write([]byte(input))
	return input + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// asking is a request with an assertion.
func asking(assertion string) url.Values {
	return form("grant_type", "client_credentials", "client_assertion_type", client.AssertionType, "client_assertion", assertion)
}

func (s *signers) accepted(name string, v url.Values) {
	s.Helper()
	if a := s.post("/token", v); a.StatusCode != http.StatusOK {
		s.Errorf("%s: %d %s", name, a.StatusCode, a.body)
	}
}

func (s *signers) unauthorized(name string, v url.Values) {
	s.Helper()
	a := s.post("/token", v)
	if a.StatusCode != http.StatusUnauthorized || a.json(s)["error"] != "invalid_client" || a.json(s)["error_description"] != "client authentication failed" {
		s.Errorf("%s: %d %s", name, a.StatusCode, a.body)
	}
}

func TestAssertion_ProvesTheClientByEachAlgorithm(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	for _, alg := range jose.Algorithms() {
		s.accepted(string(alg)+" without kid", asking(s.assertion(alg, nil, s.claims("signer", nil))))
		s.accepted(string(alg)+" with kid", asking(s.assertion(alg, map[string]any{"kid": string(alg), "typ": "JWT"}, s.claims("signer", nil))))
	}
	// A key that names no algorithm verifies with both of RSA.
	ps := *s.keys[jose.RS256]
	ps.Alg = jose.PS256
	raw, err := json.Marshal(s.claims("signer", nil))
	must(t, err)
	s.accepted("PS256 with a key of no algorithm", asking(ps.Sign(`{"alg":"PS256","kid":"RS256"}`, string(raw))))
	s.accepted("client_secret_jwt", asking(mac(t, []byte(macClient+"-secret"), `{"alg":"HS256"}`, s.claims(macClient, nil))))
	s.accepted("an older secret", asking(mac(t, []byte(macClient+"-old"), `{"alg":"HS256"}`, s.claims(macClient, nil))))
	s.accepted("the one registered algorithm", asking(s.assertion(jose.PS256, nil, s.claims("strict", nil))))
	for name, change := range map[string]map[string]any{
		"the token endpoint as aud": {"aud": issuer + "/token"}, "a list as aud": {"aud": []string{"https://other.example", issuer}},
		"no iat": {"iat": nil}, "iat 9 s ahead": {"iat": s.clock.Now().Add(9 * time.Second).Unix()}, "nbf 9 s ahead": {"nbf": s.clock.Now().Add(9 * time.Second).Unix()},
		"exp 9 s ago": {"iat": nil, "exp": s.clock.Now().Add(-9 * time.Second).Unix()}, "ten minutes": {"exp": s.clock.Now().Add(10 * time.Minute).Unix()},
		"unknown claims": {"x": map[string]any{"y": []int{1}}}, "a time with a fraction": {"exp": float64(s.clock.Now().Unix()) + 30.5},
	} {
		s.accepted(name, asking(s.assertion(jose.ES256, nil, s.claims("signer", change))))
	}
	s.accepted("with client_id", with(asking(s.assertion(jose.ES256, nil, s.claims("signer", nil))), "client_id", "signer"))
	revoke := with(asking(s.assertion(jose.ES256, nil, s.claims("signer", nil))), "grant_type", "", "token", "x")
	if a := s.post("/revoke", revoke); a.StatusCode != http.StatusOK {
		t.Errorf("revoke: %d %s", a.StatusCode, a.body)
	}
}

func TestAssertion_RefusalsOfClaims(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	now := s.clock.Now()
	for name, change := range map[string]map[string]any{
		"no iss": {"iss": nil}, "another iss": {"iss": "app"}, "no sub": {"sub": nil}, "another sub": {"sub": "app"}, "sub is a number": {"sub": 1}, "empty": {"iss": "", "sub": ""},
		"no aud": {"aud": nil}, "another aud": {"aud": "https://other.example"}, "the issuer with a slash": {"aud": issuer + "/"}, "another tenant": {"aud": issuer + "/t/other"},
		"another endpoint": {"aud": issuer + "/revoke"}, "aud is a number": {"aud": 1}, "aud holds a number": {"aud": []any{issuer, 1}}, "aud is empty": {"aud": []string{}},
		"no exp": {"exp": nil}, "exp is text": {"exp": "9999999999"}, "exp is null": {"exp": json.RawMessage("null")}, "expired": {"exp": now.Add(-60 * time.Second).Unix()},
		"expired 10 s ago": {"exp": now.Add(-10 * time.Second).Unix()}, "exp out of range": {"exp": json.RawMessage("1e300")},
		"lives an hour": {"exp": now.Add(time.Hour).Unix()}, "lives an hour, no iat": {"exp": now.Add(time.Hour).Unix(), "iat": nil},
		"made long ago":  {"iat": now.Add(-time.Hour).Unix()},
		"iat 60 s ahead": {"iat": now.Add(time.Minute).Unix()}, "iat is text": {"iat": "1"}, "nbf 60 s ahead": {"nbf": now.Add(time.Minute).Unix()}, "nbf is text": {"nbf": "1"},
		"no jti": {"jti": nil}, "empty jti": {"jti": ""}, "long jti": {"jti": strings.Repeat("x", 257)}, "jti is a number": {"jti": 7},
		"an unknown client": {"iss": "nobody", "sub": "nobody"}, "a client with NUL": {"iss": "signer\x00", "sub": "signer\x00"},
		"a client of a secret": {"iss": "app", "sub": "app"}, "a public client": {"iss": "native", "sub": "native"}, "a disabled client": {"iss": "idle", "sub": "idle"},
	} {
		s.unauthorized(name, asking(s.assertion(jose.ES256, nil, s.claims("signer", change))))
	}
	s.unauthorized("an algorithm that is not the registered one", asking(s.assertion(jose.ES256, nil, s.claims("strict", nil))))
	s.unauthorized("a short secret", asking(mac(t, []byte("short-secret"), `{"alg":"HS256"}`, s.claims("short", nil))))
	s.unauthorized("a wrong secret", asking(mac(t, []byte(strings.Repeat("x", 40)), `{"alg":"HS256"}`, s.claims(macClient, nil))))
	s.unauthorized("a signature for a client of client_secret_jwt", asking(s.assertion(jose.ES256, nil, s.claims(macClient, nil))))
	if n := s.count("SELECT count(*) FROM auth.replay"); n != 0 {
		t.Errorf("refused assertions used up %d ids", n)
	}
}

func TestAssertion_RefusalsOfForm(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	good := func() string { return s.assertion(jose.ES256, nil, s.claims("signer", nil)) }
	raw, err := json.Marshal(s.claims("signer", nil))
	must(t, err)
	own := dpoptest.NewKey(t, jose.ES256)
	public := string(s.keys[jose.ES256].JWK)
	for name, a := range map[string]string{
		"garbage": "garbage", "two parts": "a.b", "four parts": good() + ".x", "padded": good() + "=", "line break": good() + "\n", "spaces": " " + good(),
		"huge": good() + strings.Repeat("A", 9<<10), "NUL": "\x00" + good(), "no signature": good()[:strings.LastIndex(good(), ".")+1],
		"alg none":                 base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + base64.RawURLEncoding.EncodeToString(raw) + ".",
		"HMAC with the public key": mac(t, []byte(public), `{"alg":"HS256"}`, s.claims("signer", nil)),
		"the key inside":           own.Sign(`{"alg":"ES256","jwk":`+string(own.JWK)+`}`, string(raw)),
		"jku":                      own.Sign(`{"alg":"ES256","jku":"https://evil.example/jwks"}`, string(raw)), "x5u": own.Sign(`{"alg":"ES256","x5u":"https://evil.example/c"}`, string(raw)),
		"somebody's key under our kid": own.Sign(`{"alg":"ES256","kid":"ES256"}`, string(raw)), "unknown kid": s.keys[jose.ES256].Sign(`{"alg":"ES256","kid":"zzz"}`, string(raw)),
		"crit": s.keys[jose.ES256].Sign(`{"alg":"ES256","crit":["exp"],"exp":1}`, string(raw)), "b64": s.keys[jose.ES256].Sign(`{"alg":"ES256","b64":false}`, string(raw)),
		"typ of an access token": s.keys[jose.ES256].Sign(`{"alg":"ES256","typ":"at+jwt"}`, string(raw)), "typ of a proof": s.keys[jose.ES256].Sign(`{"alg":"ES256","typ":"dpop+jwt"}`, string(raw)),
		"doubled header": s.keys[jose.ES256].Sign(`{"alg":"ES256","alg":"ES256"}`, string(raw)), "doubled claim": s.keys[jose.ES256].Sign(`{"alg":"ES256"}`, `{"sub":"signer",`+string(raw)[1:]),
		"claims are a list": s.keys[jose.ES256].Sign(`{"alg":"ES256"}`, `[]`), "deep claims": s.keys[jose.ES256].Sign(`{"alg":"ES256"}`, `{"x":`+strings.Repeat("[", 3000)+strings.Repeat("]", 3000)+`}`),
	} {
		s.unauthorized(name, asking(a))
	}
	for name, v := range map[string]url.Values{
		"with a secret": with(asking(good()), "client_secret", "x"), "another client_id": with(asking(good()), "client_id", "app"),
		"no assertion": with(asking(good()), "client_assertion", ""), "no type": with(asking(good()), "client_assertion_type", ""),
		"twice": {"grant_type": {"client_credentials"}, "client_assertion_type": {client.AssertionType}, "client_assertion": {good(), good()}},
	} {
		a := s.post("/token", v)
		if a.StatusCode != http.StatusBadRequest || a.json(t)["error"] != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	s.refused(s.post("/token", asking(good()), basic("app")), http.StatusBadRequest, "invalid_request")
	s.refused(s.post("/token", with(asking(good()), "client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:saml2-bearer")), http.StatusUnauthorized, "invalid_client")
	s.refused(s.post("/token", form("grant_type", "client_credentials", "client_id", "signer")), http.StatusUnauthorized, "invalid_client")
	s.refused(s.post("/token", form("grant_type", "client_credentials"), basic("signer")), http.StatusUnauthorized, "invalid_client")
}

func TestAssertion_OfManyParallelUsesOneSucceeds(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	v := asking(s.assertion(jose.ES256, nil, s.claims("signer", map[string]any{"jti": "once"})))
	var won atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if s.post("/token", v).StatusCode == http.StatusOK {
				won.Add(1)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d of 20 uses succeeded", won.Load())
	}
	other := newAuthenticator(s.module.deps) // as another process has it
	fresh, err := other.Used.Claim(t.Context(), "client_assertion", "demo\x00signer\x00once", s.clock.Now().Add(time.Minute))
	if fresh || err != nil {
		t.Errorf("another process: %v %v", fresh, err)
	}
	s.accepted("the same jti of another client", asking(s.assertion(jose.PS256, nil, s.claims("strict", map[string]any{"jti": "once"}))))
	s.clock.Advance(9 * time.Minute)
	s.unauthorized("the same jti minutes later", asking(s.assertion(jose.ES256, nil, s.claims("signer", map[string]any{"jti": "once"}))))
}

func TestAssertion_CostsOneSharedStatement(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	v := asking(s.assertion(jose.ES256, nil, s.claims("signer", nil)))
	s.statements(1, func() { s.accepted("first", v) })
	s.statements(0, func() { s.unauthorized("again", v) })
	s.exec("TRUNCATE auth.replay, auth.replay_epoch") // what a crash of the database does
	before := s.claims("signer", map[string]any{"iat": s.clock.Now().Add(-time.Second).Unix()})
	s.unauthorized("one that may have been used before the crash", asking(s.assertion(jose.ES256, nil, before)))
	s.clock.Advance(11 * time.Second)
	s.accepted("one that was made after the crash", asking(s.assertion(jose.ES256, nil, s.claims("signer", nil))))
	s.exec("ALTER TABLE auth.replay RENAME TO away")
	if a := s.post("/token", asking(s.assertion(jose.ES256, nil, s.claims("signer", nil)))); a.StatusCode < 500 {
		t.Errorf("without a memory: %d %s", a.StatusCode, a.body)
	}
}

func TestAssertion_KeysBehindAnAddress(t *testing.T) {
	t.Parallel()
	s := newSigners(t)
	by := func(k *dpoptest.Key, kid string) url.Values {
		raw, err := json.Marshal(s.claims("remote", nil))
		must(t, err)
		return asking(k.Sign(fmt.Sprintf(`{"alg":"ES256","kid":%q}`, kid), string(raw)))
	}
	asked := func(want int64) {
		t.Helper()
		if got := s.asked.Load(); got != want {
			t.Errorf("asked %d times, want %d", got, want)
		}
	}
	first, second := s.keys[jose.ES256], dpoptest.NewKey(t, jose.ES256)
	var all sync.WaitGroup
	for range 10 {
		v := by(first, "first")
		all.Go(func() { s.accepted("first", v) })
	}
	all.Wait()
	asked(1)
	s.serve("second", second)
	s.unauthorized("a new key, at once", by(second, "second"))
	asked(1)
	s.clock.Advance(31 * time.Second)
	s.accepted("a new key, half a minute later", by(second, "second"))
	s.unauthorized("the withdrawn key", by(first, "first"))
	asked(2)
	s.down.Store(true)
	s.clock.Advance(6 * time.Minute)
	s.accepted("while the address does not answer", by(second, "second"))
	s.accepted("and again", by(second, "second"))
	asked(3)
	s.clock.Advance(13 * time.Hour)
	s.unauthorized("after half a day", by(second, "second"))
	s.down.Store(false)
	for name, document := range map[string]string{"no JSON": "x", "no keys": `{"keys":[]}`, "huge": `{"keys":[` + strings.Repeat(" ", 65<<10) + `]}`, "private": `{"keys":[{"kty":"oct","k":"AAAA"}]}`} {
		s.served.Store([]byte(document))
		s.clock.Advance(time.Minute)
		s.unauthorized(name, by(second, "second"))
	}
	s.serve("second", second)
	s.clock.Advance(time.Minute)
	s.accepted("once it is right again", by(second, "second"))
}

func BenchmarkAssertion(b *testing.B) {
	s := newSigners(b)
	for _, alg := range jose.Algorithms() {
		b.Run(string(alg), func(b *testing.B) {
			requests := make([]url.Values, b.N)
			for i := range requests {
				requests[i] = asking(s.assertion(alg, nil, s.claims("signer", nil)))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, v := range requests {
				s.accepted("assertion", v)
			}
		})
	}
}
