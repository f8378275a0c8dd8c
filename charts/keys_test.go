package charts_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"testing"

	"github.com/lestrrat-go/jwx/v2/jwk"
)

// privateKeys makes the key set of an edge: one key that signs, one that
// secrets are encrypted to.
func privateKeys(t *testing.T) string {
	t.Helper()
	set := jwk.NewSet()
	for _, use := range []struct{ use, alg string }{{"sig", "ES256"}, {"enc", "ECDH-ES+A256KW"}} {
		raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		key, err := jwk.FromRaw(raw)
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{jwk.KeyUsageKey: use.use, jwk.AlgorithmKey: use.alg, jwk.KeyIDKey: use.use} {
			if err := key.Set(name, value); err != nil {
				t.Fatal(err)
			}
		}
		if err := set.AddKey(key); err != nil {
			t.Fatal(err)
		}
	}
	text, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
