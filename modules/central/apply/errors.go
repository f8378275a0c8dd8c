package apply

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one thing that is wrong with the documents.
type Error struct {
	File    string // empty: an entity that is in the database alone
	Line    int    // from 1; 0: the whole file
	Message string
}

// Error returns "file:line: message".
func (e Error) Error() string {
	switch {
	case e.File == "":
		return e.Message
	case e.Line == 0:
		return e.File + ": " + e.Message
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)
}

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
