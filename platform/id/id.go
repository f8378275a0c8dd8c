package id

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"
)

// UUID is a 16-byte identifier. pgx reads and writes it as uuid.
type UUID [16]byte

// Nil is the UUID of zeros; it names nothing.
var Nil UUID

// ErrMalformed reports a text that is not a UUID in its canonical form.
var ErrMalformed = errors.New("malformed uuid")

// NewUUID returns a version 7 UUID: 48 bits of milliseconds, then random bits
// from random. It panics when random fails, since nothing can go on then.
func NewUUID(now time.Time, random io.Reader) UUID {
	var u UUID
	read(random, u[6:])
	ms := uint64(now.UnixMilli())
	binary.BigEndian.PutUint16(u[0:2], uint16(ms>>32&0xffff))
	binary.BigEndian.PutUint32(u[2:6], uint32(ms&0xffffffff))
	u[6] = u[6]&0x0f | 0x70
	u[8] = u[8]&0x3f | 0x80
	return u
}

// ParseUUID reads the canonical form: 8-4-4-4-12 lower- or upper-case
// hexadecimal digits. Errors: [ErrMalformed].
func ParseUUID(s string) (UUID, error) {
	var u UUID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return Nil, ErrMalformed
	}
	compact := s[0:8] + s[9:13] + s[14:18] + s[19:23] + s[24:36]
	if _, err := hex.Decode(u[:], []byte(compact)); err != nil {
		return Nil, ErrMalformed
	}
	return u, nil
}

// String returns the canonical lower-case form.
func (u UUID) String() string {
	var b [36]byte
	hex.Encode(b[0:8], u[0:4])
	b[8] = '-'
	hex.Encode(b[9:13], u[4:6])
	b[13] = '-'
	hex.Encode(b[14:18], u[6:8])
	b[18] = '-'
	hex.Encode(b[19:23], u[8:10])
	b[23] = '-'
	hex.Encode(b[24:36], u[10:16])
	return string(b[:])
}

// MarshalText implements encoding.TextMarshaler.
func (u UUID) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (u *UUID) UnmarshalText(text []byte) error {
	parsed, err := ParseUUID(string(text))
	if err != nil {
		return fmt.Errorf("read uuid: %w", err)
	}
	*u = parsed
	return nil
}

// Time returns when a version 7 UUID was made, to the millisecond.
func (u UUID) Time() time.Time {
	ms := uint64(binary.BigEndian.Uint16(u[0:2]))<<32 | uint64(binary.BigEndian.Uint32(u[2:6]))
	return time.UnixMilli(int64(ms)).UTC() //nolint:gosec // 48 bits
}

// Ordered tells whether u is of version 7, and so states when it was made.
func (u UUID) Ordered() bool { return u[6]>>4 == 7 }

// IsNil tells whether u names nothing.
func (u UUID) IsNil() bool { return u == Nil }

// HandleBytes is the size of a handle: 256 bits, so that guessing is hopeless
// whatever the rate.
const HandleBytes = 32

// NewHandle returns 256 random bits in base64url without padding (43
// characters).
func NewHandle(random io.Reader) string {
	var b [HandleBytes]byte
	read(random, b[:])
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// Short returns n random bytes in base64url, for identifiers that need to be
// unique but not secret (a request id, a jti).
func Short(random io.Reader, n int) string {
	b := make([]byte, n)
	read(random, b)
	return base64.RawURLEncoding.EncodeToString(b)
}

func read(random io.Reader, b []byte) {
	if _, err := io.ReadFull(random, b); err != nil {
		panic(fmt.Sprintf("read random bytes: %v", err))
	}
}
