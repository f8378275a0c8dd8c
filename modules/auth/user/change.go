package user

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"versola/platform/id"
	"versola/platform/postgres"
)

const lockUser = `SELECT ` + columns + ` FROM auth.users WHERE id = $1 AND directory = $2 FOR UPDATE`

// Lock reads a person of a directory and keeps everybody else from changing
// them until tx ends. Errors: [ErrNotFound].
func (s *Store) Lock(ctx context.Context, tx pgx.Tx, directory string, userID id.UUID) (*User, error) {
	return scan(tx.QueryRow(ctx, lockUser, userID, directory))
}

// In returns a person of a directory. Errors: [ErrNotFound], also for one of
// another directory.
func (s *Store) In(ctx context.Context, directory string, userID id.UUID) (*User, error) {
	u, err := s.ByID(ctx, userID)
	if err == nil && u.Directory != directory {
		return nil, ErrNotFound
	}
	return u, err
}

// Taken reports that an identifier is someone else's. It is an [ErrTaken].
type Taken struct{ Field string } // "id", "external_id", "phone", "email", "username"

// Error implements error.
func (t *Taken) Error() string { return "the " + t.Field + " is someone else's" }

// Is implements errors.Is for [ErrTaken].
func (*Taken) Is(target error) bool { return target == ErrTaken }

const updateUser = `UPDATE auth.users SET status = $2, phone = nullif($3, ''), phone_verified = $4, email = nullif($5, ''), email_verified = $6,
	username = nullif($7, ''), claims = $8, roles = $9, updated_at = $10, external_id = nullif($11, '')
	WHERE id = $1 RETURNING version`

// Update writes what a person is within tx: everything but the id, the
// directory and the time of creation. It sets u's version and time of update.
// Errors: [ErrPhone], [ErrEmail], [ErrUsername], *[Taken], after which tx must
// be rolled back; [ErrNotFound].
func (s *Store) Update(ctx context.Context, tx pgx.Tx, u *User, now time.Time) error {
	n := New{Phone: u.Phone, Email: u.Email, Username: u.Username}
	if err := n.normalise(); err != nil {
		return err
	}
	claims, err := json.Marshal(orEmpty(u.Claims))
	if err != nil {
		return fmt.Errorf("encode claims: %w", err)
	}
	roles, err := json.Marshal(orEmpty(u.Roles))
	if err != nil {
		return fmt.Errorf("encode roles: %w", err)
	}
	u.Phone, u.Email, u.Username, u.UpdatedAt = n.Phone, n.Email, n.Username, now
	err = tx.QueryRow(ctx, updateUser, u.ID, u.Status, u.Phone, u.PhoneVerified, u.Email, u.EmailVerified, u.Username, claims, roles, now, u.ExternalID).
		Scan(&u.Version)
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case postgres.IsUniqueViolation(err, "") && errors.As(err, &pg):
		return &Taken{strings.TrimPrefix(pg.ConstraintName, "users_")}
	case err != nil:
		return fmt.Errorf("update user: %w", err)
	}
	return nil
}

const whoTook = `SELECT
	EXISTS (SELECT FROM auth.users WHERE id = $2),
	EXISTS (SELECT FROM auth.users WHERE directory = $1 AND external_id = nullif($3, '')),
	EXISTS (SELECT FROM auth.users WHERE directory = $1 AND phone = nullif($4, '')),
	EXISTS (SELECT FROM auth.users WHERE directory = $1 AND lower(email) = lower(nullif($5, ''))),
	EXISTS (SELECT FROM auth.users WHERE directory = $1 AND lower(username) = lower(nullif($6, '')))`

// TakenFields tells which identifiers of a person who could not be created are
// someone's.
func (s *Store) TakenFields(ctx context.Context, tx pgx.Tx, n New) ([]string, error) {
	if err := n.normalise(); err != nil {
		return nil, err
	}
	var is [5]bool
	err := tx.QueryRow(ctx, whoTook, n.Directory, n.ID, n.ExternalID, n.Phone, n.Email, n.Username).Scan(&is[0], &is[1], &is[2], &is[3], &is[4])
	if err != nil {
		return nil, fmt.Errorf("look for who has the identifier: %w", err)
	}
	var out []string
	for i, field := range []string{"id", "external_id", "phone", "email", "username"} {
		if is[i] {
			out = append(out, field)
		}
	}
	return out, nil
}

const deleteUser = `DELETE FROM auth.users WHERE id = $1`

// Delete removes a person and their credentials within tx. What else hangs on
// them (sessions, grants) is ended first, by package logout, and goes when it
// expires. Errors: [ErrNotFound].
func (s *Store) Delete(ctx context.Context, tx pgx.Tx, userID id.UUID) error {
	tag, err := tx.Exec(ctx, deleteUser, userID)
	if err != nil {
		return fmt.Errorf("delete user: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

// Factor is a way to prove who one is, without what it is proven with.
type Factor struct {
	ID string // "password", "temporary_password"
	// Imported: another system made the hash; it is renewed at the next sign-in.
	Imported  bool
	ChangedAt time.Time
	ExpiresAt time.Time // zero: never
}

// Ids of factors.
const (
	FactorPassword          = "password"
	FactorTemporaryPassword = "temporary_password" //nolint:gosec // a name
)

const readFactors = `SELECT temporary, hash LIKE 'imported:%', changed_at, expires_at FROM auth.password WHERE user_id = $1 ORDER BY temporary`

// Factors lists a person's stored factors; one-time codes have nothing stored.
func (s *Store) Factors(ctx context.Context, userID id.UUID) ([]Factor, error) {
	rows, err := s.db.Query(ctx, readFactors, userID)
	if err != nil {
		return nil, fmt.Errorf("read factors: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (Factor, error) {
		f, temporary, expires := Factor{ID: FactorPassword}, false, (*time.Time)(nil)
		err := row.Scan(&temporary, &f.Imported, &f.ChangedAt, &expires)
		if temporary {
			f.ID = FactorTemporaryPassword
		}
		if expires != nil {
			f.ExpiresAt = *expires
		}
		return f, err
	})
	if err != nil {
		return nil, fmt.Errorf("read factors: %w", err)
	}
	return out, nil
}

const deletePassword = `DELETE FROM auth.password WHERE user_id = $1 AND temporary = $2`

// RemoveFactor takes a factor from a person within tx. Errors: [ErrNotFound].
func (s *Store) RemoveFactor(ctx context.Context, tx pgx.Tx, userID id.UUID, factor string) error {
	if factor != FactorPassword && factor != FactorTemporaryPassword {
		return ErrNotFound
	}
	tag, err := tx.Exec(ctx, deletePassword, userID, factor == FactorTemporaryPassword)
	if err != nil {
		return fmt.Errorf("remove factor: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return ErrNotFound
	}
	return nil
}

const setPassword = `INSERT INTO auth.password (user_id, temporary, hash, changed_at, expires_at) VALUES ($1, $2, $3, $4, $5)
	ON CONFLICT (user_id, temporary) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, expires_at = excluded.expires_at`

// SetPassword gives a person a password within tx, as a hash (see
// password.Hasher).
func (s *Store) SetPassword(ctx context.Context, tx pgx.Tx, userID id.UUID, hash string, now time.Time) error {
	if _, err := tx.Exec(ctx, setPassword, userID, false, hash, now, nil); err != nil {
		return fmt.Errorf("set password: %w", err)
	}
	return nil
}

// SetTemporaryPassword gives a person a password that works until ends (zero:
// for good) and that they must replace when they use it. The permanent one
// stays valid beside it.
func (s *Store) SetTemporaryPassword(ctx context.Context, tx pgx.Tx, userID id.UUID, hash string, ends, now time.Time) error {
	var expires *time.Time
	if !ends.IsZero() {
		expires = &ends
	}
	if _, err := tx.Exec(ctx, setPassword, userID, true, hash, now, expires); err != nil {
		return fmt.Errorf("set temporary password: %w", err)
	}
	return nil
}

// Identifiers returns the ways to name a person at sign-in.
func (u *User) Identifiers() []Identifier {
	var out []Identifier
	for _, i := range []Identifier{{KindPhone, u.Phone}, {KindEmail, u.Email}, {KindUsername, u.Username}} {
		if i.Value != "" {
			out = append(out, i)
		}
	}
	return out
}

// ErrChannel reports that a person has no address of the kind to be written to.
var ErrChannel = errors.New("the person has no such address")

// Throttled reports that enough was sent to a person.
type Throttled struct{ RetryAfter time.Duration }

// Error implements error.
func (t *Throttled) Error() string { return "enough was sent to the person lately" }
