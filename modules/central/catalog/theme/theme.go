package theme

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Contrast ratios of WCAG 2.2.
const (
	textRatio  = 4.5 // success criterion 1.4.3
	fieldRatio = 3   // success criterion 1.4.11
)

// The tokens that are not colours.
const (
	tokenRadius = "radius" // of corners
	tokenFont   = "font"   // families, the preferred first
	dark        = "dark-"
)

// usual are the product's colours: light, dark.
var usual = map[string][2]string{
	"ground":        {"#f3f5f4", "#0d1412"}, // of the page
	"surface":       {"#ffffff", "#151e1b"}, // of the card and of fields
	"text":          {"#14201d", "#e8efec"},
	"text-soft":     {"#52615c", "#a3b2ac"},
	"line":          {"#c9d2ce", "#33413c"}, // decoration
	"line-strong":   {"#85938e", "#6f807a"}, // the border of a field
	"accent":        {"#0b6b57", "#5cc9ac"}, // of the button
	"on-accent":     {"#ffffff", "#06241c"}, // the words on it
	"link":          {"#0b6b57", "#5cc9ac"},
	"danger":        {"#b3261e", "#ffb4ab"},
	"danger-ground": {"#fdf1f0", "#3a1d1b"},
}

// Tokens lists the names of all tokens, in order.
func Tokens() []string {
	names := []string{tokenFont, tokenRadius}
	for name := range usual {
		names = append(names, name, dark+name)
	}
	slices.Sort(names)
	return names
}

// pairs are what has to be told apart.
var pairs = []struct {
	front, behind string
	ratio         float64
}{
	{"text", "ground", textRatio},
	{"text", "surface", textRatio},
	{"text-soft", "ground", textRatio},
	{"text-soft", "surface", textRatio},
	{"link", "ground", textRatio},
	{"link", "surface", textRatio},
	{"on-accent", "accent", textRatio},
	{"danger", "danger-ground", textRatio},
	{"line-strong", "surface", fieldRatio},
}

// Problem is what is wrong with one token.
type Problem struct{ Token, Detail string }

// Default returns the product's value of a colour.
func Default(token string) string {
	name, isDark := strings.CutPrefix(token, dark)
	if isDark {
		return usual[name][1]
	}
	return usual[name][0]
}

// Check checks a tenant's tokens: at most one problem for each.
func Check(tokens map[string]string) []Problem {
	var out []Problem
	known := Tokens()
	for _, name := range slices.Sorted(maps.Keys(tokens)) {
		switch value := tokens[name]; {
		case !slices.Contains(known, name):
			out = append(out, Problem{name, fmt.Sprintf("is no token: one of %v", known)})
		case name == tokenRadius:
			if !radius.MatchString(value) {
				out = append(out, Problem{name, "is not a length of 0 to 32px or 0 to 2rem"})
			}
		case name == tokenFont:
			if !fonts.MatchString(value) || len(value) > maxFont {
				out = append(out, Problem{name, "is not a list of the names of fonts, such as: Source Sans 3, sans-serif"})
			}
		default:
			if _, ok := parseColour(value); !ok {
				out = append(out, Problem{name, "is not a colour such as #0b6b57"})
			}
		}
	}
	if len(out) > 0 {
		return out
	}
	for i, prefix := range []string{"", dark} {
		p := palette(tokens, i)
		for _, pair := range pairs {
			if got := contrast(p[pair.front], p[pair.behind]); got < pair.ratio {
				at := prefix + pair.front
				if _, said := tokens[at]; !said {
					at = prefix + pair.behind
				}
				if slices.ContainsFunc(out, func(p Problem) bool { return p.Token == at }) {
					continue
				}
				out = append(out, Problem{at, fmt.Sprintf("%s on %s has a contrast of %.2f:1, and %.1f:1 is needed to be read (WCAG 2.2)",
					prefix+pair.front, prefix+pair.behind, got, pair.ratio)})
			}
		}
	}
	return out
}

var (
	radius = regexp.MustCompile(`^(0|([0-9]|[12][0-9]|3[0-2])(\.[0-9]{1,3})?px|[01](\.[0-9]{1,3})?rem|2rem)$`)
	fonts  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9 -]*(, ?[A-Za-z][A-Za-z0-9 -]*)*$`)
)

const maxFont = 200

// palette returns every colour of light (0) or dark (1) pages.
func palette(tokens map[string]string, scheme int) map[string]colour {
	prefix := []string{"", dark}[scheme]
	p, said := map[string]colour{}, map[string]bool{}
	for name, values := range usual {
		c, ok := parseColour(tokens[prefix+name])
		if said[name] = ok; !ok {
			c, _ = parseColour(values[scheme])
		}
		p[name] = c
	}
	if scheme == 1 && !said["accent"] {
		if light, ok := parseColour(tokens["accent"]); ok {
			p["accent"], said["accent"] = readable(light, white, fieldRatio, p["surface"]), true
		}
	}
	if said["accent"] && !said["on-accent"] {
		p["on-accent"] = white
		if contrast(black, p["accent"]) > contrast(white, p["accent"]) {
			p["on-accent"] = black
		}
	}
	if !said["link"] {
		p["link"] = readable(p["accent"], p["text"], textRatio, p["ground"], p["surface"])
	}
	return p
}

// One of the two is read on any colour: at worst at 4.58:1.
var white, black = colour{0xff, 0xff, 0xff}, colour{}

// CSS returns the style sheet of a tenant's tokens, to be read after the
// product's.
func CSS(tokens map[string]string) string {
	var b strings.Builder
	b.WriteString(":root {\n")
	colours(&b, palette(tokens, 0))
	if r := tokens[tokenRadius]; radius.MatchString(r) {
		fmt.Fprintf(&b, "  --radius: %s;\n", r)
	}
	if f := tokens[tokenFont]; fonts.MatchString(f) {
		fmt.Fprintf(&b, "  --font: %s;\n", families(f))
	}
	b.WriteString("}\n@media (prefers-color-scheme: dark) { :root {\n")
	colours(&b, palette(tokens, 1))
	b.WriteString("} }\n")
	return b.String()
}

// colours writes a palette and what follows from it.
func colours(b *strings.Builder, p map[string]colour) {
	hover := mix(p["accent"], p["text"], 0.15)
	if !enough(hover, textRatio, p["on-accent"]) {
		hover = p["accent"]
	}
	linkHover := mix(p["link"], p["text"], 0.25)
	if !enough(linkHover, textRatio, p["ground"], p["surface"]) {
		linkHover = p["link"]
	}
	all := map[string]string{
		"accent-hover": hover.String(), "link-hover": linkHover.String(),
		"ground-glow": mix(p["ground"], p["accent"], 0.09).String(), "ring": p["link"].String() + "66",
	}
	for name, c := range p {
		all[name] = c.String()
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(b, "  --%s: %s;\n", name, all[name])
	}
}

// generic families are keywords; every other name is quoted.
var generic = []string{"serif", "sans-serif", "monospace", "system-ui", "ui-sans-serif", "ui-serif", "ui-monospace", "ui-rounded"}

func families(list string) string {
	names := strings.Split(list, ",")
	for i, n := range names {
		if n = strings.TrimSpace(n); !slices.Contains(generic, n) {
			n = `"` + n + `"`
		}
		names[i] = n
	}
	return strings.Join(names, ", ")
}
