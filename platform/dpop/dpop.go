package dpop

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"versola/platform/jose"
)

// Names that RFC 9449 registers.
const (
	Header      = "DPoP"       // the header field of a proof (section 12.8)
	NonceHeader = "DPoP-Nonce" // of a server's nonce (section 12.8)
	Scheme      = "DPoP"       // of Authorization (section 12.4), and the token type (section 12.1)
	proofType   = "dpop+jwt"   // section 12.6
)

// Window of "iat".
const (
	// MaxAge is how old a proof may be: one is made for each request, and a
	// slow mobile connection delivers within a minute. It is also how long a
	// jti has to be remembered.
	MaxAge = time.Minute
	// MaxAhead is how far in the future a proof may have been made: clients'
	// clocks differ from ours.
	MaxAhead = 30 * time.Second
)

const (
	// maxProof bounds a proof: with an RSA key of 4096 bits it has some 2.5 KiB,
	// and a URL may have another two.
	maxProof = 8 << 10
	// maxID bounds a jti, which is remembered: a UUID has 36 bytes.
	maxID = 256
	// thumbprintLength is that of a SHA-256 in base64url.
	thumbprintLength = 43
)

// Refusal says what is wrong with a proof; "the DPoP proof " goes before it. It
// repeats nothing of the proof, so it may be shown.
type Refusal string

// Error implements error.
func (r Refusal) Error() string { return "the DPoP proof " + string(r) }

// The refusals, in the order that they are looked for.
const (
	Missing    Refusal = "is missing"
	Several    Refusal = "was sent more than once"
	TooLong    Refusal = "is too long"
	Malformed  Refusal = "is not a well-formed JWT"
	WrongType  Refusal = "must have typ dpop+jwt"
	Algorithm  Refusal = "is signed with an algorithm that is not supported"
	NoKey      Refusal = "has no jwk in its header"
	PrivateKey Refusal = "has a private or symmetric key in its header"
	WrongKey   Refusal = "has a jwk that is not usable with its alg"
	Signature  Refusal = "has a signature that does not verify"
	NoID       Refusal = "must have a jti of 1 to 256 bytes"
	Method     Refusal = "must have the method of the request as htm"
	URL        Refusal = "must have the URL of the request as htu"
	NoTime     Refusal = "must have iat, a number of seconds"
	Stale      Refusal = "is too old: iat"
	Future     Refusal = "was made in the future: iat"
	TokenHash  Refusal = "must have the hash of the access token as ath"
	BadNonce   Refusal = "has a nonce that is not a text"
	NeedsNonce Refusal = "must have the nonce that the answer carries"
	Replayed   Refusal = "was used before: jti"
)

// Proof is a verified proof.
type Proof struct {
	Thumbprint string    // of its key (RFC 7638), what "cnf" has as "jkt"
	ID         string    // what a memory of used proofs keeps: a hash of key and jti
	Nonce      string    // empty: it has none
	Expires    time.Time // from then on it is refused as stale
}

// Request is the request that a proof must be for.
type Request struct {
	Method string
	// URLs are the public addresses that the request may have been sent to,
	// without query: usually one.
	URLs []string
	// AccessToken must be hashed in the proof; empty: no token is presented.
	AccessToken string
	// Algorithms that a proof may be signed with; nil: all of [jose.Algorithms].
	Algorithms []jose.Algorithm
	// Nonce tells whether a nonce is one of the server's that still counts;
	// nil: proofs need none.
	Nonce func(nonce string) bool
	Now   time.Time
}

// FromHeader returns the proof of a request (section 4.3, rule 1). Errors:
// [Missing], [Several].
func FromHeader(h http.Header) (string, error) {
	switch values := h.Values(Header); {
	case len(values) == 0 || len(values) == 1 && values[0] == "":
		return "", Missing
	case len(values) > 1:
		return "", Several
	default:
		return values[0], nil
	}
}

// Verify checks a proof. Errors: a [Refusal].
func Verify(raw string, r Request) (*Proof, error) {
	if len(raw) > maxProof {
		return nil, TooLong
	}
	parsed, err := jose.Parse(raw)
	if err != nil {
		return nil, Malformed
	}
	key, err := proofKey(&parsed.Header, r.Algorithms)
	if err != nil {
		return nil, err
	}
	if !parsed.Signed(key) {
		return nil, Signature
	}
	claims, err := jose.Members(parsed.Payload)
	if err != nil {
		return nil, Malformed
	}
	proof := &Proof{Thumbprint: key.ID}
	if err := proof.read(claims, r); err != nil {
		return nil, err
	}
	return proof, nil
}

// proofKey returns the key of a proof's header, named by its thumbprint.
func proofKey(h *jose.Header, allowed []jose.Algorithm) (jose.PublicKey, error) {
	if allowed == nil {
		allowed = jose.Algorithms()
	}
	switch {
	case h.Typ != proofType:
		return jose.PublicKey{}, WrongType
	case !slices.Contains(allowed, h.Alg):
		return jose.PublicKey{}, Algorithm
	case h.JWK == nil:
		return jose.PublicKey{}, NoKey
	}
	return parseKey(h.JWK, h.Alg)
}

// read takes the claims over that are right for the request.
func (p *Proof) read(claims map[string]json.RawMessage, r Request) error {
	id, ok := jose.Text(claims["jti"])
	if !ok || id == "" || len(id) > maxID {
		return NoID
	}
	if method, ok := jose.Text(claims["htm"]); !ok || method != r.Method {
		return Method
	}
	if uri, ok := jose.Text(claims["htu"]); !ok || !sameURL(uri, r.URLs) {
		return URL
	}
	issued, ok := jose.NumericDate(claims["iat"])
	switch {
	case !ok:
		return NoTime
	case r.Now.Sub(issued) > MaxAge:
		return Stale
	case issued.Sub(r.Now) > MaxAhead:
		return Future
	}
	if r.AccessToken != "" {
		if hash, ok := jose.Text(claims["ath"]); !ok || hash != Hash(r.AccessToken) {
			return TokenHash
		}
	}
	if raw, there := claims["nonce"]; there {
		if p.Nonce, ok = jose.Text(raw); !ok {
			return BadNonce
		}
	}
	if r.Nonce != nil && !r.Nonce(p.Nonce) {
		return NeedsNonce
	}
	// A jti is unique among the proofs of one key, and a stranger's text.
	p.ID, p.Expires = Hash(p.Thumbprint+id), issued.Add(MaxAge)
	return nil
}

// Hash returns a SHA-256 in base64url, as "ath" has an access token's (section
// 4.2).
func Hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// IsThumbprint tells whether s can be the SHA-256 thumbprint of a key, as
// "dpop_jkt" and "jkt" have it.
func IsThumbprint(s string) bool {
	if len(s) != thumbprintLength {
		return false
	}
	b, err := decode(s)
	return err == nil && len(b) == sha256.Size
}
