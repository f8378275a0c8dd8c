package session

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/authorization"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// CookieBase is the base name of the session cookie (see httpserver.Cookies).
const CookieBase = "versola_auth_session"

const (
	secretBytes = 32
	cookieBytes = 16 + 16 + secretBytes
	// touchEvery is how exact seen_at is: idle lifetimes are hours, so a write
	// per minute and session is plenty.
	touchEvery = time.Minute
)

// Session is a living sign-in.
type Session struct {
	UserID    id.UUID
	ID        id.UUID
	AuthTime  time.Time
	ACR       string
	AMR       []string
	CreatedAt time.Time
	ExpiresAt time.Time // absolute
}

// Authentication returns what was proven in the session, for a code.
func (s *Session) Authentication() authorization.Authentication {
	return authorization.Authentication{UserID: s.UserID, SessionID: s.ID, AuthTime: s.AuthTime, ACR: s.ACR, AMR: s.AMR}
}

// Cookie is what a session cookie says.
type Cookie struct {
	UserID    id.UUID
	SessionID id.UUID
	Secret    []byte // 32 bytes
}

// ParseCookie reads a cookie's value; false: it is not one of ours.
func ParseCookie(value string) (Cookie, bool) {
	if len(value) != base64.RawURLEncoding.EncodedLen(cookieBytes) {
		return Cookie{}, false
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(value)
	if err != nil || len(b) != cookieBytes {
		return Cookie{}, false
	}
	c := Cookie{UserID: id.UUID(b[:16]), SessionID: id.UUID(b[16:32]), Secret: b[32:]}
	if c.UserID.IsNil() || c.SessionID.IsNil() {
		return Cookie{}, false
	}
	return c, true
}

// String returns the cookie's value. It is a secret.
func (c Cookie) String() string {
	b := make([]byte, 0, cookieBytes)
	b = append(append(append(b, c.UserID[:]...), c.SessionID[:]...), c.Secret...)
	return base64.RawURLEncoding.EncodeToString(b)
}

// Hash returns what the session's row keeps of the secret.
func (c Cookie) Hash() []byte { return secret.Hash(string(c.Secret)) }

// NewSecret makes the secret of a new cookie.
func NewSecret(random io.Reader) ([]byte, error) {
	b := make([]byte, secretBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return nil, fmt.Errorf("read random bytes: %w", err)
	}
	return b, nil
}

// Store reads sessions.
type Store struct {
	db    *postgres.DB
	clock clock.Clock
}

// NewStore makes a store.
func NewStore(db *postgres.DB, c clock.Clock) *Store { return &Store{db: db, clock: c} }

// read finds a living session and notes that it was seen. The note may be lost
// in a crash (synchronous_commit off): it only makes a session idle a little
// earlier. set_config is local to the statement's transaction.
const read = `WITH s AS MATERIALIZED (
	SELECT s.user_id, s.id, s.auth_time, s.acr, s.amr, s.created_at, s.expires_at, s.seen_at
	FROM auth.session s JOIN auth.users u ON u.id = s.user_id
	WHERE s.user_id = $1 AND s.id = $2 AND s.secret_hash = $3 AND s.directory = $4 AND s.ended_at IS NULL
		AND s.expires_at > $5 AND s.seen_at > $6 AND u.status = 'active'
), touched AS (
	UPDATE auth.session t SET seen_at = $5 FROM s
	WHERE t.user_id = s.user_id AND t.id = s.id AND s.seen_at < $7 AND t.ended_at IS NULL
		AND set_config('synchronous_commit', 'off', true) = 'off'
)
SELECT user_id, id, auth_time, acr, amr, created_at, expires_at FROM s`

// Read returns the session that a cookie's value names in the tenant's
// directory, or nil when there is none alive: no cookie or not ours, ended,
// expired or idle, a wrong secret, another directory, a disabled person. One
// statement, or none for what is not a cookie of ours.
func (s *Store) Read(ctx context.Context, t *catalog.Tenant, cookieValue string) (*Session, error) {
	c, ok := ParseCookie(cookieValue)
	if !ok {
		return nil, nil //nolint:nilnil // no session is an ordinary answer
	}
	now := s.clock.Now()
	out := &Session{}
	err := s.db.QueryRow(ctx, read, c.UserID, c.SessionID, c.Hash(), t.Directory, now, now.Add(-t.SessionIdle()), now.Add(-touchEvery)).
		Scan(&out.UserID, &out.ID, &out.AuthTime, &out.ACR, &out.AMR, &out.CreatedAt, &out.ExpiresAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // no session is an ordinary answer
	case err != nil:
		return nil, fmt.Errorf("read session: %w", err)
	}
	return out, nil
}
