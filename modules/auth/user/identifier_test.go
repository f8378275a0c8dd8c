package user_test

import (
	"strings"
	"testing"

	"versola/modules/auth/user"
)

func TestParsePhone_NormalisesSeparatorsAndGuessesNothing(t *testing.T) {
	t.Parallel()
	good := map[string]string{
		"+77000000001":         "+77000000001",
		" +7 (700) 000-00-01 ": "+77000000001",
		"+44.20.7946.0018":     "+442079460018",
		"+1234567":             "+1234567",
		"+123456789012345":     "+123456789012345",
	}
	for in, want := range good {
		if got, err := user.ParsePhone(in); err != nil || got != want {
			t.Errorf("ParsePhone(%q) = %q, %v; want %q", in, got, err, want)
		}
	}
	bad := []string{"", "+", "87000000001", "77000000001", "++77000000001", "+0123456789", "+123456", "+1234567890123456",
		"+7700000000a", "+7700000000\x00", "+7700000000\n1", "+٧٧٠٠٠٠٠٠٠٠١", "+7;ext=1", "\xff\xfe", "+" + strings.Repeat(" ", 400) + "77000000001"}
	for _, in := range bad {
		if got, err := user.ParsePhone(in); err == nil {
			t.Errorf("ParsePhone(%q) = %q, want an error", in, got)
		}
	}
}

func TestParseEmail_AcceptsAddressesAndRefusesWhatBreaksHeaders(t *testing.T) {
	t.Parallel()
	for _, in := range []string{"alice@example.com", " Alice@Example.COM ", "a+b@sub.example.org", "имя@почта.рф", "o'neil@example.ie"} {
		if got, err := user.ParseEmail(in); err != nil || got != strings.TrimSpace(in) {
			t.Errorf("ParseEmail(%q) = %q, %v", in, got, err)
		}
	}
	bad := []string{"", "@", "a@", "@b", "a b@c.de", "a@b c", "a@b@c.de", "a\r\nBcc: x@y.z@c.de", "a@c.de\x00", "a\u200b@c.de", "<a@c.de>", "a@-c.de",
		"a@c..de", ".a@c.de", "a.@c.de", "a@c.de.", "a@[127.0.0.1]", "a@c_d.de", "\xff@c.de", strings.Repeat("a", 65) + "@c.de", "a@" + strings.Repeat("b.", 130) + "de"}
	for _, in := range bad {
		if got, err := user.ParseEmail(in); err == nil {
			t.Errorf("ParseEmail(%q) = %q, want an error", in, got)
		}
	}
}

func TestIdentifier_MaskedHidesTheMiddle(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"+77000000001": "+77***01", "alice@example.com": "a***@example.com"} {
		i, err := user.ParseIdentifier(in)
		if err != nil {
			t.Fatal(err)
		}
		if got := i.Masked(); got != want {
			t.Errorf("Masked(%q) = %q, want %q", in, got, want)
		}
	}
}

func FuzzParseIdentifier(f *testing.F) {
	f.Add("+77000000001")
	f.Add("alice@example.com")
	f.Fuzz(func(t *testing.T, in string) {
		i, err := user.ParseIdentifier(in)
		if err != nil {
			return
		}
		again, err := user.ParseIdentifier(i.Value)
		if err != nil || again != i {
			t.Errorf("not stable: %q -> %v -> %v, %v", in, i, again, err)
		}
		_ = i.Masked()
	})
}
