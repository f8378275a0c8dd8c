package jose

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
)

// Signer signs compact JWS with one key and one algorithm. It is safe for
// concurrent use.
type Signer struct {
	public  PublicKey
	private crypto.Signer
	headers sync.Map // typ -> encoded header
}

// NewSigner makes a signer; an empty kid becomes the key's thumbprint.
// Errors: [ErrKey], [ErrAlgorithm].
func NewSigner(kid string, alg Algorithm, key crypto.Signer) (*Signer, error) {
	public, err := NewPublicKey(kid, alg, key.Public())
	if err != nil {
		return nil, err
	}
	return &Signer{public: public, private: key}, nil
}

// Public returns the key that verifies what s signs.
func (s *Signer) Public() PublicKey { return s.public }

// Sign returns the compact serialization of payload under a header of alg,
// kid and typ (left out when empty). typ must come from a closed set: its
// header is kept.
func (s *Signer) Sign(typ string, payload []byte) (string, error) {
	header, err := s.header(typ)
	if err != nil {
		return "", err
	}
	buf := make([]byte, 0, len(header)+1+base64.RawURLEncoding.EncodedLen(len(payload))+1+base64.RawURLEncoding.EncodedLen(rsaBits/8))
	buf = append(buf, header...)
	buf = append(buf, '.')
	buf = base64.RawURLEncoding.AppendEncode(buf, payload)
	sig, err := s.signature(buf)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	buf = append(buf, '.')
	buf = base64.RawURLEncoding.AppendEncode(buf, sig)
	return string(buf), nil
}

func (s *Signer) header(typ string) (string, error) {
	if h, ok := s.headers.Load(typ); ok {
		return h.(string), nil //nolint:errcheck,forcetypeassert // only strings are stored
	}
	raw, err := json.Marshal(struct {
		Alg Algorithm `json:"alg"`
		Kid string    `json:"kid"`
		Typ string    `json:"typ,omitempty"`
	}{s.public.Alg, s.public.ID, typ})
	if err != nil {
		return "", fmt.Errorf("encode header: %w", err)
	}
	h := encode(raw)
	s.headers.Store(typ, h)
	return h, nil
}

func (s *Signer) signature(input []byte) ([]byte, error) {
	if key, ok := s.private.(ed25519.PrivateKey); ok {
		return ed25519.Sign(key, input), nil
	}
	digest := sha256.Sum256(input)
	switch s.public.Alg {
	case ES256:
		der, err := s.private.Sign(rand.Reader, digest[:], crypto.SHA256)
		if err != nil {
			return nil, err
		}
		return fixedSignature(der)
	case PS256:
		return s.private.Sign(rand.Reader, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash, Hash: crypto.SHA256})
	default:
		return s.private.Sign(rand.Reader, digest[:], crypto.SHA256)
	}
}

// es256Size is the length of one integer of an ES256 signature (RFC 7518
// section 3.4).
const es256Size = 32

// fixedSignature turns an ASN.1 signature into R || S.
func fixedSignature(der []byte) ([]byte, error) {
	var rs struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &rs); err != nil {
		return nil, fmt.Errorf("read signature: %w", err)
	}
	out := make([]byte, 2*es256Size)
	rs.R.FillBytes(out[:es256Size])
	rs.S.FillBytes(out[es256Size:])
	return out, nil
}

func verify(key PublicKey, input, sig []byte) bool {
	switch pub := key.Key.(type) {
	case ed25519.PublicKey:
		return ed25519.Verify(pub, input, sig)
	case *ecdsa.PublicKey:
		if len(sig) != 2*es256Size {
			return false
		}
		digest := sha256.Sum256(input)
		r, s := new(big.Int).SetBytes(sig[:es256Size]), new(big.Int).SetBytes(sig[es256Size:])
		return ecdsa.Verify(pub, digest[:], r, s)
	case *rsa.PublicKey:
		digest := sha256.Sum256(input)
		if key.Alg == PS256 {
			return rsa.VerifyPSS(pub, crypto.SHA256, digest[:], sig, &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash}) == nil
		}
		return rsa.VerifyPKCS1v15(pub, crypto.SHA256, digest[:], sig) == nil
	}
	return false
}

func encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
