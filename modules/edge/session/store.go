package session

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/edge/lru"
	"versola/modules/edge/provider"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// channel is where ended sessions are announced, each as the hex of its hash.
const channel = "versola_edge_session"

// store is the table edge.session.
type store struct {
	db   *postgres.DB
	keys *secret.Keyring
}

// row is a session as it is stored.
type row struct {
	hash      lru.Key
	tenant    string
	preset    string
	subject   string
	sid       string
	tokens    provider.Tokens // Claims are not stored
	accessEnd time.Time
	version   int32
	expires   time.Time
}

type sealedTokens struct {
	Access  string `json:"a"`
	Refresh string `json:"r,omitempty"`
	ID      string `json:"i,omitempty"`
}

func sealContext(hash lru.Key) string { return "edge_session/" + hex.EncodeToString(hash[:]) }

func (s *store) seal(hash lru.Key, t provider.Tokens) ([]byte, error) {
	plain, err := json.Marshal(sealedTokens{t.Access.Reveal(), t.Refresh.Reveal(), t.ID.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("encode tokens: %w", err)
	}
	return s.keys.Seal(plain, sealContext(hash)), nil
}

func (s *store) open(hash lru.Key, sealed []byte) (provider.Tokens, error) {
	plain, err := s.keys.Open(sealed, sealContext(hash))
	if err != nil {
		return provider.Tokens{}, fmt.Errorf("open tokens of a session: %w", err)
	}
	var t sealedTokens
	if err := json.Unmarshal(plain, &t); err != nil {
		return provider.Tokens{}, fmt.Errorf("read tokens of a session: %w", err)
	}
	return provider.Tokens{Access: secret.Text(t.Access), Refresh: secret.Text(t.Refresh), ID: secret.Text(t.ID)}, nil
}

// insertSQL stores a session and ends the one that the browser had before.
const insertSQL = `
WITH old AS (
	DELETE FROM edge.session WHERE id_hash = $10 RETURNING id_hash
), fresh AS (
	INSERT INTO edge.session (id_hash, tenant_id, preset_id, subject, sid, sealed, access_expires_at, created_at, expires_at)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
)
SELECT pg_notify('` + channel + `', encode(id_hash, 'hex')) FROM old`

func (s *store) insert(ctx context.Context, r row, now time.Time, old *lru.Key) error {
	sealed, err := s.seal(r.hash, r.tokens)
	if err != nil {
		return err
	}
	var oldHash []byte
	if old != nil {
		oldHash = old[:]
	}
	if _, err := s.db.Exec(ctx, insertSQL, r.hash[:], r.tenant, r.preset, r.subject, r.sid, sealed, r.accessEnd, now, r.expires, oldHash); err != nil {
		return fmt.Errorf("store session: %w", err)
	}
	return nil
}

const selectSQL = `
SELECT tenant_id, preset_id, subject, sid, sealed, access_expires_at, version, expires_at
FROM edge.session WHERE id_hash = $1 AND expires_at > $2`

// load reads a live session. Errors: [ErrNone].
func (s *store) load(ctx context.Context, hash lru.Key, now time.Time) (row, error) {
	r, sealed := row{hash: hash}, []byte(nil)
	err := s.db.QueryRow(ctx, selectSQL, hash[:], now).
		Scan(&r.tenant, &r.preset, &r.subject, &r.sid, &sealed, &r.accessEnd, &r.version, &r.expires)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return row{}, ErrNone
	case err != nil:
		return row{}, fmt.Errorf("load session: %w", err)
	}
	if r.tokens, err = s.open(hash, sealed); err != nil {
		return row{}, err
	}
	r.tokens.Session = r.sid
	return r, nil
}

// leaseSQL takes the right to refresh one version of a session. The clock is
// the database's: a lease is between processes.
const leaseSQL = `
UPDATE edge.session SET lease_until = clock_timestamp() + $3
WHERE id_hash = $1 AND version = $2 AND lease_until < clock_timestamp() AND expires_at > $4
RETURNING tenant_id, preset_id, subject, sid, sealed, access_expires_at, version, expires_at`

// lease takes the refresh of a version, if nobody has it.
func (s *store) lease(ctx context.Context, hash lru.Key, version int32, now time.Time) (r row, got bool, err error) {
	r = row{hash: hash}
	var sealed []byte
	err = s.db.QueryRow(ctx, leaseSQL, hash[:], version, leaseTime, now).
		Scan(&r.tenant, &r.preset, &r.subject, &r.sid, &sealed, &r.accessEnd, &r.version, &r.expires)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return row{}, false, nil
	case err != nil:
		return row{}, false, fmt.Errorf("lease session: %w", err)
	}
	if r.tokens, err = s.open(hash, sealed); err != nil {
		return row{}, false, err
	}
	r.tokens.Session = r.sid
	return r, true, nil
}

const releaseSQL = `UPDATE edge.session SET lease_until = '-infinity' WHERE id_hash = $1 AND version = $2`

func (s *store) release(ctx context.Context, hash lru.Key, version int32) error {
	if _, err := s.db.Exec(ctx, releaseSQL, hash[:], version); err != nil {
		return fmt.Errorf("release session: %w", err)
	}
	return nil
}

const renewSQL = `
UPDATE edge.session SET sealed = $3, access_expires_at = $4, version = version + 1, lease_until = '-infinity'
WHERE id_hash = $1 AND version = $2`

// renew stores refreshed tokens; false: the session ended meanwhile.
func (s *store) renew(ctx context.Context, r row) (bool, error) {
	sealed, err := s.seal(r.hash, r.tokens)
	if err != nil {
		return false, err
	}
	tag, err := s.db.Exec(ctx, renewSQL, r.hash[:], r.version, sealed, r.accessEnd)
	if err != nil {
		return false, fmt.Errorf("store refreshed session: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

const deleteSQL = `
WITH gone AS (
	DELETE FROM edge.session WHERE id_hash = $1 RETURNING id_hash, preset_id, tenant_id, sid, sealed
)
SELECT preset_id, tenant_id, sid, sealed, pg_notify('` + channel + `', encode(id_hash, 'hex'))::text FROM gone`

// delete ends a session everywhere. Errors: [ErrNone] where there is none.
func (s *store) delete(ctx context.Context, hash lru.Key) (Ended, error) {
	var e Ended
	var sealed []byte
	var notified string
	err := s.db.QueryRow(ctx, deleteSQL, hash[:]).Scan(&e.Preset, &e.Tenant, &e.SessionID, &sealed, &notified)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return Ended{}, ErrNone
	case err != nil:
		return Ended{}, fmt.Errorf("end session: %w", err)
	}
	if tokens, err := s.open(hash, sealed); err == nil {
		e.IDToken = tokens.ID // a key may be gone; the session is over either way
	}
	return e, nil
}

// The statements of a back-channel logout: the token is claimed and what it
// ends is deleted together, so that a token that counted as used did its work.
const (
	claimLogoutSQL = `
WITH claimed AS (
	INSERT INTO edge.logout_token (issuer, jti, expires_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING jti
), gone AS (
	DELETE FROM edge.session WHERE tenant_id = $4 AND preset_id = ANY($5) AND EXISTS (SELECT FROM claimed) AND `
	logoutTailSQL = `
	RETURNING id_hash
)
SELECT (SELECT count(*) FROM claimed) = 1,
	(SELECT coalesce(array_agg(id_hash), '{}') FROM gone),
	(SELECT count(pg_notify('` + channel + `', encode(id_hash, 'hex'))::text) FROM gone)`

	logoutBySIDSQL     = claimLogoutSQL + `sid = $6 AND ($7 = '' OR subject = $7)` + logoutTailSQL
	logoutBySubjectSQL = claimLogoutSQL + `subject = $7 AND $6 = ''` + logoutTailSQL
)

// logout claims a logout token and ends what it names. fresh is false when the
// token was used before.
func (s *store) logout(ctx context.Context, l Logout) (fresh bool, ended []lru.Key, err error) {
	statement := logoutBySIDSQL
	if l.SessionID == "" {
		statement = logoutBySubjectSQL
	}
	var hashes [][]byte
	var notified int64
	err = s.db.QueryRow(ctx, statement, l.Issuer, l.TokenID, l.ExpiresAt, l.Tenant, l.Presets, l.SessionID, l.Subject).Scan(&fresh, &hashes, &notified)
	if err != nil {
		return false, nil, fmt.Errorf("end sessions of a logout token: %w", err)
	}
	for _, h := range hashes {
		ended = append(ended, lru.Key(h))
	}
	return fresh, ended, nil
}
