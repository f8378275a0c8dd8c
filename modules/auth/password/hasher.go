package password

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"

	"versola/platform/secret"
)

// Parameters of new hashes: the second recommendation of OWASP's password
// storage advice (19 MiB, two passes, one lane).
const (
	memoryKiB = 19 * 1024
	passes    = 2
	lanes     = 1
	saltBytes = 16 // RFC 9106 section 3.1
	tagBytes  = 32
)

// Bounds of what is verified: a hash that was written by someone else must not
// be able to exhaust the machine.
const (
	maxMemoryKiB = 128 * 1024
	maxPasses    = 10
	maxLanes     = 8
	maxPHC       = 512
)

// Bounds of the queue.
const (
	// waitMost is how long a person waits for their turn; beyond it "try again"
	// is the kinder answer.
	waitMost = 2 * time.Second
	// queuePerSlot keeps the queue about as long as waitMost at 25 ms a hash.
	queuePerSlot = 80
)

// Bounds of a password.
const (
	// MinLength is NIST SP 800-63B's minimum, in characters.
	MinLength = 8
	// MaxLength leaves room for long passphrases, in characters.
	MaxLength = 256
	// maxBytes bounds the work of hashing the input itself.
	maxBytes = 1024
)

// Errors of the hasher.
var (
	// ErrBusy: too many passwords are being checked. It wraps
	// os.ErrDeadlineExceeded, which makes the answer 503 with Retry-After.
	ErrBusy = fmt.Errorf("too many passwords are being checked: %w", os.ErrDeadlineExceeded)
	// ErrLength: a password outside MinLength to MaxLength.
	ErrLength = fmt.Errorf("a password has %d to %d characters", MinLength, MaxLength)
	// ErrFormat: not a hash that this package knows.
	ErrFormat = errors.New("not an argon2id hash in PHC format within the limits")
)

// Hasher hashes passwords. It is safe for concurrent use.
type Hasher struct {
	pepper []byte
	random io.Reader
	slots  chan struct{}
	queue  chan struct{}
	large  chan struct{} // one check at a time may take more memory than ours
	wait   time.Duration
	dummy  phc
}

// NewHasher makes a hasher; random makes salts.
func NewHasher(pepper secret.Text, random io.Reader) (*Hasher, error) {
	if pepper.Empty() {
		return nil, errors.New("make password hasher: the pepper is empty")
	}
	return newHasher(pepper, random, slotsFor(runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)), waitMost)
}

func newHasher(pepper secret.Text, random io.Reader, slots int, wait time.Duration) (*Hasher, error) {
	h := &Hasher{
		pepper: []byte(pepper.Reveal()), random: random, wait: wait,
		slots: make(chan struct{}, slots), queue: make(chan struct{}, slots*(1+queuePerSlot)), large: make(chan struct{}, 1),
		dummy: phc{memory: memoryKiB, passes: passes, lanes: lanes, salt: make([]byte, saltBytes), tag: make([]byte, tagBytes)},
	}
	// A tag that nothing hashes to.
	if _, err := io.ReadFull(random, h.dummy.tag); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return h, nil
}

// slotsFor leaves one processor to everything else and uses at most a quarter
// of the memory limit.
func slotsFor(processors int, memoryLimit int64) int {
	n := max(1, processors-1)
	if memoryLimit < math.MaxInt64 {
		n = min(n, max(1, int(memoryLimit/4/(memoryKiB*1024))))
	}
	return n
}

// CheckLength tells whether a password may be chosen. Errors: [ErrLength].
func CheckLength(plain string) error {
	n := utf8.RuneCountInString(plain)
	if n < MinLength || n > MaxLength || len(plain) > maxBytes {
		return ErrLength
	}
	return nil
}

// Hash returns the PHC string of a new password. Errors: [ErrLength],
// [ErrBusy], ctx's.
func (h *Hasher) Hash(ctx context.Context, plain string) (string, error) {
	if err := CheckLength(plain); err != nil {
		return "", err
	}
	p := phc{memory: memoryKiB, passes: passes, lanes: lanes, salt: make([]byte, saltBytes)}
	if _, err := io.ReadFull(h.random, p.salt); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	tag, err := h.compute(ctx, p, plain, tagBytes)
	if err != nil {
		return "", err
	}
	p.tag = tag
	return p.String(), nil
}

// Verify tells whether plain is the hash's password, and whether the hash wants
// to be renewed because its parameters are not today's or another system made
// it. Errors: [ErrFormat], [ErrBusy], ctx's.
func (h *Hasher) Verify(ctx context.Context, hash, plain string) (ok, needsUpgrade bool, err error) {
	if theirs, imported := strings.CutPrefix(hash, importedPrefix); imported {
		ok, err = h.verifyForeign(ctx, theirs, plain)
		return ok, ok, err
	}
	p, err := parsePHC(hash)
	if err != nil {
		return false, false, err
	}
	if ok, err = h.verify(ctx, p, plain); err != nil {
		return false, false, err
	}
	return ok, ok && p.outdated(), nil
}

// VerifyNothing takes as long as Verify and never succeeds.
func (h *Hasher) VerifyNothing(ctx context.Context, plain string) error {
	_, err := h.verify(ctx, h.dummy, plain)
	return err
}

func (h *Hasher) verify(ctx context.Context, p phc, plain string) (bool, error) {
	// An over-long guess is cut, not refused early: no password is that long,
	// and the answer takes as long as any other.
	over := len(plain) > maxBytes
	if over {
		plain = plain[:maxBytes]
	}
	tag, err := h.compute(ctx, p, plain, len(p.tag))
	if err != nil {
		return false, err
	}
	return secret.Equal(tag, p.tag) && !over, nil
}

// verifyForeign checks a hash that another system made: without the pepper.
func (h *Hasher) verifyForeign(ctx context.Context, text, plain string) (ok bool, err error) {
	f, err := parseForeign(text)
	if err != nil {
		return false, fmt.Errorf("%w: %w", ErrFormat, err)
	}
	over := len(plain) > maxBytes
	if over {
		plain = plain[:maxBytes]
	}
	err = h.turn(ctx, f.memory > memoryKiB<<10, func() { ok = f.matches([]byte(plain)) && !over })
	return ok, err
}

// compute waits for its turn and hashes.
func (h *Hasher) compute(ctx context.Context, p phc, plain string, length int) (tag []byte, err error) {
	mac := hmac.New(sha256.New, h.pepper)
	mac.Write([]byte(plain))
	err = h.turn(ctx, p.memory > memoryKiB, func() {
		tag = argon2.IDKey(mac.Sum(nil), p.salt, p.passes, p.memory, p.lanes, uint32(length)) //nolint:gosec // at most 64
	})
	return tag, err
}

// turn runs work when it is its turn. The number of slots is made for the
// memory of today's parameters; work that takes more runs one at a time.
func (h *Hasher) turn(ctx context.Context, large bool, work func()) error {
	select {
	case h.queue <- struct{}{}:
	default:
		return ErrBusy
	}
	defer func() { <-h.queue }()
	timer := time.NewTimer(h.wait)
	defer timer.Stop()
	places := []chan struct{}{h.slots}
	if large {
		places = []chan struct{}{h.large, h.slots}
	}
	for _, place := range places {
		select {
		case place <- struct{}{}:
			defer func() { <-place }()
		case <-timer.C:
			return ErrBusy
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	work()
	return nil
}

// phc is a parsed PHC string.
type phc struct {
	memory uint32 // KiB
	passes uint32
	lanes  uint8
	salt   []byte
	tag    []byte
}

func (p phc) outdated() bool {
	return p.memory != memoryKiB || p.passes != passes || p.lanes != lanes || len(p.salt) != saltBytes || len(p.tag) != tagBytes
}

// String returns the PHC string.
func (p phc) String() string {
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, p.memory, p.passes, p.lanes, b64.EncodeToString(p.salt), b64.EncodeToString(p.tag))
}

func parsePHC(text string) (phc, error) {
	parts := strings.Split(text, "$")
	if len(text) > maxPHC || len(parts) != 6 || parts[0] != "" || parts[1] != "argon2id" || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return phc{}, ErrFormat
	}
	var p phc
	if _, err := fmt.Sscanf(parts[3], "m=%d,t=%d,p=%d", &p.memory, &p.passes, &p.lanes); err != nil {
		return phc{}, fmt.Errorf("%w: parameters", ErrFormat)
	}
	var err error
	if p.salt, err = base64.RawStdEncoding.Strict().DecodeString(parts[4]); err != nil {
		return phc{}, fmt.Errorf("%w: salt", ErrFormat)
	}
	if p.tag, err = base64.RawStdEncoding.Strict().DecodeString(parts[5]); err != nil {
		return phc{}, fmt.Errorf("%w: tag", ErrFormat)
	}
	switch {
	case p.memory < 8*uint32(p.lanes), p.memory > maxMemoryKiB, p.passes < 1, p.passes > maxPasses, p.lanes < 1, p.lanes > maxLanes,
		len(p.salt) < 8, len(p.salt) > 64, len(p.tag) < 16, len(p.tag) > 64:
		return phc{}, ErrFormat
	}
	return p, nil
}
