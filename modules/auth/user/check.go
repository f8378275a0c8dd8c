package user

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Problem is what is wrong with one member of a description.
type Problem struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901) into the document of a person
	Detail  string `json:"detail"`
}

// Bounds of what is kept of a person. A person is one row that many requests
// read: it stays a few KiB.
const (
	maxExternalID  = 255
	maxClaims      = 64
	maxClaimsBytes = 16 << 10
	maxClaimText   = 2048 // the longest that is usual is a URL
	maxName        = 500  // bytes; an index holds it
	maxClaimDepth  = 4
	maxRoleTenants = 100
	maxRoles       = 100 // in one tenant
	maxRoleName    = 128
	// maxNumber is the greatest whole number that every reader of JSON keeps
	// exactly (RFC 8259 section 6); greater ones are identifiers, which are text.
	maxNumber = 1 << 53
)

// ownClaims are members of a person, not free claims.
var ownClaims = []string{"sub", "email", "email_verified", "phone_number", "phone_number_verified", "updated_at"}

// protocolClaims are those that tokens hold for the protocol's sake.
var protocolClaims = []string{"iss", "aud", "exp", "iat", "nbf", "jti", "nonce", "auth_time", "acr", "amr", "azp", "at_hash", "c_hash", "s_hash",
	"sid", "gid", "cnf", "act", "scope", "client_id", "tenant", "roles"}

// textClaims are the standard claims that are text (OpenID Connect Core section
// 5.1).
var textClaims = []string{"name", "given_name", "family_name", "middle_name", "nickname", "preferred_username", "profile", "picture", "website",
	"gender", "birthdate", "zoneinfo", "locale"}

var claimName = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:/#-]{0,127}$`)

// Problems normalises the identifiers of a description and returns everything
// that is wrong with it. Whether the roles exist is the caller's to know.
func (n *New) Problems() []Problem {
	var out []Problem
	fail := func(pointer, format string, args ...any) {
		out = append(out, Problem{pointer, fmt.Sprintf(format, args...)})
	}
	for _, i := range []struct {
		pointer string
		text    *string
		parse   func(string) (string, error)
	}{{"/phone", &n.Phone, ParsePhone}, {"/email", &n.Email, ParseEmail}, {"/username", &n.Username, ParseUsername}} {
		if *i.text == "" {
			continue
		}
		value, err := i.parse(*i.text)
		if err != nil {
			fail(i.pointer, "%s", err)
			continue
		}
		*i.text = value
	}
	if n.Phone+n.Email+n.Username == "" {
		fail("", "a person needs a phone, an email or a username")
	}
	if n.PhoneVerified && n.Phone == "" {
		fail("/phone_verified", "there is no phone number")
	}
	if n.EmailVerified && n.Email == "" {
		fail("/email_verified", "there is no e-mail address")
	}
	if n.ExternalID != "" && !plainText(n.ExternalID, maxExternalID) {
		fail("/external_id", "has 1 to %d bytes of printable text", maxExternalID)
	}
	if !n.CreatedAt.IsZero() && (n.CreatedAt.After(n.Now) || n.CreatedAt.Year() < 1970) {
		fail("/created_at", "lies in the future, or before 1970")
	}
	checkClaims(n.Claims, fail)
	checkRoles(n.Roles, fail)
	return out
}

func checkClaims(claims map[string]any, fail func(pointer, format string, args ...any)) {
	if len(claims) == 0 {
		return
	}
	if b, err := json.Marshal(claims); err != nil || len(b) > maxClaimsBytes || len(claims) > maxClaims {
		fail("/claims", "at most %d claims of %d bytes in all", maxClaims, maxClaimsBytes)
		return
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		pointer, value := "/claims/"+escapePointer(name), claims[name]
		text, isText := value.(string)
		switch {
		case slices.Contains(ownClaims, name), slices.Contains(protocolClaims, name):
			fail(pointer, "is not a free claim")
		case !claimName.MatchString(name):
			fail(pointer, "a claim's name has 1 to 128 letters, digits and _ . : / # -")
		case value == nil:
			fail(pointer, "is null; leave it out")
		case slices.Contains(textClaims, name) && !isText:
			fail(pointer, "is text")
		case name == "name" && len(text) > maxName:
			fail(pointer, "has at most %d bytes", maxName)
		case !cleanClaim(value, maxClaimDepth):
			fail(pointer, "holds a character or a number that cannot be kept, a text of more than %d bytes, or is nested more than %d deep", maxClaimText, maxClaimDepth)
		}
	}
}

// cleanClaim tells whether every text in a value can be kept and shown, and
// whether it is nested at most depth deep.
func cleanClaim(value any, depth int) bool {
	switch v := value.(type) {
	case string:
		return len(v) <= maxClaimText && utf8.ValidString(v) &&
			!strings.ContainsFunc(v, func(r rune) bool { return unicode.IsControl(r) && r != '\n' || r == utf8.RuneError })
	case json.Number:
		return keptExactly(v)
	case float64:
		return math.Abs(v) <= maxNumber
	case int: // int and uint64 come from YAML
		return v <= maxNumber && v >= -maxNumber
	case uint64:
		return v <= maxNumber
	case []any:
		return depth > 1 && !slices.ContainsFunc(v, func(e any) bool { return !cleanClaim(e, depth-1) })
	case map[string]any:
		if depth <= 1 {
			return false
		}
		for name, e := range v {
			if !plainText(name, 128) || !cleanClaim(e, depth-1) {
				return false
			}
		}
	}
	return true
}

func checkRoles(roles map[string][]string, fail func(pointer, format string, args ...any)) {
	if len(roles) > maxRoleTenants {
		fail("/roles", "names more than %d tenants", maxRoleTenants)
		return
	}
	for _, tenant := range slices.Sorted(maps.Keys(roles)) {
		pointer := "/roles/" + escapePointer(tenant)
		if !plainText(tenant, maxRoleName) {
			fail(pointer, "is not a tenant's id")
			continue
		}
		if len(roles[tenant]) > maxRoles {
			fail(pointer, "has more than %d roles", maxRoles)
			continue
		}
		seen := map[string]bool{}
		for i, role := range roles[tenant] {
			switch at := fmt.Sprintf("%s/%d", pointer, i); {
			case !plainText(role, maxRoleName):
				fail(at, "is not a role's id")
			case seen[role]:
				fail(at, "stands there twice")
			}
			seen[role] = true
		}
	}
}

// keptExactly tells whether a number comes back as it was written: a whole one
// exactly, another as near as readers of JSON keep it.
func keptExactly(n json.Number) bool {
	if !strings.ContainsAny(n.String(), ".eE") {
		whole, err := n.Int64()
		return err == nil && whole <= maxNumber && whole >= -maxNumber
	}
	f, err := n.Float64()
	mantissa, _, _ := strings.Cut(strings.ToLower(n.String()), "e")
	return err == nil && math.Abs(f) <= maxNumber && (f != 0 || !strings.ContainsAny(mantissa, "123456789"))
}

// plainText tells whether s is 1 to most bytes of text without control and
// formatting characters.
func plainText(s string, most int) bool {
	return s != "" && len(s) <= most && utf8.ValidString(s) && !strings.ContainsFunc(s, notGraphic)
}

// notGraphic tells whether a character is not to be seen, or stands where a
// decoder found something that was none.
func notGraphic(r rune) bool { return !unicode.IsGraphic(r) || r == utf8.RuneError }

func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
