package jose

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxToken bounds what a verifier reads: ten times our own largest token.
const maxToken = 32 << 10

// Errors of a verification. Each is final for the token.
var (
	ErrMalformed = errors.New("malformed token")
	ErrType      = errors.New("token of another type")
	ErrUnknown   = errors.New("token signed with an unknown key")
	ErrSignature = errors.New("token signature does not verify")
)

// Header is what a verifier reads of a token's header.
type Header struct {
	Alg Algorithm `json:"alg"`
	Kid string    `json:"kid"`
	Typ string    `json:"typ"`
	JWK json.RawMessage
}

// KeySet verifies with a set of registered public keys.
type KeySet struct {
	byID map[string]PublicKey
	keys []PublicKey
}

// NewKeySet makes a key set; a later key of the same id replaces an earlier.
func NewKeySet(keys ...PublicKey) *KeySet {
	s := &KeySet{byID: make(map[string]PublicKey, len(keys)), keys: keys}
	for _, k := range keys {
		s.byID[k.ID] = k
	}
	return s
}

// Keys returns the keys in the order they were given.
func (s *KeySet) Keys() []PublicKey { return s.keys }

// Verify checks a compact JWS and returns its header and payload. typ is the
// media type that the header must state, without "application/" and in any
// case (RFC 7515 section 4.1.9); empty means that it is not looked at. A token
// without kid is tried with every key of its algorithm. Times, issuer and
// audience are the caller's to check.
// Errors: [ErrMalformed], [ErrType], [ErrUnknown], [ErrSignature].
func (s *KeySet) Verify(token, typ string) (Header, []byte, error) {
	parsed, err := Parse(token)
	if err != nil {
		return Header{}, nil, err
	}
	if typ != "" && !sameType(parsed.Header.Typ, typ) {
		return Header{}, nil, fmt.Errorf("%w: %.64q", ErrType, parsed.Header.Typ)
	}
	if parsed.Header.Kid != "" {
		key, ok := s.byID[parsed.Header.Kid]
		if !ok || key.Alg != parsed.Header.Alg {
			return Header{}, nil, fmt.Errorf("%w: kid %.64q, alg %.64q", ErrUnknown, parsed.Header.Kid, parsed.Header.Alg)
		}
		if !parsed.Signed(key) {
			return Header{}, nil, ErrSignature
		}
		return parsed.Header, parsed.Payload, nil
	}
	tried := false
	for _, key := range s.keys {
		if key.Alg != parsed.Header.Alg {
			continue
		}
		tried = true
		if parsed.Signed(key) {
			return parsed.Header, parsed.Payload, nil
		}
	}
	if !tried {
		return Header{}, nil, fmt.Errorf("%w: alg %.64q", ErrUnknown, parsed.Header.Alg)
	}
	return Header{}, nil, ErrSignature
}

// Parsed is a compact JWS taken apart, with nothing proven about it.
type Parsed struct {
	Header    Header
	Payload   []byte
	input     []byte
	signature []byte
}

// Parse takes a compact JWS apart. Errors: [ErrMalformed].
func Parse(token string) (Parsed, error) {
	if len(token) > maxToken {
		return Parsed{}, fmt.Errorf("%w: over %d bytes", ErrMalformed, maxToken)
	}
	h, rest, ok1 := strings.Cut(token, ".")
	p, sig, ok2 := strings.Cut(rest, ".")
	if !ok1 || !ok2 || strings.Contains(sig, ".") {
		return Parsed{}, fmt.Errorf("%w: not three parts", ErrMalformed)
	}
	header, err := decode(h)
	if err != nil {
		return Parsed{}, err
	}
	payload, err := decode(p)
	if err != nil {
		return Parsed{}, err
	}
	signature, err := decode(sig)
	if err != nil {
		return Parsed{}, err
	}
	parsed := Parsed{Payload: payload, signature: signature, input: []byte(token[:len(h)+1+len(p)])}
	if parsed.Header, err = parseHeader(header); err != nil {
		return Parsed{}, err
	}
	return parsed, nil
}

// Signed tells whether the token's signature is key's, under key's own
// algorithm.
func (p Parsed) Signed(key PublicKey) bool {
	return p.Header.Alg == key.Alg && verify(key, p.input, p.signature)
}

// strict refuses stray bits in the last character, so that one signature has
// one spelling.
var strict = base64.RawURLEncoding.Strict()

func decode(part string) ([]byte, error) {
	// The decoder skips line breaks; a token has none.
	if strings.ContainsAny(part, "\r\n") {
		return nil, fmt.Errorf("%w: not base64url", ErrMalformed)
	}
	b, err := strict.DecodeString(part)
	if err != nil {
		return nil, fmt.Errorf("%w: not base64url", ErrMalformed)
	}
	return b, nil
}

func parseHeader(raw []byte) (Header, error) {
	members, err := Members(raw)
	if err != nil {
		return Header{}, err
	}
	// No extension that must be understood is (RFC 7515 section 4.1.11), and
	// an unencoded payload (RFC 7797) is one.
	for _, name := range []string{"crit", "b64"} {
		if _, ok := members[name]; ok {
			return Header{}, fmt.Errorf("%w: header member %q", ErrMalformed, name)
		}
	}
	var h Header
	for name, dst := range map[string]*string{"alg": (*string)(&h.Alg), "kid": &h.Kid, "typ": &h.Typ} {
		if v, ok := members[name]; ok {
			if err := json.Unmarshal(v, dst); err != nil || v[0] != '"' { // null is no string
				return Header{}, fmt.Errorf("%w: header member %q is not a string", ErrMalformed, name)
			}
		}
	}
	if h.Alg == "" {
		return Header{}, fmt.Errorf("%w: no alg", ErrMalformed)
	}
	h.JWK = members["jwk"]
	return h, nil
}

// IsType tells whether a header's typ is one of several media types, each without
// "application/".
func IsType(got string, want ...string) bool {
	return slices.ContainsFunc(want, func(w string) bool { return sameType(got, w) })
}

func sameType(got, want string) bool {
	const prefix = "application/"
	if len(got) > len(prefix) && strings.EqualFold(got[:len(prefix)], prefix) {
		got = got[len(prefix):]
	}
	return strings.EqualFold(got, want)
}
