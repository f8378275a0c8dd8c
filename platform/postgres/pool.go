package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Bounds of a pool.
const (
	// connectTimeout bounds one attempt to connect: within a data centre a
	// healthy database answers in milliseconds.
	connectTimeout = 2 * time.Second
	// statementTimeout ends a statement in the server. The slowest statement
	// of a request takes milliseconds; what lasts longer is an accident.
	statementTimeout = 5 * time.Second
	// DefaultMaxConns is the size of a pool where none is configured. A node
	// at full load was measured to use under ten.
	DefaultMaxConns = 16
)

// DB is a connection pool that counts the statements it sends.
type DB struct {
	*pgxpool.Pool
	statements *atomic.Int64
}

// Options says how to open a pool.
type Options struct {
	URL             string // a PostgreSQL URL or keyword string
	MaxConns        int    // 0: DefaultMaxConns
	ApplicationName string // shown in pg_stat_activity
}

// Open makes a pool. It does not wait for the database: a process starts also
// while its database is away. Errors: a URL that does not parse.
func Open(ctx context.Context, o Options) (*DB, error) {
	cfg, err := pgxpool.ParseConfig(o.URL)
	if err != nil {
		return nil, fmt.Errorf("read database url: %w", redactURL(err))
	}
	cfg.MaxConns = DefaultMaxConns
	if o.MaxConns > 0 {
		cfg.MaxConns = int32(min(o.MaxConns, 1000)) //nolint:gosec // bounded in this line
	}
	cfg.MaxConnIdleTime = 5 * time.Minute
	cfg.MaxConnLifetime = time.Hour
	cfg.MaxConnLifetimeJitter = 10 * time.Minute
	cfg.ConnConfig.ConnectTimeout = connectTimeout
	params := cfg.ConnConfig.RuntimeParams
	if _, set := params["statement_timeout"]; !set {
		params["statement_timeout"] = fmt.Sprint(statementTimeout.Milliseconds())
	}
	if o.ApplicationName != "" {
		params["application_name"] = o.ApplicationName
	}
	count := &atomic.Int64{}
	cfg.ConnConfig.Tracer = counter{count}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open pool: %w", redactURL(err))
	}
	return &DB{Pool: pool, statements: count}, nil
}

// Statements returns how many statements the pool has sent; a batch counts as
// one, since it is one round trip. Tests of the round-trip budgets read it.
func (db *DB) Statements() int64 { return db.statements.Load() }

// CheckURL tells whether a connection string can be read, without connecting.
// The error shows nothing of the string: it may hold a password.
func CheckURL(url string) error {
	if _, err := pgxpool.ParseConfig(url); err != nil {
		return redactURL(err)
	}
	return nil
}

// errConnectionString says what may be wrong without showing any of it: the
// parser quotes what it stumbled over, which is often a part of the password.
var errConnectionString = errors.New("malformed connection string; expected postgres://user:password@host:port/database with special characters percent-encoded")

// redactURL keeps a password in a malformed URL out of the message.
func redactURL(err error) error {
	var parse *pgconn.ParseConfigError
	if errors.As(err, &parse) {
		const tls = "failed to configure TLS" // names a file or a mode
		if i := strings.Index(parse.Error(), tls); i >= 0 {
			return errors.New("connection string: TLS" + strings.TrimSuffix(parse.Error()[i+len(tls):], ")"))
		}
		return errConnectionString
	}
	if strings.HasPrefix(err.Error(), "cannot parse") || strings.Contains(err.Error(), "invalid pool") {
		return errConnectionString
	}
	return err
}

type counter struct{ n *atomic.Int64 }

func (c counter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (counter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}

func (c counter) TraceBatchStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceBatchStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (counter) TraceBatchQuery(context.Context, *pgx.Conn, pgx.TraceBatchQueryData) {}
func (counter) TraceBatchEnd(context.Context, *pgx.Conn, pgx.TraceBatchEndData)     {}

func (c counter) TraceCopyFromStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceCopyFromStartData) context.Context {
	c.n.Add(1)
	return ctx
}
func (counter) TraceCopyFromEnd(context.Context, *pgx.Conn, pgx.TraceCopyFromEndData) {}

// Unavailable tells whether err means that the database cannot be used right
// now (it is away, starting, stopping, full, or too slow), so that the same
// request may well work a little later.
func Unavailable(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		switch pg.Code[:min(2, len(pg.Code))] {
		case "08", "53", "57": // connection, resources, operator intervention
			return true
		}
		// read_only_sql_transaction: a failover in progress.
		return pg.Code == "25006"
	}
	var connect *pgconn.ConnectError
	var network net.Error
	var op *net.OpError
	return errors.As(err, &connect) || errors.As(err, &network) || errors.As(err, &op) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err) || connectionBroke(err)
}

// connectionBroke recognises a connection that ended in the middle of a
// statement; pgconn reports those as plain read errors.
func connectionBroke(err error) bool {
	msg := err.Error()
	return strings.HasSuffix(msg, "unexpected EOF") || strings.HasSuffix(msg, "conn closed") || strings.HasSuffix(msg, "closed pool")
}

// IsUniqueViolation tells whether err is a violation of the named unique
// constraint or index (of any, where name is empty).
func IsUniqueViolation(err error, name string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.Code == "23505" && (name == "" || pg.ConstraintName == name)
}
