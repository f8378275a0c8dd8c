package texts

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxPageText bounds a text of a page, in characters: the longest of the
// product has 130.
const maxPageText = 500

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// placeholders returns the names in braces.
func placeholders(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range placeholder.FindAllStringSubmatch(text, -1) {
		out[m[1]] = true
	}
	return out
}

func listed(names map[string]bool) string {
	if len(names) == 0 {
		return "none"
	}
	return "{" + strings.Join(slices.Sorted(maps.Keys(names)), "}, {") + "}"
}

// blank tells whether nothing of a text is to be seen.
func blank(text string) bool {
	return strings.TrimFunc(text, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) }) == ""
}
