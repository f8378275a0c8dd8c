package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the effective configuration as YAML, each value that is no
// default with a comment that says where it came from. Secrets are redacted.
func Print[T any](cfg *T, src *Source) ([]byte, error) {
	var node yaml.Node
	if err := node.Encode(cfg); err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	annotate(&node, "", src)
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	if err := enc.Encode(&node); err != nil {
		return nil, fmt.Errorf("encode configuration: %w", err)
	}
	return b.Bytes(), enc.Close()
}

func annotate(node *yaml.Node, path string, src *Source) {
	if node.Kind != yaml.MappingNode {
		return
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		at := join(path, key.Value)
		if o, ok := src.Origin(at); ok {
			comment := o.File
			if o.Line > 0 {
				comment = fmt.Sprintf("%s:%d", o.File, o.Line)
			}
			if value.Kind == yaml.ScalarNode || len(value.Content) == 0 {
				value.LineComment = comment
			} else {
				key.LineComment = comment
			}
		}
		annotate(value, at, src)
	}
}

// Reference returns the reference of T's keys as a Markdown table.
func Reference[T any]() string {
	s := schemaOf(reflect.TypeFor[T](), Prefix)
	var b strings.Builder
	b.WriteString("| key | environment variable | default | meaning |\n|---|---|---|---|\n")
	writeReference(&b, &s.root)
	return b.String()
}

func writeReference(b *strings.Builder, f *field) {
	escape := strings.NewReplacer("|", `\|`, "\n", " ").Replace
	for _, c := range f.children {
		switch {
		case c.kind == kindStruct:
			if c.doc != "" {
				fmt.Fprintf(b, "| **`%s`** | | | %s |\n", c.path, escape(c.doc))
			}
			writeReference(b, c)
			continue
		case c.kind.secret():
			fmt.Fprintf(b, "| `%s`, `%s` | `%s`, `%s` |", c.path, c.name+fileSuffix, c.env, c.env+strings.ToUpper(fileSuffix))
		default:
			fmt.Fprintf(b, "| `%s` | `%s` |", c.path, c.env)
		}
		def := ""
		if c.def != "" {
			def = "`" + c.def + "`"
		}
		fmt.Fprintf(b, " %s | %s |\n", def, escape(c.doc))
	}
}
