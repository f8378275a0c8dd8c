package validate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"versola/modules/central/catalog"
)

// Kinds of entity, as documents name them.
const (
	KindEdge       = catalog.KindNameEdge
	KindTenant     = catalog.KindNameTenant
	KindScope      = catalog.KindNameScope
	KindResource   = catalog.KindNameResource
	KindPermission = catalog.KindNamePermission
	KindRole       = catalog.KindNameRole
	KindClient     = catalog.KindNameClient
	KindPreset     = catalog.KindNamePreset
	KindDirectory  = catalog.KindNameDirectory
	KindClaim      = catalog.KindNameClaim
	KindDetailType = catalog.KindNameDetailType
	KindTheme      = catalog.KindNameTheme
	KindTexts      = catalog.KindNameTexts
	KindTemplate   = catalog.KindNameTemplate
	KindWebhook    = catalog.KindNameWebhook
	KindUser       = "user"
)

// Ref names an entity.
type Ref = catalog.Ref

// Problem is one thing that is wrong. Its text never holds a secret.
type Problem struct {
	Of      Ref
	Field   string // as in a document, such as "redirect_uris[1]"; empty: the whole
	Message string
}

// String returns the problem as one line.
func (p Problem) String() string {
	if p.Field == "" {
		return p.Of.String() + ": " + p.Message
	}
	return p.Of.String() + ": " + p.Field + ": " + p.Message
}

// Pointer returns the field as a JSON pointer (RFC 6901) into the entity's
// JSON form; empty: the whole.
func (p Problem) Pointer() string {
	var b strings.Builder
	for rest := p.Field; rest != ""; {
		var part string
		if quoted, ok := strings.CutPrefix(rest, `["`); ok {
			part, rest, _ = strings.Cut(quoted, `"]`)
		} else if index, ok := strings.CutPrefix(rest, "["); ok {
			part, rest, _ = strings.Cut(index, "]")
		} else if end := strings.IndexAny(rest, ".["); end >= 0 {
			part, rest = rest[:end], rest[end:]
		} else {
			part, rest = rest, ""
		}
		rest = strings.TrimPrefix(rest, ".")
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return b.String()
}

// Rules are what differs between deployments.
type Rules struct {
	// Development allows http://localhost in redirect URIs and plain http in
	// logout URIs.
	Development bool

	// everything accepts what this version does not support: tests of the
	// syntax.
	everything bool
}

// problems collects what is wrong with one entity.
type problems struct {
	of   Ref
	list *[]Problem
}

func (p problems) add(field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "..."
	}
	*p.list = append(*p.list, Problem{Of: p.of, Field: field, Message: message})
}

// maxMessage bounds what is said of one member, which may quote a value: an
// answer is not as long as the document that it refuses. The longest ids and a
// sentence fit.
const maxMessage = 600

func (p problems) err(field string, err error) {
	if err != nil {
		p.add(field, "%s", err)
	}
}

// maxList bounds every list of a declaration: the largest real ones (the
// permissions of a role) have a few hundred entries.
const maxList = 1000

// each checks every element of a list and that none is there twice.
func (p problems) each(field string, list []string, check func(string) error) {
	if len(list) > maxList {
		p.add(field, "has %d entries, more than %d", len(list), maxList)
		return
	}
	for i, v := range list {
		at := fmt.Sprintf("%s[%d]", field, i)
		if slices.Contains(list[:i], v) {
			p.add(at, "%q is listed twice", v)
			continue
		}
		if check != nil {
			p.err(at, check(v))
		}
	}
}

// within checks a duration that may be left out.
func (p problems) within(field string, d catalog.Duration, least, most time.Duration) {
	if v := time.Duration(d); v != 0 && (v < least || v > most) {
		p.add(field, "%s is not between %s and %s", v, least, most)
	}
}

// between checks a number that may be left out.
func (p problems) between(field string, n, least, most int64) {
	if n != 0 && (n < least || n > most) {
		p.add(field, "%d is not between %d and %d", n, least, most)
	}
}

// oneOf checks a word of a closed list.
func oneOf[T ~string](v T, known ...T) error {
	if slices.Contains(known, v) {
		return nil
	}
	if v == "" {
		return fmt.Errorf("is missing: one of %v", known)
	}
	return fmt.Errorf("%q is unknown: one of %v", v, known)
}
