package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

// await receives within a time that only a broken program needs.
func await[T any](t *testing.T, what string, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(20 * time.Second):
		t.Fatalf("did not happen: %s", what)
	}
	return v
}

func TestListener_FollowsAcrossAnOutageAndAKilledSession(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	url := pgtest.New(t)
	connects, payloads := make(chan struct{}, 100), make(chan string, 100)
	l := &postgres.Listener{
		URL: url, Channel: `odd "channel"`, Log: slog.New(slog.DiscardHandler),
		OnConnect: func(context.Context) { connects <- struct{}{} },
		OnNotify:  func(_ context.Context, payload string) { payloads <- payload },
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	await(t, "first connection", connects)
	notify := func(payload string) {
		t.Helper()
		conn, err := pgx.Connect(context.Background(), url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close(context.Background()) }()
		if _, err := conn.Exec(context.Background(), "SELECT pg_notify($1, $2)", l.Channel, payload); err != nil {
			t.Fatal(err)
		}
		if got := await(t, "notification", payloads); got != payload {
			t.Errorf("%q, want %q", got, payload)
		}
	}
	notify("a")

	pgtest.Stop(t)
	pgtest.Start(t)
	began := clock.Monotonic()
	await(t, "connection after the outage", connects)
	t.Logf("reconnected %v after the database's return", clock.Since(began))
	notify("b")

	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'versola listen%'"); err != nil {
		t.Fatal(err)
	}
	await(t, "connection after the session was killed", connects)
	notify("c")

	cancel()
	if err := await(t, "end of Run", ended); err != nil {
		t.Error(err)
	}
}

func TestListener_StartsWhileTheDatabaseIsAway(t *testing.T) {
	url := pgtest.New(t)
	pgtest.Stop(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	connected := make(chan struct{}, 1)
	l := &postgres.Listener{
		URL: url, Channel: "c", Log: slog.New(slog.DiscardHandler),
		OnConnect: func(context.Context) { connected <- struct{}{} }, OnNotify: func(context.Context, string) {},
	}
	go func() { _ = l.Run(ctx) }()
	pgtest.Start(t)
	await(t, "connection", connected)
}

func TestListener_AnOutageIsOneLineHoweverLong(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	connects, lines := make(chan struct{}, 100), make(lineWriter, 100)
	url := pgtest.New(t)
	l := &postgres.Listener{
		URL: url, Channel: "c", Log: slog.New(slog.NewTextHandler(lines, nil)),
		OnConnect: func(context.Context) { connects <- struct{}{} }, OnNotify: func(context.Context, string) {},
	}
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	await(t, "first connection", connects)
	for range 2 {
		pgtest.Stop(t)
		if line := await(t, "a line on the outage", lines); !strings.Contains(line, "level=WARN") {
			t.Errorf("logged %s", line)
		}
		// Attempts come every 500 ms at the least.
		select {
		case line := <-lines:
			t.Errorf("logged again: %s", line)
		case <-time.After(1200 * time.Millisecond):
		}
		pgtest.Start(t)
		await(t, "connection after the outage", connects)
		if line := await(t, "a line on the return", lines); !strings.Contains(line, "level=INFO") {
			t.Errorf("logged %s", line)
		}
	}
	cancel()
	if err := await(t, "end of Run", ended); err != nil {
		t.Error(err)
	}
}

// lineWriter hands log lines on.
type lineWriter chan string

func (w lineWriter) Write(p []byte) (int, error) {
	w <- string(p)
	return len(p), nil
}

func TestUnavailable_RealOutages(t *testing.T) {
	ctx := context.Background()
	db := pgtest.Open(t)
	check := func(what string, want bool, err error) {
		t.Helper()
		if err == nil || postgres.Unavailable(err) != want {
			t.Errorf("%s: %v, want %v for: %v", what, postgres.Unavailable(err), want, err)
		}
		if postgres.Unavailable(fmt.Errorf("wrapped: %w", err)) != want {
			t.Errorf("%s, wrapped: want %v", what, want)
		}
	}
	exec := func(ctx context.Context, sql string) error { _, err := db.Exec(ctx, sql); return err }

	check("killed session", true, exec(ctx, "SELECT pg_terminate_backend(pg_backend_pid())"))
	check("statement timeout", true, exec(ctx, "SET statement_timeout = 20; SELECT pg_sleep(5)"))
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	check("deadline", true, exec(short, "SELECT pg_sleep(5)"))
	cancelled, stop := context.WithCancel(ctx)
	stop()
	check("the caller went away", false, exec(cancelled, "SELECT pg_sleep(5)"))
	check("read-only", true, exec(ctx, "BEGIN READ ONLY; CREATE TABLE x ()"))
	check("syntax", false, exec(ctx, "nonsense"))
	check("no table", false, exec(ctx, "SELECT * FROM nowhere"))
	check("no rows", false, db.QueryRow(ctx, "SELECT 1 WHERE false").Scan(new(int)))

	// A session that is killed in the middle of a statement of its own.
	if err := exec(ctx, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	pgtest.Stop(t)
	check("stopped, pooled connection", true, exec(ctx, "SELECT 1"))
	check("stopped, new connection", true, exec(ctx, "SELECT 1"))
	_, err := pgx.Connect(ctx, "postgres://u@127.0.0.1:1/d")
	check("refused", true, err)
	db.Close()
	check("closed pool", true, exec(ctx, "SELECT 1"))

	for code, want := range map[string]bool{"53300": true, "57P03": true, "08006": true, "25006": true, "23505": false, "40001": false, "": false, "5": false} {
		check("code "+code, want, &pgconn.PgError{Code: code})
	}
	check("unrelated", false, errors.New("unrelated"))
	if postgres.Unavailable(nil) {
		t.Error("nil")
	}
}

func TestUnavailable_ServerDiesDuringAStatement(t *testing.T) {
	db := pgtest.Open(t)
	failed := make(chan error, 1)
	started := make(chan struct{})
	go func() {
		conn, err := db.Acquire(context.Background())
		if err != nil {
			failed <- err
			return
		}
		defer conn.Release()
		close(started)
		_, err = conn.Exec(context.Background(), "SELECT pg_sleep(4)")
		failed <- err
	}()
	<-started
	time.Sleep(100 * time.Millisecond) // the statement is under way
	pgtest.Stop(t)
	if err := await(t, "end of the statement", failed); !postgres.Unavailable(err) {
		t.Error(err)
	}
}

func TestIsUniqueViolation_TellsTheConstraint(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), pgtest.Open(t)
	if _, err := db.Exec(ctx, "CREATE TABLE u (n int CONSTRAINT only_one UNIQUE, m int NOT NULL); INSERT INTO u VALUES (1, 1)"); err != nil {
		t.Fatal(err)
	}
	_, err := db.Exec(ctx, "INSERT INTO u VALUES (1, 1)")
	err = fmt.Errorf("insert: %w", err)
	if !postgres.IsUniqueViolation(err, "only_one") || !postgres.IsUniqueViolation(err, "") || postgres.IsUniqueViolation(err, "other") {
		t.Error(err)
	}
	_, err = db.Exec(ctx, "INSERT INTO u VALUES (2, NULL)")
	if postgres.IsUniqueViolation(err, "") || postgres.IsUniqueViolation(nil, "") {
		t.Error(err)
	}
}

func TestDB_CountsRoundTrips(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), pgtest.Open(t)
	before := db.Statements()
	if _, err := db.Exec(ctx, "SELECT 1"); err != nil {
		t.Fatal(err)
	}
	batch := &pgx.Batch{}
	for range 5 {
		batch.Queue("SELECT $1::int", 1)
	}
	if err := db.SendBatch(ctx, batch).Close(); err != nil {
		t.Fatal(err)
	}
	if n := db.Statements() - before; n != 2 {
		t.Errorf("%d", n)
	}
}

func TestOpen_BoundsStatementsUnlessTheURLDoes(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	for suffix, want := range map[string]string{"": "5s", "&statement_timeout=700": "700ms"} {
		db, err := postgres.Open(context.Background(), postgres.Options{URL: url + suffix, ApplicationName: "x"})
		if err != nil {
			t.Fatal(err)
		}
		var timeout, name string
		if err := db.QueryRow(context.Background(), "SELECT current_setting('statement_timeout'), current_setting('application_name')").Scan(&timeout, &name); err != nil || timeout != want || name != "x" {
			t.Error(timeout, name, err)
		}
		db.Close()
	}
	if _, err := postgres.Open(context.Background(), postgres.Options{URL: "postgres://u:p%zz@h/d"}); err == nil {
		t.Error("a malformed URL is accepted")
	}
}

func TestSweeper_DeletesWhatExpiredInBatchesAndWaitsForNobody(t *testing.T) {
	t.Parallel()
	ctx, db := context.Background(), pgtest.Open(t)
	now := clock.NewFake(time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC))
	const fill = `CREATE SCHEMA s; CREATE TABLE s.t (n int, expires_at timestamptz);
		INSERT INTO s.t SELECT n, '2030-01-01'::timestamptz FROM generate_series(1, 2500) n;
		INSERT INTO s.t SELECT n, '2030-02-01'::timestamptz FROM generate_series(1, 10) n`
	if _, err := db.Exec(ctx, fill); err != nil {
		t.Fatal(err)
	}
	var deleted, batches atomic.Int64
	s := &postgres.Sweeper{
		DB: db, Now: now.Now, Every: time.Millisecond, Sweeps: []postgres.Sweep{{Table: "s.t", Column: "expires_at"}}, Log: slog.New(slog.DiscardHandler),
		OnDeleted: func(_ string, n int64) { deleted.Add(n); batches.Add(1) },
	}
	tx, err := db.Begin(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(ctx, "SELECT 1 FROM s.t WHERE n = 7 FOR UPDATE"); err != nil { // one expired, one not
		t.Fatal(err)
	}
	if err := s.Once(ctx); err != nil {
		t.Fatal(err)
	}
	if deleted.Load() != 2499 || batches.Load() != 3 {
		t.Errorf("%d rows in %d batches", deleted.Load(), batches.Load())
	}
	if err := tx.Rollback(ctx); err != nil {
		t.Fatal(err)
	}
	running, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(running) }()
	for deleted.Load() < 2500 {
		time.Sleep(time.Millisecond) // Run works on its own
	}
	now.Advance(60 * 24 * time.Hour)
	for deleted.Load() < 2510 {
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := await(t, "end of Run", ended); err != nil {
		t.Error(err)
	}
}
