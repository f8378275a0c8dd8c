package login

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/authorization"
	"versola/modules/auth/event"
	"versola/modules/auth/factor"
	"versola/modules/auth/oauth"
	"versola/modules/auth/password"
	"versola/modules/auth/session"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/secret"
)

// replayFor is how long the answer to a finished sign-in can be given once
// more: to the second click of a double click, whose browser threw the first
// answer away.
const replayFor = 15 * time.Second

// finish is a sign-in that is complete.
type finish struct {
	version    int // of the conversation now
	user       id.UUID
	amr        []string
	proof      string           // what was submitted last
	password   *factor.Password // that was proven; nil: something else was
	oldHash    string           // of a password to be re-hashed
	newHash    string
	chosenHash string // of a newly chosen password
}

// finishSQL does all of it or nothing. A living session of the same person in
// the same browser is renewed: its id stays, so that what hangs on it goes on,
// its secret changes, so that every older cookie is worthless. A password that was
// proven must be the person's still: one that was replaced since, by a link or an
// administrator, has ended what it gave. A pushed request is spent, once.
const finishSQL = `WITH person AS MATERIALIZED (
	SELECT id FROM auth.users WHERE id = $4 AND directory = $5 AND status = 'active' AND ($30::timestamptz IS NULL OR EXISTS (
		SELECT FROM auth.password WHERE user_id = $4 AND temporary = $31 AND changed_at = $30))
), present AS MATERIALIZED (
	SELECT user_id, id FROM auth.session
	WHERE user_id = $6 AND id = $7 AND secret_hash = $8 AND directory = $5 AND ended_at IS NULL AND expires_at > $3 AND seen_at > $9
	FOR UPDATE
), kept AS (
	SELECT id FROM present WHERE user_id = $4
), ready AS MATERIALIZED (
	SELECT FROM auth.conversation WHERE $32::bytea IS NOT NULL AND handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3
		AND EXISTS (SELECT FROM person) FOR UPDATE
), answered AS (
	DELETE FROM auth.pushed_request p USING ready WHERE p.handle_hash = $32 RETURNING 1
), consumed AS (
	UPDATE auth.conversation SET version = version + 1, finished_at = $3,
		state = state || $15::jsonb || jsonb_build_object('session', coalesce((SELECT id FROM kept), $10::uuid))
	WHERE handle_hash = $1 AND version = $2 AND finished_at IS NULL AND expires_at > $3 AND EXISTS (SELECT FROM person)
		AND ($32::bytea IS NULL OR EXISTS (SELECT FROM answered))
	RETURNING (state ->> 'session')::uuid AS session_id
), renewed AS (
	UPDATE auth.session s SET secret_hash = $11, auth_time = $3, acr = $12, amr = $13, seen_at = $3, expires_at = $14
	FROM consumed, kept WHERE s.user_id = $4 AND s.id = kept.id
), created AS (
	INSERT INTO auth.session (user_id, id, directory, secret_hash, auth_time, acr, amr, created_at, seen_at, expires_at)
	SELECT $4, $10, $5, $11, $3, $12, $13, $3, $3, $14 FROM consumed WHERE NOT EXISTS (SELECT FROM kept)
), code AS (
	INSERT INTO auth.authorization_code (code_hash, tenant_id, client_id, redirect_uri, code_challenge, user_id, session_id,
		scope, nonce, auth_time, acr, amr, created_at, valid_until, expires_at, dpop_jkt)
	SELECT $16, $17, $18, $19, $20, $4, session_id, $21, $22, $3, $12, $13, $3, $23, $24, $29 FROM consumed
), reset AS (
	DELETE FROM auth.throttle USING consumed WHERE key = $25
), rehashed AS (
	UPDATE auth.password SET hash = $27 FROM consumed WHERE user_id = $4 AND NOT temporary AND hash = $26 AND $27 <> ''
), chosen AS (
	INSERT INTO auth.password (user_id, temporary, hash, changed_at) SELECT $4, false, $28, $3 FROM consumed WHERE $28 <> ''
	ON CONFLICT (user_id, temporary) DO UPDATE SET hash = excluded.hash, changed_at = excluded.changed_at, expires_at = NULL
), spent AS (
	DELETE FROM auth.password USING consumed WHERE user_id = $4 AND temporary AND $28 <> ''
)
SELECT consumed.session_id, other.user_id, other.id
FROM consumed LEFT JOIN (SELECT user_id, id FROM present WHERE user_id <> $4) other ON true`

// answer is what finishing gives to the browser. It is kept, sealed, for
// [replayFor].
type answer struct {
	Code   string  `json:"code"`
	User   id.UUID `json:"user"`
	Secret []byte  `json:"secret"` // of the session's cookie
	// Proof is a MAC of what was submitted: only who submits the same again
	// is given the answer again.
	Proof   []byte `json:"proof"`
	Version int    `json:"v"` // that the form was shown for
}

// finish completes the sign-in: one statement.
func (e *Engine) finish(v *visit, f finish) error {
	r := &v.conversation.Request
	if r.Subject != "" && r.Subject != f.user.String() {
		return e.refuseSubject(v, f)
	}
	newSecret, err := session.NewSecret(e.d.Random)
	if err != nil {
		return err //nolint:wrapcheck // says what it is
	}
	code, codeHash := authorization.NewCode(e.d.Random)
	a := answer{Code: code, User: f.user, Secret: newSecret, Proof: e.proofMAC(v, f.proof), Version: v.version}
	plain, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	kept, err := json.Marshal(map[string]any{"answer": e.answers.Seal(plain, answerContext(v.hash)), "factors": nil, "error": ""})
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	account, err := hex.DecodeString(v.conversation.State.Account)
	if err != nil {
		return fmt.Errorf("read account key: %w", err)
	}
	old, _ := session.ParseCookie(e.cookies.Get(v.c.Request(), session.CookieBase))
	validUntil, expires := authorization.CodeTimes(v.now, v.t.CodeTTL())
	var sessionID, otherUser, otherSession id.UUID
	var set *time.Time
	temporary := false
	if f.password != nil {
		set, temporary = &f.password.Set, f.password.Temporary
	}
	err = e.d.DB.QueryRow(v.c.Request().Context(), finishSQL,
		v.hash, f.version, v.now, f.user, v.t.Directory, old.UserID, old.SessionID, old.Hash(), v.now.Add(-v.t.SessionIdle()),
		id.NewUUID(v.now, e.d.Random), session.Cookie{Secret: newSecret}.Hash(), "", f.amr, v.now.Add(v.t.SessionAbsolute()), kept,
		codeHash, v.t.ID, v.conversation.Client, r.RedirectURI, r.CodeChallenge, strings.Join(r.Scopes, " "), r.Nonce, validUntil, expires,
		account, f.oldHash, f.newHash, f.chosenHash, r.DPoPKey, set, temporary, r.Pushed).Scan(&sessionID, &otherUser, &otherSession)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		// Another request was faster, or what was proven holds no more: the person
		// was disabled, or their password replaced. Or the request was pushed, and
		// has been answered.
		conv, err := e.load(v.c.Request().Context(), v.hash)
		if err != nil {
			return err
		}
		if ok, err := e.admit(v, conv); !ok {
			return err
		}
		switch gone, err := e.answered(v); {
		case err != nil:
			return err
		case gone:
			return e.gone(v)
		case conv.Version == f.version:
			return e.unproven(v, f.version)
		}
		return v.goTo(e.next(v))
	case err != nil:
		return fmt.Errorf("finish sign-in: %w", err)
	}
	e.tellFinished(v, f, sessionID)
	if !otherUser.IsNil() {
		ended, err := e.d.Ender.End(v.c.Request().Context(), v.t, otherUser, otherSession)
		if err != nil {
			return fmt.Errorf("end the session of who was signed in before: %w", err)
		}
		if ended {
			e.tell(v, event.Event{Kind: event.SessionEnded, Reason: event.AnotherSignIn, User: otherUser, Session: otherSession})
		}
	}
	return e.deliver(v, a, sessionID)
}

// unproven asks for the proof again, as after a wrong one.
func (e *Engine) unproven(v *visit, version int) error {
	if _, err := e.d.DB.Exec(v.c.Request().Context(), unprove, v.hash, version, v.now, password.Refused); err != nil {
		return fmt.Errorf("take back a proof: %w", err)
	}
	return v.goTo("")
}

// deliver sends the browser back to the client, signed in.
func (e *Engine) deliver(v *visit, a answer, sessionID id.UUID) error {
	cookie := session.Cookie{UserID: a.User, SessionID: sessionID, Secret: a.Secret}
	e.cookies.Set(v.c.Response(), session.CookieBase, cookie.String(), v.t.SessionAbsolute())
	httpserver.Annotate(v.c, slog.String("outcome", "signed_in"))
	return e.respond.Code(v.c, v.t, &v.conversation.Request, a.Code)
}

// refuseSubject ends a sign-in in which somebody else than the client named
// has signed in (OpenID Connect Core section 3.1.2.2, id_token_hint).
func (e *Engine) refuseSubject(v *visit, f finish) error {
	ok, err := e.consume(v, f.version)
	if err != nil {
		return err
	}
	if !ok {
		return e.stay(v)
	}
	e.tell(v, event.Event{Kind: event.SignInFailed, Reason: event.OtherSubject, User: f.user, Factor: v.conversation.State.Factor})
	return e.respond.Error(v.c, v.t, &v.conversation.Request,
		oauth.Refuse(oauth.LoginRequired, "somebody else than the subject of id_token_hint has signed in"))
}

func answerContext(handleHash []byte) string { return "login_answer/" + hex.EncodeToString(handleHash) }

func (e *Engine) proofMAC(v *visit, proof string) []byte {
	return e.csrf.Sum(nil, fmt.Appendf(nil, "proof|%x|%s", v.hash, proof))
}

// claimAnswer takes the kept answer away: it is given again at most once, and a
// wrong guess at the proof costs it too.
const claimAnswer = `UPDATE auth.conversation SET state = state - 'answer'
	WHERE handle_hash = $1 AND finished_at > $2 AND state ? 'answer' RETURNING 1`

// again answers a visit to a finished conversation: the second half of a double
// click gets the same answer, everything else a page.
//
// The planted cookie of an attacker who began this conversation gets nothing:
// giving the answer again takes the proof that finished it.
func (e *Engine) again(v *visit) error {
	conv := v.conversation
	gone := func() error {
		return e.d.Pages.Notice(v.c, http.StatusGone, "gone", conv.Request.UILocales)
	}
	if v.c.Request().Method != http.MethodPost || len(conv.State.Answer) == 0 || !conv.FinishedAt.After(v.now.Add(-replayFor)) {
		return gone()
	}
	plain, err := e.answers.Open(conv.State.Answer, answerContext(v.hash))
	if err != nil {
		return gone()
	}
	var a answer
	if err := json.Unmarshal(plain, &a); err != nil || a.Version != v.version {
		return gone()
	}
	tag, err := e.d.DB.Exec(v.c.Request().Context(), claimAnswer, v.hash, v.now.Add(-replayFor))
	if err != nil {
		return fmt.Errorf("claim answer: %w", err)
	}
	proof := v.form.Get("code") + v.form.Get("password") + v.form.Get("new_password")
	if tag.RowsAffected() == 0 || proof == "" || !secret.Equal(a.Proof, e.proofMAC(v, proof)) {
		return gone()
	}
	return e.deliver(v, a, conv.State.Session)
}
