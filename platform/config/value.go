package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxSecretFile bounds a secret's file: the largest secret is a key set of a
// few kilobytes.
const maxSecretFile = 64 << 10

// assign sets a field from text, a list from its comma-separated elements. It
// returns what is wrong, "" when nothing is; a secret's text is never shown.
func assign(v reflect.Value, k kind, text string) string {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return "is not valid text"
	}
	switch k {
	case kindString, kindSecret:
		v.SetString(text)
	case kindInt:
		n, err := strconv.Atoi(text)
		if err != nil {
			return mustBe(k, text)
		}
		v.SetInt(int64(n))
	case kindFloat:
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
			return mustBe(k, text)
		}
		v.SetFloat(n)
	case kindBool:
		if text != "true" && text != "false" {
			return mustBe(k, text)
		}
		v.SetBool(text == "true")
	case kindDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return mustBe(k, text)
		}
		v.SetInt(int64(d))
	case kindStrings, kindSecrets:
		return assignList(v, strings.Split(text, ","))
	case kindStruct:
		return mustBe(k, text)
	}
	return ""
}

func assignList(v reflect.Value, elements []string) string {
	list := reflect.MakeSlice(v.Type(), len(elements), len(elements))
	for i, e := range elements {
		if e = strings.TrimSpace(e); e == "" {
			return fmt.Sprintf("element %d is empty", i+1)
		}
		list.Index(i).SetString(e)
	}
	v.Set(list)
	return ""
}

func mustBe(k kind, got string) string {
	if k.secret() {
		return "must be " + k.wanted()
	}
	return fmt.Sprintf("must be %s, not %s", k.wanted(), shown(got))
}

// shown quotes a value for a message, shortened.
func shown(text string) string {
	const most = 60 // enough to recognise it
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return strconv.Quote(text)
}

// setFromFile sets a secret, or a list of secrets with one a line, from a file.
func (l *loader) setFromFile(f *field, path string, o Origin) {
	l.source.origins[f.path] = o
	text, message := readSecret(path)
	if message != "" {
		l.report(o, f.path+fileSuffix, message)
		l.bad[f.path] = true
		return
	}
	v := l.value.FieldByIndex(f.index)
	if f.kind == kindSecret {
		v.SetString(text)
		return
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	_ = assignList(v, lines) // no element is empty
}

// readSecret reads a secret's file without the line end. What is wrong names
// the path and never the content.
func readSecret(path string) (text, message string) {
	info, err := os.Stat(path)
	if err == nil && !info.Mode().IsRegular() {
		return "", path + " is not a file"
	}
	f, err := os.Open(path) //nolint:gosec // named by the operator
	if err != nil {
		return "", "cannot read " + path + ": " + reason(err)
	}
	defer func() { _ = f.Close() }()
	b, err := io.ReadAll(io.LimitReader(f, maxSecretFile+1))
	text = strings.TrimRight(string(b), "\r\n")
	switch {
	case err != nil:
		return "", "cannot read " + path + ": " + reason(err)
	case len(b) > maxSecretFile:
		return "", fmt.Sprintf("%s is larger than %d KiB", path, maxSecretFile>>10)
	case strings.TrimSpace(text) == "":
		return "", path + " is empty"
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return "", path + " is not valid text"
	}
	return text, ""
}

// reason is an error of the file system without the path, which stands before it.
func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// beside resolves a path in a configuration file against the file's folder.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}

// link matches the variables that Kubernetes adds to a pod for every Service
// of its namespace: a Service named "versola" or "versola-auth" must not make
// the configuration invalid.
var link = regexp.MustCompile(`^[A-Z0-9_]+_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

func serviceLink(name string) bool { return link.MatchString(name) }
