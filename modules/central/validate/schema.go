package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Bounds of schemas.
const (
	maxSchema      = 64 << 10
	maxSchemaDepth = 32
	draft2020      = "https://json-schema.org/draft/2020-12/schema"
	schemaName     = "urn:versola:schema" // what references without an address are relative to
)

// noLoader refuses to fetch what a schema refers to.
type noLoader struct{}

// Load implements jsonschema.URLLoader.
func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%q is elsewhere: a schema has to be complete by itself", url)
}

// Schema checks a JSON Schema (2020-12) that refers to nothing outside itself.
func Schema(raw json.RawMessage) error {
	if len(raw) == 0 {
		return errors.New("is missing")
	}
	if len(raw) > maxSchema {
		return fmt.Errorf("has %d bytes, more than %d", len(raw), maxSchema)
	}
	if depth(raw) > maxSchemaDepth {
		return fmt.Errorf("is nested deeper than %d levels", maxSchemaDepth)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return errors.New("is not JSON")
	}
	object, ok := doc.(map[string]any)
	if !ok {
		return errors.New("is not an object")
	}
	if version, ok := object["$schema"]; ok && version != draft2020 {
		return fmt.Errorf("is of another version than %s", draft2020)
	}
	if err := localReferences(doc); err != nil {
		return err
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(noLoader{})
	if err := c.AddResource(schemaName, doc); err != nil {
		return fmt.Errorf("cannot be read: %s", firstLine(err))
	}
	if _, err := c.Compile(schemaName); err != nil {
		return fmt.Errorf("is not a JSON Schema: %s", firstLine(err))
	}
	return nil
}

// localReferences refuses references by an address, also to what the library
// has built in.
func localReferences(v any) error {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if err := localReferences(item); err != nil {
				return err
			}
		}
	case map[string]any:
		for name, item := range v {
			if target, ok := item.(string); ok && (name == "$ref" || name == "$dynamicRef") && !strings.HasPrefix(target, "#") {
				return fmt.Errorf("%s %q is elsewhere: a schema has to be complete by itself", name, target)
			}
			if _, ok := item.(string); ok && name == "$id" {
				return errors.New("has an $id: it is named by its type")
			}
			if err := localReferences(item); err != nil {
				return err
			}
		}
	}
	return nil
}

// depth returns how deep the brackets of a JSON text are nested.
func depth(raw []byte) int {
	deepest, now := 0, 0
	text := false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func firstLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return strings.TrimPrefix(strings.TrimSpace(lines[len(lines)-1]), "- ")
}
