package otp

import (
	"crypto/rand"
	"regexp"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/factor"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/id"
	"versola/platform/secret"
)

var (
	now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	who = user.Identifier{Kind: user.KindPhone, Value: "+77000000001"}
)

func newFactor(t *testing.T, o Options) *Factor {
	t.Helper()
	text, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeys([]secret.Text{text})
	if err != nil {
		t.Fatal(err)
	}
	f, err := New(keys, rand.Reader, o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func begin(t *testing.T, f *Factor, e factor.Entry) factor.Begun {
	t.Helper()
	e.Texts = texts.Product()
	b, err := f.Begin(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestBegin_MakesARandomCodeThatIsInTheMessageAlone(t *testing.T) {
	t.Parallel()
	f := newFactor(t, Options{})
	seen := map[string]bool{}
	for range 50 {
		b := begin(t, f, factor.Entry{Conversation: []byte("c"), Identifier: who, Locale: "en", Client: "Demo Bank", Now: now})
		code := b.Message.Code.Reveal()
		if !regexp.MustCompile(`^\d{6}$`).MatchString(code) {
			t.Fatalf("code %q", code)
		}
		if strings.Contains(string(b.State), code) || !strings.Contains(b.Message.Text, code) || !strings.Contains(b.Message.Text, "Demo Bank") {
			t.Errorf("state %s, text %q", b.State, b.Message.Text)
		}
		seen[code] = true
	}
	if len(seen) < 45 {
		t.Errorf("%d different codes of 50", len(seen))
	}
	mail := begin(t, f, factor.Entry{Identifier: user.Identifier{Kind: user.KindEmail, Value: "a@b.c"}, Locale: "ru", Now: now})
	if !strings.Contains(mail.Message.Subject, "Ваш код") {
		t.Errorf("subject %q", mail.Message.Subject)
	}
}

func TestCheck_Verdicts(t *testing.T) {
	t.Parallel()
	f := newFactor(t, Options{})
	b := begin(t, f, factor.Entry{Conversation: []byte("c"), Identifier: who, Locale: "en", Now: now})
	code := b.Message.Code.Reveal()
	good := factor.Submission{Conversation: []byte("c"), Subject: factor.Subject{ID: id.UUID{1}, Active: true}, State: b.State, Proof: code, Now: now}
	for name, k := range map[string]struct {
		change func(*factor.Submission)
		want   string // "": proven
	}{
		"right":                  {func(*factor.Submission) {}, ""},
		"right, with separators": {func(s *factor.Submission) { s.Proof = " " + code[:3] + "-" + code[3:] + " " }, ""},
		"right, at the last try": {func(s *factor.Submission) { s.Tries = 4 }, ""},
		"right, at the last moment": {func(s *factor.Submission) {
			s.Now = now.Add(catalog.DefaultOTPTTL - time.Microsecond)
		}, ""},
		"wrong":                   {func(s *factor.Submission) { s.Proof = code[1:] + "x" }, "error.code"},
		"empty":                   {func(s *factor.Submission) { s.Proof = "" }, "error.code"},
		"longer":                  {func(s *factor.Submission) { s.Proof = code + "0" }, "error.code"},
		"other digits":            {func(s *factor.Submission) { s.Proof = "١٢٣٤٥٦" }, "error.code"},
		"huge":                    {func(s *factor.Submission) { s.Proof = strings.Repeat(code, 1000) }, "error.code"},
		"of nobody":               {func(s *factor.Submission) { s.Subject = factor.Subject{} }, "error.code"},
		"of a disabled person":    {func(s *factor.Submission) { s.Subject.Active = false }, "error.code"},
		"of another conversation": {func(s *factor.Submission) { s.Conversation = []byte("d") }, "error.code"},
		"tried too often":         {func(s *factor.Submission) { s.Tries = 5 }, "error.code_spent"},
		"too late":                {func(s *factor.Submission) { s.Now = now.Add(catalog.DefaultOTPTTL) }, "error.code_spent"},
		"without a challenge":     {func(s *factor.Submission) { s.State = nil }, "error.code_spent"},
	} {
		s := good
		k.change(&s)
		v, err := f.Check(t.Context(), s)
		if err != nil || v.OK != (k.want == "") || v.Error != k.want {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
	}
}

func TestBegin_KeepsAYoungChallengeAndRefusesToHurry(t *testing.T) {
	t.Parallel()
	f := newFactor(t, Options{})
	first := begin(t, f, factor.Entry{Identifier: who, Locale: "en", Now: now})
	e := factor.Entry{Identifier: who, Locale: "en", State: first.State, Now: now.Add(59 * time.Second)}
	if b := begin(t, f, e); !b.Keep || b.Message != nil {
		t.Errorf("coming back: %+v", b)
	}
	e.Again = true
	if b := begin(t, f, e); b.Wait != time.Second || b.Message != nil {
		t.Errorf("asking again: %+v", b)
	}
	e.Now = now.Add(time.Minute)
	if b := begin(t, f, e); b.Message == nil || string(b.State) == string(first.State) {
		t.Errorf("a minute later: %+v", b)
	}
}

func TestNew_RefusesAFakeCodeThatIsNone(t *testing.T) {
	t.Parallel()
	text, _ := secret.GenerateKey(rand.Reader)
	keys, _ := secret.ParseKeys([]secret.Text{text})
	for _, bad := range []string{"123", "12345678901", "12a456", "123 456", " "} {
		if _, err := New(keys, rand.Reader, Options{FakeCode: bad}); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func TestBegin_LengthAndLifeAreTheTenants(t *testing.T) {
	t.Parallel()
	settings := &catalog.TenantSettings{OTP: &catalog.OTPSettings{Length: 8, TTL: catalog.Duration(90 * time.Second)}}
	f := newFactor(t, Options{})
	b := begin(t, f, factor.Entry{Conversation: []byte("c"), Identifier: who, Locale: "en", Settings: settings, Now: now})
	if code := b.Message.Code.Reveal(); len(code) != 8 {
		t.Errorf("code %q, want 8 digits", code)
	}
	if want := now.Add(90 * time.Second); !b.Expires.Equal(want) || !strings.Contains(b.Message.Text, "1 min.") {
		t.Errorf("expires %s, want %s; says %q", b.Expires, want, b.Message.Text)
	}
	// The page is for the code that was sent, whatever was configured since.
	_, _, data := f.Page(factor.Shown{Identifier: who, State: b.State, Now: now})
	if got := data.(shown).Digits; got != 8 {
		t.Errorf("the page asks for %d digits", got)
	}
	fake := newFactor(t, Options{FakeCode: "123456"})
	if code := begin(t, fake, factor.Entry{Identifier: who, Settings: settings, Now: now}).Message.Code.Reveal(); code != "123456" {
		t.Errorf("the fake code is %q", code)
	}
}
