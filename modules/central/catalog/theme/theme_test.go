package theme

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestContrast_IsThatOfWCAG(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		a, b string
		want float64
	}{{"#000000", "#ffffff", 21}, {"#ffffff", "#fff", 1}, {"#767676", "#ffffff", 4.54}, {"#777", "#fff", 4.48}, {"#0000ff", "#ffffff", 8.59}} {
		a, okA := parseColour(k.a)
		b, okB := parseColour(k.b)
		if got := contrast(a, b); !okA || !okB || math.Abs(got-k.want) > 0.005 {
			t.Errorf("%s on %s: %.3f, want %.2f", k.a, k.b, got, k.want)
		}
	}
}

func TestCheck_TheProductsOwnColoursCanBeRead(t *testing.T) {
	t.Parallel()
	if found := Check(nil); len(found) != 0 {
		t.Errorf("%v", found)
	}
	all := map[string]string{}
	for name, values := range usual {
		all[name], all[dark+name] = values[0], values[1]
	}
	if found := Check(all); len(found) != 0 {
		t.Errorf("said aloud: %v", found)
	}
}

func TestCheck_AnyAccentAloneCanBeRead(t *testing.T) {
	t.Parallel()
	for r := 0; r < 256; r += 17 {
		for g := 0; g < 256; g += 17 {
			for b := 0; b < 256; b += 17 {
				tokens := map[string]string{"accent": fmt.Sprintf("#%02x%02x%02x", r, g, b)}
				if found := Check(tokens); len(found) != 0 {
					t.Fatalf("%v: %v", tokens, found)
				}
			}
		}
	}
}

func TestCheck_RefusesByToken(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		tokens map[string]string
		want   string
	}{
		{map[string]string{"text": "#888888"}, "text"},
		{map[string]string{"surface": "#111111"}, "surface"},
		{map[string]string{"accent": "#ffd400", "link": "#ffd400"}, "link"},
		{map[string]string{"accent": "#ffd400", "on-accent": "#ffffff"}, "on-accent"},
		{map[string]string{"dark-text-soft": "#444444"}, "dark-text-soft"},
		{map[string]string{"line-strong": "#eeeeee"}, "line-strong"},
		{map[string]string{"accent": "red"}, "accent"}, {map[string]string{"accent": ""}, "accent"}, {map[string]string{"accent": "#12345"}, "accent"},
		{map[string]string{"accent": "#0b6b57; }"}, "accent"}, {map[string]string{"accent": "#+12345"}, "accent"}, {map[string]string{"accent": "var(--text)"}, "accent"},
		{map[string]string{"shadow": "none"}, "shadow"}, {map[string]string{"accent-hover": "#000000"}, "accent-hover"},
		{map[string]string{"radius": "99px"}, "radius"}, {map[string]string{"radius": "-1px"}, "radius"}, {map[string]string{"radius": "1em"}, "radius"},
		{map[string]string{"radius": "2.5rem"}, "radius"}, {map[string]string{"font": "url(x)"}, "font"}, {map[string]string{"font": `"; }`}, "font"},
		{map[string]string{"font": ""}, "font"}, {map[string]string{"font": strings.Repeat("a", maxFont+1)}, "font"},
		{map[string]string{"accent": "#0b6b57", "radius": "0", "font": "Source Sans 3, sans-serif"}, ""},
		{map[string]string{"radius": "12.5px"}, ""}, {map[string]string{"radius": "2rem"}, ""}, {map[string]string{"accent": "#ABC"}, ""},
	} {
		found := Check(k.tokens)
		switch {
		case k.want == "" && len(found) != 0, k.want != "" && len(found) == 0:
			t.Errorf("%v: %v", k.tokens, found)
		case k.want != "" && found[0].Token != k.want:
			t.Errorf("%v: %v, want it at %s", k.tokens, found, k.want)
		}
	}
}

func TestCSS_HasOnlyWhatWasParsed(t *testing.T) {
	t.Parallel()
	css := CSS(map[string]string{"accent": "#FFD400", "radius": "4px", "font": "Source Sans 3, sans-serif", "text": "red;}</style>", "evil": "x"})
	for _, want := range []string{"--accent: #ffd400;", "--on-accent: #000000;", "--radius: 4px;", `--font: "Source Sans 3", sans-serif;`, "prefers-color-scheme: dark"} {
		if !strings.Contains(css, want) {
			t.Errorf("lacks %s:\n%s", want, css)
		}
	}
	if strings.Contains(css, "evil") || strings.Contains(css, "red") || strings.Contains(css, "<") {
		t.Errorf("has what nobody parsed:\n%s", css)
	}
}
