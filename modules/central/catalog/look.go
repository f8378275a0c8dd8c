package catalog

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"

	"versola/modules/central/catalog/theme"
)

// Theme is a compiled theme.
type Theme struct {
	Logo string // address of an image; empty: none

	spec  ThemeSpec
	once  sync.Once
	sheet Sheet
}

// Sheet is the style sheet of a theme.
type Sheet struct {
	CSS  []byte
	Hash string // of CSS, in hexadecimal
}

// sheetHash is how much of a hash tells two versions of a theme apart.
const sheetHash = 8

// Sheet returns the theme's style sheet, which is made when it is first asked
// for.
func (x *Theme) Sheet() Sheet {
	x.once.Do(func() {
		css := []byte(theme.CSS(x.spec.Tokens) + x.spec.CSS)
		sum := sha256.Sum256(css)
		x.sheet = Sheet{css, hex.EncodeToString(sum[:sheetHash])}
	})
	return x.sheet
}

// Theme returns a theme by id.
func (t *Tenant) Theme(id string) (*Theme, bool) { x, ok := t.themes[id]; return x, ok }

func (b *build) looks(specs []ThemeSpec) {
	for _, s := range specs {
		t, ok := b.tenant(KindNameTheme, s.Tenant, s.ID)
		if !ok {
			continue
		}
		if t.themes == nil {
			t.themes = map[string]*Theme{}
		}
		t.themes[s.ID] = &Theme{Logo: s.Logo, spec: s}
	}
}
