package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwe"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/secret"
)

func keySet(t *testing.T, uses ...string) (private secret.Text, public []byte, keys []*ecdsa.PrivateKey) {
	t.Helper()
	set, pub := jwk.NewSet(), jwk.NewSet()
	for _, use := range uses {
		raw, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		k, _ := jwk.FromRaw(raw)
		_ = k.Set(jwk.KeyUsageKey, use)
		_ = jwk.AssignKeyID(k)
		_ = set.AddKey(k)
		p, _ := k.PublicKey()
		_ = pub.AddKey(p)
		keys = append(keys, raw)
	}
	a, _ := json.Marshal(set)
	b, _ := json.Marshal(pub)
	return secret.Text(a), b, keys
}

func TestAuthorize_WhatTheFeedsExpect(t *testing.T) {
	t.Parallel()
	private, public, _ := keySet(t, "sig", "enc")
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	i, err := Parse("edge-1", private, clock.NewFake(now), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://x.test/", nil)
	if err := i.Authorize(r); err != nil {
		t.Fatal(err)
	}
	keys, err := jose.ParseJWKS(public)
	if err != nil {
		t.Fatal(err)
	}
	_, payload, err := jose.NewKeySet(keys...).Verify(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "versola-edge+jwt")
	if err != nil {
		t.Fatal(err)
	}
	var c struct {
		Iss, Sub, Aud, Jti string
		Iat, Exp           int64
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		t.Fatal(err)
	}
	if c.Iss != "edge-1" || c.Sub != "edge-1" || c.Aud != "versola-internal" || c.Jti == "" || c.Iat != now.Unix() || c.Exp <= c.Iat || c.Exp-c.Iat > 60 {
		t.Errorf("claims are %s", payload)
	}
}

func sealed(t *testing.T, key *ecdsa.PublicKey, alg jwa.KeyEncryptionAlgorithm, enc jwa.ContentEncryptionAlgorithm, context string) []byte {
	t.Helper()
	plain, _ := json.Marshal(map[string]string{"ctx": context, "secret": "s3cret"})
	out, err := jwe.Encrypt(plain, jwe.WithKey(alg, key), jwe.WithContentEncryption(enc))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOpen_OnlyOwnSecretsInTheirOwnContext(t *testing.T) {
	t.Parallel()
	private, _, keys := keySet(t, "sig", "enc", "enc")
	i, err := Parse("edge-1", private, clock.System{}, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys[1:] {
		if got, err := i.Open(sealed(t, &k.PublicKey, jwa.ECDH_ES_A256KW, jwa.A256GCM, "a"), "a"); err != nil || string(got) != "s3cret" {
			t.Errorf("%q, %v", got, err)
		}
	}
	_, _, foreign := keySet(t, "enc")
	for name, message := range map[string][]byte{
		"moved":           sealed(t, &keys[1].PublicKey, jwa.ECDH_ES_A256KW, jwa.A256GCM, "b"),
		"another's":       sealed(t, &foreign[0].PublicKey, jwa.ECDH_ES_A256KW, jwa.A256GCM, "a"),
		"signature key":   sealed(t, &keys[0].PublicKey, jwa.ECDH_ES_A256KW, jwa.A256GCM, "a"),
		"other algorithm": sealed(t, &keys[1].PublicKey, jwa.ECDH_ES, jwa.A256GCM, "a"),
		"other cipher":    sealed(t, &keys[1].PublicKey, jwa.ECDH_ES_A256KW, jwa.A128CBC_HS256, "a"),
		"garbage":         []byte("a.b.c.d.e"),
		"empty":           nil,
	} {
		if got, err := i.Open(message, "a"); !errors.Is(err, ErrOpen) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestParse_UnusableSets(t *testing.T) {
	t.Parallel()
	onlySig, public, _ := keySet(t, "sig")
	onlyEnc, _, _ := keySet(t, "enc")
	noUse, _, _ := keySet(t, "other")
	for name, set := range map[string]secret.Text{"no enc": onlySig, "no sig": onlyEnc, "strange use": noUse, "public": secret.Text(public), "garbage": "secret-garbage", "empty": ""} {
		_, err := Parse("e", set, clock.System{}, rand.Reader)
		if !errors.Is(err, ErrKeys) || strings.Contains(err.Error(), "garbage") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
