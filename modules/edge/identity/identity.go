package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/lestrrat-go/jwx/v2/jwa"
	"github.com/lestrrat-go/jwx/v2/jwe"
	"github.com/lestrrat-go/jwx/v2/jwk"

	"versola/modules/central/catalog/edgeauth"
	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/secret"
)

// Errors of this package.
var (
	ErrKeys = errors.New("unusable private key set of the edge")
	ErrOpen = errors.New("secret does not open")
)

// Identity is an edge's own keys.
type Identity struct {
	id     string
	clock  clock.Clock
	random io.Reader
	signer *jose.Signer
	enc    []encKey
}

type encKey struct {
	kid string
	key *ecdsa.PrivateKey
}

// Parse reads a private JWKS. Errors: [ErrKeys].
func Parse(edgeID string, jwks secret.Text, c clock.Clock, random io.Reader) (*Identity, error) {
	set, err := jwk.ParseString(jwks.Reveal())
	if err != nil {
		return nil, ErrKeys // the cause might quote the key
	}
	i := &Identity{id: edgeID, clock: c, random: random}
	for n := range set.Len() {
		k, _ := set.Key(n)
		var raw any
		if err := k.Raw(&raw); err != nil {
			return nil, fmt.Errorf("%w: key %d", ErrKeys, n+1)
		}
		key, ok := raw.(*ecdsa.PrivateKey)
		if !ok || key.Curve != elliptic.P256() {
			return nil, fmt.Errorf("%w: key %d is not a private EC P-256 key", ErrKeys, n+1)
		}
		switch k.KeyUsage() {
		case "sig":
			if i.signer != nil {
				continue // the first signs; others are only still published
			}
			if i.signer, err = jose.NewSigner(k.KeyID(), jose.ES256, key); err != nil {
				return nil, fmt.Errorf("%w: key %d", ErrKeys, n+1)
			}
		case "enc":
			i.enc = append(i.enc, encKey{k.KeyID(), key})
		default:
			return nil, fmt.Errorf("%w: key %d has neither use sig nor enc", ErrKeys, n+1)
		}
	}
	if i.signer == nil || len(i.enc) == 0 {
		return nil, fmt.Errorf("%w: needs a key of use sig and one of use enc", ErrKeys)
	}
	return i, nil
}

// EdgeID returns the edge's id.
func (i *Identity) EdgeID() string { return i.id }

// Authorize puts a fresh assertion of the edge's identity on a request to a
// feed.
func (i *Identity) Authorize(r *http.Request) error {
	assertion, err := edgeauth.Sign(i.signer, i.id, i.clock.Now(), i.random)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+assertion)
	return nil
}

// Open decrypts a secret that central sealed to this edge; it opens only under
// the context that it was sealed for. It is a catalog.Opener. Errors: [ErrOpen].
func (i *Identity) Open(sealed []byte, context string) ([]byte, error) {
	message, err := jwe.Parse(sealed)
	if err != nil {
		return nil, fmt.Errorf("%w: not a JWE", ErrOpen)
	}
	headers := message.ProtectedHeaders()
	if headers.Algorithm() != jwa.ECDH_ES_A256KW || headers.ContentEncryption() != jwa.A256GCM {
		return nil, fmt.Errorf("%w: algorithm %s with %s", ErrOpen, headers.Algorithm(), headers.ContentEncryption())
	}
	for _, k := range i.enc {
		if headers.KeyID() != "" && k.kid != "" && headers.KeyID() != k.kid {
			continue
		}
		plain, err := jwe.Decrypt(sealed, jwe.WithKey(jwa.ECDH_ES_A256KW, k.key))
		if err != nil {
			continue
		}
		var inside struct {
			Context string `json:"ctx"`
			Secret  string `json:"secret"`
		}
		if err := json.Unmarshal(plain, &inside); err != nil {
			return nil, fmt.Errorf("%w: not the expected document", ErrOpen)
		}
		if inside.Context != context {
			return nil, fmt.Errorf("%w: it belongs to %q", ErrOpen, inside.Context)
		}
		return []byte(inside.Secret), nil
	}
	return nil, fmt.Errorf("%w: no key for it", ErrOpen)
}
