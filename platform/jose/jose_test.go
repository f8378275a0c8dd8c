package jose_test

import (
	"crypto"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jws"

	"versola/platform/jose"
)

func signer(t testing.TB, kid string, alg jose.Algorithm) (*jose.Signer, crypto.Signer) {
	t.Helper()
	key, err := jose.Generate(alg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := jose.NewSigner(kid, alg, key)
	if err != nil {
		t.Fatal(err)
	}
	return s, key
}

func TestSign_VerifiesHereAndWithAGeneralLibrary(t *testing.T) {
	t.Parallel()
	for _, alg := range jose.Algorithms() {
		t.Run(string(alg), func(t *testing.T) {
			t.Parallel()
			s, private := signer(t, "k1", alg)
			payload := []byte(`{"sub":"a","n":1}`)
			token, err := s.Sign("at+jwt", payload)
			if err != nil {
				t.Fatal(err)
			}
			header, got, err := jose.NewKeySet(s.Public()).Verify(token, "at+jwt")
			if err != nil || string(got) != string(payload) {
				t.Fatalf("got %q, %v", got, err)
			}
			if header.Alg != alg || header.Kid != "k1" || header.Typ != "at+jwt" {
				t.Errorf("header is %+v", header)
			}
			if got, err := jws.Verify([]byte(token), jws.WithKey(jwa.SignatureAlgorithm(alg), private.Public())); err != nil || string(got) != string(payload) {
				t.Errorf("the general library reads %q, %v", got, err)
			}
			theirs, err := jws.Sign(payload, jws.WithKey(jwa.SignatureAlgorithm(alg), private))
			if err != nil {
				t.Fatal(err)
			}
			if _, got, err := jose.NewKeySet(s.Public()).Verify(string(theirs), ""); err != nil || string(got) != string(payload) {
				t.Errorf("from the general library: %q, %v", got, err)
			}
			// Every byte of the signature and of what is signed counts.
			for i := 0; i < len(token); i += 7 {
				altered := []byte(token)
				altered[i] = flip(altered[i])
				if _, _, err := jose.NewKeySet(s.Public()).Verify(string(altered), "at+jwt"); err == nil {
					t.Errorf("byte %d altered: verifies", i)
				}
			}
		})
	}
}

func flip(c byte) byte {
	if c == 'A' {
		return 'B'
	}
	return 'A'
}

func TestKeySet_KeepsToTheKeyThatIsNamed(t *testing.T) {
	t.Parallel()
	a, keyA := signer(t, "a", jose.ES256)
	b, _ := signer(t, "b", jose.ES256)
	r, _ := signer(t, "r", jose.RS256)
	set := jose.NewKeySet(a.Public(), b.Public(), r.Public())
	sign := func(s *jose.Signer) string {
		token, err := s.Sign("JWT", []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	for _, s := range []*jose.Signer{a, b, r} {
		if h, _, err := set.Verify(sign(s), "JWT"); err != nil || h.Kid != s.Public().ID {
			t.Errorf("%s: %+v, %v", s.Public().ID, h, err)
		}
	}
	posing, err := jose.NewSigner("b", jose.ES256, keyA)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := set.Verify(sign(posing), "JWT"); !errors.Is(err, jose.ErrSignature) {
		t.Errorf("key a under b's name: %v", err)
	}
	strange, _ := signer(t, "c", jose.ES256)
	if _, _, err := set.Verify(sign(strange), "JWT"); !errors.Is(err, jose.ErrUnknown) {
		t.Errorf("unknown kid: %v", err)
	}
	if _, _, err := jose.NewKeySet().Verify(sign(a), "JWT"); !errors.Is(err, jose.ErrUnknown) {
		t.Errorf("empty set: %v", err)
	}
	if len(set.Keys()) != 3 {
		t.Errorf("%d keys", len(set.Keys()))
	}
}

func TestKeySet_TriesEveryKeyOfTheAlgorithmWithoutKid(t *testing.T) {
	t.Parallel()
	a, _ := signer(t, "a", jose.EdDSA)
	b, key := signer(t, "b", jose.EdDSA)
	token, err := jws.Sign([]byte(`{}`), jws.WithKey(jwa.EdDSA, key))
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := jose.NewKeySet(a.Public(), b.Public()).Verify(string(token), ""); err != nil {
		t.Error(err)
	}
	if _, _, err := jose.NewKeySet(a.Public()).Verify(string(token), ""); !errors.Is(err, jose.ErrSignature) {
		t.Errorf("another key: %v", err)
	}
	es, _ := signer(t, "e", jose.ES256)
	if _, _, err := jose.NewKeySet(es.Public()).Verify(string(token), ""); !errors.Is(err, jose.ErrUnknown) {
		t.Errorf("no key of the algorithm: %v", err)
	}
}

func TestVerify_OneTypeIsNotAnother(t *testing.T) {
	t.Parallel()
	s, _ := signer(t, "k", jose.ES256)
	set := jose.NewKeySet(s.Public())
	for _, c := range []struct {
		typ, want string
		ok        bool
	}{
		{"at+jwt", "at+jwt", true},
		{"AT+JWT", "at+jwt", true},
		{"application/at+jwt", "at+jwt", true},
		{"Application/AT+jwt", "at+jwt", true},
		{"anything", "", true},
		{"", "", true},
		{"JWT", "at+jwt", false},
		{"", "at+jwt", false},
		{"logout+jwt", "at+jwt", false},
		{"at+jwt ", "at+jwt", false},
		{"application/", "at+jwt", false},
		{"x/at+jwt", "at+jwt", false},
	} {
		token, err := s.Sign(c.typ, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = set.Verify(token, c.want)
		if c.ok && err != nil || !c.ok && !errors.Is(err, jose.ErrType) {
			t.Errorf("typ %q where %q is expected: %v", c.typ, c.want, err)
		}
	}
}

func TestNewSigner_RefusesAKeyThatDoesNotFit(t *testing.T) {
	t.Parallel()
	_, ec := signer(t, "", jose.ES256)
	for _, alg := range []jose.Algorithm{jose.RS256, jose.PS256, jose.EdDSA} {
		if _, err := jose.NewSigner("k", alg, ec); !errors.Is(err, jose.ErrKey) {
			t.Errorf("%s with an EC key: %v", alg, err)
		}
	}
	for _, alg := range []jose.Algorithm{"", "none", "HS256", "es256"} {
		if _, err := jose.NewSigner("k", alg, ec); !errors.Is(err, jose.ErrAlgorithm) {
			t.Errorf("%q: %v", alg, err)
		}
		if _, err := jose.Generate(alg); !errors.Is(err, jose.ErrAlgorithm) {
			t.Errorf("generate %q: %v", alg, err)
		}
	}
}

func TestPrivateKeys_SurviveStorage(t *testing.T) {
	t.Parallel()
	for _, alg := range jose.Algorithms() {
		s, key := signer(t, "", alg)
		der, err := jose.MarshalPrivate(key)
		if err != nil {
			t.Fatal(err)
		}
		back, err := jose.ParsePrivate(der)
		if err != nil {
			t.Fatal(err)
		}
		again, err := jose.NewSigner("", alg, back)
		if err != nil || again.Public().ID != s.Public().ID {
			t.Errorf("%s: another key came back, %v", alg, err)
		}
		if _, err := jose.ParsePrivate(der[:len(der)-1]); !errors.Is(err, jose.ErrKey) {
			t.Errorf("%s cut: %v", alg, err)
		}
	}
}

func TestThumbprint_IsThatOfTheSpecification(t *testing.T) {
	t.Parallel()
	// RFC 8037 appendix A.3.
	k, err := jose.ParseJWK([]byte(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k"; k.ID != want || k.Alg != jose.EdDSA {
		t.Errorf("got %s %s, want %s", k.ID, k.Alg, want)
	}
}

func TestJWK_IsPublicAndReadBack(t *testing.T) {
	t.Parallel()
	var keys []json.RawMessage
	for _, alg := range jose.Algorithms() {
		s, _ := signer(t, string(alg)+"-key", alg)
		raw, err := s.Public().JWK()
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, raw)
		members, err := jose.Members(raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, private := range []string{"d", "p", "q", "dp", "dq", "qi", "k"} {
			if _, ok := members[private]; ok {
				t.Errorf("%s: member %q is public", alg, private)
			}
		}
		if string(members["use"]) != `"sig"` || string(members["alg"]) != `"`+string(alg)+`"` {
			t.Errorf("got %s", raw)
		}
	}
	set, _ := json.Marshal(map[string]any{"keys": keys})
	parsed, err := jose.ParseJWKS(set)
	if err != nil || len(parsed) != len(jose.Algorithms()) {
		t.Fatalf("%d keys, %v", len(parsed), err)
	}
	for i, alg := range jose.Algorithms() {
		if parsed[i].Alg != alg || parsed[i].ID != string(alg)+"-key" {
			t.Errorf("got %s %s", parsed[i].ID, parsed[i].Alg)
		}
	}
}

func TestParseJWKS_PassesOverWhatIsNotForVerifying(t *testing.T) {
	t.Parallel()
	s, _ := signer(t, "good", jose.ES256)
	good, err := s.Public().JWK()
	if err != nil {
		t.Fatal(err)
	}
	for name, other := range map[string]string{
		"encryption key":  `{"kty":"EC","crv":"P-256","use":"enc","kid":"e","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		"other algorithm": `{"kty":"EC","crv":"P-256","alg":"ES256K","kid":"e","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		"X25519":          `{"kty":"OKP","crv":"X25519","kid":"x","x":"3p7bfXt9wbTTW2HC7OQ1Nz-DQ8hbeGdNrfx-FG-IK08"}`,
	} {
		keys, err := jose.ParseJWKS([]byte(`{"keys":[` + other + `,` + string(good) + `]}`))
		if err != nil || len(keys) != 1 || keys[0].ID != "good" {
			t.Errorf("%s: %d keys, %v", name, len(keys), err)
		}
	}
}

func TestParseJWK_RefusesHostileKeys(t *testing.T) {
	t.Parallel()
	b64 := base64.RawURLEncoding.EncodeToString
	modulus := func(bits int) string {
		n := make([]byte, bits/8)
		n[0], n[len(n)-1] = 0x80, 1
		return b64(n)
	}
	for name, raw := range map[string]string{
		"private EC":        `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}`,
		"symmetric":         `{"kty":"oct","k":"AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"}`,
		"point off curve":   `{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"y_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`,
		"point at infinity": `{"kty":"EC","crv":"P-256","x":"` + b64(make([]byte, 32)) + `","y":"` + b64(make([]byte, 32)) + `"}`,
		"short Ed25519":     `{"kty":"OKP","crv":"Ed25519","x":"` + b64(make([]byte, 31)) + `"}`,
		"long Ed25519":      `{"kty":"OKP","crv":"Ed25519","x":"` + b64(make([]byte, 33)) + `"}`,
		"small RSA":         `{"kty":"RSA","e":"AQAB","n":"` + modulus(1024) + `"}`,
		"huge RSA":          `{"kty":"RSA","e":"AQAB","n":"` + modulus(16384) + `"}`,
		"P-384 as ES256":    `{"kty":"EC","crv":"P-384","alg":"ES256","x":"` + b64(make([]byte, 48)) + `","y":"` + b64(make([]byte, 48)) + `"}`,
		"HMAC on a key":     `{"kty":"OKP","crv":"Ed25519","alg":"HS256","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
		"none on a key":     `{"kty":"OKP","crv":"Ed25519","alg":"none","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`,
		"empty":             ``,
		"no object":         `[]`,
		"no type":           `{"x":"a"}`,
	} {
		if k, err := jose.ParseJWK([]byte(raw)); !errors.Is(err, jose.ErrKey) && !errors.Is(err, jose.ErrAlgorithm) {
			t.Errorf("%s: got %+v, %v", name, k, err)
		}
	}
	if _, err := jose.ParseJWKS([]byte(strings.Repeat("[", 5000))); !errors.Is(err, jose.ErrKey) {
		t.Errorf("nesting: %v", err)
	}
}

func TestMembers_NamesAreDistinct(t *testing.T) {
	t.Parallel()
	got, err := jose.Members([]byte(` {"a":1,"A":{"a":[]}} `))
	if err != nil || len(got) != 2 || string(got["A"]) != `{"a":[]}` {
		t.Errorf("got %s, %v", got, err)
	}
	for _, bad := range []string{``, `null`, `[]`, `"a"`, `{`, `{"a"}`, `{"a":1,}`, `{"a":1}x`, `{"a":1}{}`, `{"a":1,"a":1}`, `{"a":1,"\u0061":2}`, `{a:1}`, `{"a":01}`} {
		if got, err := jose.Members([]byte(bad)); !errors.Is(err, jose.ErrMalformed) {
			t.Errorf("%s: got %s, %v", bad, got, err)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	payload := []byte(strings.Repeat("x", 500))
	for _, alg := range jose.Algorithms() {
		b.Run(string(alg), func(b *testing.B) {
			s, _ := signer(b, "k", alg)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Sign("at+jwt", payload); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkVerify(b *testing.B) {
	payload := []byte(strings.Repeat("x", 500))
	for _, alg := range jose.Algorithms() {
		b.Run(string(alg), func(b *testing.B) {
			s, _ := signer(b, "k", alg)
			set := jose.NewKeySet(s.Public())
			token, err := s.Sign("at+jwt", payload)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := set.Verify(token, "at+jwt"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
