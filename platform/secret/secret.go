package secret

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"io"
	"log/slog"
	"strconv"
	"sync"
)

// redacted is what every printing of a [Text] shows.
const redacted = "[redacted]"

// Text is a secret string. Printing, logging and marshalling it show
// "[redacted]"; only [Text.Reveal] gives the value.
type Text string

// Reveal returns the secret itself.
func (t Text) Reveal() string { return string(t) }

// Empty tells whether there is no secret.
func (t Text) Empty() bool { return t == "" }

// String implements fmt.Stringer.
func (t Text) String() string {
	if t == "" {
		return ""
	}
	return redacted
}

// GoString implements fmt.GoStringer, for %#v.
func (t Text) GoString() string { return t.String() }

// Format implements fmt.Formatter: whatever the verb, also one that does not fit
// a string (fmt would print the value to complain about it).
func (t Text) Format(s fmt.State, verb rune) { format(s, verb, t.String()) }

func format(s fmt.State, verb rune, text string) {
	if verb == 'q' || verb == 'v' && s.Flag('#') {
		text = strconv.Quote(text)
	}
	_, _ = io.WriteString(s, text)
}

// MarshalText implements encoding.TextMarshaler (JSON and YAML use it).
func (t Text) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// LogValue implements slog.LogValuer.
func (t Text) LogValue() slog.Value { return slog.StringValue(t.String()) }

// Equal compares two secrets in constant time; their lengths may show.
func Equal(a, b []byte) bool { return subtle.ConstantTimeCompare(a, b) == 1 }

// Hash returns the SHA-256 of a high-entropy handle: what the database keeps
// of it, so that a copy of the database opens nothing.
func Hash(handle string) []byte {
	sum := sha256.Sum256([]byte(handle))
	return sum[:]
}

// KeyBytes is the size of every symmetric key.
const KeyBytes = 32

// Key is a named symmetric key. The id is short and public: it says which key
// sealed something.
type Key struct {
	ID    string
	Value []byte // KeyBytes long
}

// String implements fmt.Stringer; it shows the id alone.
func (k Key) String() string { return "key " + k.ID + " " + redacted }

// Format implements fmt.Formatter, see [Text.Format].
func (k Key) Format(s fmt.State, verb rune) { format(s, verb, k.String()) }

// MarshalText implements encoding.TextMarshaler.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// LogValue implements slog.LogValuer.
func (k Key) LogValue() slog.Value { return slog.StringValue(k.String()) }

// Errors of this package.
var (
	// ErrKey reports a key of the wrong length, or a keyring with none.
	ErrKey = errors.New("a key must be 32 bytes in base64")
	// ErrOpen reports a sealed value that no key opens, or that was altered.
	ErrOpen = errors.New("sealed value does not open")
)

// ParseKey reads 32 bytes in standard or URL base64, padded or not. The id is
// taken from the key itself (four bytes of its hash), so that the same key has
// the same id in every process. Errors: [ErrKey].
func ParseKey(text Text) (Key, error) {
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		if b, err := enc.DecodeString(text.Reveal()); err == nil && len(b) == KeyBytes {
			sum := sha256.Sum256(append([]byte("versola key id:"), b...))
			return Key{ID: base64.RawURLEncoding.EncodeToString(sum[:4]), Value: b}, nil
		}
	}
	return Key{}, ErrKey
}

// ParseKeys reads several keys, the active one first. Errors: [ErrKey].
func ParseKeys(texts []Text) ([]Key, error) {
	if len(texts) == 0 {
		return nil, ErrKey
	}
	keys := make([]Key, len(texts))
	for i, t := range texts {
		k, err := ParseKey(t)
		if err != nil {
			return nil, fmt.Errorf("key %d: %w", i+1, err)
		}
		keys[i] = k
	}
	return keys, nil
}

// GenerateKey returns a new random key as configuration text.
func GenerateKey(random io.Reader) (Text, error) {
	b := make([]byte, KeyBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	return Text(base64.StdEncoding.EncodeToString(b)), nil
}

// Derive returns a key for one purpose from each of keys (HKDF-SHA256, RFC
// 5869, the purpose as info). Ids stay.
func Derive(keys []Key, purpose string) []Key {
	out := make([]Key, len(keys))
	for i, k := range keys {
		v, err := hkdf.Key(sha256.New, k.Value, nil, "versola/"+purpose, KeyBytes)
		if err != nil {
			panic(fmt.Sprintf("derive key: %v", err)) // only for impossible lengths
		}
		out[i] = Key{ID: k.ID, Value: v}
	}
	return out
}

// Keyring seals and opens. It is safe for concurrent use.
type Keyring struct {
	first string
	aeads map[string]cipher.AEAD
}

// NewKeyring makes a keyring for one purpose. The first key seals, all open.
// Errors: [ErrKey].
func NewKeyring(keys []Key, purpose string) (*Keyring, error) {
	if len(keys) == 0 {
		return nil, ErrKey
	}
	r := &Keyring{first: keys[0].ID, aeads: make(map[string]cipher.AEAD, len(keys))}
	for _, k := range Derive(keys, purpose) {
		block, err := aes.NewCipher(k.Value)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.ID, ErrKey)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("key %s: %w", k.ID, err)
		}
		r.aeads[k.ID] = aead
	}
	return r, nil
}

// Seal encrypts plaintext, bound to context (what it belongs to: it must be
// given again to open). The result is "id length, id, nonce and ciphertext".
func (r *Keyring) Seal(plaintext []byte, context string) []byte {
	out := make([]byte, 0, 1+len(r.first)+28+len(plaintext))
	out = append(out, byte(len(r.first))) //nolint:gosec // ids are six characters
	out = append(out, r.first...)
	return r.aeads[r.first].Seal(out, nil, plaintext, []byte(context))
}

// Open decrypts what Seal made with the same context. Errors: [ErrOpen].
func (r *Keyring) Open(sealed []byte, context string) ([]byte, error) {
	if len(sealed) < 1 || len(sealed) < 1+int(sealed[0]) {
		return nil, ErrOpen
	}
	n := int(sealed[0])
	aead, ok := r.aeads[string(sealed[1:1+n])]
	if !ok {
		return nil, fmt.Errorf("unknown key %q: %w", sealed[1:1+n], ErrOpen)
	}
	plain, err := aead.Open(nil, nil, sealed[1+n:], []byte(context))
	if err != nil {
		return nil, ErrOpen
	}
	return plain, nil
}

// MAC authenticates short messages with HMAC-SHA256. The first key signs,
// every one verifies. It is safe for concurrent use.
type MAC struct {
	pools []*sync.Pool
}

// NewMAC makes a MAC for one purpose. Errors: [ErrKey].
func NewMAC(keys []Key, purpose string) (*MAC, error) {
	if len(keys) == 0 {
		return nil, ErrKey
	}
	m := &MAC{}
	for _, k := range Derive(keys, purpose) {
		m.pools = append(m.pools, &sync.Pool{New: func() any { return hmac.New(sha256.New, k.Value) }})
	}
	return m, nil
}

// Sum appends the 32-byte tag of message under the active key to dst.
func (m *MAC) Sum(dst, message []byte) []byte { return m.sum(m.pools[0], dst, message) }

// Verify tells in constant time whether tag is the message's, under any key.
func (m *MAC) Verify(tag, message []byte) bool {
	ok := false
	for _, p := range m.pools {
		var buf [sha256.Size]byte
		ok = hmac.Equal(tag, m.sum(p, buf[:0], message)) || ok
	}
	return ok
}

func (m *MAC) sum(p *sync.Pool, dst, message []byte) []byte {
	h := p.Get().(hash.Hash) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	h.Reset()
	h.Write(message)
	dst = h.Sum(dst)
	p.Put(h)
	return dst
}
