package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwk"
)

// Algorithm is a JWS algorithm name (RFC 7518 section 3.1, RFC 8037).
type Algorithm string

// The algorithms that this package signs and verifies with.
const (
	ES256 Algorithm = "ES256"
	RS256 Algorithm = "RS256"
	PS256 Algorithm = "PS256"
	EdDSA Algorithm = "EdDSA"
)

// Algorithms lists every supported algorithm.
func Algorithms() []Algorithm { return []Algorithm{ES256, RS256, PS256, EdDSA} }

// rsaBits is the modulus size of the RSA keys we make: what NIST SP 800-57
// asks until 2030, and the most that a token endpoint can afford.
const rsaBits = 2048

// minRSABits is the least modulus we verify with (RFC 7518 section 3.3).
const minRSABits = 2048

// maxRSABits is the greatest modulus we verify with: the cost grows with its
// square, and whoever registers a key must not choose what checking costs.
const maxRSABits = 8192

// Errors about keys.
var (
	ErrAlgorithm = errors.New("unsupported algorithm")
	ErrKey       = errors.New("unusable key")
)

// Generate makes a private key for alg. Errors: [ErrAlgorithm].
func Generate(alg Algorithm) (crypto.Signer, error) {
	switch alg {
	case ES256:
		return ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case RS256, PS256:
		return rsa.GenerateKey(rand.Reader, rsaBits)
	case EdDSA:
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	}
	return nil, fmt.Errorf("%w: %q", ErrAlgorithm, alg)
}

// MarshalPrivate returns the PKCS #8 form of a private key.
func MarshalPrivate(key crypto.Signer) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("encode private key: %w", err)
	}
	return der, nil
}

// ParsePrivate reads what [MarshalPrivate] wrote. Errors: [ErrKey].
func ParsePrivate(der []byte) (crypto.Signer, error) {
	key, err := x509.ParsePKCS8PrivateKey(der)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%w: %T does not sign", ErrKey, key)
	}
	return signer, nil
}

// PublicKey is a key that verifies, with the one algorithm it is registered
// for.
type PublicKey struct {
	ID  string // kid
	Alg Algorithm
	Key crypto.PublicKey // *ecdsa.PublicKey, *rsa.PublicKey or ed25519.PublicKey
}

// NewPublicKey checks that key fits alg; an empty kid becomes the key's
// thumbprint (RFC 7638). Errors: [ErrKey], [ErrAlgorithm].
func NewPublicKey(kid string, alg Algorithm, key crypto.PublicKey) (PublicKey, error) {
	if err := fits(alg, key); err != nil {
		return PublicKey{}, err
	}
	if kid == "" {
		t, err := Thumbprint(key)
		if err != nil {
			return PublicKey{}, err
		}
		kid = t
	}
	return PublicKey{ID: kid, Alg: alg, Key: key}, nil
}

// Thumbprint returns the base64url SHA-256 thumbprint of a public key (RFC
// 7638).
func Thumbprint(key crypto.PublicKey) (string, error) {
	k, err := jwk.FromRaw(key)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrKey, err)
	}
	sum, err := k.Thumbprint(crypto.SHA256)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrKey, err)
	}
	return encode(sum), nil
}

// JWK returns the public JSON Web Key with kid, alg and use.
func (p PublicKey) JWK() (json.RawMessage, error) {
	k, err := jwk.FromRaw(p.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	for name, value := range map[string]any{jwk.KeyIDKey: p.ID, jwk.AlgorithmKey: jwa.SignatureAlgorithm(p.Alg), jwk.KeyUsageKey: "sig"} {
		if err := k.Set(name, value); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrKey, err)
		}
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return nil, fmt.Errorf("encode jwk: %w", err)
	}
	return raw, nil
}

// ParseJWK reads one public JSON Web Key. Where the key names no algorithm,
// its type decides (EC P-256: ES256; RSA: RS256; Ed25519: EdDSA). A private
// key is refused. Errors: [ErrKey], [ErrAlgorithm].
func ParseJWK(raw []byte) (PublicKey, error) {
	k, err := jwk.ParseKey(raw)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	return fromJWK(k)
}

// ParseJWKS reads the signature keys of a JSON Web Key Set; keys that are for
// encryption, or of a kind that we do not verify with, are passed over (RFC
// 7517 section 5). A private or symmetric key is an error. Errors: [ErrKey].
func ParseJWKS(raw []byte) ([]PublicKey, error) {
	set, err := jwk.Parse(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	var keys []PublicKey
	for i := range set.Len() {
		k, _ := set.Key(i)
		p, err := fromJWK(k)
		if errors.Is(err, ErrAlgorithm) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys = append(keys, p)
	}
	return keys, nil
}

// Bounds of key sets that others publish.
const (
	MaxKeys   = 20       // rotations overlap by one or two
	MaxKeySet = 64 << 10 // bytes: twenty RSA keys with certificates
)

// SignatureKeys reads the keys of somebody else's JSON Web Key Set that can
// verify; what else the set has is passed over (RFC 7517 section 5). An RSA key
// that names no algorithm is there twice, for RS256 and for PS256. Errors:
// [ErrKey], where it is no key set, or one over the bounds.
func SignatureKeys(raw []byte) ([]PublicKey, error) {
	if len(raw) > MaxKeySet {
		return nil, fmt.Errorf("%w: a key set of %d bytes", ErrKey, len(raw))
	}
	members, err := Members(raw)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKey, err)
	}
	var list []json.RawMessage
	if err := json.Unmarshal(members["keys"], &list); err != nil || len(list) > MaxKeys {
		return nil, fmt.Errorf("%w: keys is no list of at most %d", ErrKey, MaxKeys)
	}
	var keys []PublicKey
	for _, one := range list {
		k, err := jwk.ParseKey(one)
		if err != nil {
			continue
		}
		p, err := fromJWK(k)
		if err != nil {
			continue
		}
		keys = append(keys, p)
		if p.Alg == RS256 && k.Algorithm().String() == "" {
			p.Alg = PS256
			keys = append(keys, p)
		}
	}
	return keys, nil
}

func fromJWK(k jwk.Key) (PublicKey, error) {
	if k.KeyUsage() != "" && k.KeyUsage() != "sig" {
		return PublicKey{}, fmt.Errorf("%w: use is %q", ErrAlgorithm, k.KeyUsage())
	}
	if private, err := jwk.IsPrivateKey(k); err != nil || private {
		return PublicKey{}, fmt.Errorf("%w: not a public key", ErrKey)
	}
	var pub any
	if err := k.Raw(&pub); err != nil {
		return PublicKey{}, fmt.Errorf("%w: %w", ErrKey, err)
	}
	alg := Algorithm(k.Algorithm().String())
	if alg == "" {
		switch key := pub.(type) {
		case *ecdsa.PublicKey:
			if key.Curve != elliptic.P256() {
				return PublicKey{}, fmt.Errorf("%w: curve %s", ErrAlgorithm, key.Curve.Params().Name)
			}
			alg = ES256
		case *rsa.PublicKey:
			alg = RS256
		case ed25519.PublicKey:
			alg = EdDSA
		}
	}
	return NewPublicKey(k.KeyID(), alg, pub)
}

func fits(alg Algorithm, key crypto.PublicKey) error {
	switch alg {
	case ES256:
		if k, ok := key.(*ecdsa.PublicKey); ok && k.Curve == elliptic.P256() {
			if _, err := k.ECDH(); err != nil { // a point that is not on the curve
				return fmt.Errorf("%w: %w", ErrKey, err)
			}
			return nil
		}
	case RS256, PS256:
		if k, ok := key.(*rsa.PublicKey); ok {
			if k.N.BitLen() < minRSABits {
				return fmt.Errorf("%w: RSA modulus of %d bits is under %d", ErrKey, k.N.BitLen(), minRSABits)
			}
			if k.N.BitLen() > maxRSABits {
				return fmt.Errorf("%w: RSA modulus of %d bits is over %d", ErrKey, k.N.BitLen(), maxRSABits)
			}
			return nil
		}
	case EdDSA:
		if k, ok := key.(ed25519.PublicKey); ok {
			// Verifying with a key of another length panics.
			if len(k) != ed25519.PublicKeySize {
				return fmt.Errorf("%w: Ed25519 key of %d bytes", ErrKey, len(k))
			}
			return nil
		}
	default:
		return fmt.Errorf("%w: %q", ErrAlgorithm, alg)
	}
	return fmt.Errorf("%w: %s does not go with %s", ErrKey, strings.TrimPrefix(fmt.Sprintf("%T", key), "*"), alg)
}
