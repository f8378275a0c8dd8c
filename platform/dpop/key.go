package dpop

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"strings"

	"versola/platform/jose"
)

// Keys come from strangers, who must not choose what checking costs.
const (
	coordinateBytes = 32 // of P-256 and Ed25519
	maxModulusBytes = 4096 / 8
	// maxExponentBytes bounds the exponent at 2^32; nearly all keys have 65537.
	maxExponentBytes = 4
)

// secretMembers are those of private and symmetric keys (RFC 7518 section 6).
var secretMembers = []string{"d", "p", "q", "dp", "dq", "qi", "oth", "k"}

// parseKey reads a public key for alg; its ID is the thumbprint (RFC 7638).
//
// It is written by hand for the three kinds of key that there are, since each
// request with a proof brings its key: the general library takes longer than
// the signature does.
func parseKey(raw json.RawMessage, alg jose.Algorithm) (jose.PublicKey, error) {
	m, err := jose.Members(raw)
	if err != nil {
		return jose.PublicKey{}, WrongKey
	}
	for _, name := range secretMembers {
		if _, there := m[name]; there {
			return jose.PublicKey{}, PrivateKey
		}
	}
	kty, ok := jose.Text(m["kty"])
	if !ok || !suits(m, "alg", string(alg)) || !suits(m, "use", "sig") {
		return jose.PublicKey{}, WrongKey
	}
	if kty == "oct" {
		return jose.PublicKey{}, PrivateKey
	}
	var key any
	var canonical string
	switch kty {
	case "EC":
		key, canonical = ecKey(m)
	case "RSA":
		key, canonical = rsaKey(m)
	case "OKP":
		key, canonical = edKey(m)
	}
	if key == nil {
		return jose.PublicKey{}, WrongKey
	}
	sum := sha256.Sum256([]byte(canonical))
	public, err := jose.NewPublicKey(base64.RawURLEncoding.EncodeToString(sum[:]), alg, key)
	if err != nil {
		return jose.PublicKey{}, WrongKey
	}
	return public, nil
}

// is tells whether a member has a value.
func is(m map[string]json.RawMessage, name, want string) bool {
	got, ok := jose.Text(m[name])
	return ok && got == want
}

// suits tells whether a member that may be left out has the one value that it
// may have.
func suits(m map[string]json.RawMessage, name, want string) bool {
	_, there := m[name]
	return !there || is(m, name, want)
}

// ecKey returns a key and the canonical form that its thumbprint is of (RFC
// 7638 section 3.2); nil: there is none.
func ecKey(m map[string]json.RawMessage) (any, string) {
	x, xText, ok1 := octets(m["x"])
	y, yText, ok2 := octets(m["y"])
	if !ok1 || !ok2 || len(x) != coordinateBytes || len(y) != coordinateBytes || !is(m, "crv", "P-256") {
		return nil, ""
	}
	const uncompressed = 4 // SEC 1 section 2.3.3
	point := append(append(append(make([]byte, 0, 1+2*coordinateBytes), uncompressed), x...), y...)
	key, err := ecdsa.ParseUncompressedPublicKey(elliptic.P256(), point)
	if err != nil { // a point that is not on the curve
		return nil, ""
	}
	return key, `{"crv":"P-256","kty":"EC","x":"` + xText + `","y":"` + yText + `"}`
}

func edKey(m map[string]json.RawMessage) (any, string) {
	x, xText, ok := octets(m["x"])
	if !ok || len(x) != coordinateBytes || !is(m, "crv", "Ed25519") {
		return nil, ""
	}
	return ed25519.PublicKey(x), `{"crv":"Ed25519","kty":"OKP","x":"` + xText + `"}`
}

func rsaKey(m map[string]json.RawMessage) (any, string) {
	n, nText, ok1 := octets(m["n"])
	e, eText, ok2 := octets(m["e"])
	if !ok1 || !ok2 || len(n) == 0 || len(n) > maxModulusBytes || n[0] == 0 || len(e) == 0 || len(e) > maxExponentBytes || e[0] == 0 {
		return nil, "" // an integer has no leading zeros (RFC 7518 section 2)
	}
	exponent := new(big.Int).SetBytes(e).Int64()
	if exponent < 3 || exponent%2 == 0 || exponent > 1<<31-1 || n[len(n)-1]%2 == 0 {
		return nil, ""
	}
	key := &rsa.PublicKey{N: new(big.Int).SetBytes(n), E: int(exponent)}
	return key, `{"e":"` + eText + `","kty":"RSA","n":"` + nText + `"}`
}

// octets reads a member in base64url, in its one encoding: another would give
// the same key another thumbprint.
func octets(raw json.RawMessage) ([]byte, string, bool) {
	s, ok := jose.Text(raw)
	if !ok {
		return nil, "", false
	}
	b, err := decode(s)
	return b, s, err == nil
}

var encoding = base64.RawURLEncoding.Strict()

func decode(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n") { // which the decoder passes over
		return nil, base64.CorruptInputError(0)
	}
	return encoding.DecodeString(s) //nolint:wrapcheck // nobody sees it
}
