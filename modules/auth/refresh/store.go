package refresh

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/revocation"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/postgres"
)

// Store keeps grants, the families of refresh tokens.
type Store struct{ DB *postgres.DB }

// rotateSQL moves a family to the generation after the presented one, where
// everything allows it, and reports the row as it was before, so that a refusal
// can be explained. The first CTE makes this transaction's commit not wait for
// the disk; the condition on it keeps the planner from leaving it out.
const rotateSQL = `
WITH relaxed AS MATERIALIZED (
    SELECT set_config('synchronous_commit', 'off', true) AS setting
), rotated AS (
    UPDATE auth.grants g
    SET generation = $3 + 1, previous_rotated_at = g.rotated_at, rotated_at = $6
    WHERE g.user_id = $1 AND g.id = $2 AND (SELECT setting FROM relaxed) = 'off'
      AND g.tenant_id = $4 AND g.client_id = $5
      AND g.generation <= $3 AND g.revoked_at IS NULL
      AND g.expires_at > $6 AND g.rotated_at > $7
      AND string_to_array(g.scope, ' ') @> $8 AND g.dpop_jkt IN ('', $9) AND g.certificate IN ('', $10)
      AND EXISTS (SELECT FROM auth.users u WHERE u.id = g.user_id AND u.status = 'active')
      AND (g.offline OR EXISTS (SELECT FROM auth.session s
           WHERE s.user_id = g.user_id AND s.id = g.session_id AND s.ended_at IS NULL AND s.expires_at > $6))
    RETURNING g.id
)
SELECT g.tenant_id, g.client_id, g.session_id, g.scope, g.auth_time, g.acr, g.amr, g.offline,
    g.generation, g.rotated_at, g.previous_rotated_at, g.expires_at, g.revoked_at IS NOT NULL,
    u.status = 'active', COALESCE(s.ended_at IS NULL AND s.expires_at > $6, false),
    u.roles -> g.tenant_id, g.dpop_jkt IN ('', $9) AND g.certificate IN ('', $10),
    EXISTS (SELECT FROM rotated)
FROM auth.grants g
    JOIN auth.users u ON u.id = g.user_id
    LEFT JOIN auth.session s ON s.user_id = g.user_id AND s.id = g.session_id
WHERE g.user_id = $1 AND g.id = $2`

// use is one presentation of a token.
type use struct {
	token          Token
	tenant, client string
	scopes         []string // that the access token is to have; empty: all
	now            time.Time
	idleSince      time.Time // a family not rotated since is idle
	sender         jose.Confirmation
}

// family is a grant's row before this use, and what this use did to it.
type family struct {
	tenant, client    string
	session           id.UUID
	scope             string
	authTime          time.Time
	acr               string
	amr               []string
	offline           bool
	generation        int32
	rotatedAt         time.Time
	previousRotatedAt time.Time
	expiresAt         time.Time
	revoked           bool
	userActive        bool
	sessionAlive      bool
	roles             []string
	held              bool // the sender holds what the family is bound to
	rotated           bool
}

// rotate returns nil for a grant or user that does not exist.
func (s *Store) rotate(ctx context.Context, u *use) (*family, error) {
	var f family
	scopes := u.scopes
	if scopes == nil {
		scopes = []string{}
	}
	err := s.DB.QueryRow(ctx, rotateSQL, u.token.UserID, u.token.GrantID, u.token.Generation, u.tenant, u.client, u.now, u.idleSince, scopes,
		u.sender.JKT, u.sender.X5T).
		Scan(&f.tenant, &f.client, &f.session, &f.scope, &f.authTime, &f.acr, &f.amr, &f.offline,
			&f.generation, &f.rotatedAt, &f.previousRotatedAt, &f.expiresAt, &f.revoked,
			&f.userActive, &f.sessionAlive, &f.roles, &f.held, &f.rotated)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rotate refresh token: %w", err)
	}
	return &f, nil
}

// revokeSQL ends a family of the given client, durably, and tells it. The row
// goes with its entry in the log: nothing asks for it after.
const revokeSQL = `
WITH revoked AS (
    UPDATE auth.grants SET revoked_at = $5, expires_at = LEAST(expires_at, $6)
    WHERE user_id = $1 AND id = $2 AND tenant_id = $3 AND client_id = $4 AND revoked_at IS NULL
    RETURNING id
), logged AS (
    INSERT INTO auth.revocation (kind, subject, at, expires_at)
    SELECT '` + revocation.KindGrant + `', id::text, $5, $6 FROM revoked
)
SELECT tenant_id = $3 AND client_id = $4, EXISTS (SELECT FROM revoked) FROM auth.grants WHERE user_id = $1 AND id = $2`

// Revocation is what revoking a family found.
type Revocation struct {
	Known bool // there is such a grant
	Own   bool // it belongs to the tenant and client that asked
	Ended bool // it was alive, and no longer is
}

// Revoke ends a family, if it belongs to the tenant and client; another's stays
// as it is. entryEnd is when the log forgets it.
func (s *Store) Revoke(ctx context.Context, t Token, tenantID, clientID string, now, entryEnd time.Time) (Revocation, error) {
	r := Revocation{Known: true}
	err := s.DB.QueryRow(ctx, revokeSQL, t.UserID, t.GrantID, tenantID, clientID, now, entryEnd).Scan(&r.Own, &r.Ended)
	if errors.Is(err, pgx.ErrNoRows) {
		return Revocation{}, nil
	}
	if err != nil {
		return Revocation{}, fmt.Errorf("revoke grant: %w", err)
	}
	return r, nil
}
