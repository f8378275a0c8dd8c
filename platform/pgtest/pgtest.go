package pgtest

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/clock"
	"versola/platform/pgembed"
	"versola/platform/postgres"
)

const (
	// dirPrefix names the clusters of tests under the temporary directory.
	dirPrefix = "versola-test-"
	// maxConnections lets many parallel tests hold a pool each.
	maxConnections = 200
	// startTimeout bounds a start on a machine busy with other tests.
	startTimeout = 2 * time.Minute
	// abandoned is the age from which the cluster of a killed test is removed.
	abandoned = time.Minute
)

// instance is the cluster of this test binary.
type instance struct {
	mu        sync.Mutex
	dir       string
	cluster   *pgembed.Cluster
	url       string
	failure   error // of the first start; later tests fail with it at once
	templates map[string]*template
	count     int
}

type template struct {
	once sync.Once
	name string
	err  error
}

var own instance //nolint:gochecknoglobals // one cluster per test binary, shared by its tests

// Run runs the tests of a binary and then removes its cluster. Call it in
// TestMain: os.Exit(pgtest.Run(m)).
func Run(m *testing.M) int {
	code := m.Run()
	if err := own.remove(); err != nil {
		fmt.Fprintln(os.Stderr, "pgtest:", err)
		return max(code, 1)
	}
	return code
}

// New makes a fresh database with the migrations applied and returns its URL.
// It is dropped at the end of t.
func New(t testing.TB, migrations ...postgres.Migrations) string {
	t.Helper()
	ctx := context.Background()
	base, err := own.start(ctx)
	if err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	}
	tmpl, err := own.template(ctx, base, migrations)
	if err != nil {
		t.Fatalf("template database: %v", err)
	}
	name := own.nextName("test")
	if err := admin(ctx, base, "CREATE DATABASE "+name+" TEMPLATE "+tmpl); err != nil {
		t.Fatalf("create database: %v", err)
	}
	t.Cleanup(func() {
		// A test may have left the cluster stopped; then the whole goes at the end.
		if own.running() {
			if err := admin(ctx, base, "DROP DATABASE IF EXISTS "+name+" WITH (FORCE)"); err != nil {
				t.Errorf("drop database: %v", err)
			}
		}
	})
	return withDatabase(base, name)
}

// Open is [New], opened as a pool that is closed at the end of t.
func Open(t testing.TB, migrations ...postgres.Migrations) *postgres.DB {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Options{URL: New(t, migrations...), ApplicationName: "test"})
	if err != nil {
		t.Fatalf("open database: %v", err)
	}
	t.Cleanup(db.Close)
	return db
}

// Stop stops the cluster, as an outage: a crash, after which unlogged tables are
// empty. It is started again at the end of t. Every database of the binary is
// away meanwhile: not for parallel tests.
func Stop(t testing.TB) {
	t.Helper()
	// Under wal_level=minimal PostgreSQL writes a database copied from a
	// template without WAL. What is in its buffers has to reach the files, or
	// the indexes of unlogged tables come back broken; a database that was
	// migrated in place, as outside of tests, has no such gap.
	if base, err := own.start(context.Background()); err != nil {
		t.Fatalf("PostgreSQL for tests: %v", err)
	} else if err := admin(context.Background(), base, "CHECKPOINT"); err != nil {
		t.Fatalf("checkpoint: %v", err)
	}
	if err := own.stop(); err != nil {
		t.Fatalf("stop PostgreSQL: %v", err)
	}
	t.Cleanup(func() { Start(t) })
}

// Start ends an outage begun by [Stop]; databases keep their URL and content.
func Start(t testing.TB) {
	t.Helper()
	if _, err := own.start(context.Background()); err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}
}

func (i *instance) start(ctx context.Context) (string, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cluster != nil || i.failure != nil {
		return i.url, i.failure
	}
	if i.dir == "" {
		removeAbandoned()
		dir, err := os.MkdirTemp("", dirPrefix)
		if err != nil {
			return "", fmt.Errorf("make directory: %w", err)
		}
		i.dir = dir
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	cluster, err := pgembed.Start(ctx, pgembed.Options{
		Dir: i.dir, Name: "versola-test", Log: slog.New(slog.DiscardHandler), NoSync: true, MaxConnections: maxConnections,
	})
	if err != nil {
		i.failure = err
		return "", err
	}
	i.cluster, i.url = cluster, cluster.URL()
	return i.url, nil
}

func (i *instance) running() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.cluster != nil
}

func (i *instance) stop() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cluster == nil {
		return nil
	}
	err := i.cluster.Stop()
	// On a busy machine the end is a crash, and the unlogged tables of templates
	// would lack what migrations put there.
	i.cluster, i.templates = nil, nil
	return err
}

func (i *instance) remove() error {
	if err := i.stop(); err != nil {
		return err
	}
	if i.dir == "" {
		return nil
	}
	return os.RemoveAll(i.dir)
}

// removeAbandoned removes what killed test binaries left. A directory in use
// is locked by its owner; a very young one may not be locked yet.
func removeAbandoned() {
	dirs, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	if err != nil {
		return
	}
	for _, dir := range dirs {
		info, err := os.Lstat(dir)
		if err != nil || !info.IsDir() || clock.Since(info.ModTime()) < abandoned {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			_ = os.RemoveAll(dir) // tidying up: the next run tries again
		}
		_ = f.Close()
	}
}

// template returns the name of a database with the migrations applied.
func (i *instance) template(ctx context.Context, base string, migrations []postgres.Migrations) (string, error) {
	key, err := fingerprint(migrations)
	if err != nil {
		return "", err
	}
	i.mu.Lock()
	if i.templates == nil {
		i.templates = map[string]*template{}
	}
	tmpl := i.templates[key]
	if tmpl == nil {
		tmpl = &template{}
		i.templates[key] = tmpl
	}
	i.mu.Unlock()
	tmpl.once.Do(func() {
		tmpl.name = i.nextName("template")
		if tmpl.err = admin(ctx, base, "CREATE DATABASE "+tmpl.name); tmpl.err != nil {
			return
		}
		for _, m := range migrations {
			if _, tmpl.err = m.Up(ctx, withDatabase(base, tmpl.name)); tmpl.err != nil {
				return
			}
		}
	})
	return tmpl.name, tmpl.err
}

// fingerprint names a set of migrations by their content.
func fingerprint(migrations []postgres.Migrations) (string, error) {
	sum := sha256.New()
	for _, m := range migrations {
		fmt.Fprintf(sum, "%q\n", m.Schema)
		err := fs.WalkDir(m.Files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			content, err := fs.ReadFile(m.Files, path)
			fmt.Fprintf(sum, "%q %q\n", path, content)
			return err
		})
		if err != nil {
			return "", fmt.Errorf("read migrations of %s: %w", m.Schema, err)
		}
	}
	return string(sum.Sum(nil)), nil
}

func (i *instance) nextName(kind string) string {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.count++
	return fmt.Sprintf("%s_%d", kind, i.count)
}

func admin(ctx context.Context, base, statement string) error {
	conn, err := pgx.Connect(ctx, withDatabase(base, "postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	_, err = conn.Exec(ctx, statement)
	return err
}

func withDatabase(base, name string) string {
	u, err := url.Parse(base)
	if err != nil {
		panic(err) // made by pgembed
	}
	u.Path = "/" + name
	return u.String()
}
