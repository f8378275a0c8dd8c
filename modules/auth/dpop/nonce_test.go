package dpop

import (
	"strings"
	"testing"
	"time"

	"versola/platform/clock"
	"versola/platform/secret"
)

func key(n byte) secret.Key {
	value := make([]byte, secret.KeyBytes)
	value[0] = n
	return secret.Key{ID: string('a' + rune(n)), Value: value}
}

func nonces(t testing.TB, c clock.Clock, keys ...secret.Key) *Nonces {
	t.Helper()
	n, err := NewNonces(c, keys)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestNonces_AreAcceptedByEveryProcessAndEndWithTheClock(t *testing.T) {
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	one, two := nonces(t, c, key(1)), nonces(t, c, key(1))
	nonce := one.Current()
	if again := one.Current(); again != nonce || two.Current() != nonce {
		t.Errorf("%q, %q and %q within one window", nonce, again, two.Current())
	}
	for range 2 {
		if !two.Valid(nonce) {
			t.Error("another process's nonce is refused")
		}
		c.Advance(window - time.Second)
	}
	if one.Current() == nonce {
		t.Error("a nonce is given out for more than a window")
	}
	c.Advance(window)
	if one.Valid(nonce) {
		t.Error("an old nonce is accepted")
	}
}

func TestNonces_OfAProcessWhoseClockIsALittleAhead(t *testing.T) {
	c, ahead := clock.NewFake(time.Unix(1_800_000_000, 0)), clock.NewFake(time.Unix(1_800_000_000, 0))
	ahead.Advance(window)
	if n := nonces(t, c, key(1)); !n.Valid(nonces(t, ahead, key(1)).Current()) {
		t.Error("a nonce of the next window is refused")
	}
	ahead.Advance(window)
	if n := nonces(t, c, key(1)); n.Valid(nonces(t, ahead, key(1)).Current()) {
		t.Error("a nonce of the window after is accepted")
	}
}

func TestNonces_SurviveTheRotationOfKeys(t *testing.T) {
	c := clock.NewFake(time.Unix(1_800_000_000, 0))
	old, both, fresh := nonces(t, c, key(1)), nonces(t, c, key(2), key(1)), nonces(t, c, key(2))
	if !both.Valid(old.Current()) || !both.Valid(fresh.Current()) || !fresh.Valid(both.Current()) {
		t.Error("a nonce of the deployment is refused")
	}
	if fresh.Valid(old.Current()) {
		t.Error("a nonce under a key that is gone is accepted")
	}
}

func TestNonces_ForgeriesAreRefused(t *testing.T) {
	n := nonces(t, clock.NewFake(time.Unix(1_800_000_000, 0)), key(1))
	good := n.Current()
	for _, forged := range []string{
		"", "x", strings.Repeat("A", len(good)), good[:len(good)-1], good + "A", good[1:] + "A", "B" + good[1:], good[:len(good)-1] + "\n",
		strings.ToLower(good), " " + good[1:], strings.Repeat("\x00", len(good)),
	} {
		if n.Valid(forged) {
			t.Errorf("%q is accepted", forged)
		}
	}
}

func FuzzValid(f *testing.F) {
	n := nonces(f, clock.NewFake(time.Unix(1_800_000_000, 0)), key(1))
	f.Add(n.Current())
	f.Fuzz(func(t *testing.T, text string) {
		if n.Valid(text) && text != n.Current() {
			t.Errorf("%q is accepted", text)
		}
	})
}
