package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"versola/modules/central/catalog/theme"
)

// Theme is a compiled theme.
type Theme struct {
	Logo  string // address of an image; empty: none
	Sheet func() Sheet
}

// Sheet is the style sheet of a theme.
type Sheet struct {
	CSS  []byte
	Hash string // of CSS, in hexadecimal
}

// sheetHash is how much of a hash tells two versions of a theme apart.
const sheetHash = 8

// newTheme makes a theme; its style sheet is made when it is first asked for.
func newTheme(s *ThemeSpec) *Theme {
	return &Theme{Logo: s.Logo, Sheet: sync.OnceValue(func() Sheet {
		css := []byte(theme.CSS(s.Tokens) + s.CSS)
		sum := sha256.Sum256(css)
		return Sheet{css, hex.EncodeToString(sum[:sheetHash])}
	})}
}

// Theme returns a theme by id.
func (t *Tenant) Theme(id string) (*Theme, bool) { x, ok := t.themes[id]; return x, ok }

func (b *build) looks(specs []ThemeSpec) {
	for i := range specs {
		s := &specs[i]
		t, ok := b.tenant(KindNameTheme, s.Tenant, s.ID)
		if !ok {
			continue
		}
		if t.themes == nil {
			t.themes = map[string]*Theme{}
		}
		t.themes[s.ID] = newTheme(s)
	}
}
