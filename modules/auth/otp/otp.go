package otp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"strconv"
	"strings"
	"time"

	"versola/modules/auth/factor"
	"versola/modules/auth/message"
	"versola/modules/auth/pages"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/platform/secret"
)

// Name is the factor's name.
const Name = "otp"

const (
	// digits of a code: with maxTries and the limits per account, a guess has
	// a chance of 5 in a million an hour.
	digits = 6
	// codeTTL is the life of a code: long enough to fetch a phone.
	codeTTL = 5 * time.Minute
	// maxTries per code.
	maxTries = 5
	// resendAfter is how long the person waits before the next code: delivery
	// takes that long on a bad day.
	resendAfter = 60 * time.Second
	// maxTyped bounds what is looked at.
	maxTyped   = 64
	nonceBytes = 16
)

// Texts gives the words of messages.
type Texts interface {
	Get(locale, key string, pairs ...string) string
}

var _ Texts = (*pages.Texts)(nil)

// Options configure the factor.
type Options struct {
	// FakeCode makes every code this one: the demo's.
	FakeCode string
}

// Factor implements [factor.Factor].
type Factor struct {
	mac    *secret.MAC
	texts  Texts
	random io.Reader
	o      Options
	digits int
}

var _ factor.Factor = (*Factor)(nil)

// New makes the factor; tokens are the deployment's token keys.
func New(tokens []secret.Key, texts Texts, random io.Reader, o Options) (*Factor, error) {
	mac, err := secret.NewMAC(tokens, "otp")
	if err != nil {
		return nil, fmt.Errorf("make otp key: %w", err)
	}
	f := &Factor{mac: mac, texts: texts, random: random, o: o, digits: digits}
	if o.FakeCode != "" {
		if clean(o.FakeCode) != o.FakeCode || len(o.FakeCode) < 4 || len(o.FakeCode) > 10 {
			return nil, fmt.Errorf("fake code: want 4 to 10 digits")
		}
		f.digits = len(o.FakeCode)
	}
	return f, nil
}

// challenge is what the conversation keeps.
type challenge struct {
	MAC       []byte    `json:"mac"`
	Nonce     []byte    `json:"nonce"`
	SentAt    time.Time `json:"sent_at"`
	ExpiresAt time.Time `json:"expires_at"`
}

func read(state json.RawMessage) (challenge, error) {
	var ch challenge
	if len(state) == 0 {
		return ch, nil
	}
	if err := json.Unmarshal(state, &ch); err != nil {
		return ch, fmt.Errorf("read otp challenge: %w", err)
	}
	return ch, nil
}

// Name implements [factor.Factor].
func (*Factor) Name() string { return Name }

// Field implements [factor.Factor].
func (*Factor) Field() string { return "code" }

// CheckRules implements [factor.Factor].
func (*Factor) CheckRules() throttle.Rules { return throttle.OTPCheck }

// Begin makes a challenge and its message. A challenge that was just made is
// kept; asked for again too early, it is refused with the time to wait.
func (f *Factor) Begin(e factor.Entry) (factor.Begun, error) {
	ch, err := read(e.State)
	if err != nil {
		return factor.Begun{}, err
	}
	if wait := ch.SentAt.Add(resendAfter).Sub(e.Now); len(ch.MAC) > 0 && wait > 0 {
		if e.Again {
			return factor.Begun{Wait: wait}, nil
		}
		return factor.Begun{Keep: true}, nil
	}
	code, err := f.newCode()
	if err != nil {
		return factor.Begun{}, err
	}
	ch = challenge{Nonce: make([]byte, nonceBytes), SentAt: e.Now, ExpiresAt: e.Now.Add(codeTTL)}
	if _, err := io.ReadFull(f.random, ch.Nonce); err != nil {
		return factor.Begun{}, fmt.Errorf("read random bytes: %w", err)
	}
	ch.MAC = f.mac.Sum(nil, macInput(e.Conversation, ch.Nonce, code))
	state, err := json.Marshal(ch)
	if err != nil {
		return factor.Begun{}, fmt.Errorf("encode otp challenge: %w", err)
	}
	m := &message.Message{
		To: e.Identifier, Locale: e.Locale, Code: secret.Text(code),
		Text: f.texts.Get(e.Locale, "message.otp.text", "code", code, "client", e.Client, "minutes", strconv.Itoa(int(codeTTL.Minutes()))),
	}
	if e.Identifier.Kind == user.KindEmail {
		m.Subject = f.texts.Get(e.Locale, "message.otp.subject", "code", code)
	}
	return factor.Begun{State: state, Rules: throttle.OTPRequest, Message: m, Expires: ch.ExpiresAt}, nil
}

func (f *Factor) newCode() (string, error) {
	if f.o.FakeCode != "" {
		return f.o.FakeCode, nil
	}
	limit := big.NewInt(1)
	for range f.digits {
		limit.Mul(limit, big.NewInt(10))
	}
	n, err := rand.Int(f.random, limit)
	if err != nil {
		return "", fmt.Errorf("make one-time code: %w", err)
	}
	return fmt.Sprintf("%0*d", f.digits, n), nil
}

func macInput(conversation, nonce []byte, code string) []byte {
	return fmt.Appendf(nil, "%x|%x|%s", conversation, nonce, code)
}

// Check compares in constant time.
func (f *Factor) Check(_ context.Context, s factor.Submission) (factor.Verdict, error) {
	ch, err := read(s.State)
	if err != nil {
		return factor.Verdict{}, err
	}
	right := f.mac.Verify(ch.MAC, macInput(s.Conversation, ch.Nonce, clean(s.Proof)))
	switch {
	case len(ch.MAC) == 0, s.Tries >= maxTries, !s.Now.Before(ch.ExpiresAt):
		return factor.Verdict{Error: "error.code_spent", Spent: true}, nil
	case !right, !s.Subject.Active, s.Subject.ID.IsNil():
		return factor.Verdict{Error: "error.code"}, nil
	}
	return factor.Verdict{OK: true, AMR: []string{"otp"}}, nil
}

// clean drops what people type between digits. What is not a code comes back
// as something that matches none.
func clean(typed string) string {
	if len(typed) > maxTyped {
		return ""
	}
	var b strings.Builder
	for _, r := range typed {
		switch {
		case r >= '0' && r <= '9':
			b.WriteRune(r)
		case r == ' ', r == '-', r == '\u00a0':
		default:
			return ""
		}
	}
	return b.String()
}

// shown is the data of the page "otp".
type shown struct {
	Lead    string
	Address string
	Digits  int
	Wait    int // seconds until a new code may be asked for
	Others  []factor.Other
}

// Page implements [factor.Factor].
func (f *Factor) Page(s factor.Shown) (template, title string, data any) {
	d := shown{Lead: "otp.lead." + string(s.Identifier.Kind), Address: s.Identifier.Value, Digits: f.digits, Others: s.Others}
	if ch, err := read(s.State); err == nil && ch.SentAt.Add(resendAfter).After(s.Now) {
		d.Wait = pages.Seconds(ch.SentAt.Add(resendAfter).Sub(s.Now))
	}
	return "otp", "otp.title", d
}
