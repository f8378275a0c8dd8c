package jose_test

import (
	"crypto"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"strings"
	"testing"

	"versola/platform/jose"
)

var b64 = base64.RawURLEncoding

// forge signs any header with a good key, so that the header alone is what is
// wrong with the token.
func forge(t testing.TB, key crypto.Signer, header string) string {
	t.Helper()
	input := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(`{"sub":"admin"}`))
	sig, err := key.Sign(nil, []byte(input), crypto.Hash(0))
	if err != nil {
		t.Fatal(err)
	}
	return input + "." + b64.EncodeToString(sig)
}

func TestVerify_RefusesHostileHeaders(t *testing.T) {
	t.Parallel()
	s, key := signer(t, "k", jose.EdDSA)
	set := jose.NewKeySet(s.Public())
	if _, _, err := set.Verify(forge(t, key, `{"alg":"EdDSA","kid":"k","typ":"at+jwt","unknown":{"a":1}}`), "at+jwt"); err != nil {
		t.Fatalf("the honest one: %v", err)
	}
	for name, c := range map[string]struct {
		header string
		want   error
	}{
		"none":                {`{"alg":"none","kid":"k","typ":"at+jwt"}`, jose.ErrUnknown},
		"none without kid":    {`{"alg":"none","typ":"at+jwt"}`, jose.ErrUnknown},
		"None":                {`{"alg":"None","kid":"k","typ":"at+jwt"}`, jose.ErrUnknown},
		"case of alg":         {`{"alg":"eddsa","kid":"k","typ":"at+jwt"}`, jose.ErrUnknown},
		"another algorithm":   {`{"alg":"ES256","kid":"k","typ":"at+jwt"}`, jose.ErrUnknown},
		"no alg":              {`{"kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"empty alg":           {`{"alg":"","kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"alg null":            {`{"alg":null,"kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"alg a list":          {`{"alg":["EdDSA"],"kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"kid a number":        {`{"alg":"EdDSA","kid":1,"typ":"at+jwt"}`, jose.ErrMalformed},
		"kid null":            {`{"alg":"EdDSA","kid":null,"typ":"at+jwt"}`, jose.ErrMalformed},
		"kid a path":          {`{"alg":"EdDSA","kid":"../../dev/null","typ":"at+jwt"}`, jose.ErrUnknown},
		"kid an injection":    {`{"alg":"EdDSA","kid":"k' OR '1'='1","typ":"at+jwt"}`, jose.ErrUnknown},
		"crit":                {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","crit":["exp"],"exp":1}`, jose.ErrMalformed},
		"crit empty":          {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","crit":[]}`, jose.ErrMalformed},
		"crit null":           {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","crit":null}`, jose.ErrMalformed},
		"crit escaped":        {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","cr\u0069t":["x"]}`, jose.ErrMalformed},
		"b64 false":           {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","b64":false}`, jose.ErrMalformed},
		"b64 true":            {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","b64":true}`, jose.ErrMalformed},
		"alg twice":           {`{"alg":"EdDSA","alg":"none","kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"alg twice, escaped":  {`{"alg":"EdDSA","\u0061lg":"none","kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"typ twice":           {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","typ":"JWT"}`, jose.ErrMalformed},
		"unknown twice":       {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","x":1,"x":2}`, jose.ErrMalformed},
		"Alg is not alg":      {`{"Alg":"EdDSA","kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"wrong typ":           {`{"alg":"EdDSA","kid":"k","typ":"JWT"}`, jose.ErrType},
		"no typ":              {`{"alg":"EdDSA","kid":"k"}`, jose.ErrType},
		"typ null":            {`{"alg":"EdDSA","kid":"k","typ":null}`, jose.ErrMalformed},
		"data after header":   {`{"alg":"EdDSA","kid":"k","typ":"at+jwt"}{}`, jose.ErrMalformed},
		"a list":              {`[{"alg":"EdDSA","kid":"k","typ":"at+jwt"}]`, jose.ErrMalformed},
		"empty":               {``, jose.ErrMalformed},
		"not JSON":            {`alg=EdDSA`, jose.ErrMalformed},
		"a byte order mark":   {"\ufeff" + `{"alg":"EdDSA","kid":"k","typ":"at+jwt"}`, jose.ErrMalformed},
		"deep nesting":        {`{"alg":"EdDSA","kid":"k","typ":"at+jwt","x":` + strings.Repeat("[", 11000) + strings.Repeat("]", 11000) + `}`, jose.ErrMalformed},
		"key in the header":   {`{"alg":"EdDSA","kid":"mine","typ":"at+jwt","jwk":{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}}`, jose.ErrUnknown},
		"key URL in a header": {`{"alg":"EdDSA","kid":"mine","typ":"at+jwt","jku":"http://127.0.0.1/keys"}`, jose.ErrUnknown},
	} {
		if _, payload, err := set.Verify(forge(t, key, c.header), "at+jwt"); !errors.Is(err, c.want) || payload != nil {
			t.Errorf("%s: payload %q, %v; want %v", name, payload, err, c.want)
		}
	}
}

func TestVerify_UnsignedAndEmptySignatures(t *testing.T) {
	t.Parallel()
	for _, alg := range jose.Algorithms() {
		s, _ := signer(t, "k", alg)
		set := jose.NewKeySet(s.Public())
		for _, name := range []string{string(alg), "none"} {
			for _, size := range []int{0, 1, 32, 64, 256} {
				token := b64.EncodeToString([]byte(`{"alg":"`+name+`","kid":"k"}`)) + "." + b64.EncodeToString([]byte(`{}`)) + "." + b64.EncodeToString(make([]byte, size))
				if _, _, err := set.Verify(token, ""); err == nil {
					t.Errorf("alg %s with %d zero bytes verifies under %s", name, size, alg)
				}
			}
		}
	}
}

func TestVerify_AnHMACWithThePublicKeyIsNoSignature(t *testing.T) {
	t.Parallel()
	for _, alg := range jose.Algorithms() {
		s, _ := signer(t, "k", alg)
		der, err := x509.MarshalPKIXPublicKey(s.Public().Key)
		if err != nil {
			t.Fatal(err)
		}
		jwk, err := s.Public().JWK()
		if err != nil {
			t.Fatal(err)
		}
		for _, material := range [][]byte{der, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), jwk} {
			for _, header := range []string{`{"alg":"HS256","kid":"k"}`, `{"alg":"HS256"}`, `{"alg":"` + string(alg) + `","kid":"k"}`} {
				input := b64.EncodeToString([]byte(header)) + "." + b64.EncodeToString([]byte(`{}`))
				mac := hmac.New(sha256.New, material)
				mac.Write([]byte(input))
				if _, _, err := jose.NewKeySet(s.Public()).Verify(input+"."+b64.EncodeToString(mac.Sum(nil)), ""); err == nil {
					t.Errorf("%s under %s verifies", header, alg)
				}
			}
		}
	}
}

func TestVerify_ATokenHasOneSpelling(t *testing.T) {
	t.Parallel()
	for _, alg := range jose.Algorithms() {
		s, _ := signer(t, "k", alg)
		set := jose.NewKeySet(s.Public())
		token, err := s.Sign("JWT", []byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		parts := strings.Split(token, ".")
		spell := func(i int, part string) string {
			p := append([]string(nil), parts...)
			p[i] = part
			return strings.Join(p, ".")
		}
		cases := map[string]string{
			"space before": " " + token, "space after": token + " ", "newline after": token + "\n",
			"a fourth part": token + ".", "five parts": token + ".a.b", "two parts": parts[0] + "." + parts[1], "one part": parts[0],
			"dot before": "." + token, "empty": "", "dots": "..", "over the limit": token + strings.Repeat("A", 33<<10),
			"JSON serialization": `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		}
		for i, part := range parts {
			where := []string{" in header", " in payload", " in signature"}[i]
			cases["padding"+where] = spell(i, part+strings.Repeat("=", (4-len(part)%4)%4))
			if cases["padding"+where] == token {
				cases["padding"+where] = spell(i, part+"=")
			}
			cases["line feed"+where] = spell(i, part[:2]+"\n"+part[2:])
			cases["carriage return"+where] = spell(i, part[:2]+"\r\n"+part[2:])
			cases["trailing newline"+where] = spell(i, part+"\n")
			cases["standard alphabet"+where] = spell(i, "+/"+part[2:])
			cases["stray bits"+where] = spell(i, stray(part))
			cases["empty"+where] = spell(i, "")
			cases["NUL"+where] = spell(i, part+"\x00")
		}
		for name, spelled := range cases {
			if spelled == token {
				continue // the part ends on a byte: it has no stray bits
			}
			if _, _, err := set.Verify(spelled, "JWT"); err == nil {
				t.Errorf("%s, %s: verifies", alg, name)
			}
		}
	}
}

// stray sets the unused bits of the last character, where there are any.
func stray(part string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	if len(part)%4 == 0 {
		return part
	}
	last := strings.IndexByte(alphabet, part[len(part)-1])
	return part[:len(part)-1] + string(alphabet[last|1])
}

// A parsed token is spelled as it is written again: whoever compares tokens as
// strings compares what was signed.
func FuzzParse(f *testing.F) {
	s, key := signer(f, "k", jose.EdDSA)
	token, err := s.Sign("JWT", []byte(`{"a":1}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token)
	f.Add(forge(f, key, `{"alg":"none"}`))
	f.Add(forge(f, key, `{"alg":"EdDSA","alg":"x"}`))
	f.Add("..")
	f.Add("e30.e30.")
	f.Add("eyJhbGciOiJIUzI1NiJ9.e30.AA==")
	set := jose.NewKeySet(s.Public())
	f.Fuzz(func(t *testing.T, token string) {
		p, err := jose.Parse(token)
		if err != nil {
			if !errors.Is(err, jose.ErrMalformed) {
				t.Errorf("%v is no ErrMalformed", err)
			}
			return
		}
		parts := strings.Split(token, ".")
		if len(parts) != 3 || b64.EncodeToString(p.Payload) != parts[1] {
			t.Errorf("%q is read as payload %q", token, p.Payload)
		}
		if p.Header.Alg == "" {
			t.Errorf("%q has no alg", token)
		}
		_, payload, err := set.Verify(token, "")
		if (err == nil) != (payload != nil) && len(p.Payload) > 0 {
			t.Errorf("payload %q with %v", payload, err)
		}
	})
}

// Errors end in logs: what a stranger wrote is shown, but not at any length.
func TestVerify_RefusalsShowLittleOfTheToken(t *testing.T) {
	t.Parallel()
	s, key := signer(t, "k", jose.EdDSA)
	set := jose.NewKeySet(s.Public())
	long := strings.Repeat("x", 5000)
	for name, header := range map[string]string{
		"kid":            `{"alg":"EdDSA","kid":"` + long + `","typ":"at+jwt"}`,
		"alg":            `{"alg":"` + long + `","kid":"k","typ":"at+jwt"}`,
		"alg alone":      `{"alg":"` + long + `","typ":"at+jwt"}`,
		"typ":            `{"alg":"EdDSA","kid":"k","typ":"` + long + `"}`,
		"doubled member": `{"alg":"EdDSA","` + long + `":1,"` + long + `":1}`,
		"escapes":        `{"alg":"EdDSA","kid":"` + strings.Repeat(`\u202e`, 2000) + `","typ":"at+jwt"}`,
	} {
		if _, _, err := set.Verify(forge(t, key, header), "at+jwt"); err == nil || len(err.Error()) > 600 {
			t.Errorf("%s: %.700v", name, err)
		}
	}
}

func FuzzSignatureKeys(f *testing.F) {
	for _, seed := range []string{
		`{"keys":[]}`, `{"keys":[{"kty":"RSA","n":"AQ","e":"AQAB"}]}`, `{"keys":[{"kty":"oct","k":"AAAA"}]}`, `{"keys":[null,1,"x",{}]}`, `{"keys":{}}`, `[]`,
		`{"keys":[{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}`, `{"keys":[],"keys":[]}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		keys, err := jose.SignatureKeys(raw)
		if err != nil && keys != nil || len(keys) > 2*jose.MaxKeys {
			t.Fatalf("%d keys, %v", len(keys), err)
		}
		for _, k := range keys {
			if _, err := jose.NewPublicKey(k.ID, k.Alg, k.Key); err != nil || k.ID == "" {
				t.Errorf("an unusable key: %+v %v", k, err)
			}
		}
	})
}
