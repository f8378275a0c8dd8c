package adminapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/width"
)

const (
	// maxColumns is what a terminal's line has room for.
	maxColumns = 8
	// maxCell bounds a cell of a table, in columns of a terminal.
	maxCell = 48
)

// printTable writes items a line each. A column is a member that is text, a
// number or a truth value, or that has texts alone; one whose values are all too
// long for a cell, such as hashes, is left to the other forms.
func printTable(w io.Writer, list page) error {
	var columns []string
	fits := map[string]bool{}
	rows := make([]map[string]string, len(list.Items))
	for i, item := range list.Items {
		var n yaml.Node
		if err := yaml.Unmarshal(escaped(item), &n); err != nil {
			return fmt.Errorf("read an item: %w", err)
		}
		rows[i] = map[string]string{}
		if len(n.Content) == 0 || n.Content[0].Kind != yaml.MappingNode {
			return errors.New("read an item: it is no object")
		}
		for j := 0; j+1 < len(n.Content[0].Content); j += 2 {
			name := n.Content[0].Content[j].Value
			value, ok := cell(n.Content[0].Content[j+1])
			if !ok {
				continue
			}
			rows[i][name] = clip(value)
			fits[name] = fits[name] || rows[i][name] == value
			if !slices.Contains(columns, name) {
				columns = append(columns, name)
			}
		}
	}
	columns = slices.DeleteFunc(columns, func(name string) bool { return !fits[name] && len(columns) > 1 })
	columns = columns[:min(len(columns), maxColumns)]
	if len(rows) == 0 {
		_, err := fmt.Fprintln(w, "(none)")
		return err
	}
	if err := align(w, columns, rows); err != nil {
		return fmt.Errorf("write a table: %w", err)
	}
	if list.Next != "" {
		_, err := fmt.Fprintf(w, "more: --after %s, or --all\n", Printable(list.Next))
		return err
	}
	return nil
}

// align writes rows with their columns one below the other.
func align(w io.Writer, columns []string, rows []map[string]string) error {
	widths := make([]int, len(columns))
	for i, name := range columns {
		widths[i] = columnsOf(name)
		for _, row := range rows {
			widths[i] = max(widths[i], columnsOf(row[name]))
		}
	}
	out := bufio.NewWriter(w)
	line := func(text func(name string) string) {
		var b strings.Builder
		for i, name := range columns {
			b.WriteString(text(name))
			b.WriteString(strings.Repeat(" ", widths[i]-columnsOf(text(name))+2))
		}
		_, _ = out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	line(strings.ToUpper)
	for _, row := range rows {
		line(func(name string) string { return row[name] })
	}
	return out.Flush()
}

// cell returns a value as a table has it; false for what has no place in one.
func cell(n *yaml.Node) (string, bool) {
	switch n.Kind {
	case yaml.ScalarNode:
		if n.Tag == "!!null" {
			return "", true
		}
		return Printable(n.Value), true
	case yaml.SequenceNode, yaml.MappingNode:
		var parts []string
		step := 1
		if n.Kind == yaml.MappingNode {
			step = 2
		}
		for i := 0; i+step <= len(n.Content); i += step {
			value := n.Content[i+step-1]
			if value.Kind != yaml.ScalarNode || value.Tag != "!!str" {
				return "", false
			}
			text := Printable(value.Value)
			if step == 2 {
				text = Printable(n.Content[i].Value) + "=" + text
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ", "), true
	}
	return "", false
}

// clip cuts a text to what a cell has room for.
func clip(text string) string {
	if columnsOf(text) <= maxCell {
		return text
	}
	at := 0
	for i, r := range text {
		if at += columns(r); at > maxCell-1 {
			return text[:i] + "…"
		}
	}
	return text
}

// columnsOf returns how many columns of a terminal a text takes.
func columnsOf(text string) int {
	n := 0
	for _, r := range text {
		n += columns(r)
	}
	return n
}

func columns(r rune) int {
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}
