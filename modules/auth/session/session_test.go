package session_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"

	"versola/modules/auth/session"
	"versola/platform/id"
)

func TestCookie_ReadsBackAndRefusesEverythingElse(t *testing.T) {
	t.Parallel()
	s, err := session.NewSecret(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := session.Cookie{UserID: id.UUID{1}, SessionID: id.UUID{2}, Secret: s}
	got, ok := session.ParseCookie(c.String())
	if !ok || got.UserID != c.UserID || got.SessionID != c.SessionID || !bytes.Equal(got.Hash(), c.Hash()) {
		t.Errorf("read back %v, %v", got, ok)
	}
	nobody := session.Cookie{Secret: s}
	for name, value := range map[string]string{
		"empty": "", "cut": c.String()[1:], "longer": c.String() + "A", "padded": c.String() + "=", "standard alphabet": strings.Repeat("+", len(c.String())),
		"nobody's": nobody.String(), "loose bits": c.String()[:len(c.String())-1] + "_", "garbage": strings.Repeat("\xff", len(c.String())), "huge": strings.Repeat("A", 1<<20),
	} {
		if _, ok := session.ParseCookie(value); ok {
			t.Errorf("%s is read", name)
		}
	}
}

func FuzzParseCookie(f *testing.F) {
	f.Add(session.Cookie{UserID: id.UUID{1}, SessionID: id.UUID{2}, Secret: make([]byte, 32)}.String())
	f.Fuzz(func(t *testing.T, value string) {
		if c, ok := session.ParseCookie(value); ok && c.String() != value {
			t.Errorf("%q reads as %q", value, c.String())
		}
	})
}
