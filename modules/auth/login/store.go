package login

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"versola/modules/auth/factor"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/platform/id"
)

// Statements that write nothing but unlogged tables produce no WAL, so
// PostgreSQL does not wait for a flush at their commit; nothing needs to be
// said about synchronous_commit.

const insertConversation = `WITH kept AS (` + keepPushed + `)
INSERT INTO auth.conversation (handle_hash, tenant_id, client_id, browser_hash, request, state, created_at, expires_at)
	SELECT $3, $4, $5, $6, $7::jsonb, $8::jsonb, $9::timestamptz, $2
	WHERE $1::bytea IS NULL OR EXISTS (SELECT FROM kept)`

// keepPushed keeps the pushed request of a conversation for as long as that can
// be answered. No row: it was answered already.
const keepPushed = `UPDATE auth.pushed_request SET expires_at = greatest(expires_at, $2::timestamptz + interval '1 hour') WHERE handle_hash = $1 RETURNING 1`

// restart begins an expired conversation's request anew.
const restart = `WITH kept AS (` + keepPushed + `)
INSERT INTO auth.conversation (handle_hash, tenant_id, client_id, browser_hash, request, state, created_at, expires_at)
	SELECT $4, tenant_id, client_id, browser_hash, request, $5, $6, $2
	FROM auth.conversation WHERE handle_hash = $3 AND finished_at IS NULL AND expires_at <= $6
		AND ($1::bytea IS NULL OR EXISTS (SELECT FROM kept))`

const conversationColumns = `c.tenant_id, c.client_id, c.browser_hash, c.request, c.state, c.version, c.finished_at, c.expires_at`

const load = `SELECT ` + conversationColumns + ` FROM auth.conversation c WHERE c.handle_hash = $1`

func (c *conversation) targets() []any {
	return []any{&c.Tenant, &c.Client, &c.BrowserHash, &c.Request, &c.State, &c.Version, &c.FinishedAt, &c.ExpiresAt}
}

// load returns a conversation, or nil.
func (e *Engine) load(ctx context.Context, handleHash []byte) (*conversation, error) {
	c := &conversation{}
	err := e.d.DB.QueryRow(ctx, load, handleHash).Scan(c.targets()...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // an unknown conversation is an ordinary answer
	case err != nil:
		return nil, fmt.Errorf("read conversation: %w", err)
	}
	return c, nil
}

// enterSQL moves a conversation into a factor: the attempt is counted, the
// person looked up, the state replaced, and the message queued (for a person
// who may sign in), or nothing of all that. No row: the version has moved on.
func enterSQL(person string) string {
	return `WITH c AS MATERIALIZED (
	SELECT handle_hash FROM auth.conversation
	WHERE handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3 FOR UPDATE
), charged AS MATERIALIZED (
	SELECT ch.allowed, ch.retry_at FROM c, LATERAL auth.charge($4, $5, $3) ch
), person AS MATERIALIZED (
	SELECT id, status FROM auth.users WHERE directory = $6 AND ` + person + `
), moved AS (
	UPDATE auth.conversation u SET version = u.version + 1, state = $8::jsonb || jsonb_build_object('user', (SELECT id FROM person))
	FROM charged WHERE u.handle_hash = $1 AND charged.allowed RETURNING u.handle_hash
), queued AS (
	INSERT INTO auth.message (id, tenant_id, sealed, next_at, expires_at)
	SELECT $9, $10, $11::bytea, $3, $12 FROM moved, person WHERE person.status = 'active' AND $11 IS NOT NULL
)
SELECT allowed, retry_at FROM charged`
}

// The three are apart so that each uses its own index.
var (
	enterByPhone = enterSQL(`phone = $7`)
	enterByEmail = enterSQL(`lower(email) = lower($7)`)
	enterKnown   = enterSQL(`id = $7`)
)

// entry is what entering a factor writes.
type entry struct {
	handleHash []byte
	version    int
	now        time.Time
	account    []byte
	rules      throttle.Rules
	directory  string
	// identifier is looked up; nil: known stays the person.
	identifier *user.Identifier
	known      id.UUID
	state      state
	messageID  id.UUID // zero: no message
	tenant     string
	sealed     []byte
	expires    time.Time
}

// outcome of a statement that moves a conversation.
type outcome int

const (
	moved     outcome = iota
	lost              // the conversation is elsewhere by now
	throttled         // come back at the time given
)

func (e *Engine) enter(ctx context.Context, n entry) (outcome, time.Time, error) {
	statement, who := enterKnown, any(n.known)
	if n.identifier != nil {
		statement, who = enterByPhone, n.identifier.Key()
		if n.identifier.Kind == user.KindEmail {
			statement = enterByEmail
		}
	}
	st, err := json.Marshal(n.state)
	if err != nil {
		return lost, time.Time{}, fmt.Errorf("encode conversation: %w", err)
	}
	if n.rules == "" {
		n.rules = throttle.None
	}
	var allowed bool
	var retryAt *time.Time
	err = e.d.DB.QueryRow(ctx, statement, n.handleHash, n.version, n.now, n.account, string(n.rules), n.directory, who, st,
		n.messageID, n.tenant, n.sealed, n.expires).Scan(&allowed, &retryAt)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return lost, time.Time{}, nil
	case err != nil:
		return lost, time.Time{}, fmt.Errorf("move conversation: %w", err)
	case !allowed:
		return throttled, *retryAt, nil
	}
	return moved, time.Time{}, nil
}

// attempt takes one try at a factor, before anything is checked: it locks the
// conversation, counts the attempt for the account and for the challenge, moves
// the version, and reads the person. It returns the conversation as it was
// before, also where nothing was taken.
const attempt = `WITH c AS MATERIALIZED (
	SELECT * FROM auth.conversation WHERE handle_hash = $1 FOR UPDATE
), ready AS MATERIALIZED (
	SELECT handle_hash, state FROM c WHERE tenant_id = $2 AND browser_hash = $3 AND version = $4 AND finished_at IS NULL
		AND expires_at > $5 AND state ->> 'factor' = $6 AND NOT state ? 'proven'
), charged AS MATERIALIZED (
	SELECT ch.allowed, ch.retry_at FROM ready, LATERAL auth.charge(decode(ready.state ->> 'account', 'hex'), $7, $5) ch
), moved AS (
	UPDATE auth.conversation u SET version = u.version + 1,
		state = jsonb_set(u.state, ARRAY['tries', $6], to_jsonb(coalesce((u.state #>> ARRAY['tries', $6])::integer, 0) + 1))
	FROM ready, charged WHERE u.handle_hash = ready.handle_hash AND charged.allowed
	RETURNING u.version
)
SELECT ` + conversationColumns + `, coalesce(charged.allowed, false), charged.retry_at, coalesce(moved.version, 0),
	u.id, coalesce(u.status = 'active', false), coalesce(p.hash, ''), p.changed_at, coalesce(t.hash, ''), t.changed_at
FROM c LEFT JOIN charged ON true LEFT JOIN moved ON true
	LEFT JOIN auth.users u ON u.id = (c.state ->> 'user')::uuid AND u.directory = $8
	LEFT JOIN auth.password p ON p.user_id = u.id AND NOT p.temporary
	LEFT JOIN auth.password t ON t.user_id = u.id AND t.temporary AND (t.expires_at IS NULL OR t.expires_at > $5)`

// subjectTargets are where the columns of a person go.
func subjectTargets(s *factor.Subject) []any {
	return []any{&s.ID, &s.Active, &s.PasswordHash, (*nullTime)(&s.PasswordSet), &s.TemporaryPasswordHash, (*nullTime)(&s.TemporaryPasswordSet)}
}

// nullTime reads a time that may be absent, which is the zero time.
type nullTime time.Time

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (n *nullTime) ScanTimestamptz(v pgtype.Timestamptz) error {
	*n = nullTime(v.Time)
	return nil
}

// try is what an attempt was given.
type try struct {
	conversation *conversation // nil: there is none
	outcome      outcome
	retryAt      time.Time
	version      int // now, when moved
	subject      factor.Subject
}

func (e *Engine) attempt(ctx context.Context, v *visit, f factor.Factor) (try, error) {
	c := &conversation{}
	t := try{conversation: c, outcome: lost}
	var allowed bool
	var retryAt *time.Time
	into := append(c.targets(), &allowed, &retryAt, &t.version)
	into = append(into, subjectTargets(&t.subject)...)
	err := e.d.DB.QueryRow(ctx, attempt, v.hash, v.t.ID, v.browserHash, v.version, v.now, f.Name(), string(f.CheckRules()), v.t.Directory).Scan(into...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return try{}, nil
	case err != nil:
		return try{}, fmt.Errorf("take an attempt: %w", err)
	case allowed && t.version > 0:
		t.outcome = moved
	case retryAt != nil:
		t.outcome, t.retryAt = throttled, *retryAt
	}
	return t, nil
}

const patch = `UPDATE auth.conversation SET version = version + 1, state = state || $4::jsonb
	WHERE handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3`

// patch merges fields into the state; a conversation that moved on stays.
func (e *Engine) patch(ctx context.Context, handleHash []byte, version int, now time.Time, fields map[string]any) error {
	b, err := json.Marshal(fields)
	if err != nil {
		return fmt.Errorf("encode conversation: %w", err)
	}
	if _, err := e.d.DB.Exec(ctx, patch, handleHash, version, now, b); err != nil {
		return fmt.Errorf("move conversation: %w", err)
	}
	return nil
}

// unprove takes a proof back that holds no more, and the person proves anew.
const unprove = `UPDATE auth.conversation SET version = version + 1, state = (state - 'proven' - 'must_change') || jsonb_build_object('error', $4::text)
	WHERE handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3`

const consume = `WITH ready AS MATERIALIZED (
	SELECT handle_hash FROM auth.conversation
	WHERE handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3 FOR UPDATE
), spent AS (
	DELETE FROM auth.pushed_request p USING ready WHERE p.handle_hash = $4 RETURNING 1
)
UPDATE auth.conversation c SET version = c.version + 1, finished_at = $3
FROM ready WHERE c.handle_hash = ready.handle_hash AND ($4::bytea IS NULL OR EXISTS (SELECT FROM spent))`

// consume ends a conversation without a sign-in, and a pushed request with it;
// false: it moved on, or its request was answered in another conversation.
func (e *Engine) consume(v *visit, version int) (bool, error) {
	tag, err := e.d.DB.Exec(v.c.Request().Context(), consume, v.hash, version, v.now, v.conversation.Request.Pushed)
	if err != nil {
		return false, fmt.Errorf("end conversation: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}

const answered = `SELECT NOT EXISTS (SELECT FROM auth.pushed_request WHERE handle_hash = $1)`

// answered tells whether the conversation's request was pushed, and has been
// answered in another conversation.
func (e *Engine) answered(v *visit) (bool, error) {
	hash := v.conversation.Request.Pushed
	if hash == nil {
		return false, nil
	}
	var gone bool
	if err := e.d.DB.QueryRow(v.c.Request().Context(), answered, hash).Scan(&gone); err != nil {
		return false, fmt.Errorf("look for pushed request: %w", err)
	}
	return gone, nil
}

// stay leads back to where a conversation is that did not end.
func (e *Engine) stay(v *visit) error {
	switch gone, err := e.answered(v); {
	case err != nil:
		return err
	case gone:
		return e.gone(v)
	}
	return v.goTo("")
}

// subjectSQL reads the person of a conversation that has proven who it is.
const subjectSQL = `SELECT ` + conversationColumns + `, u.id, coalesce(u.status = 'active', false), coalesce(p.hash, ''), p.changed_at, coalesce(t.hash, ''), t.changed_at
FROM auth.conversation c
	LEFT JOIN auth.users u ON u.id = (c.state ->> 'user')::uuid AND u.directory = $2
	LEFT JOIN auth.password p ON p.user_id = u.id AND NOT p.temporary
	LEFT JOIN auth.password t ON t.user_id = u.id AND t.temporary
WHERE c.handle_hash = $1`

func (e *Engine) loadSubject(ctx context.Context, handleHash []byte, directory string) (*conversation, factor.Subject, error) {
	c, s := &conversation{}, factor.Subject{}
	err := e.d.DB.QueryRow(ctx, subjectSQL, handleHash, directory).Scan(append(c.targets(), subjectTargets(&s)...)...)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, s, nil
	case err != nil:
		return nil, s, fmt.Errorf("read conversation: %w", err)
	}
	return c, s, nil
}
