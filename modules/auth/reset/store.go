package reset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/tenant"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/platform/id"
)

// open is the condition of a link r of a person u that works: at $3, of tenant
// $2 with user directory $4.
const open = `r.tenant_id = $2 AND r.ended_at IS NULL AND r.valid_until > $3 AND u.id = r.user_id AND u.directory = $4 AND u.status = 'active'
	AND NOT EXISTS (SELECT FROM auth.password p WHERE p.user_id = r.user_id AND p.changed_at > r.created_at)`

const addresses = `coalesce(u.phone, ''), coalesce(u.email, ''), coalesce(u.username, '')`

const findSQL = `SELECT u.id, ` + addresses + ` FROM auth.password_reset r, auth.users u WHERE r.token_hash = $1 AND ` + open

// found is who a link is of.
type found struct {
	id          id.UUID
	identifiers user.User // its addresses alone
}

func (f *found) targets() []any {
	return []any{&f.id, &f.identifiers.Phone, &f.identifiers.Email, &f.identifiers.Username}
}

// name is what the person is likely to sign in with.
func (f *found) name() string {
	return cmp.Or(f.identifiers.Email, f.identifiers.Phone, f.identifiers.Username)
}

// errSpent: the link does not work, or not any more.
var errSpent = errors.New("the link cannot be used")

// find reads a link that works. Errors: [errSpent].
func (e *Endpoint) find(ctx context.Context, t tenant.At, hash []byte) (*found, error) {
	f := &found{}
	err := e.d.DB.QueryRow(ctx, findSQL, hash, t.ID, e.d.Clock.Now(), t.Directory).Scan(f.targets()...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, errSpent
	case err != nil:
		return nil, fmt.Errorf("read reset link: %w", err)
	}
	return f, nil
}

// attemptSQL counts an attempt at a link that there is, and reads it like
// findSQL. A link that was just used is read as well, with the hash that is the
// person's now.
const attemptSQL = `
WITH r AS MATERIALIZED (
	SELECT * FROM auth.password_reset WHERE token_hash = $1 AND tenant_id = $2
), charged AS MATERIALIZED (
	SELECT ch.allowed, ch.retry_at FROM r, LATERAL auth.charge($5, $6, $3) ch
)
SELECT charged.allowed, charged.retry_at, EXISTS (SELECT FROM auth.users u WHERE ` + open + `),
	coalesce((SELECT p.hash FROM auth.password p WHERE r.used AND r.ended_at > $7 AND p.user_id = r.user_id AND NOT p.temporary), '')
FROM r, charged`

// attempt is a counted attempt at a link.
type attempt struct {
	retryAt time.Time // not zero: too many
	open    bool
	just    string // the hash that its use a moment ago has set
}

func (e *Endpoint) attempt(ctx context.Context, t tenant.At, hash []byte) (a attempt, err error) {
	now, allowed, retryAt := e.d.Clock.Now(), false, (*time.Time)(nil)
	err = e.d.DB.QueryRow(ctx, attemptSQL, hash, t.ID, now, t.Directory, e.keys.ResetLink(hash), string(throttle.ResetLink), now.Add(-pairFor)).
		Scan(&allowed, &retryAt, &a.open, &a.just)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return a, nil
	case err != nil:
		return a, fmt.Errorf("count attempt at reset link: %w", err)
	case !allowed:
		a.retryAt = *retryAt
	}
	return a, nil
}

// useSQL consumes a link and sets the password, or does nothing.
const useSQL = `
WITH used AS (
	UPDATE auth.password_reset r SET ended_at = $3, used = true FROM auth.users u WHERE r.token_hash = $1 AND ` + open + `
	RETURNING u.id, ` + addresses + `
), temporary AS (
	DELETE FROM auth.password WHERE temporary AND user_id IN (SELECT id FROM used)
), permanent AS (
	INSERT INTO auth.password (user_id, temporary, hash, changed_at) SELECT id, false, $5, $3 FROM used
	ON CONFLICT (user_id, temporary) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, expires_at = NULL
)
SELECT * FROM used`

// use consumes a link for a new password, and ends what the old one gave.
// Errors: [errSpent].
func (e *Endpoint) use(ctx context.Context, t tenant.At, hash []byte, passwordHash string) (*found, error) {
	f := &found{}
	err := pgx.BeginFunc(ctx, e.d.DB, func(tx pgx.Tx) error {
		err := tx.QueryRow(ctx, useSQL, hash, t.ID, e.d.Clock.Now(), t.Directory, passwordHash).Scan(f.targets()...)
		switch {
		case errors.Is(err, pgx.ErrNoRows):
			return errSpent
		case err != nil:
			return fmt.Errorf("use reset link: %w", err)
		}
		if _, err := e.d.Ender.EndAll(ctx, tx, t.Catalog, t.Directory, f.id); err != nil {
			return err
		}
		_, err = e.keys.Reset(ctx, tx, t.Directory, f.identifiers.Identifiers())
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}
