package pgtest_test

import (
	"context"
	"os"
	"testing"

	"versola/db"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func TestNew_EveryDatabaseIsFreshAndMigrated(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for range 2 {
		dbx := pgtest.Open(t, db.Auth(), db.Central())
		if _, err := dbx.Exec(ctx, "CREATE TABLE auth.mine ()"); err != nil {
			t.Fatal(err)
		}
		var n int
		if err := dbx.QueryRow(ctx, "SELECT count(*) FROM central.schema_history WHERE version_id > 0").Scan(&n); err != nil || n == 0 {
			t.Fatalf("migrations of central: %d, %v", n, err)
		}
	}
}

func TestNew_WithoutMigrationsIsEmpty(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t)
	var n int
	if err := dbx.QueryRow(context.Background(), "SELECT count(*) FROM pg_tables WHERE schemaname IN ('auth','central','edge')").Scan(&n); err != nil || n != 0 {
		t.Fatalf("tables: %d, %v", n, err)
	}
}

func TestStop_DatabaseIsAwayAndComesBackWithItsContent(t *testing.T) {
	ctx := context.Background()
	dbx := pgtest.Open(t)
	if _, err := dbx.Exec(ctx, "CREATE TABLE kept AS SELECT 7 AS n"); err != nil {
		t.Fatal(err)
	}
	pgtest.Stop(t)
	if _, err := dbx.Exec(ctx, "SELECT 1"); !postgres.Unavailable(err) {
		t.Fatalf("during the outage: %v", err)
	}
	pgtest.Start(t)
	var n int
	for range 5 { // the pool may still hold broken connections
		if err := dbx.QueryRow(ctx, "SELECT n FROM kept").Scan(&n); err == nil {
			break
		}
	}
	if n != 7 {
		t.Fatalf("after the outage: %d", n)
	}
}
