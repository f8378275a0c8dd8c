package apply

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/validate"
	"versola/platform/secret"
)

// Bounds of a set of documents, far above any deployment's: a larger one is a
// wrong path.
const (
	maxFile      = 16 << 20
	maxFiles     = 10_000
	maxDocuments = 200_000
)

// Documents is what was read from files. It may be applied several times.
type Documents struct {
	list []*document
	errs Errors
}

// Err returns what was wrong with reading, as [Errors], or nil. [Applier]
// reports it together with what validation finds.
func (docs *Documents) Err() error { return slices.Clone(docs.errs).orNil() }

// Len returns how many documents there are.
func (docs *Documents) Len() int { return len(docs.list) }

// Entities returns what the documents declare, but for people, in their order.
func (docs *Documents) Entities() []catalog.Entity {
	var out []catalog.Entity
	for _, d := range docs.list {
		if e, ok := d.spec.(catalog.Entity); ok {
			out = append(out, e)
		}
	}
	return out
}

type document struct {
	of    validate.Ref
	file  string
	line  int
	lines map[string]int
	// broken are fields that were reported already.
	broken map[string]bool
	spec   any // *catalog.EdgeSpec and so on, or *person
	// secrets are a client's as declared, newest first; nil: not declared.
	secrets  []secret.Text
	generate bool // make a secret where the client has none
}

// clientDocument is a client with what a document says beyond the spec.
type clientDocument struct {
	catalog.ClientSpec
	Secret         secret.Text   `yaml:"secret"`
	SecretList     []secret.Text `yaml:"secrets"`
	GenerateSecret bool          `yaml:"generate_secret"`
}

// person is a document of kind user.
type person struct {
	Directory         string              `yaml:"directory"`
	Phone             string              `yaml:"phone"`
	PhoneVerified     bool                `yaml:"phone_verified"`
	Email             string              `yaml:"email"`
	EmailVerified     bool                `yaml:"email_verified"`
	Username          string              `yaml:"username"`
	Disabled          bool                `yaml:"disabled"`
	Claims            map[string]any      `yaml:"claims"`
	Roles             map[string][]string `yaml:"roles"` // tenant -> roles
	Password          secret.Text         `yaml:"password"`
	TemporaryPassword secret.Text         `yaml:"temporary_password"`
}

// ParseFS reads every .yaml and .yml file of a file system, in the order of
// their names; hidden files and folders are passed over (a mounted ConfigMap
// has its files twice, once in such a folder). Variables are replaced in
// values; one that is not in vars is an error. What is wrong with the documents
// is kept in them ([Documents.Err]); the error is for files that cannot be read.
func ParseFS(files fs.FS, vars map[string]string) (*Documents, error) {
	docs := &Documents{}
	if err := docs.addFS(files, "", vars); err != nil {
		return nil, err
	}
	return docs, nil
}

// AddPath reads a file, or every file of a directory as [ParseFS] does.
func (docs *Documents) AddPath(name string, vars map[string]string) error {
	info, err := os.Stat(name)
	if err != nil {
		return fmt.Errorf("look for documents: %w", err)
	}
	if info.IsDir() {
		return docs.addFS(os.DirFS(name), name, vars)
	}
	f, err := os.Open(filepath.Clean(name))
	if err != nil {
		return fmt.Errorf("read documents: %w", err)
	}
	err = docs.Add(name, f, vars)
	return errors.Join(err, f.Close())
}

// addFS reads the files of a directory, whose name is put before theirs.
func (docs *Documents) addFS(files fs.FS, dir string, vars map[string]string) error {
	var names []string
	err := fs.WalkDir(files, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if hidden := name != "." && strings.HasPrefix(d.Name(), "."); hidden {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if d.Type().IsDir() {
			return nil
		}
		ext := path.Ext(name)
		wanted := ext == ".yaml" || ext == ".yml"
		if err := regular(files, name, d, wanted); err != nil {
			return err
		}
		if wanted {
			names = append(names, name)
		}
		if len(names) > maxFiles {
			return fmt.Errorf("more than %d files", maxFiles)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for documents: %w", err)
	}
	for _, name := range names {
		f, err := files.Open(name)
		if err != nil {
			return fmt.Errorf("read documents: %w", err)
		}
		err = docs.Add(path.Join(dir, name), f, vars)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// regular refuses what has a document's name and is no file, and a link to a
// directory: its documents would be passed over, and pruned.
func regular(files fs.FS, name string, d fs.DirEntry, wanted bool) error {
	link := d.Type()&fs.ModeSymlink != 0
	if !wanted && !link {
		return nil
	}
	info, err := fs.Stat(files, name)
	switch {
	case err != nil && wanted:
		return err
	case err != nil: // a link to nowhere, which names no document
		return nil
	case link && info.IsDir():
		return fmt.Errorf("%s is a link to a directory, which is not followed", name)
	case wanted && !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a file", name)
	}
	return nil
}

// Add reads the documents of one file.
func (docs *Documents) Add(name string, r io.Reader, vars map[string]string) error {
	raw, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if len(raw) > maxFile {
		return fmt.Errorf("read %s: more than %d bytes", name, maxFile)
	}
	y := yaml.NewDecoder(strings.NewReader(string(raw)))
	for {
		var n yaml.Node
		err := y.Decode(&n)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			docs.errs = append(docs.errs, syntaxError(name, err))
			return nil
		}
		if len(docs.list) >= maxDocuments {
			return fmt.Errorf("read %s: more than %d documents", name, maxDocuments)
		}
		if len(n.Content) == 1 && n.Content[0].Tag != "!!null" {
			docs.document(&decoder{file: name, vars: vars, errs: &docs.errs, lines: map[string]int{}, broken: map[string]bool{}}, n.Content[0])
		}
	}
}

var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// syntaxError takes the line out of the library's message.
func syntaxError(file string, err error) Error {
	msg := err.Error()
	m := yamlLine.FindStringSubmatch(msg)
	if m == nil {
		return Error{File: file, Message: msg}
	}
	line, _ := strconv.Atoi(m[1])
	return Error{File: file, Line: line, Message: msg[len(m[0]):]}
}

// document reads one document. Where its kind is known it is kept even with
// errors, so that references to it are not reported as dangling too.
func (docs *Documents) document(d *decoder, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, "", "a document is a mapping with a kind")
		return
	}
	if !d.plain(n, "") {
		return
	}
	var kind *yaml.Node
	rest := *n
	rest.Content = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Value != "kind":
			rest.Content = append(rest.Content, key, value)
		case kind != nil:
			d.fail(key, "", "member %q is there twice, first in line %d", "kind", kind.Line)
		default:
			kind = value
		}
	}
	doc := &document{file: d.file, line: n.Line, lines: d.lines, broken: d.broken}
	if kind == nil {
		d.fail(n, "", "a document needs a kind: one of %v", slices.Sorted(maps.Keys(kinds)))
		return
	}
	if !d.plain(kind, "kind") {
		return
	}
	name, ok := d.text(kind, "kind", "a text")
	if !ok {
		return
	}
	read, ok := kinds[name]
	if !ok {
		d.fail(kind, "kind", "%.64q is unknown: one of %v", name, slices.Sorted(maps.Keys(kinds)))
		return
	}
	read(d, &rest, doc)
	doc.of.Kind = name
	docs.list = append(docs.list, doc)
}

// kinds reads the members of each kind of document.
var kinds = func() map[string]func(*decoder, *yaml.Node, *document) {
	out := map[string]func(*decoder, *yaml.Node, *document){}
	for _, k := range catalog.Kinds {
		out[k.Name] = func(d *decoder, n *yaml.Node, doc *document) {
			spec := k.New()
			d.value(n, reflect.ValueOf(spec).Elem(), "")
			doc.spec, doc.of = spec, spec.Ref()
		}
	}
	out[validate.KindClient] = readClient
	out[validate.KindUser] = readPerson
	return out
}()

func readClient(d *decoder, n *yaml.Node, doc *document) {
	c := &clientDocument{}
	d.value(n, reflect.ValueOf(c).Elem(), "")
	doc.spec, doc.of.Tenant, doc.of.ID = &c.ClientSpec, c.Tenant, c.ID
	doc.generate = c.GenerateSecret
	_, one := d.lines["secret"]
	_, several := d.lines["secrets"]
	if several {
		doc.secrets = c.SecretList
	}
	if one {
		doc.secrets = []secret.Text{c.Secret}
	}
	if one && several || (one || several) && c.GenerateSecret {
		d.failAt(n, "secret", "only one of secret, secrets and generate_secret may be there")
	}
	for i, s := range doc.secrets {
		if err := validate.Secret(s.Reveal()); err != nil {
			field := "secret"
			if several {
				field = fmt.Sprintf("secrets[%d]", i)
			}
			d.failAt(n, field, err.Error())
		}
	}
}

// failAt reports a field at its own line.
func (d *decoder) failAt(n *yaml.Node, field, msg string) {
	d.fail(&yaml.Node{Line: lineOf(d.lines, field, n.Line)}, field, "%s", msg)
}

func readPerson(d *decoder, n *yaml.Node, doc *document) {
	p := &person{}
	d.value(n, reflect.ValueOf(p).Elem(), "")
	doc.spec = p
	// The name in messages and logs, which show no full phone number.
	doc.of.Tenant, doc.of.ID = p.Directory, cmp.Or(p.Username, p.Email)
	if doc.of.ID == "" && p.Phone != "" {
		doc.of.ID = user.Identifier{Kind: user.KindPhone, Value: p.Phone}.Masked()
	}
}
