package pages

import (
	"regexp"
	"strings"
	"testing"

	"versola/modules/central/catalog/theme"
)

func TestStyleSheet_HasTheColoursThatThemesAreCheckedWith(t *testing.T) {
	t.Parallel()
	raw, err := assetFiles.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	light, rest, _ := strings.Cut(string(raw), "@media (prefers-color-scheme: dark)")
	darkPart, _, _ := strings.Cut(rest, "\n}\n")
	for _, token := range theme.Tokens() {
		want := theme.Default(token)
		name, isDark := strings.CutPrefix(token, "dark-")
		sheet := light
		if isDark {
			sheet = darkPart
		}
		m := regexp.MustCompile(`--` + name + `: ([^;]+);`).FindStringSubmatch(sheet)
		if m == nil || want != "" && m[1] != want {
			t.Errorf("%s: the style sheet has %v, package theme %q", token, m, want)
		}
	}
}

func TestImageSource_IsTheOriginAlone(t *testing.T) {
	t.Parallel()
	for logo, want := range map[string]string{
		"": "", "https://cdn.example/logo.svg?v=1": " https://cdn.example", "http://127.0.0.1:9/l.png": " http://127.0.0.1:9",
		"data:image/png;base64,AA": "", "javascript:alert(1)": "", "https://a.example;script-src": "", "https://a b/": "",
	} {
		if got := originSource(logo); got != want {
			t.Errorf("%q: %q, want %q", logo, got, want)
		}
	}
}
