package logout

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/oauth"
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
// that want to hear of it, by themselves and in the browser, and the tenants
// whose grants with offline access survive it.
type directory struct {
	told, framed members
	survive      []string
}

// members are clients: tenant and client of the same index.
type members struct{ tenants, clients []string }

func (m *members) add(cl *catalog.Client) {
	m.tenants, m.clients = append(m.tenants, cl.Tenant), append(m.clients, cl.ID)
}

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
						l.told.add(cl)
					}
					if cl.FrontchannelLogoutURI != "" && !cl.Disabled {
						l.framed.add(cl)
					}
				}
				out[t.Directory] = l
			}
			return out
		})}
}

// endSQL ends a session and everything that hangs on it. It returns how many
// notices wait, and "tenant/client" of who took part and hears in the browser.
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
SELECT (SELECT count(*) FROM told),
    ARRAY(SELECT DISTINCT g.tenant_id || '/' || g.client_id
          FROM auth.grants g
              JOIN unnest($9::text[], $10::text[]) AS l (tenant_id, client_id)
                  ON l.tenant_id = g.tenant_id AND l.client_id = g.client_id
          WHERE g.user_id = e.user_id AND g.session_id = e.id
          ORDER BY 1 LIMIT ` + maxFrames + `)
FROM ended e`

// maxFrames bounds the clients that one page tells.
const maxFrames = "50"

// ended is what the end of a session left to do: notices to deliver, and the
// addresses that the browser opens for the clients that took part and clear
// their own state there (Front-Channel Logout section 3).
type ended struct {
	notices int
	frames  []string
}

// end ends a session of a directory; nil: none lived.
func (e *Ender) end(ctx context.Context, q querier, c *catalog.Catalog, directory string, userID, sessionID id.UUID, now, logged time.Time) (*ended, error) {
	d := e.known.Of(c)[directory]
	var done ended
	var framed []string
	err := q.QueryRow(ctx, endSQL, userID, sessionID, now, logged, now.Add(noticeKept), orEmpty(d.told.tenants), orEmpty(d.told.clients),
		orEmpty(d.survive), orEmpty(d.framed.tenants), orEmpty(d.framed.clients)).Scan(&done.notices, &framed)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("end session: %w", err)
	}
	for _, name := range framed {
		if address := frame(c, name, sessionID.String()); address != "" {
			done.frames = append(done.frames, address)
		}
	}
	return &done, nil
}

// querier is a pool or a transaction.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// frame returns the address of a client's frame: its own, with the issuer that
// it knows and the session. Both are always sent (section 2 lets us).
func frame(c *catalog.Catalog, name, sid string) string {
	tenantID, clientID, _ := strings.Cut(name, "/")
	t, ok := c.Tenant(tenantID)
	if !ok {
		return ""
	}
	cl, ok := t.Client(clientID)
	if !ok {
		return ""
	}
	return oauth.AddQuery(cl.FrontchannelLogoutURI, url.Values{"iss": {t.Issuer}, "sid": {sid}})
}

// End ends a session of t's directory: one durable statement. Ended tells
// whether it lived until now.
func (e *Ender) End(ctx context.Context, t tenant.At, userID, sessionID id.UUID) (ended bool, err error) {
	done, err := e.endHere(ctx, t, userID, sessionID)
	return done != nil, err
}

// endHere is [Ender.End] for who can show the browser what is left to do.
func (e *Ender) endHere(ctx context.Context, t tenant.At, userID, sessionID id.UUID) (*ended, error) {
	now := e.clock.Now()
	done, err := e.end(ctx, e.db, t.Catalog, t.Directory, userID, sessionID, now, e.horizon.EntryEnd(t, now))
	if done == nil || err != nil {
		return nil, err
	}
	e.log.Note(revocation.KindSession, sessionID.String(), now)
	if done.notices > 0 {
		select {
		case e.wake <- struct{}{}:
		default:
		}
	}
	return done, nil
}

// orEmpty keeps nil from becoming NULL.
func orEmpty(v []string) []string {
	if v == nil {
		return []string{}
	}
	return v
}
