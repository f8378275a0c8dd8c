package pages

import (
	"embed"
	"encoding/json"
	"fmt"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/text/language"
)

//go:embed texts/*.json
var textFiles embed.FS

// defaultLocale is what a browser without a known language gets.
const defaultLocale = "en"

// Bounds of what a stranger says about languages.
const (
	maxLocales        = 10
	maxAcceptLanguage = 500
)

// Texts are the catalogues of all languages.
type Texts struct {
	locales []string // the default first
	byName  map[string]map[string]string
	matcher language.Matcher
}

// loadTexts reads the catalogues. A text that one of them lacks is an error.
func loadTexts() (*Texts, error) {
	entries, err := textFiles.ReadDir("texts")
	if err != nil {
		return nil, fmt.Errorf("list texts: %w", err)
	}
	t := &Texts{locales: []string{defaultLocale}, byName: map[string]map[string]string{}}
	for _, e := range entries {
		b, err := textFiles.ReadFile(path.Join("texts", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read texts: %w", err)
		}
		name := strings.TrimSuffix(e.Name(), ".json")
		var texts map[string]string
		if err := json.Unmarshal(b, &texts); err != nil {
			return nil, fmt.Errorf("read texts %s: %w", name, err)
		}
		t.byName[name] = texts
		if name != defaultLocale {
			t.locales = append(t.locales, name)
		}
	}
	tags := make([]language.Tag, len(t.locales))
	for i, name := range t.locales {
		if tags[i], err = language.Parse(name); err != nil {
			return nil, fmt.Errorf("language %s: %w", name, err)
		}
		for key := range t.byName[defaultLocale] {
			if _, ok := t.byName[name][key]; !ok {
				return nil, fmt.Errorf("texts %s lack %q", name, key)
			}
		}
	}
	t.matcher = language.NewMatcher(tags)
	return t, nil
}

// Locales returns the languages that there are texts in.
func (t *Texts) Locales() []string { return slices.Clone(t.locales) }

// Locale picks the language: what the request asked for (ui_locales), then what
// the browser accepts.
func (t *Texts) Locale(uiLocales []string, acceptLanguage string) string {
	var wanted []language.Tag
	for _, l := range uiLocales[:min(len(uiLocales), maxLocales)] {
		if tag, err := language.Parse(l); err == nil {
			wanted = append(wanted, tag)
		}
	}
	if _, i, confidence := t.matcher.Match(wanted...); len(wanted) > 0 && confidence > language.No {
		return t.locales[i]
	}
	if len(acceptLanguage) <= maxAcceptLanguage {
		if tags, _, err := language.ParseAcceptLanguage(acceptLanguage); err == nil && len(tags) > 0 {
			if _, i, confidence := t.matcher.Match(tags...); confidence > language.No {
				return t.locales[i]
			}
		}
	}
	return defaultLocale
}

// Get returns a text with its {name} placeholders filled from pairs (name,
// value, ...). An unknown key shows as itself.
func (t *Texts) Get(locale, key string, pairs ...string) string {
	text, ok := t.byName[locale][key]
	if !ok {
		return key
	}
	if len(pairs) == 0 {
		return text
	}
	filled := slices.Clone(pairs)
	for i := 0; i < len(filled); i += 2 {
		filled[i] = "{" + filled[i] + "}"
	}
	return strings.NewReplacer(filled...).Replace(text)
}

// Wait says a duration for people, rounded up: seconds below two minutes, else
// minutes.
func (t *Texts) Wait(locale string, d time.Duration) string {
	if d < 2*time.Minute {
		return t.Get(locale, "wait.seconds", "n", strconv.Itoa(Seconds(d)))
	}
	return t.Get(locale, "wait.minutes", "n", strconv.Itoa(int(math.Ceil(d.Minutes()))))
}

// Seconds rounds up to whole seconds, at least one (RFC 9110 section 10.2.3).
func Seconds(d time.Duration) int { return max(1, int(math.Ceil(d.Seconds()))) }
