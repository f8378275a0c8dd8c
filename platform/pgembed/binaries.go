package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binVariable names the directory of PostgreSQL's binaries, over any search.
const binVariable = "VERSOLA_POSTGRES_BIN"

// minMajor is the oldest PostgreSQL that the schema works with.
const minMajor = 14

// toolTimeout bounds asking a binary for its version.
const toolTimeout = 10 * time.Second

// Errors of a search for binaries.
var (
	// ErrNoBinaries reports a machine without PostgreSQL's server binaries.
	ErrNoBinaries = errors.New("PostgreSQL's server binaries (postgres, initdb) were not found")
	// ErrVersion reports a cluster of another major version than the binaries.
	ErrVersion = errors.New("the cluster was made by another major version of PostgreSQL")
)

// remedy says what to do about missing binaries.
const remedy = `Install PostgreSQL:
  Debian, Ubuntu   apt-get install postgresql
  Fedora           dnf install postgresql-server
  macOS            brew install postgresql@17
or name the directory that holds the binaries in ` + binVariable + `,
or use a database that runs already: set VERSOLA_DATABASE_URL (postgres://user:password@host/database).`

// binaries is a directory with postgres and initdb of one major version.
type binaries struct {
	dir   string
	major int
}

// binaries finds the binaries for the cluster: those of its major version when
// it exists, else the first found, else fetched ones.
func (p *place) binaries(ctx context.Context, log *slog.Logger) (binaries, error) {
	want, err := p.clusterMajor()
	if err != nil {
		return binaries{}, err
	}
	dirs := candidates(ctx, p.fetched)
	if named := os.Getenv(binVariable); named != "" {
		dirs = []string{named}
	}
	found, rejected := p.usable(ctx, dirs)
	for _, b := range found {
		if want == 0 || b.major == want {
			return b, nil
		}
	}
	if len(found) > 0 {
		var have []string
		for _, b := range found {
			have = append(have, fmt.Sprintf("%d in %s", b.major, b.dir))
		}
		return binaries{}, fmt.Errorf("%w: %s needs PostgreSQL %d, found only %s; install version %d, or move the directory away to begin with an empty database",
			ErrVersion, p.data, want, strings.Join(have, ", "), want)
	}
	if os.Getenv(binVariable) != "" {
		return binaries{}, fmt.Errorf("%w: %s: %s\n%s", ErrNoBinaries, binVariable, strings.Join(rejected, "; "), remedy)
	}
	b, err := p.fetch(ctx, want, log)
	if err != nil {
		reasons := append(rejected, fmt.Sprintf("fetching them did not work either: %v", err))
		return binaries{}, fmt.Errorf("%w (%s)\n%s", ErrNoBinaries, strings.Join(reasons, "; "), remedy)
	}
	return b, nil
}

// usable keeps the directories whose binaries the database user can run, and
// says of the rest why not.
func (p *place) usable(ctx context.Context, dirs []string) (found []binaries, rejected []string) {
	for _, dir := range dirs {
		b, err := inspect(ctx, dir)
		if err == nil && p.cred != nil {
			if blocked := unreachable(b.dir, p.cred); blocked != "" {
				err = fmt.Errorf("the database user cannot enter %s", blocked)
			}
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			rejected = append(rejected, fmt.Sprintf("%s has no postgres and initdb", dir))
		case err != nil:
			rejected = append(rejected, fmt.Sprintf("%s: %v", dir, err))
		case !slices.Contains(found, b):
			found = append(found, b)
		}
	}
	return found, rejected
}

// candidates lists directories that may hold binaries, the preferred first.
func candidates(ctx context.Context, fetched string) []string {
	var dirs []string
	add := func(dir string) {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, tool := range []string{"postgres", "initdb"} {
		if path, err := exec.LookPath(tool); err == nil {
			if resolved, err := filepath.EvalSymlinks(path); err == nil {
				add(filepath.Dir(resolved))
			}
		}
	}
	if tool, err := exec.LookPath("pg_config"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, toolTimeout)
		defer cancel()
		if out, err := exec.CommandContext(ctx, tool, "--bindir").Output(); err == nil {
			add(strings.TrimSpace(string(out)))
		}
	}
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
	} {
		for _, dir := range newestFirst(pattern) {
			add(dir)
		}
	}
	add(filepath.Join(fetched, "bin"))
	return dirs
}

var number = regexp.MustCompile(`[0-9]+`)

func newestFirst(pattern string) []string {
	dirs, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	version := func(dir string) int {
		n, _ := strconv.Atoi(number.FindString(dir)) // none: 0, the last
		return n
	}
	slices.SortStableFunc(dirs, func(a, b string) int { return version(b) - version(a) })
	return dirs
}

var versionLine = regexp.MustCompile(`PostgreSQL\) ([0-9]+)`)

// inspect asks the binaries in dir for their version.
func inspect(ctx context.Context, dir string) (binaries, error) {
	dir, err := realPath(dir)
	if err != nil {
		return binaries{}, err
	}
	for _, name := range []string{"postgres", "initdb"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return binaries{}, fmt.Errorf("look for %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, toolTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, filepath.Join(dir, "postgres"), "--version").Output() //nolint:gosec // found on this machine
	if err != nil {
		return binaries{}, fmt.Errorf("ask for version: %w", err)
	}
	m := versionLine.FindSubmatch(out)
	if m == nil {
		return binaries{}, fmt.Errorf("does not look like PostgreSQL: %.60q", out)
	}
	major, err := strconv.Atoi(string(m[1]))
	if err != nil {
		return binaries{}, fmt.Errorf("read version: %w", err)
	}
	if major < minMajor {
		return binaries{}, fmt.Errorf("PostgreSQL %d is too old, %d is the least", major, minMajor)
	}
	return binaries{dir: dir, major: major}, nil
}

// clusterMajor is the major version of the existing cluster; 0 when there is none.
func (p *place) clusterMajor() (int, error) {
	b, err := os.ReadFile(filepath.Join(p.data, "PG_VERSION"))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read version of cluster: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return 0, fmt.Errorf("%s is not a PostgreSQL data directory: PG_VERSION is %.20q", p.data, b)
	}
	return major, nil
}
