package dpop

import (
	"encoding/base64"
	"encoding/binary"
	"strings"
	"sync/atomic"
	"time"

	"versola/platform/clock"
	"versola/platform/secret"
)

const (
	// purpose is what the nonces' key is derived for.
	purpose = "dpop-nonce"
	// window is how long a nonce is given out. It is accepted in the next
	// window too, so for two to four minutes: long enough that a client in use
	// seldom has to try again, short enough that proofs made in advance are of
	// no use.
	window = 2 * time.Minute
	// windowBytes is the size of a window's number, macBytes of the MAC.
	windowBytes = 8
	macBytes    = 32
)

var (
	encoding    = base64.RawURLEncoding.Strict()
	nonceLength = encoding.EncodedLen(windowBytes + macBytes)
)

// Nonces gives nonces out and recognizes them. It is safe for concurrent use.
type Nonces struct {
	clock clock.Clock
	mac   *secret.MAC
	last  atomic.Pointer[minted]
}

type minted struct {
	window uint64
	text   string
}

// NewNonces makes nonces under the deployment's token keys, the active first.
func NewNonces(c clock.Clock, keys []secret.Key) (*Nonces, error) {
	mac, err := secret.NewMAC(keys, purpose)
	if err != nil {
		return nil, err
	}
	return &Nonces{clock: c, mac: mac}, nil
}

func (n *Nonces) window() uint64 {
	return uint64(n.clock.Now().Unix()) / uint64(window/time.Second) //nolint:gosec // no clock is before 1970
}

// Current returns the nonce that is given out now.
func (n *Nonces) Current() string {
	w := n.window()
	if last := n.last.Load(); last != nil && last.window == w {
		return last.text
	}
	buf := make([]byte, 0, windowBytes+macBytes)
	buf = binary.BigEndian.AppendUint64(buf, w)
	text := encoding.EncodeToString(n.mac.Sum(buf, buf))
	n.last.Store(&minted{w, text})
	return text
}

// Valid tells whether a nonce is of this deployment and still counts. One of
// the next window does: another process's clock may be a little ahead.
func (n *Nonces) Valid(text string) bool {
	if len(text) != nonceLength || strings.ContainsAny(text, "\r\n") {
		return false
	}
	raw, err := encoding.DecodeString(text)
	if err != nil || !n.mac.Verify(raw[windowBytes:], raw[:windowBytes]) {
		return false
	}
	given, now := binary.BigEndian.Uint64(raw), n.window()
	return given <= now+1 && now <= given+1
}
