package openapi

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Document is the OpenAPI document, in YAML.
//
//go:embed openapi.yaml
var Document []byte

// Operation is one operation of the document.
type Operation struct {
	ID       string
	Method   string // in capitals
	Path     string // with parameters as {name}
	Filtered bool   // see the package comment
	Public   bool   // needs no caller: "security: []"
	// Idempotent operations take an Idempotency-Key.
	Idempotent bool
}

// operation is what is read of one; the rest is for readers and validators.
type operation struct {
	ID       string       `yaml:"operationId"`
	Filtered bool         `yaml:"x-versola-filtered"`
	Security *[]yaml.Node `yaml:"security"`

	Parameters []struct {
		Ref string `yaml:"$ref"`
	} `yaml:"parameters"`
}

const idempotencyKey = "#/components/parameters/idempotencyKey"

var methods = []string{"get", "put", "post", "delete", "patch"}

// Operations returns all operations, ordered by path and method. Errors: a
// document that cannot be read, an operation without an id, or two with one.
func Operations() ([]Operation, error) {
	var doc struct {
		Paths map[string]map[string]yaml.Node `yaml:"paths"`
	}
	if err := yaml.Unmarshal(Document, &doc); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	var out []Operation
	seen := map[string]string{}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths)) {
		for _, method := range methods {
			node, ok := doc.Paths[path][method]
			if !ok {
				continue
			}
			var o operation
			if err := node.Decode(&o); err != nil {
				return nil, fmt.Errorf("read %s %s: %w", method, path, err)
			}
			if o.ID == "" {
				return nil, fmt.Errorf("%s %s: %w", method, path, errors.New("has no operationId"))
			}
			if other, twice := seen[o.ID]; twice {
				return nil, fmt.Errorf("operationId %s is that of %s and of %s", o.ID, other, path)
			}
			seen[o.ID] = path
			idempotent := false
			for _, p := range o.Parameters {
				idempotent = idempotent || p.Ref == idempotencyKey
			}
			out = append(out, Operation{Idempotent: idempotent, ID: o.ID, Method: strings.ToUpper(method), Path: path,
				Filtered: o.Filtered, Public: o.Security != nil && len(*o.Security) == 0})
		}
	}
	return out, nil
}
