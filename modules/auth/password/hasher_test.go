package password

import (
	"context"
	"crypto/rand"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/platform/httpserver"
	"versola/platform/secret"
)

func testHasher(t testing.TB, pepper string) *Hasher {
	t.Helper()
	h, err := newHasher(secret.Text(pepper), rand.Reader, 2, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestHasher_VerifiesItsOwnHashes(t *testing.T) {
	t.Parallel()
	h, ctx := testHasher(t, "pepper"), t.Context()
	for _, plain := range []string{"wonderland-demo-1", "пароль из слов", strings.Repeat("x", MaxLength), "with\x00zero", "  spaces  "} {
		hash, err := h.Hash(ctx, plain)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
			t.Errorf("hash %s", hash)
		}
		if ok, upgrade, err := h.Verify(ctx, hash, plain); !ok || upgrade || err != nil {
			t.Errorf("%q: %v %v %v", plain, ok, upgrade, err)
		}
		if ok, _, err := h.Verify(ctx, hash, plain+"x"); ok || err != nil {
			t.Errorf("%q and more: %v %v", plain, ok, err)
		}
		if ok, _, err := testHasher(t, "other pepper").Verify(ctx, hash, plain); ok || err != nil {
			t.Errorf("under another pepper: %v %v", ok, err)
		}
		again, err := h.Hash(ctx, plain)
		if err != nil || again == hash {
			t.Errorf("two hashes are equal: %v", err)
		}
	}
}

func TestHasher_LengthLimits(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	for _, plain := range []string{"", "1234567", strings.Repeat("x", MaxLength+1), strings.Repeat("\U0001F600", MaxLength+1)} {
		if _, err := h.Hash(t.Context(), plain); !errors.Is(err, ErrLength) {
			t.Errorf("%d bytes: %v", len(plain), err)
		}
	}
	hash, err := h.Hash(t.Context(), strings.Repeat("\U0001F600", MaxLength))
	if err != nil {
		t.Fatal(err)
	}
	// Longer than any password, with a password as its beginning.
	if ok, _, err := h.Verify(t.Context(), hash, strings.Repeat("\U0001F600", MaxLength)+strings.Repeat("x", 5000)); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestHasher_AsksForAnUpgradeWhenParametersDiffer(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	p := phc{memory: 8 * 1024, passes: 1, lanes: 1, salt: []byte("0123456789abcdef")}
	tag, err := h.compute(t.Context(), p, "old password", tagBytes)
	if err != nil {
		t.Fatal(err)
	}
	p.tag = tag
	if ok, upgrade, err := h.Verify(t.Context(), p.String(), "old password"); !ok || !upgrade || err != nil {
		t.Errorf("%v %v %v", ok, upgrade, err)
	}
	if ok, upgrade, err := h.Verify(t.Context(), p.String(), "not it"); ok || upgrade || err != nil {
		t.Errorf("%v %v %v", ok, upgrade, err)
	}
}

func TestHasher_RefusesForeignAndRuinousHashes(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	const tail = "$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, hash := range []string{"", "x", "$2b$12$abc", "$argon2i$v=19$m=19456,t=2,p=1" + tail, "$argon2id$v=16$m=19456,t=2,p=1" + tail,
		"$argon2id$v=19$m=4194304,t=2,p=1" + tail, "$argon2id$v=19$m=19456,t=1000,p=1" + tail, "$argon2id$v=19$m=19456,t=2,p=0" + tail,
		"$argon2id$v=19$m=19456,t=0,p=1" + tail, "$argon2id$v=19$m=1,t=2,p=1" + tail, "$argon2id$v=19$m=-1,t=2,p=1" + tail,
		"$argon2id$v=19$m=19456,t=2,p=1$AA$AAAA", "$argon2id$v=19$m=19456,t=2,p=1$" + strings.Repeat("A", 2000) + "$AAAA",
		"$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$", "$argon2id$v=19$m=19456,t=2,p=1$%%%%$AAAA"} {
		if ok, _, err := h.Verify(t.Context(), hash, "x"); ok || !errors.Is(err, ErrFormat) {
			t.Errorf("%.60s: %v %v", hash, ok, err)
		}
	}
}

func TestHasher_BeyondItsQueueAnswersBusy(t *testing.T) {
	t.Parallel()
	h, err := newHasher("pepper", rand.Reader, 1, 20*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	h.slots <- struct{}{} // somebody hashes for long
	if err := h.VerifyNothing(t.Context(), "x"); !errors.Is(err, ErrBusy) || !httpserver.Unavailable(err) {
		t.Errorf("past the deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.VerifyNothing(ctx, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("hung up: %v", err)
	}
	for range cap(h.queue) {
		h.queue <- struct{}{}
	}
	if err := h.VerifyNothing(t.Context(), "x"); !errors.Is(err, ErrBusy) {
		t.Errorf("a full queue: %v", err)
	}
}

func TestHasher_NeverRunsMoreThanItsSlots(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := h.VerifyNothing(t.Context(), "x"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(h.slots) != 0 || len(h.queue) != 0 {
		t.Errorf("%d slots and %d places are still taken", len(h.slots), len(h.queue))
	}
}

func TestSlots_FollowProcessorsAndMemory(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		processors int
		memory     int64
		want       int
	}{{1, math.MaxInt64, 1}, {2, math.MaxInt64, 1}, {8, math.MaxInt64, 7}, {8, 256 << 20, 3}, {8, 16 << 20, 1}} {
		if got := slotsFor(k.processors, k.memory); got != k.want {
			t.Errorf("slotsFor(%d, %d) = %d, want %d", k.processors, k.memory, got, k.want)
		}
	}
}

func FuzzParsePHC(f *testing.F) {
	f.Add("$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := parsePHC(text)
		if err != nil {
			return
		}
		if again, err := parsePHC(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("not stable: %q, %v", text, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	h := testHasher(b, "pepper")
	b.ReportAllocs()
	for b.Loop() {
		if err := h.VerifyNothing(b.Context(), "wonderland-demo-1"); err != nil {
			b.Fatal(err)
		}
	}
}
