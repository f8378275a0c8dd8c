package app

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"versola/platform/secret"
)

// initOptions says what configuration to write.
type initOptions struct {
	role, profile, out, secretsDir string
	force                          bool
}

// newFile is a file to be written.
type newFile struct {
	path    string
	content string
}

// write makes the configuration and its secrets. Nothing is written when any
// file exists, unless forced. It returns the paths that were written.
func (o initOptions) write(stdout io.Writer) (written []string, err error) {
	r, err := parseRoles(o.role, true)
	if err != nil {
		return nil, err
	}
	secrets, err := newSecrets(r)
	if err != nil {
		return nil, err
	}
	var files []newFile
	reference := inline
	if o.secretsDir != "" {
		folder, err := o.secretsReference()
		if err != nil {
			return nil, err
		}
		reference = inFiles(folder)
		for _, s := range secrets {
			files = append(files, newFile{filepath.Join(o.secretsDir, s.file()), s.value + "\n"})
		}
	}
	text := configText(o.role, r, o.profile, secrets, reference)
	if o.out == "-" {
		if _, err := io.WriteString(stdout, text); err != nil {
			return nil, fmt.Errorf("write configuration: %w", err)
		}
	} else {
		files = append(files, newFile{o.out, text}) // last: it refers to the others
	}
	return writeAll(files, o.secretsDir, o.force)
}

func writeAll(files []newFile, secretsDir string, force bool) (written []string, err error) {
	for _, f := range files {
		if !force && exists(f.path) {
			return nil, fmt.Errorf("%s exists already; nothing was written (--force overwrites)", f.path)
		}
	}
	if secretsDir != "" {
		if err := os.MkdirAll(secretsDir, 0o700); err != nil {
			return nil, fmt.Errorf("make directory of secrets: %w", err)
		}
	}
	for _, f := range files {
		if err := writePrivate(f, force); err != nil {
			return written, err
		}
		written = append(written, f.path)
	}
	return written, nil
}

// secretsReference is the directory of secrets as the configuration names it:
// relative to the configuration where both were given relative.
func (o initOptions) secretsReference() (string, error) {
	if o.out != "-" && !filepath.IsAbs(o.out) && !filepath.IsAbs(o.secretsDir) {
		if rel, err := filepath.Rel(filepath.Dir(o.out), o.secretsDir); err == nil {
			return rel, nil
		}
	}
	abs, err := filepath.Abs(o.secretsDir)
	if err != nil {
		return "", fmt.Errorf("locate directory of secrets: %w", err)
	}
	return abs, nil
}

// writePrivate writes a file that its owner alone reads, whole or not at all.
func writePrivate(f newFile, force bool) error {
	tmp, err := os.CreateTemp(filepath.Dir(f.path), ".versola-*") // mode 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	defer func() { _ = os.Remove(tmp.Name()) }()
	_, err = tmp.WriteString(f.content)
	if err := errors.Join(err, tmp.Sync(), tmp.Close()); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	place := os.Link // does not replace what appeared meanwhile
	if force {
		place = os.Rename
	}
	if err := place(tmp.Name(), f.path); err != nil {
		return fmt.Errorf("write %s: %w", f.path, err)
	}
	return nil
}

// newSecret is a secret of the configuration to be.
type newSecret struct {
	key   string // of the configuration: "keys.tokens"
	value string
	list  bool
}

// file is the secret's file name: "keys-tokens".
func (s newSecret) file() string {
	return strings.NewReplacer(".", "-", "_", "-").Replace(s.key)
}

// newSecrets makes what the roles need.
func newSecrets(r roles) ([]newSecret, error) {
	var all []newSecret
	add := func(key string, list bool) error {
		k, err := secret.GenerateKey(rand.Reader)
		if err != nil {
			return err
		}
		all = append(all, newSecret{key, k.Reveal(), list})
		return nil
	}
	if r.usesDatabase() {
		all = append(all, newSecret{key: "database.url", value: "postgres://versola@database.example.com:5432/versola?sslmode=verify-full"})
		if err := errors.Join(add("keys.encryption", true), add("keys.tokens", true), add("keys.pepper", false)); err != nil {
			return nil, err
		}
	}
	if r.edge {
		all = append(all, newSecret{key: "edge.database.url", value: "postgres://versola@edge-database.example.com:5432/edge?sslmode=verify-full"})
		if err := add("edge.session_keys", true); err != nil {
			return nil, err
		}
		keys, err := GenerateEdgeKeys()
		if err != nil {
			return nil, err
		}
		all = append(all, newSecret{key: "edge.private_keys", value: string(keys)})
	}
	return all, nil
}

// reference writes the line that gives a secret, without indentation.
type reference func(name string, s newSecret) string

func inline(name string, s newSecret) string {
	value := "'" + strings.ReplaceAll(s.value, "'", "''") + "'"
	if s.list {
		value = "[" + value + "]"
	}
	return name + ": " + value
}

func inFiles(folder string) reference {
	return func(name string, s newSecret) string {
		return fmt.Sprintf("%s_file: %q", name, filepath.Join(folder, s.file()))
	}
}
