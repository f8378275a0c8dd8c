package config

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with a configuration.
type Problem struct {
	File    string // the file, the environment variable or the flag; "" when the value came from nowhere
	Line    int    // 1-based; 0 outside a file
	Path    string // the key, as "edge.public_url"; "" for the file as a whole
	Message string
}

// String formats the problem as compilers do, "file:line: key: message".
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d", p.Line)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems are all that is wrong; nil when nothing is.
type Problems []Problem

// Error lists every problem, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.String()
	}
	return strings.Join(lines, "\n")
}

// Err returns the problems as an error, nil when there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// sort puts the file's problems first, by line, then the rest by name.
func (p Problems) sort(file string) {
	rank := func(x Problem) int {
		switch {
		case x.File == file && x.Line > 0:
			return 0
		case x.File == file || x.File == "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(p, func(a, b Problem) int {
		return cmp.Or(rank(a)-rank(b), strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Path, b.Path))
	})
}
