package logout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/revocation"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// noticeKept is how long a notice is tried: a client that is down for a night
// still hears of it.
const noticeKept = 24 * time.Hour

// Log is the revocation log as this process holds it.
type Log interface {
	Note(kind, name string, at time.Time)
}

// Ender ends sessions.
type Ender struct {
	db      *postgres.DB
	clock   clock.Clock
	log     Log
	horizon *revocation.Horizon
	known   *tenant.Derived[map[string]directory]
	wake    chan struct{}
}

// directory is what a logout needs to know of a user directory: the clients
// that want to hear of it (tenant and client of the same index), and the tenants
// whose grants with offline access survive it.
type directory struct{ tenants, clients, survive []string }

// NewEnder makes an ender.
func NewEnder(db *postgres.DB, clk clock.Clock, log Log) *Ender {
	return &Ender{db: db, clock: clk, log: log, horizon: revocation.NewHorizon(), wake: make(chan struct{}, 1),
		known: tenant.NewDerived(func(c *catalog.Catalog) map[string]directory {
			out := map[string]directory{}
			for _, t := range c.Tenants() {
				l := out[t.Directory]
				if t.Settings.OfflineSurvivesLogout {
					l.survive = append(l.survive, t.ID)
				}
				for _, cl := range t.Clients() {
					if cl.BackchannelLogoutURI != "" {
						l.tenants, l.clients = append(l.tenants, t.ID), append(l.clients, cl.ID)
					}
				}
				out[t.Directory] = l
			}
			return out
		})}
}

// endSQL ends a session and everything that hangs on it.
const endSQL = `
WITH ended AS (
    UPDATE auth.session SET ended_at = $3
    WHERE user_id = $1 AND id = $2 AND ended_at IS NULL
    RETURNING user_id, id
), revoked AS (
    UPDATE auth.grants g SET revoked_at = $3, expires_at = LEAST(g.expires_at, $4) FROM ended e
    WHERE g.user_id = e.user_id AND g.session_id = e.id AND g.revoked_at IS NULL
      AND NOT (g.offline AND g.tenant_id = ANY ($8::text[]))
), logged AS (
    INSERT INTO auth.revocation (kind, subject, at, expires_at)
    SELECT '` + revocation.KindSession + `', id::text, $3, $4 FROM ended
), told AS (
    INSERT INTO auth.logout_notice (id, tenant_id, client_id, subject, session_id, next_at, expires_at)
    SELECT gen_random_uuid(), p.tenant_id, p.client_id, p.user_id::text, p.session_id, $3, $5
    FROM (SELECT DISTINCT g.tenant_id, g.client_id, g.user_id, g.session_id
          FROM auth.grants g
              JOIN ended e ON g.user_id = e.user_id AND g.session_id = e.id
              JOIN unnest($6::text[], $7::text[]) AS l (tenant_id, client_id)
                  ON l.tenant_id = g.tenant_id AND l.client_id = g.client_id) p
    RETURNING id
)
SELECT (SELECT count(*) FROM told) FROM ended`

// End ends a session of t's directory: one durable statement. Ended tells
// whether it lived until now.
func (e *Ender) End(ctx context.Context, t tenant.At, userID, sessionID id.UUID) (ended bool, err error) {
	now := e.clock.Now()
	d := e.known.Of(t.Catalog)[t.Directory]
	var notices int
	err = e.db.QueryRow(ctx, endSQL, userID, sessionID, now, e.horizon.EntryEnd(t, now), now.Add(noticeKept), orEmpty(d.tenants), orEmpty(d.clients),
		orEmpty(d.survive)).Scan(&notices)
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("end session: %w", err)
	}
	e.log.Note(revocation.KindSession, sessionID.String(), now)
	if notices > 0 {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return true, nil
}

// orEmpty keeps nil from becoming NULL.
func orEmpty(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
