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

	Tag     string      // what it is about
	Summary string      // one line
	Query   []Parameter // of the query, in the document's order
	// Versioned operations need the ETag of what they change in If-Match.
	Versioned bool
	Body      string // media type of what is sent; "" for nothing
	NeedsBody bool   // what is sent cannot be left out
}

// operation is what is read of one; the rest is for readers and validators.
type operation struct {
	ID       string       `yaml:"operationId"`
	Filtered bool         `yaml:"x-versola-filtered"`
	Security *[]yaml.Node `yaml:"security"`
	Tags     []string     `yaml:"tags"`
	Summary  string       `yaml:"summary"`

	Parameters  []parameter `yaml:"parameters"`
	RequestBody struct {
		Required bool                 `yaml:"required"`
		Content  map[string]yaml.Node `yaml:"content"`
	} `yaml:"requestBody"`
}

const (
	idempotencyKey = sharedParameters + "idempotencyKey"
	ifMatch        = sharedParameters + "ifMatch"
)

var methods = []string{"get", "put", "post", "delete", "patch"}

// Operations returns all operations, ordered by path and method. Errors: a
// document that cannot be read, an operation without an id, or two with one.
func Operations() ([]Operation, error) {
	var doc struct {
		Paths      map[string]map[string]yaml.Node `yaml:"paths"`
		Components components                      `yaml:"components"`
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
			op := Operation{ID: o.ID, Method: strings.ToUpper(method), Path: path, Filtered: o.Filtered, Summary: o.Summary,
				Public: o.Security != nil && len(*o.Security) == 0, Tag: strings.Join(o.Tags, " "),
				Body: strings.Join(slices.Sorted(maps.Keys(o.RequestBody.Content)), " "), NeedsBody: o.RequestBody.Required}
			for _, p := range o.Parameters {
				op.Idempotent = op.Idempotent || p.Ref == idempotencyKey
				op.Versioned = op.Versioned || p.Ref == ifMatch
				if p = doc.Components.resolve(p); p.In == "query" {
					op.Query = append(op.Query, Parameter{p.Name, p.Schema})
				}
			}
			out = append(out, op)
		}
	}
	return out, nil
}
