package dpoptest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"testing"
	"time"

	"versola/platform/dpop"
	"versola/platform/id"
	"versola/platform/jose"
)

// Key is what a client proves that it holds.
type Key struct {
	testing.TB
	Alg        jose.Algorithm
	Private    crypto.Signer
	JWK        json.RawMessage
	Thumbprint string
}

// NewKey makes a key for alg.
func NewKey(t testing.TB, alg jose.Algorithm) *Key {
	t.Helper()
	private, err := jose.Generate(alg)
	must(t, err)
	public, err := jose.NewPublicKey("", alg, private.Public())
	must(t, err)
	raw, err := public.JWK()
	must(t, err)
	var members map[string]any
	must(t, json.Unmarshal(raw, &members))
	for _, name := range []string{"kid", "alg", "use"} {
		delete(members, name)
	}
	bare, err := json.Marshal(members)
	must(t, err)
	return &Key{TB: t, Alg: alg, Private: private, JWK: bare, Thumbprint: public.ID}
}

// Claims are those of a proof.
type Claims map[string]any

// Proof makes a proof for a request at now. Changes come over the usual claims;
// one that is nil takes the claim away.
func (k *Key) Proof(method, url string, now time.Time, changes Claims) string {
	k.Helper()
	claims := Claims{"jti": id.Short(rand.Reader, 16), "htm": method, "htu": url, "iat": now.Unix()}
	for name, v := range changes {
		if claims[name] = v; v == nil {
			delete(claims, name)
		}
	}
	payload, err := json.Marshal(claims)
	must(k, err)
	header, err := json.Marshal(map[string]any{"typ": "dpop+jwt", "alg": k.Alg, "jwk": k.JWK})
	must(k, err)
	return k.Sign(string(header), string(payload))
}

// Token makes the claim that binds a proof to an access token.
func Token(accessToken string) Claims { return Claims{"ath": dpop.Hash(accessToken)} }

// With returns the claims with others added.
func (c Claims) With(name string, value any) Claims {
	out := Claims{name: value}
	for n, v := range c {
		if n != name {
			out[n] = v
		}
	}
	return out
}

// Sign signs any header and payload with the key.
func (k *Key) Sign(header, payload string) string {
	k.Helper()
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString([]byte(payload))
	digest := sha256.Sum256([]byte(input))
	var sig []byte
	var err error
	switch private := k.Private.(type) {
	case *ecdsa.PrivateKey:
		r, s, signErr := ecdsa.Sign(rand.Reader, private, digest[:])
		must(k, signErr)
		sig = append(r.FillBytes(make([]byte, 32)), s.FillBytes(make([]byte, 32))...)
	case *rsa.PrivateKey:
		if k.Alg == jose.PS256 {
			sig, err = rsa.SignPSS(rand.Reader, private, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
		} else {
			sig, err = rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, digest[:])
		}
	default:
		sig, err = private.Sign(rand.Reader, []byte(input), crypto.Hash(0))
	}
	must(k, err)
	return input + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
