package user_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/auth/user"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

// people creates persons in a directory; the username names them.
func people(t *testing.T, d *postgres.DB, s *user.Store, list ...user.New) map[string]id.UUID {
	t.Helper()
	out := map[string]id.UUID{}
	err := pgx.BeginFunc(t.Context(), d, func(tx pgx.Tx) error {
		for i, n := range list {
			if n.Now.IsZero() {
				n.Now = now.Add(time.Duration(i) * time.Second)
			}
			u, err := s.Create(t.Context(), tx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", n.Username, err)
			}
			out[n.Username] = u
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// names lists all pages and returns the usernames, page by page with limit.
func names(t *testing.T, s *user.Store, directory string, f user.Filter, limit int) []string {
	t.Helper()
	out := []string{}
	after := ""
	for {
		page, err := s.List(t.Context(), directory, f, limit, after)
		if err != nil {
			t.Fatalf("%+v: %v", f, err)
		}
		for _, u := range page.Users {
			if u.Directory != directory {
				t.Errorf("%s is of directory %s", u.Username, u.Directory)
			}
			out = append(out, u.Username)
		}
		if after = page.Next; after == "" {
			if page.Estimated || page.Total != int64(len(out)) {
				t.Errorf("%+v: total %d, listed %d", f, page.Total, len(out))
			}
			return out
		}
		if len(page.Users) != limit {
			t.Errorf("%+v: a page of %d before the last", f, len(page.Users))
		}
	}
}

func TestList_SearchesByEveryPrefixAndNeverLeavesItsDirectory(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	var all []user.New
	for _, directory := range []string{"one", "two"} {
		all = append(all,
			user.New{Directory: directory, Username: "ann", Phone: "+77000000001", Email: "Ann@Example.com", ExternalID: "CRM-1", Claims: map[string]any{"name": "Anna Ivanova"}, Roles: map[string][]string{"demo": {"reader", "admin"}}},
			user.New{Directory: directory, Username: "ben", Phone: "+77000000002", Email: "ben@example.com", Claims: map[string]any{"name": "Анна Petrova"}, Roles: map[string][]string{"demo": {"reader"}, "other": {"admin"}}},
			user.New{Directory: directory, Username: "cyd", Phone: "+4420794600", Email: "cyd@example.com", Claims: map[string]any{"name": "Annabel"}, Disabled: true},
			user.New{Directory: directory, Username: "dan_x%", Email: "anton@example.com", Claims: map[string]any{"name": "100% Dan"}},
		)
		all[len(all)-1].Username = "dan"
	}
	ids := people(t, d, s, all[:4]...)
	people(t, d, s, all[4:]...)
	for name, k := range map[string]struct {
		f    user.Filter
		want []string
	}{
		"all, newest first":            {user.Filter{}, []string{"dan", "cyd", "ben", "ann"}},
		"phone":                        {user.Filter{Query: "+7700"}, []string{"ann", "ben"}},
		"phone without plus":           {user.Filter{Query: "7 (700)"}, []string{"ann", "ben"}},
		"a whole phone":                {user.Filter{Query: "+77000000002"}, []string{"ben"}},
		"a longer phone":               {user.Filter{Query: "+770000000021"}, []string{}},
		"e-mail in any case":           {user.Filter{Query: "ANN@EX"}, []string{"ann"}},
		"e-mail, then name, each once": {user.Filter{Query: "ann"}, []string{"ann", "cyd"}},
		"e-mail first":                 {user.Filter{Query: "an"}, []string{"ann", "dan", "cyd"}},
		"name in any case":             {user.Filter{Query: "anna i"}, []string{"ann"}},
		"name of another script":       {user.Filter{Query: "Анна"}, []string{"ben"}},
		"what LIKE would read":         {user.Filter{Query: "100%"}, []string{"dan"}},
		"a percent sign alone":         {user.Filter{Query: "%"}, []string{}},
		"an underscore":                {user.Filter{Query: "_"}, []string{}},
		"a backslash":                  {user.Filter{Query: `\`}, []string{}},
		"a quote":                      {user.Filter{Query: `'; DROP TABLE auth.users; --`}, []string{}},
		"external id":                  {user.Filter{Query: "CRM"}, []string{"ann"}},
		"id":                           {user.Filter{Query: ids["ben"].String()}, []string{"ben"}},
		"the beginning of an id":       {user.Filter{Query: strings.ToUpper(ids["ben"].String()[:30])}, []string{"ben"}},
		"username":                     {user.Filter{Query: "cy"}, []string{"cyd"}},
		"disabled":                     {user.Filter{Status: user.Disabled}, []string{"cyd"}},
		"active":                       {user.Filter{Status: user.Active}, []string{"dan", "ben", "ann"}},
		"role":                         {user.Filter{Tenant: "demo", Role: "reader"}, []string{"ben", "ann"}},
		"a role of another tenant":     {user.Filter{Tenant: "demo", Role: "admin"}, []string{"ann"}},
		"role and query":               {user.Filter{Query: "+7700", Tenant: "other", Role: "admin"}, []string{"ben"}},
		"created":                      {user.Filter{CreatedFrom: now.Add(time.Second), CreatedBefore: now.Add(3 * time.Second)}, []string{"cyd", "ben"}},
		"space is no query":            {user.Filter{Query: "  "}, []string{"dan", "cyd", "ben", "ann"}},
	} {
		for _, limit := range []int{1, 2, 3, 50} {
			if diff := cmp.Diff(k.want, names(t, s, "one", k.f, limit)); diff != "" {
				t.Errorf("%s, pages of %d:\n%s", name, limit, diff)
			}
		}
	}
}

func TestList_PagesThroughEqualNamesAndTimes(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	var all []user.New
	for i := range 25 {
		all = append(all, user.New{Directory: "one", Username: fmt.Sprintf("u%02d", i), Claims: map[string]any{"name": "Same Name"}, Now: now})
	}
	people(t, d, s, all...)
	for _, f := range []user.Filter{{}, {Query: "same"}, {Query: "u"}} {
		got := names(t, s, "one", f, 4)
		slices.Sort(got)
		if len(slices.Compact(got)) != 25 {
			t.Errorf("%+v: %v", f, got)
		}
	}
}

func TestList_RefusesForeignCursorsAndHostileQueries(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	people(t, d, s, user.New{Directory: "one", Username: "a"}, user.New{Directory: "one", Username: "b"})
	page, err := s.List(t.Context(), "one", user.Filter{}, 1, "")
	if err != nil || page.Next == "" {
		t.Fatal(page, err)
	}
	for _, after := range []string{"x", "!", "e30", strings.Repeat("A", 10000), page.Next + "A", "eyJiIjo5fQ", "bnVsbA"} {
		if _, err := s.List(t.Context(), "one", user.Filter{}, 1, after); !errors.Is(err, user.ErrCursor) {
			t.Errorf("%.20q: %v", after, err)
		}
	}
	if _, err := s.List(t.Context(), "one", user.Filter{Query: "a"}, 1, page.Next); !errors.Is(err, user.ErrCursor) {
		t.Errorf("a list's cursor in a search: %v", err)
	}
	for _, q := range []string{"\x00", "\xff", strings.Repeat("x", user.MaxQuery+1), "a\nb"} {
		if _, err := s.List(t.Context(), "one", user.Filter{Query: q}, 1, ""); !errors.Is(err, user.ErrQuery) {
			t.Errorf("%.20q: %v", q, err)
		}
	}
}

// million fills a directory with people as a bank has them.
const million = `INSERT INTO auth.users (id, directory, external_id, status, phone, phone_verified, email, username, claims, roles, created_at, updated_at)
SELECT gen_random_uuid(), 'bank', 'crm-' || i, CASE WHEN i % 500 = 0 THEN 'disabled' ELSE 'active' END, '+77' || lpad(i::text, 9, '0'), true,
	'person' || i || '@example.com', 'login' || i,
	jsonb_build_object('name', (ARRAY['Aigerim','Dana','Ivan','Maria','Timur','Olga','Nurlan','Anna'])[1 + i % 8] || ' ' || md5(i::text), 'locale', 'ru'),
	CASE WHEN i % 1000 = 0 THEN '{"bank": ["customer", "teller"]}' WHEN i % 10 = 0 THEN '{"bank": ["customer", "premium"]}' ELSE '{"bank": ["customer"]}' END::jsonb,
	timestamptz '2020-01-01' + i * interval '3 minutes', timestamptz '2026-01-01'
FROM generate_series(1, 1000000) AS i`

// BenchmarkList_MillionUsers reports the 95th percentile of lists and searches
// among a million people.
func BenchmarkList_MillionUsers(b *testing.B) {
	d := pgtest.Open(b, db.Auth())
	conn, err := d.Acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	for _, statement := range []string{"SET statement_timeout = 0", million, "VACUUM ANALYZE auth.users"} {
		if _, err := conn.Exec(b.Context(), statement); err != nil {
			b.Fatal(err)
		}
	}
	if _, err := conn.Exec(b.Context(), "RESET statement_timeout"); err != nil {
		b.Fatal(err)
	}
	conn.Release()
	s := user.NewStore(d, rand.Reader)
	middle, err := s.List(b.Context(), "bank", user.Filter{CreatedBefore: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)}, 50, "")
	if err != nil {
		b.Fatal(err)
	}
	for _, k := range []struct {
		name  string
		f     user.Filter
		after string
	}{
		{"all", user.Filter{}, ""}, {"deep page", user.Filter{}, middle.Next}, {"disabled", user.Filter{Status: user.Disabled}, ""},
		{"active", user.Filter{Status: user.Active}, ""}, {"common role", user.Filter{Tenant: "bank", Role: "customer"}, ""},
		{"tenth role", user.Filter{Tenant: "bank", Role: "premium"}, ""}, {"rare role", user.Filter{Tenant: "bank", Role: "teller"}, ""},
		{"no such role", user.Filter{Tenant: "bank", Role: "nobody"}, ""}, {"rare role, disabled", user.Filter{Tenant: "bank", Role: "teller", Status: user.Disabled}, ""},
		{"created", user.Filter{CreatedFrom: time.Date(2021, 1, 1, 0, 0, 0, 0, time.UTC), CreatedBefore: time.Date(2021, 2, 1, 0, 0, 0, 0, time.UTC)}, ""},
		{"phone", user.Filter{Query: "+77000123456"}, ""}, {"short phone", user.Filter{Query: "+7"}, ""}, {"digits", user.Filter{Query: "770001"}, ""},
		{"e-mail", user.Filter{Query: "person12345"}, ""}, {"one letter", user.Filter{Query: "p"}, ""}, {"name", user.Filter{Query: "Anna a1"}, ""},
		{"common name", user.Filter{Query: "anna"}, ""}, {"id", user.Filter{Query: "01234567-89"}, ""}, {"nobody", user.Filter{Query: "zzzzzz"}, ""},
		{"name, disabled", user.Filter{Query: "anna a", Status: user.Disabled}, ""},
	} {
		b.Run(k.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				start := clock.Monotonic()
				if _, err := s.List(b.Context(), "bank", k.f, 50, k.after); err != nil {
					b.Fatal(err)
				}
				took = append(took, clock.Since(start))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)*95/100].Microseconds())/1000, "p95-ms")
		})
	}
}
