package user_test

import (
	"crypto/rand"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/auth/user"
	"versola/platform/id"
	"versola/platform/pgtest"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func TestCreate_ThenFindByEveryIdentifierInItsDirectory(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	n := user.New{Directory: "demo", Phone: "+7 700 000-00-01", PhoneVerified: true, Email: "Alice@Example.com", EmailVerified: true, Username: "alice",
		Claims: map[string]any{"name": "Alice", "address": map[string]any{"country": "KZ"}}, Roles: map[string][]string{"demo": {"customer"}},
		PasswordHash: "p", TemporaryPasswordHash: "t", Now: now}
	var created id.UUID
	err := pgx.BeginFunc(t.Context(), d, func(tx pgx.Tx) (err error) {
		created, err = s.Create(t.Context(), tx, n)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := &user.User{ID: created, Directory: "demo", Status: user.Active, Phone: "+77000000001", PhoneVerified: true, Email: "Alice@Example.com", EmailVerified: true,
		Username: "alice", Claims: n.Claims, Roles: n.Roles, CreatedAt: now, UpdatedAt: now}
	for _, i := range []user.Identifier{{Kind: user.KindPhone, Value: "+77000000001"}, {Kind: user.KindEmail, Value: "alice@EXAMPLE.com"}, {Kind: user.KindUsername, Value: "ALICE"}} {
		got, err := s.Find(t.Context(), "demo", i)
		if err != nil {
			t.Fatalf("%v: %v", i, err)
		}
		got.Version, got.CreatedAt, got.UpdatedAt = 0, got.CreatedAt.UTC(), got.UpdatedAt.UTC()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%v:\n%s", i, diff)
		}
		if _, err := s.Find(t.Context(), "other", i); !errors.Is(err, user.ErrNotFound) {
			t.Errorf("%v in another directory: %v", i, err)
		}
	}
	if got, err := s.ByID(t.Context(), created); err != nil || got.Username != "alice" {
		t.Errorf("by id: %v, %v", got, err)
	}
	if _, err := s.ByID(t.Context(), id.Nil); !errors.Is(err, user.ErrNotFound) {
		t.Errorf("nobody: %v", err)
	}
}

func TestCreate_RefusesTakenAndMalformedIdentifiersAndTheTransactionGoesOn(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	s := user.NewStore(d, rand.Reader)
	err := pgx.BeginFunc(t.Context(), d, func(tx pgx.Tx) error {
		first := user.New{Directory: "demo", ID: id.UUID{1}, Phone: "+77000000001", Email: "a@example.com", Username: "a", Now: now}
		if _, err := s.Create(t.Context(), tx, first); err != nil {
			return err
		}
		for name, k := range map[string]struct {
			n    user.New
			want error
		}{
			"id":              {user.New{ID: id.UUID{1}}, user.ErrTaken},
			"phone":           {user.New{Phone: "+7 700 000 00 01"}, user.ErrTaken},
			"e-mail":          {user.New{Email: "A@EXAMPLE.COM"}, user.ErrTaken},
			"username":        {user.New{Username: "A"}, user.ErrTaken},
			"bad phone":       {user.New{Phone: "8700"}, user.ErrPhone},
			"bad e-mail":      {user.New{Email: "a@b\r\nBcc: c@d.e"}, user.ErrEmail},
			"bad username":    {user.New{Username: "a@b"}, user.ErrUsername},
			"spaced username": {user.New{Username: " "}, user.ErrUsername},
		} {
			k.n.Directory, k.n.Now = "demo", now
			if _, err := s.Create(t.Context(), tx, k.n); !errors.Is(err, k.want) {
				t.Errorf("%s: %v, want %v", name, err, k.want)
			}
		}
		_, err := s.Create(t.Context(), tx, user.New{Directory: "other", Phone: "+77000000001", Email: "a@example.com", Username: "a", Now: now})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
