package password

import (
	"crypto/pbkdf2"
	"crypto/sha1" //nolint:gosec // what older systems hashed with; renewed at the next sign-in
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"hash"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/crypto/argon2"
	"golang.org/x/crypto/bcrypt"
	"golang.org/x/crypto/scrypt"

	"versola/platform/secret"
)

// importedPrefix marks a hash that another system made: it knows nothing of the
// pepper, also where it is Argon2id like ours.
const importedPrefix = "imported:"

// Bounds of foreign hashes. Each lets the largest parameters in common use
// through, and keeps one check near a second of one processor.
const (
	minBcryptCost = 4
	maxBcryptCost = 14
	// maxPBKDF2 is above OWASP's advice for SHA-1 (1,300,000) and the defaults
	// of the frameworks that raise theirs every year.
	maxPBKDF2 = 1_500_000
	minPBKDF2 = 1
	// maxScryptMemory is N·r·128 bytes: N = 2^17 with r = 8. maxScryptWork is
	// that times p.
	maxScryptMemory = 128 << 20
	maxScryptWork   = 256 << 20
	maxScryptBlock  = 32
	// maxArgonWork is KiB times passes: 64 MiB with 8 passes.
	maxArgonWork   = 512 << 10
	maxForeignSalt = 128 // bytes
	minForeignTag  = 16  // bytes
	maxForeignTag  = 64
)

// Errors of [Adopt].
var (
	// ErrForeign: not a hash in a form that [Adopt] knows.
	ErrForeign = errors.New("not a bcrypt, scrypt, PBKDF2 or Argon2 hash in a known form")
	// ErrCost: checking the hash would cost a sign-in too much.
	ErrCost = errors.New("the cost parameters of the hash are beyond the limits")
)

// Adopt checks a password hash that another system made and returns the form
// in which it is kept. Known are:
//
//	bcrypt   $2a$, $2b$, $2y$; cost at most 14
//	scrypt   $scrypt$ln=,r=,p=$salt$hash (PHC), and $7$ of crypt(5); 128 MiB at most
//	PBKDF2   $pbkdf2-sha1|sha256|sha512$i=,l=$salt$hash (PHC), with a bare count
//	         as passlib writes it, and pbkdf2_sha1|sha256$count$salt$hash as
//	         Django does; 1,500,000 iterations at most
//	Argon2   $argon2i|d|id$v=19$m=,t=,p=$salt$hash (PHC, RFC 9106); 128 MiB,
//	         10 passes and 512 MiB in all passes at most
//
// Errors: [ErrForeign], [ErrCost].
func Adopt(text string) (string, error) {
	if _, err := parseForeign(text); err != nil {
		return "", err
	}
	return importedPrefix + text, nil
}

// foreign is a parsed foreign hash.
type foreign struct {
	memory int64 // bytes that a check takes
	// matches is expensive.
	matches func(plain []byte) bool
}

var bcryptForm = regexp.MustCompile(`^\$2[aby]\$[0-9]{2}\$[./A-Za-z0-9]{53}$`)

func parseForeign(text string) (foreign, error) {
	if len(text) > maxPHC {
		return foreign{}, ErrForeign
	}
	switch {
	case strings.HasPrefix(text, "$2"):
		return parseBcrypt(text)
	case strings.HasPrefix(text, "$scrypt$"):
		return parseScrypt(text)
	case strings.HasPrefix(text, "$7$"):
		return parseCryptScrypt(text)
	case strings.HasPrefix(text, "$pbkdf2"), strings.HasPrefix(text, "pbkdf2_"):
		return parsePBKDF2(text)
	case strings.HasPrefix(text, "$argon2"):
		return parseArgon2(text)
	}
	return foreign{}, ErrForeign
}

func parseBcrypt(text string) (foreign, error) {
	if !bcryptForm.MatchString(text) {
		return foreign{}, ErrForeign
	}
	cost, err := strconv.Atoi(text[4:6])
	if err != nil || cost < minBcryptCost {
		return foreign{}, ErrForeign
	}
	if cost > maxBcryptCost {
		return foreign{}, ErrCost
	}
	return foreign{matches: func(plain []byte) bool {
		// bcrypt reads 72 bytes; what made the hash has cut there too.
		return bcrypt.CompareHashAndPassword([]byte(text), plain[:min(len(plain), 72)]) == nil
	}}, nil
}

func parseScrypt(text string) (foreign, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 5 {
		return foreign{}, ErrForeign
	}
	n, err := parameters(parts[2], "ln", "r", "p")
	if err != nil {
		return foreign{}, err
	}
	salt, tag, err := saltAndTag(parts[3], parts[4])
	if err != nil {
		return foreign{}, err
	}
	return newScrypt(n[0], n[1], n[2], salt, tag)
}

func newScrypt(logN, r, p int, salt, tag []byte) (foreign, error) {
	if logN < 1 || r < 1 || p < 1 {
		return foreign{}, ErrForeign
	}
	if logN > 24 || r > maxScryptBlock || int64(r)*128<<logN > maxScryptMemory || int64(p) > maxScryptWork/(int64(r)*128<<logN) {
		return foreign{}, ErrCost
	}
	return foreign{memory: int64(r) * 128 << logN, matches: func(plain []byte) bool {
		got, err := scrypt.Key(plain, salt, 1<<logN, r, p, len(tag))
		return err == nil && secret.Equal(got, tag)
	}}, nil
}

// crypt64 is the alphabet of crypt(3), least significant six bits first.
const crypt64 = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// parseCryptScrypt reads $7$ of crypt(5): one character for log2 N, five each
// for r and p, the salt as it stands, and 32 bytes.
func parseCryptScrypt(text string) (foreign, error) {
	body, tagText, ok := strings.Cut(text[3:], "$")
	if !ok || len(body) < 11 || len(body)-11 > maxForeignSalt {
		return foreign{}, ErrForeign
	}
	logN, okN := decodeCrypt64(body[:1])
	r, okR := decodeCrypt64(body[1:6])
	p, okP := decodeCrypt64(body[6:11])
	var tag []byte
	for i := 0; i < len(tagText); i += 4 {
		v, ok := decodeCrypt64(tagText[i:min(i+4, len(tagText))])
		if !ok {
			return foreign{}, ErrForeign
		}
		for b := range (min(4, len(tagText)-i) * 6) / 8 {
			tag = append(tag, byte(v>>(8*b))) //nolint:gosec // takes the byte
		}
	}
	if !okN || !okR || !okP || len(tagText) != 43 || len(tag) != 32 {
		return foreign{}, ErrForeign
	}
	return newScrypt(logN, r, p, []byte(body[11:]), tag)
}

func decodeCrypt64(text string) (int, bool) {
	v := 0
	for i := range len(text) {
		d := strings.IndexByte(crypt64, text[i])
		if d < 0 {
			return 0, false
		}
		v |= d << (6 * i)
	}
	return v, true
}

func parsePBKDF2(text string) (foreign, error) {
	parts := strings.Split(strings.TrimPrefix(text, "$"), "$")
	if len(parts) != 4 {
		return foreign{}, ErrForeign
	}
	var newHash func() hash.Hash
	django := text[0] != '$'
	switch parts[0] {
	case "pbkdf2", "pbkdf2-sha1", "pbkdf2_sha1":
		newHash = sha1.New
	case "pbkdf2-sha256", "pbkdf2_sha256":
		newHash = sha256.New
	case "pbkdf2-sha512", "pbkdf2_sha512":
		newHash = sha512.New
	default:
		return foreign{}, ErrForeign
	}
	if django != strings.Contains(parts[0], "_") {
		return foreign{}, ErrForeign
	}
	rounds, length, err := pbkdf2Parameters(parts[1])
	if err != nil {
		return foreign{}, err
	}
	var salt, tag []byte
	if django {
		// The salt is text, and only the hash is padded base64.
		salt = []byte(parts[2])
		if tag, err = base64.StdEncoding.Strict().DecodeString(parts[3]); err != nil || len(salt) == 0 || len(salt) > maxForeignSalt {
			return foreign{}, ErrForeign
		}
	} else if salt, tag, err = saltAndTag(parts[2], parts[3]); err != nil {
		return foreign{}, err
	}
	switch {
	case len(tag) < minForeignTag, len(tag) > maxForeignTag, length != 0 && length != len(tag), rounds < minPBKDF2:
		return foreign{}, ErrForeign
	case rounds > maxPBKDF2:
		return foreign{}, ErrCost
	}
	return foreign{matches: func(plain []byte) bool {
		got, err := pbkdf2.Key(newHash, string(plain), salt, rounds, len(tag))
		return err == nil && secret.Equal(got, tag)
	}}, nil
}

// pbkdf2Parameters reads "i=1000", "i=1000,l=32" or a bare count.
func pbkdf2Parameters(text string) (rounds, length int, err error) {
	switch {
	case !strings.HasPrefix(text, "i="):
		n, err := number(text)
		return n, 0, err
	case strings.Contains(text, ","):
		n, err := parameters(text, "i", "l")
		if err != nil {
			return 0, 0, err
		}
		return n[0], n[1], nil
	}
	n, err := parameters(text, "i")
	if err != nil {
		return 0, 0, err
	}
	return n[0], 0, nil
}

func parseArgon2(text string) (foreign, error) {
	parts := strings.Split(text, "$")
	if len(parts) != 6 || parts[2] != fmt.Sprintf("v=%d", argon2.Version) {
		return foreign{}, ErrForeign
	}
	var key func(password, salt []byte, time, memory uint32, threads uint8, keyLen uint32) []byte
	switch parts[1] {
	case "argon2id":
		key = argon2.IDKey
	case "argon2i":
		key = argon2.Key
	case "argon2d":
		key = argon2d
	default:
		return foreign{}, ErrForeign
	}
	n, err := parameters(parts[3], "m", "t", "p")
	if err != nil {
		return foreign{}, err
	}
	salt, tag, err := saltAndTag(parts[4], parts[5])
	if err != nil {
		return foreign{}, err
	}
	memory, passes, lanes := n[0], n[1], n[2]
	switch {
	case passes < 1, lanes < 1, memory < 8*lanes:
		return foreign{}, ErrForeign
	case memory > maxMemoryKiB, passes > maxPasses, lanes > maxLanes, memory*passes > maxArgonWork:
		return foreign{}, ErrCost
	}
	return foreign{memory: int64(memory) << 10, matches: func(plain []byte) bool {
		got := key(plain, salt, uint32(passes), uint32(memory), uint8(lanes), uint32(len(tag))) //nolint:gosec // all bounded above
		return secret.Equal(got, tag)
	}}, nil
}

// parameters reads "a=1,b=2" with exactly these names in this order.
func parameters(text string, names ...string) ([]int, error) {
	parts := strings.Split(text, ",")
	if len(parts) != len(names) {
		return nil, ErrForeign
	}
	out := make([]int, len(names))
	for i, name := range names {
		digits, ok := strings.CutPrefix(parts[i], name+"=")
		if !ok {
			return nil, ErrForeign
		}
		var err error
		if out[i], err = number(digits); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// number reads a plain decimal number; one of more than nine digits is beyond
// every limit.
func number(digits string) (int, error) {
	if digits == "" || strings.Trim(digits, "0123456789") != "" {
		return 0, ErrForeign
	}
	if len(digits) > 9 {
		return 0, ErrCost
	}
	return strconv.Atoi(digits)
}

// saltAndTag reads two values in base64 without padding, in the standard
// alphabet or that of passlib ("." for "+").
func saltAndTag(saltText, tagText string) (salt, tag []byte, err error) {
	encoding := base64.RawStdEncoding.Strict()
	if salt, err = encoding.DecodeString(strings.ReplaceAll(saltText, ".", "+")); err != nil {
		return nil, nil, ErrForeign
	}
	if tag, err = encoding.DecodeString(strings.ReplaceAll(tagText, ".", "+")); err != nil {
		return nil, nil, ErrForeign
	}
	if len(salt) > maxForeignSalt || len(tag) < minForeignTag || len(tag) > maxForeignTag {
		return nil, nil, ErrForeign
	}
	return salt, tag, nil
}
