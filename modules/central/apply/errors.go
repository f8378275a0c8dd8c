package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Error is one thing that is wrong with the documents.
type Error struct {
	File    string // empty: an entity that is in the database alone
	Line    int    // from 1; 0: the whole file
	Message string
}

// Error returns "file:line: message", on one line and without characters that
// steer a terminal: a document may hold any.
func (e Error) Error() string {
	switch {
	case e.File == "":
		return printable(e.Message)
	case e.Line == 0:
		return printable(e.File + ": " + e.Message)
	}
	return printable(fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message))
}

// printable writes characters that do not print as escapes.
func printable(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) && r != '\u00a0' }

// Errors is everything that is wrong, in the order of files and lines.
type Errors []Error

// Error returns one line for each.
func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// orNil sorts the errors and returns them as an error, or nil where there are
// none.
func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	slices.SortStableFunc(e, func(a, b Error) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
	})
	return slices.Compact(e)
}
