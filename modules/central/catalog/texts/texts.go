package texts

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/text/language"
)

//go:embed languages/*.json
var files embed.FS

// defaultLocale is what a browser without a known language gets.
const defaultLocale = "en"

// Bounds of what a stranger says about languages.
const (
	maxLocales        = 10
	maxAcceptLanguage = 500
)

// Texts are the catalogues of all languages. They are immutable.
type Texts struct {
	locales   []string // the default first
	byName    map[string]map[string]string
	matcher   language.Matcher
	templates map[messageKey]string
}

var product = sync.OnceValue(func() *Texts {
	t, err := load()
	if err != nil {
		panic(err) // a fault of the build, which a test finds
	}
	return t
})

// Product returns the product's own texts.
func Product() *Texts { return product() }

func load() (*Texts, error) {
	entries, err := files.ReadDir("languages")
	if err != nil {
		return nil, fmt.Errorf("list texts: %w", err)
	}
	t := &Texts{byName: map[string]map[string]string{}}
	for _, e := range entries {
		b, err := files.ReadFile(path.Join("languages", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("read texts: %w", err)
		}
		name := strings.TrimSuffix(e.Name(), ".json")
		var texts map[string]string
		if err := json.Unmarshal(b, &texts); err != nil {
			return nil, fmt.Errorf("read texts %s: %w", name, err)
		}
		t.byName[name] = texts
	}
	t.speak(append([]string{defaultLocale}, slices.Sorted(maps.Keys(t.byName))...))
	return t, nil
}

// speak sets the languages, the default first; repetitions are dropped.
func (t *Texts) speak(locales []string) {
	t.locales = nil
	var tags []language.Tag
	for _, name := range locales {
		if !slices.Contains(t.locales, name) {
			t.locales, tags = append(t.locales, name), append(tags, language.Make(name))
		}
	}
	t.matcher = language.NewMatcher(tags)
}

// With returns a tenant's texts: languages are those that it speaks, the
// default first (none: the product's and those of own), and own are its texts
// by language and key.
func (t *Texts) With(languages []string, own map[string]map[string]string, templates []Template) *Texts {
	if len(languages) == 0 && len(own) == 0 && len(templates) == 0 {
		return t
	}
	if len(languages) == 0 {
		languages = append(slices.Clone(t.locales), slices.Sorted(maps.Keys(own))...)
	}
	out := &Texts{byName: make(map[string]map[string]string, len(languages)), templates: compile(templates)}
	out.speak(languages)
	for _, l := range out.locales {
		base := t.byName[t.nearest(l)]
		if extra := own[l]; len(extra) > 0 {
			merged := make(map[string]string, len(base))
			maps.Copy(merged, base)
			maps.Copy(merged, extra)
			base = merged
		}
		out.byName[l] = base
	}
	return out
}

// nearest returns the language of t that stands in for another.
func (t *Texts) nearest(locale string) string {
	if _, ok := t.byName[locale]; ok {
		return locale
	}
	if _, i, confidence := t.matcher.Match(language.Make(locale)); confidence >= language.High {
		return t.locales[i]
	}
	return t.locales[0]
}

// Has tells whether there are texts in a language.
func (t *Texts) Has(locale string) bool { _, ok := t.byName[locale]; return ok }

// Locales returns the languages that there are texts in, the default first.
func (t *Texts) Locales() []string { return slices.Clone(t.locales) }

// Locale picks the language: what the request asked for (ui_locales), then what
// the browser accepts, then the default.
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
	return t.locales[0]
}

// Get returns a text with its {name} placeholders filled from pairs (name,
// value, ...). An unknown key shows as itself.
func (t *Texts) Get(locale, key string, pairs ...string) string {
	text, ok := t.byName[locale][key]
	if !ok {
		return key
	}
	return fillIn(text, pairs)
}

func fillIn(text string, pairs []string) string {
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
