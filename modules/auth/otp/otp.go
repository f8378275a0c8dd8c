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
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/secret"
)

// Name is the factor's name.
const Name = "otp"

const (
	// defaultDigits of a code: with defaultTries and the limits per account, a
	// guess has a chance of 5 in a million an hour.
	defaultDigits = 6
	// defaultTries per code.
	defaultTries = 5
	// defaultResend is how long the person waits before the next code: delivery
	// takes that long on a bad day.
	defaultResend = 60 * time.Second
	// maxTyped bounds what is looked at.
	maxTyped   = 64
	nonceBytes = 16
)

// Options configure the factor.
type Options struct {
	// FakeCode makes every code this one: the demo's.
	FakeCode string
}

// Factor implements [factor.Factor].
type Factor struct {
	mac    *secret.MAC
	random io.Reader
	o      Options
}

var _ factor.Factor = (*Factor)(nil)

// New makes the factor; tokens are the deployment's token keys.
func New(tokens []secret.Key, random io.Reader, o Options) (*Factor, error) {
	mac, err := secret.NewMAC(tokens, "otp")
	if err != nil {
		return nil, fmt.Errorf("make otp key: %w", err)
	}
	f := &Factor{mac: mac, random: random, o: o}
	if o.FakeCode != "" {
		if clean(o.FakeCode) != o.FakeCode || len(o.FakeCode) < 4 || len(o.FakeCode) > 10 {
			return nil, fmt.Errorf("fake code: want 4 to 10 digits")
		}
	}
	return f, nil
}

// terms are a tenant's settings with the product's defaults.
type terms struct {
	digits, tries int
	ttl, resend   time.Duration
}

// terms returns what holds for a tenant. The fake code has the length that it
// has.
func (f *Factor) terms(s *catalog.TenantSettings) terms {
	t := terms{defaultDigits, defaultTries, catalog.DefaultOTPTTL, defaultResend}
	if s != nil && s.OTP != nil {
		if s.OTP.Length > 0 {
			t.digits = int(s.OTP.Length)
		}
		if s.OTP.Attempts > 0 {
			t.tries = int(s.OTP.Attempts)
		}
		t.ttl, t.resend = s.OTP.TTL.D(t.ttl), s.OTP.Resend.D(t.resend)
	}
	if f.o.FakeCode != "" {
		t.digits = len(f.o.FakeCode)
	}
	return t
}

// challenge is what the conversation keeps.
type challenge struct {
	MAC       []byte    `json:"mac"`
	Nonce     []byte    `json:"nonce"`
	Digits    int       `json:"digits"`
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
	terms := f.terms(e.Settings)
	if wait := ch.SentAt.Add(terms.resend).Sub(e.Now); len(ch.MAC) > 0 && wait > 0 {
		if e.Again {
			return factor.Begun{Wait: wait}, nil
		}
		return factor.Begun{Keep: true}, nil
	}
	code, err := f.newCode(terms.digits)
	if err != nil {
		return factor.Begun{}, err
	}
	ch = challenge{Nonce: make([]byte, nonceBytes), Digits: terms.digits, SentAt: e.Now, ExpiresAt: e.Now.Add(terms.ttl)}
	if _, err := io.ReadFull(f.random, ch.Nonce); err != nil {
		return factor.Begun{}, fmt.Errorf("read random bytes: %w", err)
	}
	ch.MAC = f.mac.Sum(nil, macInput(e.Conversation, ch.Nonce, code))
	state, err := json.Marshal(ch)
	if err != nil {
		return factor.Begun{}, fmt.Errorf("encode otp challenge: %w", err)
	}
	m := &message.Message{To: e.Identifier, Locale: e.Locale, Code: secret.Text(code)}
	channel := texts.SMS
	if e.Identifier.Kind == user.KindEmail {
		channel = texts.Email
	}
	m.Subject, m.Text = e.Texts.Message(e.Locale, Name, channel, "code", code, "client", e.Client, "minutes", strconv.Itoa(int(terms.ttl.Minutes())))
	return factor.Begun{State: state, Rules: throttle.OTPRequest, Message: m, Expires: ch.ExpiresAt}, nil
}

func (f *Factor) newCode(digits int) (string, error) {
	if f.o.FakeCode != "" {
		return f.o.FakeCode, nil
	}
	limit := big.NewInt(1)
	for range digits {
		limit.Mul(limit, big.NewInt(10))
	}
	n, err := rand.Int(f.random, limit)
	if err != nil {
		return "", fmt.Errorf("make one-time code: %w", err)
	}
	return fmt.Sprintf("%0*d", digits, n), nil
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
	case len(ch.MAC) == 0, s.Tries >= f.terms(s.Settings).tries, !s.Now.Before(ch.ExpiresAt):
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
	terms := f.terms(s.Settings)
	d := shown{Lead: "otp.lead." + string(s.Identifier.Kind), Address: s.Identifier.Value, Digits: terms.digits, Others: s.Others}
	ch, err := read(s.State)
	if err != nil {
		return "otp", "otp.title", d
	}
	if ch.Digits > 0 {
		d.Digits = ch.Digits // the code that was sent, whatever was configured since
	}
	if next := ch.SentAt.Add(terms.resend); next.After(s.Now) {
		d.Wait = texts.Seconds(next.Sub(s.Now))
	}
	return "otp", "otp.title", d
}
