package export

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"go.yaml.in/yaml/v3"

	"versola/modules/central/catalog"
)

// Options of an export.
type Options struct {
	// Open opens clients' secrets, to be written in plain; nil: they are left
	// out.
	Open catalog.Opener
	// Tenant limits the export to one tenant and what belongs to it; empty: all.
	Tenant string
}

// Documents gives each entity's document to write, with the file that it
// belongs in: one for each kind, in a folder for each tenant.
func Documents(s *catalog.Snapshot, o Options, write func(file string, document []byte) error) error {
	for _, k := range catalog.Kinds {
		for i := range k.Len(s) {
			e := k.At(s, i)
			if !o.has(e.Ref()) {
				continue
			}
			raw, err := document(e, o.Open)
			if err != nil {
				return fmt.Errorf("export %s: %w", e.Ref(), err)
			}
			if err := write(file(e.Ref()), raw); err != nil {
				return err
			}
		}
	}
	return nil
}

// Write writes all documents as one stream.
func Write(w io.Writer, s *catalog.Snapshot, o Options) error {
	first := true
	return Documents(s, o, func(_ string, raw []byte) error {
		if !first {
			raw = append([]byte("---\n"), raw...)
		}
		first = false
		if _, err := w.Write(raw); err != nil {
			return fmt.Errorf("write documents: %w", err)
		}
		return nil
	})
}

func (o Options) has(r catalog.Ref) bool {
	return o.Tenant == "" || r.Tenant == o.Tenant || r.Kind == catalog.KindNameTenant && r.ID == o.Tenant
}

func file(r catalog.Ref) string {
	switch {
	case r.Kind == catalog.KindNameTenant:
		return path.Join("tenants", r.ID, "tenant.yaml")
	case r.Tenant != "":
		return path.Join("tenants", r.Tenant, r.Kind+".yaml")
	}
	return r.Kind + ".yaml"
}

// document returns the YAML of one entity.
func document(e catalog.Entity, open catalog.Opener) ([]byte, error) {
	out := &yaml.Node{Kind: yaml.MappingNode}
	add(out, "kind", text(e.Ref().Kind))
	client, isClient := e.(*catalog.ClientSpec)
	if isClient {
		bare := *client
		bare.Secrets = nil
		e = &bare
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	body, err := node(d)
	if err != nil {
		return nil, err
	}
	for i := 0; i+1 < len(body.Content); i += 2 {
		if !empty(body.Content[i+1]) {
			out.Content = append(out.Content, body.Content[i], body.Content[i+1])
		}
	}
	if isClient && len(client.Secrets) > 0 {
		if err := secrets(out, client, open); err != nil {
			return nil, err
		}
	}
	var b bytes.Buffer
	y := yaml.NewEncoder(&b)
	y.SetIndent(2)
	if err := y.Encode(out); err != nil {
		return nil, err
	}
	return b.Bytes(), y.Close()
}

func secrets(out *yaml.Node, c *catalog.ClientSpec, open catalog.Opener) error {
	if open == nil {
		add(out, "generate_secret", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true"})
		return nil
	}
	list := &yaml.Node{Kind: yaml.SequenceNode}
	for _, s := range c.Secrets {
		plain, err := open(s.Sealed, catalog.ClientSecretContext(c.Tenant, c.ID, s.ID))
		if err != nil {
			return fmt.Errorf("open secret %s: %w", s.ID, err)
		}
		list.Content = append(list.Content, text(string(plain)))
	}
	add(out, "secrets", list)
	return nil
}

func add(mapping *yaml.Node, name string, value *yaml.Node) {
	mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name}, value)
}

// empty members are what is declared by leaving them out.
func empty(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.MappingNode, yaml.SequenceNode:
		return len(n.Content) == 0
	}
	return n.Tag == "!!null" || n.Tag == "!!str" && n.Value == ""
}

// text is a string that package apply reads back: "${" begins a variable there.
func text(s string) *yaml.Node {
	n := &yaml.Node{}
	n.SetString(strings.ReplaceAll(s, "${", "$${"))
	return n
}

// node turns the next JSON value into YAML, members in their order.
func node(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case json.Delim:
		out := &yaml.Node{Kind: yaml.SequenceNode}
		if t == '{' {
			out.Kind = yaml.MappingNode
		}
		for d.More() {
			if out.Kind == yaml.MappingNode {
				name, err := d.Token()
				if err != nil {
					return nil, err
				}
				key, ok := name.(string)
				if !ok {
					return nil, errors.New("a member without a name")
				}
				// A name is never replaced by a variable's value.
				keyNode := &yaml.Node{}
				keyNode.SetString(key)
				out.Content = append(out.Content, keyNode)
			}
			item, err := node(d)
			if err != nil {
				return nil, err
			}
			out.Content = append(out.Content, item)
		}
		_, err := d.Token() // the closing bracket
		return out, err
	case string:
		return text(t), nil
	case json.Number:
		tag := "!!int"
		if strings.ContainsAny(t.String(), ".eE") {
			tag = "!!float"
		}
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: t.String()}, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(t)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
