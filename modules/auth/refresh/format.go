package refresh

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"math"
	"strings"

	"versola/platform/id"
	"versola/platform/secret"
)

// Layout of a token.
const (
	idBytes   = 16
	bodyBytes = 2*idBytes + 4
	macBytes  = 32
	// maxGeneration leaves room for a successor in the row's integer.
	maxGeneration = math.MaxInt32 - 1
)

var (
	encoding    = base64.RawURLEncoding.Strict()
	tokenLength = encoding.EncodedLen(bodyBytes + macBytes)
	// errForged is the cause of every refusal before the database.
	errForged = errors.New("not a refresh token of ours")
)

// Purpose is what the MAC's key is derived for.
const Purpose = "refresh-token"

// Token is a refresh token taken apart.
type Token struct {
	UserID     id.UUID
	GrantID    id.UUID
	Generation int32
}

// Format makes and reads refresh tokens.
type Format struct{ mac *secret.MAC }

// NewFormat makes a format from the deployment's token keys, the active first.
func NewFormat(keys []secret.Key) (*Format, error) {
	mac, err := secret.NewMAC(keys, Purpose)
	if err != nil {
		return nil, err
	}
	return &Format{mac}, nil
}

// String returns the token's text.
func (f *Format) String(t Token) string {
	buf := make([]byte, 0, bodyBytes+macBytes)
	buf = append(buf, t.UserID[:]...)
	buf = append(buf, t.GrantID[:]...)
	buf = binary.BigEndian.AppendUint32(buf, uint32(t.Generation)) //nolint:gosec // generations are positive
	buf = f.mac.Sum(buf, buf[:bodyBytes])
	return encoding.EncodeToString(buf)
}

// First returns the first token of a grant.
func (f *Format) First(userID, grantID id.UUID) string {
	return f.String(Token{UserID: userID, GrantID: grantID, Generation: 1})
}

// Parse reads a token that this deployment made; ok is false for anything else.
func (f *Format) Parse(text string) (t Token, ok bool) {
	if len(text) != tokenLength || strings.ContainsAny(text, "\r\n") {
		return Token{}, false
	}
	raw, err := encoding.DecodeString(text)
	if err != nil || len(raw) != bodyBytes+macBytes || !f.mac.Verify(raw[bodyBytes:], raw[:bodyBytes]) {
		return Token{}, false
	}
	generation := binary.BigEndian.Uint32(raw[2*idBytes:])
	if generation == 0 || generation > maxGeneration {
		return Token{}, false
	}
	copy(t.UserID[:], raw)
	copy(t.GrantID[:], raw[idBytes:])
	t.Generation = int32(generation) //nolint:gosec // bounded above
	return t, true
}
