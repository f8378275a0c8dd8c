package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

func open(t *testing.T) *postgres.DB {
	t.Helper()
	dbx, err := postgres.Open(t.Context(), postgres.Options{URL: pgtest.New(t, db.Auth(), db.Central())})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(dbx.Close)
	return dbx
}

// life changes configuration at random, as administrators and people with a
// database shell do.
type life struct {
	*rand.Rand
	tx  pgx.Tx
	ctx context.Context //nolint:containedctx // of one test
}

func (l life) exec(statement string, args ...any) error {
	_, err := l.tx.Exec(l.ctx, statement, args...)
	if err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

func (l life) tenant() string { return fmt.Sprintf("tenant-%d", l.IntN(4)) }
func (l life) id() string     { return fmt.Sprintf("entity-%d", l.IntN(5)) }

// write puts an entity by the statements of administration.
func (l life) write(e catalog.Entity, secrets ...catalog.SealedSecret) error {
	mark, err := store.Touch(l.ctx, l.tx)
	if err != nil {
		return err
	}
	k, _ := catalog.KindOf(e.Ref().Kind)
	w := store.Writes{Version: mark.Revision, Now: time.Unix(l.Int64N(1e9), 0)}
	if err := w.Put(k, e); err != nil {
		return err
	}
	if secrets != nil {
		w.PutSecrets(e.Ref(), secrets)
	}
	return w.Send(l.ctx, l.tx)
}

func (l life) remove(r catalog.Ref) error {
	k, _ := catalog.KindOf(r.Kind)
	w := store.Writes{}
	w.Delete(k, r)
	return w.Send(l.ctx, l.tx)
}

func (l life) secrets() []catalog.SealedSecret {
	out := []catalog.SealedSecret{}
	for range l.IntN(3) {
		out = append(out, catalog.SealedSecret{ID: id.UUID{byte(l.Uint32()), byte(l.Uint32())}, Sealed: []byte{byte(l.Uint32())}})
	}
	return out
}

// act does one thing; whether it succeeds depends on what is there.
func (l life) act() error {
	tenant, name := l.tenant(), l.id()
	kind := []string{catalog.KindNameScope, catalog.KindNameClient, catalog.KindNameTheme, catalog.KindNameClaim}[l.IntN(4)]
	switch l.IntN(16) {
	case 0, 1, 2:
		return l.write(&catalog.TenantSpec{ID: tenant, Name: fmt.Sprint(l.IntN(100)), Directory: tenant, Edge: []string{"", "entity-0"}[l.IntN(2)]})
	case 3:
		return l.write(&catalog.EdgeSpec{ID: name, JWKS: json.RawMessage(fmt.Sprintf(`{"keys": [%d]}`, l.IntN(9)))})
	case 4, 5:
		return l.write(&catalog.ScopeSpec{Tenant: tenant, ID: name, Claims: []string{fmt.Sprint(l.IntN(100))}})
	case 6, 7:
		return l.write(&catalog.ClientSpec{Tenant: tenant, ID: name, Kind: catalog.KindWeb}, l.secrets()...)
	case 8:
		return l.remove(catalog.Ref{Kind: kind, Tenant: tenant, ID: name})
	case 9:
		return l.remove(catalog.Ref{Kind: catalog.KindNameTenant, ID: tenant})
	case 10:
		return l.exec(`DELETE FROM central.client_secret WHERE tenant_id = $1`, tenant)
	case 11:
		return l.exec(`INSERT INTO central.client_secret (tenant_id, client_id, id, sealed, created_at) SELECT tenant_id, id, gen_random_uuid(), '\x01', now() FROM central.client WHERE id = $1`, name)
	case 12:
		to := l.id()
		return l.exec(`UPDATE central.scope SET id = $1, spec = spec || jsonb_build_object('id', $1::text) WHERE tenant_id = $2 AND id = $3`, to, tenant, name)
	case 13:
		return l.exec(`DELETE FROM central.signing_key WHERE id = $1`, name)
	case 14:
		return l.exec(`INSERT INTO central.signing_key (id, alg, state, public_jwk, sealed, created_at, updated_at) VALUES ($1, $1, 'retiring', '{}', '\x01', now(), now())`, name)
	default:
		return l.exec([]string{`TRUNCATE central.claim`, `UPDATE central.scope SET updated_at = now()`, `DELETE FROM central.scope`, `TRUNCATE central.client_secret`}[l.IntN(4)])
	}
}

// transaction does a few things, some of them undone, and perhaps all.
func (l life) transaction(dbx *postgres.DB) error {
	giveUp := errors.New("given up")
	err := pgx.BeginFunc(l.ctx, dbx, func(tx pgx.Tx) error {
		for range 1 + l.IntN(4) {
			// A savepoint: what violates a reference is undone alone.
			err := pgx.BeginFunc(l.ctx, tx, func(tx pgx.Tx) error {
				if err := (life{l.Rand, tx, l.ctx}).act(); err != nil {
					return err
				}
				if l.IntN(8) == 0 {
					return giveUp
				}
				return nil
			})
			if err != nil && !errors.Is(err, giveUp) && !violation(err) {
				return err
			}
		}
		if l.IntN(8) == 0 {
			return giveUp
		}
		return nil
	})
	if errors.Is(err, giveUp) {
		return nil
	}
	return err
}

// What is read piece by piece is what is read whole, whatever was done.
func TestRead_WhatIsNewerGivesWhatAllGives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dbx := open(t)
			l := life{Rand: rand.New(rand.NewPCG(seed, 1)), ctx: t.Context()} //nolint:gosec // repeatable
			source := store.NewSource(dbx)
			var slow *store.State // of who looks only now and then
			advanced := 0
			for n := range 150 {
				before := source.Known()
				if err := l.transaction(dbx); err != nil {
					t.Fatal(err)
				}
				got, err := source.Newest(t.Context())
				if err != nil {
					t.Fatalf("step %d: %v", n, err)
				}
				want, err := store.LoadState(t.Context(), dbx, nil)
				if err != nil {
					t.Fatal(err)
				}
				same(t, fmt.Sprint("step ", n), got, want)
				if before != nil {
					advanced += sinceIsRight(t, before, got)
				}
				if n%20 == 0 {
					if slow, err = store.LoadState(t.Context(), dbx, slow); err != nil {
						t.Fatal(err)
					}
					same(t, fmt.Sprint("seldom, step ", n), slow, want)
				}
				if t.Failed() {
					return
				}
			}
			if advanced < 50 {
				t.Errorf("only %d of 150 states came from the one before", advanced)
			}
		})
	}
}

// violation tells whether the database refused what would have left something
// dangling, or twice.
func violation(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && strings.HasPrefix(pg.Code, "23")
}

func same(t *testing.T, when string, got, want *store.State) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(store.State{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-whole +newer):\n%s", when, diff)
	}
}

// sinceIsRight checks that what does not differ according to Since does not
// differ; it returns 1 where there was something to check.
func sinceIsRight(t *testing.T, before, after *store.State) int {
	t.Helper()
	refs, known := after.Since(before.Mark)
	if !known || before == after {
		return 0
	}
	named := map[catalog.Ref]bool{}
	for _, r := range refs {
		named[r] = true
	}
	for _, k := range catalog.Kinds {
		for _, s := range []*catalog.Snapshot{before.Snapshot, after.Snapshot} {
			for i := range k.Len(s) {
				r := k.At(s, i).Ref()
				was, had := k.Find(before.Snapshot, r)
				is, has := k.Find(after.Snapshot, r)
				if !named[r] && (had != has || !reflect.DeepEqual(was, is)) {
					t.Errorf("%s differs and is not named", r)
				}
			}
		}
	}
	if !named[catalog.Ref{Kind: store.KindKeys}] && !cmp.Equal(before.Snapshot.Keys, after.Snapshot.Keys) {
		t.Error("signing keys differ and are not named")
	}
	return 1
}

func TestRead_AStatementThatChangesNoRowIsNoRevision(t *testing.T) {
	t.Parallel()
	dbx := open(t)
	before, err := store.Current(t.Context(), dbx)
	if err != nil {
		t.Fatal(err)
	}
	for _, statement := range []string{`DELETE FROM central.scope`, `UPDATE central.client SET spec = spec`} {
		if _, err := dbx.Exec(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	if after, err := store.Current(t.Context(), dbx); err != nil || after != before {
		t.Errorf("%v after %v, %v", after, before, err)
	}
}

// A database that is restored from a backup counts the same revisions again.
func TestRead_ARestoredDatabaseIsReadWhole(t *testing.T) {
	t.Parallel()
	dbx := open(t)
	put := func(name string) {
		t.Helper()
		err := pgx.BeginFunc(t.Context(), dbx, func(tx pgx.Tx) error {
			return life{tx: tx, ctx: t.Context(), Rand: rand.New(rand.NewPCG(1, 1))}.write(&catalog.TenantSpec{ID: name}) //nolint:gosec // repeatable
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	source := store.NewSource(dbx)
	newest := func() *store.State {
		t.Helper()
		s, err := source.Newest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	put("kept")
	backup, err := store.Current(t.Context(), dbx)
	if err != nil {
		t.Fatal(err)
	}
	put("lost-1")
	put("lost-2")
	lost := newest()
	exec := func(statement string, args ...any) {
		t.Helper()
		if _, err := dbx.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec(`DELETE FROM central.tenant WHERE id <> 'kept'`)
	exec(`DELETE FROM central.change WHERE revision > $1`, backup.Revision)
	exec(`DELETE FROM central.history WHERE revision > $1`, backup.Revision)
	exec(`UPDATE central.revision SET revision = $1, token = $2`, backup.Revision, backup.Token)
	if s := newest(); s.Mark != backup || len(s.Snapshot.Tenants) != 1 {
		t.Fatalf("after the restore: %+v with %d tenants", s.Mark, len(s.Snapshot.Tenants))
	}
	for _, s := range []*store.State{lost, nil} { // who was away meanwhile; who was not
		put(fmt.Sprintf("new-%v", s == nil))
		if s == nil {
			s = source.Known()
		}
		got, err := store.LoadState(t.Context(), dbx, s)
		if err != nil {
			t.Fatal(err)
		}
		want, err := store.LoadState(t.Context(), dbx, nil)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "after a change", got, want)
	}
}

func TestSince_KnowsOnlyWhatTheStateCameFrom(t *testing.T) {
	t.Parallel()
	mark := func(n int64) store.Mark { return store.Mark{Revision: n, Token: id.UUID{byte(n)}} }
	s := &store.State{Mark: mark(1)}
	for n := int64(2); n <= 200; n++ {
		s = s.Next(mark(n), nil, nil, []catalog.Ref{{Kind: catalog.KindNameEdge, ID: fmt.Sprint(n % 3)}})
	}
	if refs, ok := s.Since(mark(150)); !ok || len(refs) != 3 {
		t.Errorf("%v %v", refs, ok)
	}
	if refs, ok := s.Since(mark(200)); !ok || len(refs) != 0 {
		t.Errorf("of itself: %v %v", refs, ok)
	}
	other := mark(150)
	other.Token = id.UUID{1, 2, 3}
	for name, m := range map[string]store.Mark{"none": {}, "forgotten": mark(1), "of another database": other, "the future": mark(201)} {
		if _, ok := s.Since(m); ok {
			t.Errorf("%s is known", name)
		}
	}
	many := s.Next(mark(201), nil, nil, make([]catalog.Ref, 100_000))
	if _, ok := many.Since(mark(200)); ok {
		t.Error("a step of any size is remembered")
	}
}
