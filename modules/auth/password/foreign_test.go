package password

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"
)

// foreignHashes were made by other implementations: bcrypt and argon2-cffi of
// Python, passlib, and the test of libsodium for $7$.
var foreignHashes = map[string][]string{
	"correct horse": {
		"$2b$04$8jLHUi350Tf8bkfT0blfx.APDFJbfY6p8j7lfFzPiW/xorWMAEQIm",
		"$2a$04$vgU3p8cCWugE6gJ5A5ZIUuGfipCXR3GL1r4CLYQyIaA1V5jskmO82",
		"$2y$04$vgU3p8cCWugE6gJ5A5ZIUuGfipCXR3GL1r4CLYQyIaA1V5jskmO82",
		"$scrypt$ln=10,r=8,p=1$XMu517qXco4RAmCMEUIIAQ$xlH8KK5b0Yyc6hqmn4Br5itPCkOzqNyPGvueemgG3TU",
		"$pbkdf2$1000$/58zBkDIWQtBqHUu5fyfcw$k8MEhNhH1VZLXlxAlJ6m9RVCSUk",
		"$pbkdf2-sha256$1000$59w7x3jPec/5H.N8T4kRIg$CnJYRiUIbH3Ejp5ZOtMv8h0WnAC/e1c5brQN13yhKRg",
		"$pbkdf2-sha512$1000$H.PcG4PwXsuZEwKgtBZC6A$/iJcLXvuaLdbcc.QpXx.1B0SLiNUPLhWUHayV5yHweHWEaWYVRrPXO.BoHTPPmX9Q4T/puwvvuHldH7rP39Sbg",
		"$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHQ$qQDPSZa3Ormyy9oK1Pu0ZLLwP2Svzmx3yu8OvDdq/J0",
		"$pbkdf2-sha256$i=1000$c2FsdHNhbHQ$qQDPSZa3Ormyy9oK1Pu0ZLLwP2Svzmx3yu8OvDdq/J0",
		"pbkdf2_sha256$1000$IoqndHqE8M7v$rJ7rX7sha+0vBXSAUdqhoLb1BW52G3VFnE3dRv+W9rU=",
		"pbkdf2_sha1$1000$K591FkFvPUof$yurOEp83Xgc44PHvGA9qWHZMaB4=",
		"$argon2i$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$BrUsllZA4ImdTPqwHI7P3WZCwiVVBBXuuTIuEbrDn+4",
		"$argon2d$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$0H6hCaKdR3lvhGk6GrlxIQKxCu8aipO6pTRBGZQeAzw",
		"$argon2id$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$USEex5GkBPi8iVdvcybwmsgcBlH/R42wvXzlHd+3IB0",
		"$argon2d$v=19$m=64,t=1,p=1$c29tZXNhbHQ$a0JUXmCYdLLv4rN/L2am7iveYQ35VgHH54F+NHWyoNJPTSezocbHQZ1AAEwEZjHvn2YIoQPFy6DnLexhtDNZbA",
		"$argon2d$v=19$m=1024,t=2,p=3$c29tZXNhbHRzb21lc2FsdA$HuJjectS3zfEc9wsSzsd6Q",
	},
	"pleaseletmein": {"$7$C6..../....SodiumChloride$kBGj9fHznVYFQMEn/qDCfrDevf9YDtcDdKvEqHJLV8D"},
}

func TestForeign_HashesOfOtherSystemsVerifyAndWantToBeRenewed(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	for plain, hashes := range foreignHashes {
		for _, hash := range hashes {
			stored, err := Adopt(hash)
			if err != nil {
				t.Errorf("adopt %s: %v", hash, err)
				continue
			}
			if ok, upgrade, err := h.Verify(t.Context(), stored, plain); !ok || !upgrade || err != nil {
				t.Errorf("%s: %v %v %v", hash, ok, upgrade, err)
			}
			for _, wrong := range []string{"", plain + "x", strings.ToUpper(plain), plain + strings.Repeat("x", maxBytes)} {
				if ok, upgrade, err := h.Verify(t.Context(), stored, wrong); ok || upgrade || err != nil {
					t.Errorf("%s with %.20q: %v %v %v", hash, wrong, ok, upgrade, err)
				}
			}
		}
	}
}

func TestForeign_ArgonHashIsNotTakenForOneOfOurs(t *testing.T) {
	t.Parallel()
	h := testHasher(t, "pepper")
	own, err := h.Hash(t.Context(), "correct horse")
	if err != nil {
		t.Fatal(err)
	}
	stored, err := Adopt(own)
	if err != nil {
		t.Fatal(err)
	}
	// A copied hash of ours has the pepper in it: imported, it opens nothing.
	if ok, _, err := h.Verify(t.Context(), stored, "correct horse"); ok || err != nil {
		t.Errorf("%v %v", ok, err)
	}
}

func TestArgon2d_TestVectorOfRFC9106(t *testing.T) {
	t.Parallel()
	of := func(b byte, n int) []byte { return []byte(strings.Repeat(string(rune(b)), n)) }
	h0 := initialHash(of(1, 32), of(2, 16), of(3, 8), of(4, 12), 3, 32, 4, 32)
	const want = "512b391b6f1162975371d30919734294f868e3be3984f3c1a13a4db9fabe4acb" // section 5.1
	if got := hex.EncodeToString(fill(h0, 3, 32, 4, 32)); got != want {
		t.Errorf("the tag is %s", got)
	}
}

func TestAdopt_RefusesWhatIsNotAHashOrCostsTooMuch(t *testing.T) {
	t.Parallel()
	salt := "AAAAAAAAAAAAAAAAAAAAAA"
	tag := base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	bcryptTail := strings.Repeat("a", 53)
	for hash, want := range map[string]error{
		"": ErrForeign, "x": ErrForeign, "correct horse": ErrForeign, "$": ErrForeign, "$$$$": ErrForeign, "{SSHA}abc": ErrForeign,
		"$1$salt$abcdefghijklmnopqrstu.": ErrForeign, "$6$salt$abc": ErrForeign,
		"$2b$04$" + bcryptTail[1:]: ErrForeign, "$2b$04$" + bcryptTail + "a": ErrForeign, "$2x$04$" + bcryptTail: ErrForeign, "$2$04$" + bcryptTail: ErrForeign,
		"$2b$03$" + bcryptTail: ErrForeign, "$2b$15$" + bcryptTail: ErrCost, "$2b$99$" + bcryptTail: ErrCost, "$2b$04$" + bcryptTail[1:] + "\x00": ErrForeign,
		"$scrypt$ln=15,r=8,p=1$" + salt + "$AAAA":               ErrForeign, // a tag that everybody finds
		"$scrypt$ln=15,r=8$" + salt + "$" + tag:                 ErrForeign,
		"$scrypt$ln=0,r=8,p=1$" + salt + "$" + tag:              ErrForeign,
		"$scrypt$ln=-1,r=8,p=1$" + salt + "$" + tag:             ErrForeign,
		"$scrypt$ln=18,r=8,p=1$" + salt + "$" + tag:             ErrCost,
		"$scrypt$ln=63,r=8,p=1$" + salt + "$" + tag:             ErrCost,
		"$scrypt$ln=10,r=1000000000000,p=1$" + salt + "$" + tag: ErrCost,
		"$scrypt$ln=10,r=8,p=1000$" + salt + "$" + tag:          ErrCost,
		"$7$C6..../....salt$short":                              ErrForeign,
		"$7$C6..../....salt$" + strings.Repeat("!", 43):         ErrForeign,
		"$7$z6..../....salt$" + strings.Repeat(".", 43):         ErrCost,
		"$7$C": ErrForeign,
		"$pbkdf2-sha256$i=1500001,l=32$" + salt + "$" + tag:        ErrCost,
		"$pbkdf2-sha256$99999999999999999999$" + salt + "$" + tag:  ErrCost,
		"$pbkdf2-sha256$i=0,l=32$" + salt + "$" + tag:              ErrForeign,
		"$pbkdf2-sha256$i=1000,l=64$" + salt + "$" + tag:           ErrForeign,
		"$pbkdf2-md5$1000$" + salt + "$" + tag:                     ErrForeign,
		"pbkdf2-sha256$1000$" + salt + "$" + tag:                   ErrForeign,
		"$pbkdf2_sha256$1000$" + salt + "$" + tag:                  ErrForeign,
		"pbkdf2_sha256$1000$$" + tag + "=":                         ErrForeign,
		"$argon2id$m=19456,t=2,p=1$" + salt + "$" + tag:            ErrForeign, // version 1.0
		"$argon2id$v=16$m=19456,t=2,p=1$" + salt + "$" + tag:       ErrForeign,
		"$argon2x$v=19$m=19456,t=2,p=1$" + salt + "$" + tag:        ErrForeign,
		"$argon2id$v=19$m=4194304,t=2,p=1$" + salt + "$" + tag:     ErrCost,
		"$argon2id$v=19$m=131072,t=5,p=1$" + salt + "$" + tag:      ErrCost,
		"$scrypt$ln=17,r=8,p=3$" + salt + "$" + tag:                ErrCost,
		"$argon2d$v=19$m=19456,t=11,p=1$" + salt + "$" + tag:       ErrCost,
		"$argon2i$v=19$m=19456,t=2,p=9$" + salt + "$" + tag:        ErrCost,
		"$argon2i$v=19$m=19456,t=2,p=0$" + salt + "$" + tag:        ErrForeign,
		"$argon2d$v=19$m=7,t=2,p=1$" + salt + "$" + tag:            ErrForeign,
		"$argon2id$v=19$m=19456,t=2,p=1$" + salt + "$%%%":          ErrForeign,
		"$argon2id$v=19$m=+9456,t=2,p=1$" + salt + "$" + tag:       ErrForeign,
		"$argon2id$v=19$m=64,t=1,p=1$" + strings.Repeat("A", 1000): ErrForeign,
	} {
		if stored, err := Adopt(hash); !errors.Is(err, want) || stored != "" {
			t.Errorf("%.60q: %q, %v, want %v", hash, stored, err, want)
		}
	}
}

// The most expensive hashes that are let through stay near a second.
func BenchmarkForeign_MostExpensive(b *testing.B) {
	salt := "AAAAAAAAAAAAAAAAAAAAAA"
	tag := base64.RawStdEncoding.EncodeToString(make([]byte, 32))
	h, err := newHasher("pepper", strings.NewReader(strings.Repeat("x", 1000)), 2, time.Minute)
	if err != nil {
		b.Fatal(err)
	}
	for name, hash := range map[string]string{
		"bcrypt": "$2b$14$" + strings.Repeat("a", 53), "scrypt": "$scrypt$ln=17,r=8,p=2$" + salt + "$" + tag,
		"pbkdf2-sha512": "$pbkdf2-sha512$1500000$" + salt + "$" + tag, "argon2id": "$argon2id$v=19$m=131072,t=4,p=1$" + salt + "$" + tag,
		"argon2d": "$argon2d$v=19$m=131072,t=4,p=1$" + salt + "$" + tag,
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, _, err := h.Verify(b.Context(), importedPrefix+hash, "x"); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func FuzzAdopt(f *testing.F) {
	for _, hashes := range foreignHashes {
		for _, hash := range hashes {
			f.Add(hash)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		if stored, err := Adopt(text); err == nil && stored != importedPrefix+text {
			t.Errorf("%q is kept as %q", text, stored)
		}
	})
}
