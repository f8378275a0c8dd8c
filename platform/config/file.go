package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// maxFile bounds a configuration file, which has a few kilobytes: larger is a
// wrong file.
const maxFile = 1 << 20

// readFile reads the YAML file. False: it is not even YAML.
func (l *loader) readFile(file string) bool {
	content, message := readConfig(file)
	if message != "" {
		l.report(Origin{File: file}, "", message)
		return false
	}
	if line := firstInvalid(content); line > 0 {
		l.report(Origin{File: file, Line: line}, "", "the file is not UTF-8 text")
		return false
	}
	var document, second yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(content))
	switch err := decoder.Decode(&document); {
	case errors.Is(err, io.EOF): // empty, or comments alone
		return true
	case err != nil:
		l.syntax(file, err)
		return false
	}
	switch err := decoder.Decode(&second); {
	case errors.Is(err, io.EOF):
	case err != nil:
		l.syntax(file, err)
		return false
	default:
		l.report(Origin{File: file, Line: second.Line}, "", "a second document: a configuration file holds one")
		return false
	}
	l.group(&l.schema.root, document.Content[0])
	return true
}

func readConfig(file string) (content []byte, message string) {
	f, err := os.Open(file) //nolint:gosec // named by the operator
	if err != nil {
		return nil, "cannot read the file: " + reason(err)
	}
	defer func() { _ = f.Close() }()
	content, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	switch {
	case err != nil:
		return nil, "cannot read the file: " + reason(err)
	case len(content) > maxFile:
		return nil, fmt.Sprintf("the file is larger than %d KiB, which no configuration is", maxFile>>10)
	}
	return content, ""
}

// firstInvalid returns the line of the first byte that is not UTF-8 text, 0
// when all are.
func firstInvalid(content []byte) int {
	if utf8.Valid(content) {
		return 0
	}
	line := 1
	for len(content) > 0 {
		r, size := utf8.DecodeRune(content)
		if r == utf8.RuneError && size == 1 {
			break
		}
		if r == '\n' {
			line++
		}
		content = content[size:]
	}
	return line
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line ([0-9]+): )?`)

// syntax reports what the YAML parser said.
func (l *loader) syntax(file string, err error) {
	message := err.Error()
	m := yamlLine.FindStringSubmatch(message)
	line := 1
	if m != nil {
		message = message[len(m[0]):]
		if n, err := strconv.Atoi(m[1]); err == nil {
			line = n
		}
	}
	l.report(Origin{File: file, Line: line}, "", "not valid YAML: "+message)
}

// group reads the keys of a mapping into the fields under f.
func (l *loader) group(f *field, node *yaml.Node) {
	if l.indirect(f.path, node) || isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode || node.ShortTag() != "!!map" {
		l.reportAt(node, f.path, "must be "+kindStruct.wanted())
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.ShortTag() != "!!str" || key.Anchor != "" {
			l.reportAt(key, f.path, "a key must be a plain word: anchors and merge keys are not supported")
			continue
		}
		path := join(f.path, key.Value)
		if first, twice := seen[key.Value]; twice {
			l.reportAt(key, path, fmt.Sprintf("the key is given twice, first in line %d", first))
			continue
		}
		seen[key.Value] = key.Line
		target, isFile := f.child(key.Value)
		if target == nil {
			l.unknown(f, key)
			continue
		}
		l.member(f, target, isFile, key, value, seen)
	}
}

func (l *loader) unknown(f *field, key *yaml.Node) {
	message := "unknown key"
	if near := l.schema.suggest(f, key.Value); near != "" {
		message += "; did you mean " + near + "?"
	}
	name := key.Value
	if len(name) > 60 { // enough to recognise it
		name = strings.ToValidUTF8(name[:60], "") + "..."
	}
	l.reportAt(key, join(f.path, name), message)
}

func (l *loader) member(f, target *field, isFile bool, key, value *yaml.Node, seen map[string]int) {
	other := target.name
	if !isFile {
		other += fileSuffix
	}
	if line, both := seen[other]; both && target.kind.secret() {
		l.reportAt(key, join(f.path, key.Value), fmt.Sprintf("%s is given as well, in line %d: give one of them", other, line))
		return
	}
	switch {
	case target.kind == kindStruct:
		l.group(target, value)
	case isFile:
		l.secretFile(target, key, value)
	default:
		l.leafValue(target, key, value)
	}
}

func (l *loader) secretFile(f *field, key, value *yaml.Node) {
	path := f.path + fileSuffix
	if l.indirect(path, value) || isNull(value) {
		return
	}
	if value.Kind != yaml.ScalarNode || value.ShortTag() != "!!str" || value.Value == "" {
		l.reportAt(value, path, "must be the path of a file")
		l.bad[f.path] = true
		return
	}
	l.setFromFile(f, beside(l.source.File, value.Value), Origin{File: l.source.File, Line: key.Line})
}

func (l *loader) leafValue(f *field, key, value *yaml.Node) {
	if l.indirect(f.path, value) || isNull(value) { // "key:" with nothing leaves the default
		return
	}
	l.source.origins[f.path] = Origin{File: l.source.File, Line: key.Line}
	v := l.value.FieldByIndex(f.index)
	if f.kind.list() {
		elements, ok := l.list(f, value)
		if !ok {
			return
		}
		if message := assignList(v, elements); message != "" {
			l.reportAt(value, f.path, message)
		}
		return
	}
	if !scalarOf(f.kind, value) {
		l.reportAt(value, f.path, wrongType(f.kind, value))
		return
	}
	text := value.Value
	switch f.kind { //nolint:exhaustive // the rest is text already
	case kindInt: // YAML writes numbers in more ways than strconv.Atoi reads
		var n int
		if value.Decode(&n) != nil {
			l.reportAt(value, f.path, wrongType(f.kind, value))
			return
		}
		text = strconv.Itoa(n)
	case kindBool:
		text = strings.ToLower(text)
	}
	if message := assign(v, f.kind, text); message != "" {
		l.reportAt(value, f.path, message)
	}
}

func (l *loader) list(f *field, node *yaml.Node) (elements []string, ok bool) {
	if node.Kind != yaml.SequenceNode || node.ShortTag() != "!!seq" {
		l.reportAt(node, f.path, wrongType(f.kind, node))
		return nil, false
	}
	ok = true
	for i, e := range node.Content {
		path := fmt.Sprintf("%s[%d]", f.path, i)
		switch {
		case l.indirect(path, e):
			ok = false
		case e.Kind != yaml.ScalarNode || e.ShortTag() != "!!str":
			l.reportAt(e, path, wrongType(kindSecret, e))
			ok = false
		default:
			elements = append(elements, e.Value)
			l.source.origins[path] = Origin{File: l.source.File, Line: e.Line}
		}
	}
	if !ok {
		l.bad[f.path] = true
	}
	return elements, ok
}

// indirect refuses anchors and aliases: with them a line would not show what
// it sets.
func (l *loader) indirect(path string, node *yaml.Node) bool {
	if node.Kind != yaml.AliasNode && node.Anchor == "" {
		return false
	}
	l.reportAt(node, path, "anchors and aliases are not supported: write the value out")
	return true
}

func isNull(node *yaml.Node) bool { return node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null" }

func scalarOf(k kind, node *yaml.Node) bool {
	if node.Kind != yaml.ScalarNode {
		return false
	}
	switch tag := node.ShortTag(); k { //nolint:exhaustive // lists and groups are no scalars
	case kindInt:
		return tag == "!!int"
	case kindFloat:
		return tag == "!!float" || tag == "!!int"
	case kindBool:
		return tag == "!!bool"
	case kindDuration:
		return tag == "!!str" || tag == "!!int" // 0 is one
	default:
		return tag == "!!str"
	}
}

// wrongType says what was wanted. The value is shown where it is a plain one
// and no secret.
func wrongType(k kind, node *yaml.Node) string {
	if node.Kind != yaml.ScalarNode {
		return "must be " + k.wanted()
	}
	return mustBe(k, node.Value)
}

func (l *loader) reportAt(node *yaml.Node, path, message string) {
	l.report(Origin{File: l.source.File, Line: node.Line}, path, message)
}
