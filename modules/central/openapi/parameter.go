package openapi

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Parameter is one of an operation's query.
type Parameter struct {
	Name   string
	schema schema
}

// schema is what the document says of a parameter's values.
type schema struct {
	Ref       string   `yaml:"$ref"`
	Type      string   `yaml:"type"`
	Format    string   `yaml:"format"`
	Enum      []string `yaml:"enum"`
	MaxLength int      `yaml:"maxLength"` // characters; 0: no bound
	Minimum   int64    `yaml:"minimum"`
	Maximum   int64    `yaml:"maximum"` // of integers, which all have both
}

// parameter is one, or refers to one of the document's components.
type parameter struct {
	Ref    string `yaml:"$ref"`
	Name   string `yaml:"name"`
	In     string `yaml:"in"`
	Schema schema `yaml:"schema"`
}

type components struct {
	Parameters map[string]parameter `yaml:"parameters"`
	Schemas    map[string]schema    `yaml:"schemas"`
}

const (
	sharedParameters = "#/components/parameters/"
	sharedSchemas    = "#/components/schemas/"
)

// resolve follows the references of a parameter.
func (c *components) resolve(p parameter) parameter {
	if name, shared := strings.CutPrefix(p.Ref, sharedParameters); shared {
		p = c.Parameters[name]
	}
	if name, shared := strings.CutPrefix(p.Schema.Ref, sharedSchemas); shared {
		p.Schema = c.Schemas[name]
	}
	return p
}

// Check tells what is wrong with a value: the document's schema, and that it
// is a text which a database can be asked for. The error follows the
// parameter's name.
func (p Parameter) Check(value string) error {
	s := p.schema
	switch {
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return fmt.Errorf("is not a text")
	case s.MaxLength > 0 && utf8.RuneCountInString(value) > s.MaxLength:
		return fmt.Errorf("has more than %d characters", s.MaxLength)
	case len(s.Enum) > 0 && !slices.Contains(s.Enum, value):
		return fmt.Errorf("is one of %s", strings.Join(s.Enum, ", "))
	case s.Type == "boolean" && value != "true" && value != "false":
		return fmt.Errorf("is true or false")
	case s.Type == "integer":
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < s.Minimum || n > s.Maximum || strconv.FormatInt(n, 10) != value {
			return fmt.Errorf("is a number from %d to %d", s.Minimum, s.Maximum)
		}
	case s.Format == "date-time":
		// Years beyond four digits are none of RFC 3339, and no database's.
		if at, err := time.Parse(time.RFC3339, value); err != nil || at.Year() < 1 || at.Year() > 9999 {
			return fmt.Errorf("is a time such as 2026-01-31T12:00:00Z")
		}
	}
	return nil
}
