package apply

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestAddPath_WhatIsNoFileIsRefusedAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	const doc = "kind: tenant\nid: a\n"
	write := func(t *testing.T, name string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(doc), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dir string) error
		want    string // of the error
		docs    int
	}{
		"a named pipe": {func(_ *testing.T, dir string) error { return syscall.Mkfifo(filepath.Join(dir, "p.yaml"), 0o600) }, "p.yaml is not a file", 0},
		"a link to a directory": {func(t *testing.T, dir string) error {
			other := t.TempDir()
			write(t, filepath.Join(other, "a.yaml"))
			return os.Symlink(other, filepath.Join(dir, "more"))
		}, "more is a link to a directory", 0},
		"a link to nowhere":                     {func(_ *testing.T, dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "a.yaml")) }, "no such file", 0},
		"a link to nowhere that is no document": {func(_ *testing.T, dir string) error { return os.Symlink("nowhere", filepath.Join(dir, "README")) }, "", 0},
		"a folder with a document's name": {func(t *testing.T, dir string) error {
			write(t, filepath.Join(dir, "a.yaml", "b.yaml"))
			return nil
		}, "", 1},
		// As Kubernetes mounts a ConfigMap.
		"a mounted ConfigMap": {func(t *testing.T, dir string) error {
			write(t, filepath.Join(dir, "..2026", "a.yaml"))
			if err := os.Symlink("..2026", filepath.Join(dir, "..data")); err != nil {
				return err
			}
			return os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml"))
		}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := c.prepare(t, dir); err != nil {
				t.Fatal(err)
			}
			docs := &Documents{}
			err := docs.AddPath(dir, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%v, expected %q", err, c.want)
			}
			if docs.Len() != c.docs {
				t.Errorf("%d documents, expected %d", docs.Len(), c.docs)
			}
		})
	}
}

func TestErrors_WriteNothingThatSteersATerminal(t *testing.T) {
	t.Parallel()
	e := Error{File: "a\x1b[2J.yaml", Line: 1, Message: "scope demo/\u202eb\u009b: имя \r\n: x"}
	if got, want := e.Error(), `a\u001b[2J.yaml:1: scope demo/\u202eb\u009b: имя \u000d\u000a: x`; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}
