package pgembed

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// databaseName names both the database and its owner.
const databaseName = "versola"

// readyTimeout bounds the wait for a server that is alive but does not accept
// connections yet. A start takes tenths of a second; replaying the log after a
// crash takes seconds at the sizes this package is for.
const readyTimeout = 60 * time.Second

// Options says where the cluster is and how it runs.
type Options struct {
	Dir  string       // the state directory; made when missing
	Name string       // shown in the process list; default "versola"
	Log  *slog.Logger // required

	// NoSync trades durability for speed: a crash of the machine may lose the
	// cluster. For tests.
	NoSync bool
	// MaxConnections of the server. 0: 100.
	MaxConnections int
}

// Cluster is a running private PostgreSQL.
type Cluster struct {
	url    string
	place  place
	server *server
	lock   *lock
	stop   sync.Once
	err    error
}

// Start makes the cluster when it is missing, starts it and returns when it
// accepts connections. Errors: [ErrInUse], [ErrNoBinaries], [ErrVersion], or
// what the server said last. ctx bounds the start, not the cluster's life.
func Start(ctx context.Context, o Options) (*Cluster, error) {
	dir, err := makeStateDir(o.Dir)
	if err != nil {
		return nil, err
	}
	held, err := acquire(dir)
	if err != nil {
		return nil, err
	}
	c := &Cluster{lock: held}
	if err := c.start(ctx, dir, o); err != nil {
		return nil, errors.Join(fmt.Errorf("start private PostgreSQL: %w", err), held.release())
	}
	return c, nil
}

func (c *Cluster) start(ctx context.Context, dir string, o Options) (err error) {
	if c.place, err = locate(dir, o.Log); err != nil {
		return err
	}
	bin, err := c.place.binaries(ctx, o.Log)
	if err != nil {
		return err
	}
	if err := c.place.initialise(ctx, bin, o.Log); err != nil {
		return err
	}
	if err := c.place.stopOrphan(ctx, o.Log); err != nil {
		return err
	}
	if err := c.place.makeSocketDir(); err != nil {
		return err
	}
	c.url = c.place.url(databaseName)
	c.server = newServer(c.place, bin, o)
	go c.server.supervise()
	if err := c.waitReady(ctx); err != nil {
		c.server.end()
		return errors.Join(err, c.place.removeSocketDir())
	}
	return nil
}

// URL returns the address of the database on its Unix socket.
func (c *Cluster) URL() string { return c.url }

// Stop ends the server (sessions are rolled back and disconnected) and gives
// the state directory free. Further calls return the first one's result.
func (c *Cluster) Stop() error {
	c.stop.Do(func() {
		c.server.end()
		c.err = errors.Join(c.place.removeSocketDir(), c.lock.release())
	})
	return c.err
}

// waitReady returns once the database exists and answers.
func (c *Cluster) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	var last error
	for {
		if last = ensureDatabase(ctx, c.place); last == nil {
			c.server.markReady()
			return nil
		}
		select {
		case <-c.server.ended:
			return fmt.Errorf("the server ended: %w%s", c.server.failure, c.place.logTail())
		case <-ctx.Done():
			return fmt.Errorf("wait for the server (%w): %w%s", ctx.Err(), last, c.place.logTail())
		case <-time.After(10 * time.Millisecond): // a start takes tenths of a second
		}
	}
}

const createDatabase = `CREATE DATABASE ` + databaseName

// ensureDatabase connects to the database and makes it when it is missing.
func ensureDatabase(ctx context.Context, p place) error {
	conn, err := pgx.Connect(ctx, p.url(databaseName))
	if err == nil {
		return conn.Close(ctx)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) || pg.Code != "3D000" { // invalid_catalog_name
		return err
	}
	conn, err = pgx.Connect(ctx, p.url("postgres"))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	if _, err := conn.Exec(ctx, createDatabase); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func (p place) url(database string) string {
	q := url.Values{"host": {p.socket}, "port": {"5432"}, "sslmode": {"disable"}}
	u := url.URL{Scheme: "postgres", User: url.User(databaseName), Path: "/" + database, RawQuery: q.Encode()}
	return u.String()
}

// makeStateDir makes the state directory and returns its real absolute path.
func makeStateDir(dir string) (string, error) {
	if dir == "" {
		return "", errors.New("start private PostgreSQL: no state directory given")
	}
	// Only the last directory is private: the database user passes through the others.
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil { //nolint:gosec // see above
		return "", fmt.Errorf("make state directory: %w", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make state directory: %w", err)
	}
	return realPath(dir)
}
