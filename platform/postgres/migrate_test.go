package postgres_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"versola/platform/pgtest"
	"versola/platform/postgres"
)

func history(files ...string) postgres.Migrations {
	m := fstest.MapFS{}
	for i, sql := range files {
		name := []string{"00001_one.sql", "00002_two.sql", "00003_three.sql"}[i]
		m[name] = &fstest.MapFile{Data: []byte("-- +goose Up\n" + sql + "\n")}
	}
	return postgres.Migrations{Schema: "sample", Files: m}
}

const (
	one   = "CREATE TABLE sample.one (n int);"
	two   = "CREATE TABLE sample.two (n int);"
	three = "CREATE TABLE sample.three (n int); SELECT nonsense;"
)

func count(t *testing.T, url, sql string) (n int) {
	t.Helper()
	db, err := postgres.Open(context.Background(), postgres.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRow(context.Background(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

const countTables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'sample'"

func TestUp_AppliesWhatIsMissingOnce(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.New(t)
	done, err := history(one).Up(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	want := []postgres.Step{{Schema: "sample", Version: 1, Name: "00001_one.sql", Applied: true}}
	if diff := cmp.Diff(want, done); diff != "" {
		t.Error(diff)
	}
	done, err = history(one, two).Up(ctx, url)
	if err != nil || len(done) != 1 || done[0].Version != 2 {
		t.Fatalf("%v, %v", done, err)
	}
	if done, err := history(one, two).Up(ctx, url); err != nil || len(done) != 0 {
		t.Fatalf("%v, %v", done, err)
	}
	if n := count(t, url, countTables); n != 3 { // with the history
		t.Errorf("%d tables", n)
	}
}

func TestUp_SeveralAtOnceApplyEachOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	var mu sync.Mutex
	var wait sync.WaitGroup
	total := 0
	for range 6 {
		wait.Go(func() {
			done, err := history(one, two).Up(context.Background(), url)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			total += len(done)
		})
	}
	wait.Wait()
	if total != 2 {
		t.Errorf("%d migrations applied", total)
	}
	if err := history(one, two).Check(context.Background(), url); err != nil {
		t.Error(err)
	}
}

func TestUp_AFailingMigrationLeavesTheEarlierOnes(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.New(t)
	if _, err := history(one, two, three).Up(ctx, url); err == nil || !strings.Contains(err.Error(), "nonsense") {
		t.Fatal(err)
	}
	if n := count(t, url, countTables); n != 3 { // nothing of the third
		t.Errorf("%d tables", n)
	}
	if err := history(one, two, three).Check(ctx, url); !errors.Is(err, postgres.ErrSchemaOld) {
		t.Error(err)
	}
}

func TestStatus_OfAnEmptyDatabaseChangesNothing(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.New(t)
	steps, err := history(one, two).Status(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	want := []postgres.Step{{Schema: "sample", Version: 1, Name: "00001_one.sql"}, {Schema: "sample", Version: 2, Name: "00002_two.sql"}}
	if diff := cmp.Diff(want, steps); diff != "" {
		t.Error(diff)
	}
	if n := count(t, url, "SELECT count(*) FROM pg_namespace WHERE nspname = 'sample'"); n != 0 {
		t.Error("the schema was made")
	}
}

func TestStatus_KnowsWhatIsAppliedAndWhatIsForeign(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.New(t)
	if _, err := history(one, two).Up(ctx, url); err != nil {
		t.Fatal(err)
	}
	steps, err := history(one).Status(ctx, url)
	want := []postgres.Step{
		{Schema: "sample", Version: 1, Name: "00001_one.sql", Applied: true},
		{Schema: "sample", Version: 2, Name: "(unknown to this program)", Applied: true},
	}
	if diff := cmp.Diff(want, steps, cmpopts.IgnoreFields(postgres.Step{}, "At")); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if steps[0].At.IsZero() {
		t.Error("no time")
	}
}

func TestCheck_OldNewAndExact(t *testing.T) {
	t.Parallel()
	ctx, url := context.Background(), pgtest.New(t)
	if err := history(one).Check(ctx, url); !errors.Is(err, postgres.ErrSchemaOld) {
		t.Errorf("empty: %v", err)
	}
	if _, err := history(one, two).Up(ctx, url); err != nil {
		t.Fatal(err)
	}
	if err := history(one, two).Check(ctx, url); err != nil {
		t.Errorf("exact: %v", err)
	}
	if err := history(one, two, three).Check(ctx, url); !errors.Is(err, postgres.ErrSchemaOld) {
		t.Errorf("old: %v", err)
	}
	if err := history(one).Check(ctx, url); !errors.Is(err, postgres.ErrSchemaNew) {
		t.Errorf("new: %v", err)
	}
}

func TestMigrations_ErrorsShowNoPassword(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"postgres://u:s3cr3t-canary@127.0.0.1:1/d", "postgres://u:s3cr3t-canary%zz@h/d", "postgres://u:s3cr3t-canary@h:port/d",
		"host=h password=s3cr3t-canary port=x", "password='s3cr3t-canary", "s3cr3t-canary",
		"postgres://u:s3cr3t-canary@h/d?sslmode=nope", "postgres://u:s3cr3t-canary@h/d?pool_max_conns=x",
	} {
		_, up := history(one).Up(context.Background(), url)
		_, status := history(one).Status(context.Background(), url)
		for _, err := range []error{up, status, postgres.CheckURL(url)} {
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Error(err)
			}
		}
		if up == nil || status == nil {
			t.Errorf("%s is accepted", url)
		}
	}
}

func TestStatus_LeavesNoGoroutines(t *testing.T) {
	ctx, url := context.Background(), pgtest.New(t)
	before := runtime.NumGoroutine()
	for range 20 {
		if _, err := history(one).Status(ctx, url); err != nil {
			t.Fatal(err)
		}
	}
	if after := runtime.NumGoroutine(); after > before+10 {
		t.Errorf("%d goroutines, before %d", after, before)
	}
}
