package validate

import (
	"crypto/ecdsa"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/platform/jose"
)

// Bounds of key sets.
const (
	maxKeys    = jose.MaxKeys
	maxKeySet  = jose.MaxKeySet
	minRSABits = 2048 // NIST SP 800-131A
	maxRSABits = 8192 // verifying with a larger one takes too long
)

// ClientKeys checks the public keys of a client (RFC 7517): signature keys of
// algorithms that we verify, and encryption keys; none private or symmetric,
// each with an id of its own where there are several.
func ClientKeys(raw json.RawMessage) error {
	if len(raw) > maxKeySet {
		return fmt.Errorf("has %d bytes, more than %d", len(raw), maxKeySet)
	}
	var shape struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.Unmarshal(raw, &shape); err != nil || shape.Keys == nil {
		return errors.New("is not a JSON Web Key Set")
	}
	if n := len(shape.Keys); n == 0 || n > maxKeys {
		return fmt.Errorf("has %d keys: 1 to %d are needed", n, maxKeys)
	}
	ids := map[string]bool{}
	for i, one := range shape.Keys {
		k, err := jwk.ParseKey(one)
		if err != nil {
			return fmt.Errorf("key %d cannot be read", i+1)
		}
		if err := publicKey(k); err != nil {
			return fmt.Errorf("key %d %w", i+1, err)
		}
		if id := k.KeyID(); ids[id] {
			return fmt.Errorf("key %d has the kid %q of another one", i+1, id)
		}
		ids[k.KeyID()] = true
	}
	return nil
}

func publicKey(k jwk.Key) error {
	if private, err := jwk.IsPrivateKey(k); err != nil || private {
		return errors.New("is private: only public keys belong here")
	}
	if use := k.KeyUsage(); use != "" && use != "sig" && use != "enc" {
		return fmt.Errorf("has the use %q: sig or enc", use)
	}
	switch k := k.(type) {
	case jwk.RSAPublicKey:
		if bits := len(k.N()) * 8; bits < minRSABits || bits > maxRSABits {
			return fmt.Errorf("has %d bits: %d to %d are accepted", bits, minRSABits, maxRSABits)
		}
	case jwk.ECDSAPublicKey:
		if c := k.Crv(); c != jwa.P256 && c != jwa.P384 && c != jwa.P521 {
			return fmt.Errorf("is on the curve %s: P-256, P-384 and P-521 are accepted", c)
		}
		var raw ecdsa.PublicKey
		if err := k.Raw(&raw); err != nil {
			return errors.New("cannot be read")
		}
		if _, err := raw.ECDH(); err != nil {
			return errors.New("is not a point of its curve")
		}
	case jwk.OKPPublicKey:
		if c := k.Crv(); c != jwa.Ed25519 && c != jwa.X25519 {
			return fmt.Errorf("is on the curve %s: Ed25519 and X25519 are accepted", c)
		}
	default:
		return fmt.Errorf("is of the type %s", k.KeyType())
	}
	return nil
}
