package user

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/id"
	"versola/platform/postgres"
)

// Status tells whether a person may sign in.
type Status string

// The statuses.
const (
	Active   Status = "active"
	Disabled Status = "disabled"
)

// User is a person.
type User struct {
	ID            id.UUID
	Directory     string
	ExternalID    string // in the system that the person came from, or ""
	Version       int64  // rises with every write
	Status        Status
	Phone         string // E.164, or ""
	PhoneVerified bool
	Email         string
	EmailVerified bool
	Username      string
	Claims        map[string]any      // standard claims beyond those above
	Roles         map[string][]string // tenant -> names of roles
	CreatedAt     time.Time
	UpdatedAt     time.Time
}

// Session is a sign-in that has not ended, as administration shows it (see
// package logout).
type Session struct {
	ID        id.UUID
	AuthTime  time.Time
	ACR       string
	AMR       []string
	CreatedAt time.Time
	SeenAt    time.Time // a minute exact
	ExpiresAt time.Time // absolute
	Clients   []string  // that hold living grants of it, as "tenant/client"
}

// Errors of the store.
var (
	// ErrNotFound: nobody of that name in the directory.
	ErrNotFound = errors.New("no such user")
	// ErrTaken: the id, external id, phone number, address or username is
	// someone's already.
	ErrTaken = errors.New("the identifier is taken")
)

// Store reads and writes people.
type Store struct {
	db     *postgres.DB
	random io.Reader // makes ids
}

// NewStore makes a store.
func NewStore(db *postgres.DB, random io.Reader) *Store { return &Store{db: db, random: random} }

const columns = `id, directory, coalesce(external_id, ''), version, status, coalesce(phone, ''), phone_verified, coalesce(email, ''), email_verified,
	coalesce(username, ''), claims, roles, created_at, updated_at`

// The three are apart so that each uses its own index.
const (
	findByPhone    = `SELECT ` + columns + ` FROM auth.users WHERE directory = $1 AND phone = $2`
	findByEmail    = `SELECT ` + columns + ` FROM auth.users WHERE directory = $1 AND lower(email) = lower($2)`
	findByUsername = `SELECT ` + columns + ` FROM auth.users WHERE directory = $1 AND lower(username) = lower($2)`
	findByID       = `SELECT ` + columns + ` FROM auth.users WHERE id = $1`
)

// Find returns the person of an identifier in a directory; one statement.
// Errors: [ErrNotFound].
func (s *Store) Find(ctx context.Context, directory string, i Identifier) (*User, error) {
	statement := findByPhone
	switch i.Kind {
	case KindEmail:
		statement = findByEmail
	case KindUsername:
		statement = findByUsername
	}
	return scan(s.db.QueryRow(ctx, statement, directory, i.Key()))
}

// ByID returns a person; one statement. Errors: [ErrNotFound].
func (s *Store) ByID(ctx context.Context, userID id.UUID) (*User, error) {
	return scan(s.db.QueryRow(ctx, findByID, userID))
}

// targets are where a row's columns go.
func (u *User) targets() []any {
	return []any{&u.ID, &u.Directory, &u.ExternalID, &u.Version, &u.Status, &u.Phone, &u.PhoneVerified, &u.Email, &u.EmailVerified,
		&u.Username, &u.Claims, &u.Roles, &u.CreatedAt, &u.UpdatedAt}
}

func scan(row pgx.Row) (*User, error) {
	u := &User{}
	err := row.Scan(u.targets()...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read user: %w", err)
	}
	return u, nil
}

// New describes a person to be created.
type New struct {
	Directory     string
	ID            id.UUID // zero: a new one is made
	ExternalID    string
	Phone         string // as typed; normalised here
	PhoneVerified bool
	Email         string
	EmailVerified bool
	Username      string
	Disabled      bool
	Claims        map[string]any
	Roles         map[string][]string
	// PasswordHash and TemporaryPasswordHash are in PHC format (see
	// password.Hasher); empty: none. A temporary one makes its user choose a
	// new one at the next sign-in.
	PasswordHash          string
	TemporaryPasswordHash string
	// TemporaryPasswordEnds is when the temporary one stops working; zero:
	// never.
	TemporaryPasswordEnds time.Time
	CreatedAt             time.Time // when the person registered; zero: Now
	Now                   time.Time
}

// ON CONFLICT keeps a taken identifier from ending the caller's transaction.
const insertUser = `INSERT INTO auth.users
	(id, directory, status, phone, phone_verified, email, email_verified, username, claims, roles, created_at, updated_at, external_id)
	VALUES ($1, $2, $3, nullif($4, ''), $5, nullif($6, ''), $7, nullif($8, ''), $9, $10, $11, $12, nullif($13, ''))
	ON CONFLICT DO NOTHING`

// Create adds a person within tx and returns the id. Errors: [ErrPhone],
// [ErrEmail], [ErrUsername]; [ErrTaken], after which tx goes on. What else is
// wrong with a description [New.Problems] tells.
func (s *Store) Create(ctx context.Context, tx pgx.Tx, n New) (id.UUID, error) {
	if err := n.normalise(); err != nil {
		return id.Nil, err
	}
	if n.ID.IsNil() {
		n.ID = id.NewUUID(n.Now, s.random)
	}
	claims, err := json.Marshal(orEmpty(n.Claims))
	if err != nil {
		return id.Nil, fmt.Errorf("encode claims: %w", err)
	}
	roles, err := json.Marshal(orEmpty(n.Roles))
	if err != nil {
		return id.Nil, fmt.Errorf("encode roles: %w", err)
	}
	status := Active
	if n.Disabled {
		status = Disabled
	}
	created := n.CreatedAt
	if created.IsZero() {
		created = n.Now
	}
	tag, err := tx.Exec(ctx, insertUser, n.ID, n.Directory, status, n.Phone, n.PhoneVerified, n.Email, n.EmailVerified, n.Username, claims, roles,
		created, n.Now, n.ExternalID)
	if err != nil {
		return id.Nil, fmt.Errorf("insert user: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return id.Nil, ErrTaken
	}
	if n.PasswordHash != "" {
		if err := s.SetPassword(ctx, tx, n.ID, n.PasswordHash, n.Now); err != nil {
			return id.Nil, err
		}
	}
	if n.TemporaryPasswordHash != "" {
		if err := s.SetTemporaryPassword(ctx, tx, n.ID, n.TemporaryPasswordHash, n.TemporaryPasswordEnds, n.Now); err != nil {
			return id.Nil, err
		}
	}
	return n.ID, nil
}

func (n *New) normalise() (err error) {
	if n.Phone != "" {
		if n.Phone, err = ParsePhone(n.Phone); err != nil {
			return err
		}
	}
	if n.Email != "" {
		if n.Email, err = ParseEmail(n.Email); err != nil {
			return err
		}
	}
	if n.Username != "" {
		if n.Username, err = ParseUsername(n.Username); err != nil {
			return err
		}
	}
	return nil
}

func orEmpty[V any](m map[string]V) map[string]V {
	if m == nil {
		return map[string]V{}
	}
	return m
}
