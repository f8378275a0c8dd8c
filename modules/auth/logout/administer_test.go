package logout_test

import (
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/auth/logout"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fill makes people with two sessions each: in the first, the client "told" has
// a grant and wants to hear of its end; in the second there is offline access.
func fill(t *testing.T, d *postgres.DB, users ...id.UUID) {
	t.Helper()
	exec := func(statement string, args ...any) {
		if _, err := d.Exec(t.Context(), statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i, u := range users {
		exec(`INSERT INTO auth.users (id, directory, username, created_at, updated_at) VALUES ($1, 'one', $2, $3, $3)`, u, u.String(), now)
		for n := range byte(2) {
			s := id.UUID{byte(i + 1), n + 1}
			exec(`INSERT INTO auth.session (user_id, id, directory, secret_hash, auth_time, created_at, seen_at, expires_at)
				VALUES ($1, $2, 'one', '', $3, $3, $4, $5)`, u, s, now, now.Add(time.Duration(n)*time.Minute), now.Add(time.Hour))
			exec(`INSERT INTO auth.grants (user_id, id, tenant_id, client_id, session_id, scope, auth_time, offline, rotated_at, previous_rotated_at, created_at, expires_at)
				VALUES ($1, $2, 'one', $3, $4, 'openid', $5, $6, $5, $5, $5, $7)`, u, id.UUID{byte(i + 1), n + 1, 1}, []string{"told", "quiet"}[n], s, now, n == 1, now.Add(time.Hour))
		}
	}
}

func fixture(t *testing.T) (*postgres.DB, *logout.Ender, *catalog.Catalog) {
	t.Helper()
	d := pgtest.Open(t, db.Auth())
	client := func(name, uri string) catalog.ClientSpec {
		return catalog.ClientSpec{Tenant: "one", ID: name, Kind: catalog.KindNative, AuthMethod: catalog.AuthNone, GrantTypes: []string{catalog.GrantCode}, BackchannelLogoutURI: uri}
	}
	s := &catalog.Snapshot{Issuer: "http://localhost", RootTenant: "one",
		Tenants: []catalog.TenantSpec{{ID: "one", Directory: "one", Settings: catalog.TenantSettings{OfflineSurvivesLogout: true}}},
		Clients: []catalog.ClientSpec{client("told", "http://localhost/logout"), client("quiet", "")}}
	c, err := (&catalog.Compiler{Open: func(b []byte, _ string) ([]byte, error) { return b, nil }}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return d, logout.NewEnder(d, clock.NewFake(now), nil), c
}

// texts returns the one column of a statement.
func texts(t *testing.T, d *postgres.DB, statement string) []string {
	t.Helper()
	rows, err := d.Query(t.Context(), statement)
	if err != nil {
		t.Fatal(err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

const (
	revocations = `SELECT kind || ' ' || subject FROM auth.revocation ORDER BY seq`
	notices     = `SELECT client_id || ' ' || subject FROM auth.logout_notice ORDER BY 1`
	living      = `SELECT user_id || ' session' FROM auth.session WHERE ended_at IS NULL
		UNION ALL SELECT user_id || ' ' || client_id FROM auth.grants WHERE revoked_at IS NULL ORDER BY 1`
)

func TestEndAll_EndsEverythingOfThePersonAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	d, e, c := fixture(t)
	ann, ben := id.UUID{1}, id.UUID{2}
	fill(t, d, ann, ben)
	var n int
	end := func(tx pgx.Tx) (err error) {
		n, err = e.EndAll(t.Context(), tx, c, "one", ann)
		return err
	}
	if err := pgx.BeginFunc(t.Context(), d, end); err != nil || n != 2 {
		t.Fatalf("%d sessions, %v", n, err)
	}
	b := ben.String()
	for statement, want := range map[string][]string{
		revocations: {"user " + ann.String()}, notices: {"told " + ann.String()},
		living: {b + " quiet", b + " session", b + " session", b + " told"},
	} {
		if diff := cmp.Diff(want, texts(t, d, statement)); diff != "" {
			t.Errorf("%s:\n%s", statement, diff)
		}
	}
	// Tokens that were issued meanwhile end, too, where there is no session any more.
	if err := pgx.BeginFunc(t.Context(), d, end); err != nil || n != 0 || len(texts(t, d, revocations)) != 2 {
		t.Errorf("again: %d sessions, %v", n, err)
	}
}

func TestEndOne_IsASignOutOfThatSession(t *testing.T) {
	t.Parallel()
	d, e, c := fixture(t)
	ann, ben := id.UUID{1}, id.UUID{2}
	fill(t, d, ann, ben)
	list, err := e.Living(t.Context(), ann)
	if err != nil || len(list) != 2 || list[0].ID != (id.UUID{1, 2}) || !cmp.Equal(list[0].Clients, []string{"one/quiet"}) {
		t.Fatalf("%+v, %v", list, err)
	}
	end := func(u, s id.UUID) (ended bool) {
		if err := pgx.BeginFunc(t.Context(), d, func(tx pgx.Tx) (err error) {
			ended, err = e.EndOne(t.Context(), tx, c, "one", u, s)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return ended
	}
	if end(ben, list[0].ID) {
		t.Error("another's session was ended")
	}
	if !end(ann, list[0].ID) || end(ann, list[0].ID) {
		t.Error("the session ends once")
	}
	a := ann.String()
	got := texts(t, d, living+` LIMIT 3`)
	if diff := cmp.Diff([]string{a + " quiet", a + " session", a + " told"}, got); diff != "" {
		t.Errorf("offline access survives where the tenant says so:\n%s", diff)
	}
	if list, err = e.Living(t.Context(), ann); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
