package dpop_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"versola/platform/dpop"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

const endpoint = "https://server.example.com/token"

var now = time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)

func request() dpop.Request {
	return dpop.Request{Method: http.MethodPost, URLs: []string{endpoint}, Now: now}
}

// wants checks how a proof is refused; empty: not at all.
func wants(t *testing.T, name, raw string, r dpop.Request, want dpop.Refusal) *dpop.Proof {
	t.Helper()
	proof, err := dpop.Verify(raw, r)
	var got dpop.Refusal
	if err != nil && !errors.As(err, &got) {
		t.Errorf("%s: %v is no refusal", name, err)
	}
	if got != want {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
	if (proof == nil) != (err != nil) {
		t.Errorf("%s: proof %v with error %v", name, proof, err)
	}
	return proof
}

// The proof of section 4.1, and the thumbprint of its key of section 6.1.
const (
	example = "eyJ0eXAiOiJkcG9wK2p3dCIsImFsZyI6IkVTMjU2IiwiandrIjp7Imt0eSI6IkVDIiwieCI6Imw4dEZyaHgtMzR0VjNoUklDUkRZOXpDa0RscEJoRjQyVVFVZldWQVdCRnMi" +
		"LCJ5IjoiOVZFNGpmX09rX282NHpiVFRsY3VOSmFqSG10NnY5VERWclUwQ2R2R1JEQSIsImNydiI6IlAtMjU2In19.eyJqdGkiOiItQndDM0VTYzZhY2MybFRjIiwiaHRtIjoiUE9TVCIs" +
		"Imh0dSI6Imh0dHBzOi8vc2VydmVyLmV4YW1wbGUuY29tL3Rva2VuIiwiaWF0IjoxNTYyMjYyNjE2fQ.2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7" +
		"NVY-FNyJK70nfbV37xRZT3Lg"
	exampleThumbprint = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
	exampleTime       = 1562262616
)

func TestVerify_ExampleOfTheSpecification(t *testing.T) {
	r := request()
	r.Now = time.Unix(exampleTime, 0)
	proof := wants(t, "example", example, r, "")
	if proof.Thumbprint != exampleThumbprint || !proof.Expires.Equal(r.Now.Add(dpop.MaxAge)) || proof.Nonce != "" {
		t.Errorf("%+v", proof)
	}
}

func TestVerify_EachAlgorithmThatIsAllowed(t *testing.T) {
	for _, alg := range jose.Algorithms() {
		k, r := dpoptest.NewKey(t, alg), request()
		raw := k.Proof(r.Method, endpoint, now, nil)
		if proof := wants(t, string(alg), raw, r, ""); proof.Thumbprint != k.Thumbprint {
			t.Errorf("%s: thumbprint %s, want %s", alg, proof.Thumbprint, k.Thumbprint)
		}
		r.Algorithms = []jose.Algorithm{alg}
		wants(t, "the only one: "+string(alg), raw, r, "")
		r.Algorithms = []jose.Algorithm{}
		wants(t, "none: "+string(alg), raw, r, dpop.Algorithm)
	}
}

func TestVerify_RefusesTheCorpus(t *testing.T) {
	raw, err := os.ReadFile("testdata/proofs.txt")
	if err != nil {
		t.Fatal(err)
	}
	k := dpoptest.NewKey(t, jose.ES256)
	fill := strings.NewReplacer("{jwk}", string(k.JWK), "{iat}", strconv.FormatInt(now.Unix(), 10))
	for n, line := range strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 {
			t.Fatalf("line %d has %d parts", n+1, len(parts))
		}
		wants(t, "line "+strconv.Itoa(n+1), k.Sign(fill.Replace(parts[1]), fill.Replace(parts[2])), request(), dpop.Refusal(parts[0]))
	}
}

func TestVerify_RefusesWhatIsNoJWT(t *testing.T) {
	k := dpoptest.NewKey(t, jose.ES256)
	good := k.Proof(http.MethodPost, endpoint, now, nil)
	parts := strings.Split(good, ".")
	for name, raw := range map[string]string{
		"empty": "", "text": "proof", "two parts": parts[0] + "." + parts[1], "four parts": good + ".x", "two proofs": good + ", " + good,
		"padding": good + "==", "line break": parts[0] + ".\n" + parts[1] + "." + parts[2], "standard base64": "+/+/." + parts[1] + "." + parts[2],
	} {
		wants(t, name, raw, request(), dpop.Malformed)
	}
	wants(t, "no signature", parts[0]+"."+parts[1]+".", request(), dpop.Signature)
	wants(t, "half a signature", parts[0]+"."+parts[1]+"."+parts[2][:40], request(), dpop.Signature)
	wants(t, "another proof's signature", parts[0]+"."+parts[1]+"."+strings.Split(k.Proof(http.MethodPost, endpoint, now, nil), ".")[2], request(), dpop.Signature)
	wants(t, "too long", k.Proof(http.MethodPost, endpoint, now, dpoptest.Claims{"x": strings.Repeat("y", 9<<10)}), request(), dpop.TooLong)
	wants(t, "deep", k.Sign(`{"typ":"dpop+jwt","alg":"ES256","jwk":`+string(k.JWK)+`}`, strings.Repeat("[", 4<<10)), request(), dpop.Malformed)
	wants(t, "long jti", k.Proof(http.MethodPost, endpoint, now, dpoptest.Claims{"jti": strings.Repeat("y", 257)}), request(), dpop.NoID)
	wants(t, "longest jti", k.Proof(http.MethodPost, endpoint, now, dpoptest.Claims{"jti": strings.Repeat("y", 256)}), request(), "")
}

func TestVerify_RefusesKeysThatCostTooMuch(t *testing.T) {
	k := dpoptest.NewKey(t, jose.RS256)
	var m map[string]string
	if err := json.Unmarshal(k.JWK, &m); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string][2]string{
		"a modulus of 8192 bits": {"n", strings.Repeat("_", 1364) + "_w"},
		"a leading zero":         {"n", "AA" + m["n"]},
		"an even modulus":        {"n", m["n"][:len(m["n"])-2] + "AA"},
		"an exponent of 1":       {"e", "AQ"},
		"an even exponent":       {"e", "AQAA"},
		"a long exponent":        {"e", "AQAAAAAB"},
	} {
		jwk := strings.Replace(string(k.JWK), `"`+change[0]+`":"`+m[change[0]]+`"`, `"`+change[0]+`":"`+change[1]+`"`, 1)
		raw := k.Sign(`{"typ":"dpop+jwt","alg":"RS256","jwk":`+jwk+`}`, `{}`)
		wants(t, name, raw, request(), dpop.WrongKey)
	}
}

func TestVerify_AcceptsEachSpellingOfTheURL(t *testing.T) {
	k := dpoptest.NewKey(t, jose.ES256)
	for htu, address := range map[string]string{
		"https://server.example.com/token?x=1#y":     endpoint,
		"HTTPS://Server.Example.COM/token":           endpoint,
		"https://server.example.com:443/token":       endpoint,
		"https://server.example.com:/token":          endpoint,
		"https://server.example.com/%74oken":         endpoint,
		"https://api.example/resources/a%2fb/%7Ec":   "https://api.example/resources/a%2Fb/~c",
		"https://api.example":                        "https://api.example/",
		"http://[::1]:80/token":                      "http://[::1]/token",
		"http://localhost:8080/t/other/token":        "http://localhost:8080/t/other/token",
		"https://api.example/resources/%D0%B0%d0%b1": "https://api.example/resources/%d0%b0%D0%B1",
	} {
		r := request()
		r.URLs = []string{"https://mtls.example/token", address}
		wants(t, htu, k.Proof(r.Method, htu, now, nil), r, "")
	}
}

func TestVerify_WindowOfTime(t *testing.T) {
	k := dpoptest.NewKey(t, jose.ES256)
	for offset, want := range map[time.Duration]dpop.Refusal{
		0: "", -10 * time.Second: "", 10 * time.Second: "", -dpop.MaxAge: "", dpop.MaxAhead: "",
		-dpop.MaxAge - time.Second: dpop.Stale, dpop.MaxAhead + time.Second: dpop.Future, 60 * time.Second: dpop.Future, -time.Hour: dpop.Stale,
	} {
		made := now.Add(offset)
		proof := wants(t, offset.String(), k.Proof(http.MethodPost, endpoint, made, nil), request(), want)
		if want == "" && !proof.Expires.Equal(made.Add(dpop.MaxAge)) {
			t.Errorf("%s: expires %s", offset, proof.Expires)
		}
	}
	wants(t, "a fraction", k.Proof(http.MethodPost, endpoint, now, dpoptest.Claims{"iat": float64(now.Unix()) + 0.25}), request(), "")
}

func TestVerify_AccessTokenHash(t *testing.T) {
	k, r := dpoptest.NewKey(t, jose.ES256), request()
	r.AccessToken = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
	// Section 7.1 has this token's hash.
	wants(t, "right", k.Proof(r.Method, endpoint, now, dpoptest.Claims{"ath": "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"}), r, "")
	wants(t, "none", k.Proof(r.Method, endpoint, now, nil), r, dpop.TokenHash)
	wants(t, "of another token", k.Proof(r.Method, endpoint, now, dpoptest.Token("other")), r, dpop.TokenHash)
	wants(t, "a number", k.Proof(r.Method, endpoint, now, dpoptest.Claims{"ath": 1}), r, dpop.TokenHash)
	r.AccessToken = ""
	wants(t, "without a token", k.Proof(r.Method, endpoint, now, dpoptest.Token("other")), r, "")
}

func TestVerify_IDTellsKeysAndProofsApart(t *testing.T) {
	a, b := dpoptest.NewKey(t, jose.ES256), dpoptest.NewKey(t, jose.ES256)
	ids := map[string]bool{}
	for _, k := range []*dpoptest.Key{a, b} {
		for _, jti := range []string{"1", "2", "\x00", "й"} {
			for range 2 {
				ids[wants(t, jti, k.Proof(http.MethodPost, endpoint, now, dpoptest.Claims{"jti": jti}), request(), "").ID] = true
			}
		}
	}
	if len(ids) != 8 {
		t.Errorf("%d ids of 8 different proofs", len(ids))
	}
}

func TestFromHeader_TakesOneHeaderOnly(t *testing.T) {
	h := http.Header{}
	check := func(name string, want dpop.Refusal) {
		t.Helper()
		_, err := dpop.FromHeader(h)
		var got dpop.Refusal
		if errors.As(err, &got); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	check("none", dpop.Missing)
	h.Set("dpop", "")
	check("empty", dpop.Missing)
	h.Set("dpop", "x")
	check("one", "")
	h.Add("DPoP", "y")
	check("two", dpop.Several)
}

func TestIsThumbprint(t *testing.T) {
	for s, want := range map[string]bool{
		exampleThumbprint: true, "": false, exampleThumbprint + "=": false, exampleThumbprint[:42]: false,
		exampleThumbprint[:42] + "J": false, // bits that are not the hash's
		exampleThumbprint[:42] + "+": false, exampleThumbprint[:42] + "\n": false,
	} {
		if got := dpop.IsThumbprint(s); got != want {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(example)
	k := dpoptest.NewKey(f, jose.ES256)
	f.Add(k.Sign(`{"typ":"dpop+jwt","alg":"ES256","jwk":`+string(k.JWK)+`}`, `{"jti":"1"}`))
	r := request()
	r.Now = time.Unix(exampleTime, 0)
	f.Fuzz(func(t *testing.T, raw string) {
		proof, err := dpop.Verify(raw, r)
		if (proof == nil) == (err == nil) {
			t.Fatal("neither a proof nor an error")
		}
		if err == nil && (!dpop.IsThumbprint(proof.Thumbprint) || proof.ID == "") {
			t.Fatalf("%+v", proof)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	for _, alg := range jose.Algorithms() {
		b.Run(string(alg), func(b *testing.B) {
			k, r := dpoptest.NewKey(b, alg), request()
			r.AccessToken = "token"
			raw := k.Proof(r.Method, endpoint, now, dpoptest.Token("token"))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := dpop.Verify(raw, r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
