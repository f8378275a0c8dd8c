package adminapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// Forms of output.
const (
	Table = "table"
	JSON  = "json"
	YAML  = "yaml"
)

// maxPages ends a list that never does.
const maxPages = 100_000

// Body makes the JSON object that is sent: raw, in YAML or JSON, with members
// set by "a.b=VALUE". Errors: what is no object, a member below one that is
// none.
func Body(raw []byte, set []string) ([]byte, error) {
	out := map[string]any{}
	if len(bytes.TrimSpace(raw)) > 0 {
		d := yaml.NewDecoder(bytes.NewReader(raw))
		if err := d.Decode(&out); err != nil {
			return nil, fmt.Errorf("read an object: %w", err)
		}
		if err := d.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
			return nil, errors.New("more than one document")
		}
	}
	for _, s := range set {
		path, value, ok := strings.Cut(s, "=")
		if !ok || path == "" {
			return nil, fmt.Errorf("--set %s: is a.b=VALUE", s)
		}
		var v any
		if err := yaml.Unmarshal([]byte(value), &v); err != nil {
			return nil, fmt.Errorf("--set %s: %w", path, err)
		}
		if err := put(out, strings.Split(path, "."), v); err != nil {
			return nil, fmt.Errorf("--set %s: %w", path, err)
		}
	}
	body, err := json.Marshal(out)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return body, nil
}

func put(in map[string]any, path []string, v any) error {
	if len(path) == 1 {
		in[path[0]] = v
		return nil
	}
	next, ok := in[path[0]].(map[string]any)
	if !ok {
		if in[path[0]] != nil {
			return fmt.Errorf("%s is no object", path[0])
		}
		next = map[string]any{}
		in[path[0]] = next
	}
	return put(next, path[1:], v)
}

// page is a page of a list.
type page struct {
	Items []json.RawMessage `json:"items"`
	Total *int64            `json:"total,omitempty"`
	Next  string            `json:"next,omitempty"`
}

// Join puts the pages that follow into the first. Errors: those of more, a list
// that goes round.
func Join(first *Answer, more func(after string) (*Answer, error)) (*Answer, error) {
	var whole page
	if err := json.Unmarshal(first.Body, &whole); err != nil {
		return nil, fmt.Errorf("read a page: %w", err)
	}
	seen := 0
	for whole.Next != "" {
		if seen++; seen > maxPages {
			return nil, fmt.Errorf("the list has more than %d pages", maxPages)
		}
		a, err := more(whole.Next)
		if err != nil {
			return nil, err
		}
		var p page
		if err := json.Unmarshal(a.Body, &p); err != nil {
			return nil, fmt.Errorf("read a page: %w", err)
		}
		if p.Next == whole.Next {
			return nil, errors.New("the list goes round")
		}
		whole.Items, whole.Next = append(whole.Items, p.Items...), p.Next
	}
	body, err := json.Marshal(whole)
	if err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return &Answer{Status: first.Status, Header: first.Header, Body: body}, nil
}

// Print writes an answer in a form; "" is a table for lists and YAML for the
// rest. What is no JSON is written as it came.
func Print(w io.Writer, a *Answer, form string) error {
	if len(a.Body) == 0 {
		return nil
	}
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	if !strings.HasSuffix(media, "json") || strings.HasSuffix(media, "ndjson") {
		_, err := w.Write(a.Body)
		return err
	}
	var list page
	isList := json.Unmarshal(a.Body, &list) == nil && list.Items != nil
	switch {
	case form == JSON:
		var out bytes.Buffer
		if err := json.Indent(&out, a.Body, "", "  "); err != nil {
			return fmt.Errorf("read the answer: %w", err)
		}
		out.WriteByte('\n')
		_, err := out.WriteTo(w)
		return err
	case form == YAML || form == "" && !isList:
		return printYAML(w, a.Body)
	case !isList:
		list.Items = []json.RawMessage{a.Body}
	}
	return printTable(w, list)
}

// printYAML writes JSON as YAML, its members in their order.
func printYAML(w io.Writer, body []byte) error {
	var n yaml.Node
	if err := yaml.Unmarshal(escaped(body), &n); err != nil {
		return fmt.Errorf("read the answer: %w", err)
	}
	block(&n)
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(&n); err != nil {
		return fmt.Errorf("write YAML: %w", err)
	}
	return e.Close()
}

// escaped writes the characters as escapes that JSON takes as they are and YAML
// does not.
func escaped(body []byte) []byte {
	out := make([]byte, 0, len(body))
	for _, r := range string(body) {
		if r >= 0x7f && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
			out = fmt.Appendf(out, `\u%04x`, r)
			continue
		}
		out = utf8.AppendRune(out, r)
	}
	return out
}

func block(n *yaml.Node) {
	n.Style = 0
	for _, c := range n.Content {
		block(c)
	}
}
