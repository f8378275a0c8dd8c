package logout

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/revocation"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/platform/id"
)

// endAllSQL ends everything that a person holds: sessions, refresh families
// (those with offline access too), and the tokens issued until now. Codes that
// wait to be redeemed die with their sessions.
const endAllSQL = `
WITH ended AS (
    UPDATE auth.session SET ended_at = $2
    WHERE user_id = $1 AND ended_at IS NULL AND expires_at > $2
    RETURNING id
), revoked AS (
    UPDATE auth.grants SET revoked_at = $2, expires_at = LEAST(expires_at, $3)
    WHERE user_id = $1 AND revoked_at IS NULL
), logged AS (
    INSERT INTO auth.revocation (kind, subject, at, expires_at) VALUES ('` + revocation.KindUser + `', $1::uuid::text, $2, $3)
), told AS (
    INSERT INTO auth.logout_notice (id, tenant_id, client_id, subject, session_id, next_at, expires_at)
    SELECT gen_random_uuid(), p.tenant_id, p.client_id, $1::uuid::text, p.session_id, $2, $4
    FROM (SELECT DISTINCT g.tenant_id, g.client_id, g.session_id
          FROM auth.grants g
              JOIN ended e ON g.user_id = $1 AND g.session_id = e.id
              JOIN unnest($5::text[], $6::text[]) AS l (tenant_id, client_id)
                  ON l.tenant_id = g.tenant_id AND l.client_id = g.client_id) p
)
SELECT count(*) FROM ended`

// EndAll ends every session, refresh family and token of a person within tx,
// and returns how many sessions there were. It counts everywhere as soon as tx
// is committed and the revocation log is read.
func (e *Ender) EndAll(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID id.UUID) (sessions int, err error) {
	now := e.clock.Now()
	d := e.known.Of(c)[directory]
	err = tx.QueryRow(ctx, endAllSQL, userID, now, e.horizon.DirectoryEnd(c, directory, now), now.Add(noticeKept), orEmpty(d.told.tenants), orEmpty(d.told.clients)).Scan(&sessions)
	if err != nil {
		return 0, fmt.Errorf("end all sessions: %w", err)
	}
	return sessions, nil
}

// EndOne ends one session of a person within tx, as a sign-out would. Ended
// tells whether it lived until now.
func (e *Ender) EndOne(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID, sessionID id.UUID) (ended bool, err error) {
	now := e.clock.Now()
	done, err := e.end(ctx, tx, c, directory, userID, sessionID, now, e.horizon.DirectoryEnd(c, directory, now))
	return done != nil, err
}

// maxLiving bounds the list; a person has a handful of browsers.
const maxLiving = 200

const livingSQL = `
SELECT s.id, s.auth_time, s.acr, s.amr, s.created_at, s.seen_at, s.expires_at,
    ARRAY(SELECT DISTINCT g.tenant_id || '/' || g.client_id FROM auth.grants g
          WHERE g.user_id = s.user_id AND g.session_id = s.id AND g.revoked_at IS NULL AND g.expires_at > $2 ORDER BY 1)
FROM auth.session s
WHERE s.user_id = $1 AND s.ended_at IS NULL AND s.expires_at > $2
ORDER BY s.seen_at DESC, s.id LIMIT $3`

// Living lists a person's sessions, the last seen first. One that nobody has
// used for its tenant's idle time is still listed: each tenant has its own.
func (e *Ender) Living(ctx context.Context, userID id.UUID) ([]user.Session, error) {
	rows, err := e.db.Query(ctx, livingSQL, userID, e.clock.Now(), maxLiving)
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	out, err := pgx.CollectRows(rows, pgx.RowToStructByPos[user.Session])
	if err != nil {
		return nil, fmt.Errorf("list sessions: %w", err)
	}
	return out, nil
}
