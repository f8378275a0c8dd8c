package code

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/authorization"
	"versola/modules/auth/revocation"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/postgres"
)

// Store keeps authorization codes.
type Store struct{ DB *postgres.DB }

// createSQL makes a code for a session that lives. A pushed request is spent by
// it, and one that is spent gives no code.
const createSQL = `
WITH alive AS MATERIALIZED (
    SELECT user_id, id FROM auth.session WHERE user_id = $6 AND id = $7 AND ended_at IS NULL AND expires_at > $13
), spent AS (
    DELETE FROM auth.pushed_request p USING alive WHERE p.handle_hash = $17 RETURNING 1
)
INSERT INTO auth.authorization_code (code_hash, tenant_id, client_id, redirect_uri, code_challenge, user_id, session_id,
    scope, nonce, auth_time, acr, amr, created_at, valid_until, expires_at, dpop_jkt)
SELECT $1, $2, $3, $4, $5, s.user_id, s.id, $8, $9, $10, $11, $12, $13, $14, $15, $16
FROM alive s WHERE $17::bytea IS NULL OR EXISTS (SELECT FROM spent)`

// New is a code to be created.
type New struct {
	Hash    []byte
	Request *authorization.Request
	Scope   string
	authorization.Authentication
	ValidUntil, ExpiresAt time.Time
}

// Create stores a code; false: the session does not live any more, or the
// pushed request is spent.
func (s *Store) Create(ctx context.Context, n New, now time.Time) (bool, error) {
	r := n.Request
	tag, err := s.DB.Exec(ctx, createSQL, n.Hash, r.Tenant, r.ClientID, r.RedirectURI, r.CodeChallenge, n.UserID, n.SessionID,
		n.Scope, r.Nonce, n.AuthTime, n.ACR, textArray(n.AMR), now, n.ValidUntil, n.ExpiresAt, r.DPoPKey, r.Pushed)
	if err != nil {
		return false, fmt.Errorf("create authorization code: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

// claim is what an exchange presents.
type claim struct {
	hash                               []byte
	tenant, client, redirect, verifier string
	challenge                          string // computed from the verifier
	sender                             jose.Confirmation
	keep                               jose.Confirmation // what of it the refresh tokens stay with
	grant                              id.UUID
	now, grantEnd                      time.Time
}

// claimed is what a code stood for.
type claimed struct {
	authorization.Authentication
	scope, nonce string
	roles        []string
}

const claimSQL = `
WITH claimed AS (
    UPDATE auth.authorization_code c SET used_at = $6, grant_id = $7
    WHERE c.code_hash = $1 AND c.tenant_id = $2 AND c.client_id = $3 AND c.redirect_uri = $4 AND c.code_challenge = $5
      AND c.dpop_jkt IN ('', $9) AND c.used_at IS NULL AND c.valid_until > $6
      AND EXISTS (SELECT FROM auth.users u WHERE u.id = c.user_id AND u.status = 'active')
      AND EXISTS (SELECT FROM auth.session s WHERE s.user_id = c.user_id AND s.id = c.session_id
                  AND s.ended_at IS NULL AND s.expires_at > $6)
    RETURNING c.user_id, c.session_id, c.scope, c.nonce, c.auth_time, c.acr, c.amr
), granted AS (
    INSERT INTO auth.grants (user_id, id, tenant_id, client_id, session_id, scope, auth_time, acr, amr, nonce, offline,
        rotated_at, previous_rotated_at, created_at, expires_at, dpop_jkt, certificate)
    SELECT user_id, $7, $2, $3, session_id, scope, auth_time, acr, amr, nonce,
        'offline_access' = ANY (string_to_array(scope, ' ')), $6, $6, $6, $8, $10, $11
    FROM claimed
)
SELECT c.user_id, c.session_id, c.scope, c.nonce, c.auth_time, c.acr, c.amr,
    u.roles -> $2
FROM claimed c JOIN auth.users u ON u.id = c.user_id`

// take claims a code and creates its grant; nil: nothing fitted.
func (s *Store) take(ctx context.Context, q *claim) (*claimed, error) {
	var c claimed
	err := s.DB.QueryRow(ctx, claimSQL, q.hash, q.tenant, q.client, q.redirect, q.challenge, q.now, q.grant, q.grantEnd,
		q.sender.JKT, q.keep.JKT, q.keep.X5T).
		Scan(&c.UserID, &c.SessionID, &c.scope, &c.nonce, &c.AuthTime, &c.ACR, &c.AMR, &c.roles)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("claim authorization code: %w", err)
	}
	return &c, nil
}

// diagnoseSQL reads why a code was not claimed, and where this is a second use
// by its own client, revokes what the first use gave.
const diagnoseSQL = `
WITH code AS (
    SELECT * FROM auth.authorization_code WHERE code_hash = $1
), replayed AS (
    SELECT user_id, grant_id FROM code WHERE tenant_id = $2 AND client_id = $3 AND used_at IS NOT NULL AND grant_id IS NOT NULL
), revoked AS (
    UPDATE auth.grants g SET revoked_at = $4, expires_at = LEAST(g.expires_at, $5) FROM replayed r
    WHERE g.user_id = r.user_id AND g.id = r.grant_id AND g.revoked_at IS NULL
    RETURNING g.id
), logged AS (
    INSERT INTO auth.revocation (kind, subject, at, expires_at)
    SELECT '` + revocation.KindGrant + `', id::text, $4, $5 FROM revoked
)
SELECT tenant_id, client_id, redirect_uri, code_challenge, dpop_jkt, used_at IS NOT NULL, valid_until <= $4, (SELECT id FROM revoked), user_id, session_id
FROM code`

// diagnosis is why a code was not claimed.
type diagnosis struct {
	tenant, client, redirect, challenge, key string
	used, expired                            bool
	revoked                                  id.UUID // the grant that this use revoked
	user, session                            id.UUID
}

// diagnose returns nil for a code that is not known.
func (s *Store) diagnose(ctx context.Context, q *claim, entryEnd time.Time) (*diagnosis, error) {
	var d diagnosis
	err := s.DB.QueryRow(ctx, diagnoseSQL, q.hash, q.tenant, q.client, q.now, entryEnd).
		Scan(&d.tenant, &d.client, &d.redirect, &d.challenge, &d.key, &d.used, &d.expired, &d.revoked, &d.user, &d.session)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("diagnose authorization code: %w", err)
	}
	return &d, nil
}

// textArray keeps nil from becoming NULL.
func textArray(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
