package idempotency

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	// Header names a request.
	Header = "Idempotency-Key"
	// ReplayedHeader marks an answer that was given before.
	ReplayedHeader = "Idempotent-Replayed"
	// purpose is that of the keyring that seals answers.
	purpose = "idempotency"
	// kept is how long an answer can be had again: a night's batch is repeated
	// the next morning.
	kept = 24 * time.Hour
	// stale is when a claim without an answer is of a process that died: far
	// above any request's time.
	stale = time.Minute
	// maxKey fits a UUID, a hash or a file name.
	maxKey = 255
	// maxAnswer bounds what is kept; larger answers are not to be repeated.
	maxAnswer = 1 << 20
)

// Store keeps answers.
type Store struct {
	db      *postgres.DB
	keyring *secret.Keyring
	clock   clock.Clock
}

// New makes a store. Errors: no or unusable encryption keys.
func New(db *postgres.DB, encryption []secret.Key, c clock.Clock) (*Store, error) {
	keyring, err := secret.NewKeyring(encryption, purpose)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	return &Store{db, keyring, c}, nil
}

const (
	// claim takes a key that is free, whose answer has expired, or whose
	// request died. It cleans up a few others.
	claim = `WITH old AS (
    DELETE FROM central.idempotency WHERE key IN (
        SELECT key FROM central.idempotency WHERE expires_at <= $3 AND key <> $1 LIMIT 20 FOR UPDATE SKIP LOCKED))
INSERT INTO central.idempotency (key, fingerprint, claimed_at, expires_at) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET fingerprint = $2, answer = NULL, claimed_at = $3, expires_at = $4
WHERE central.idempotency.expires_at <= $3
   OR central.idempotency.answer IS NULL AND central.idempotency.claimed_at <= $5`
	find    = `SELECT fingerprint, answer FROM central.idempotency WHERE key = $1`
	keep    = `UPDATE central.idempotency SET answer = $3 WHERE key = $1 AND claimed_at = $2`
	release = `DELETE FROM central.idempotency WHERE key = $1 AND claimed_at = $2 AND answer IS NULL`
)

// answer is what was answered.
type answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// Once does a request that has a key once; caller names who sends it.
func (s *Store) Once(caller func(echo.Context) string) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			values := c.Request().Header.Values(Header)
			if len(values) == 0 {
				return next(c)
			}
			if len(values) > 1 || !valid(values[0]) {
				return problem(http.StatusBadRequest, "idempotency_key_invalid", fmt.Sprintf("%s is one text of 1 to %d printable ASCII characters", Header, maxKey))
			}
			mark, err := fingerprint(c.Request())
			if err != nil {
				return err
			}
			// A length keeps "a"+"bc" apart from "ab"+"c".
			who := caller(c)
			key := sha256.Sum256(fmt.Appendf(nil, "%d:%s%s", len(who), who, values[0]))
			return s.once(c, key[:], mark, next)
		}
	}
}

func valid(key string) bool {
	if key == "" || len(key) > maxKey {
		return false
	}
	for i := range len(key) {
		if key[i] < 0x20 || key[i] > 0x7e {
			return false
		}
	}
	return true
}

// fingerprint reads the whole body, which the listener bounds, and puts it
// back.
func fingerprint(r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	h := sha256.New()
	fmt.Fprintf(h, "%s %s\n%s\n", r.Method, r.URL.RequestURI(), r.Header.Get(echo.HeaderContentType))
	h.Write(body)
	return h.Sum(nil), nil
}

func (s *Store) once(c echo.Context, key, mark []byte, next echo.HandlerFunc) error {
	ctx := c.Request().Context()
	now := s.clock.Now().Truncate(time.Microsecond)
	tag, err := s.db.Exec(ctx, claim, key, mark, now, now.Add(kept), now.Add(-stale))
	if err != nil {
		return fmt.Errorf("claim idempotency key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return s.again(c, key, mark)
	}
	// Whoever claimed must settle, also for a caller who has gone.
	ctx = context.WithoutCancel(ctx)
	res := c.Response()
	buffer := &recorder{header: res.Header(), to: res.Writer}
	res.Writer = buffer
	err = next(c)
	res.Writer = buffer.to
	if err != nil || buffer.status < 200 || buffer.status > 299 || buffer.body.Len() > maxAnswer {
		_, releaseErr := s.db.Exec(ctx, release, key, now)
		if err == nil {
			err = buffer.send()
		}
		if err != nil {
			return err
		}
		if releaseErr != nil {
			httpserver.NoteError(c, fmt.Errorf("release idempotency key: %w", releaseErr))
		}
		return nil
	}
	if err := s.keep(ctx, key, now, buffer); err != nil {
		httpserver.NoteError(c, err) // it is done: the caller must hear so
	}
	return buffer.send()
}

func (s *Store) keep(ctx context.Context, key []byte, now time.Time, b *recorder) error {
	a := answer{Status: b.status, Header: http.Header{}, Body: b.body.Bytes()}
	for _, name := range []string{echo.HeaderContentType, "ETag", echo.HeaderLocation} {
		if v := b.header.Get(name); v != "" {
			a.Header.Set(name, v)
		}
	}
	raw, err := json.Marshal(a)
	if err == nil {
		_, err = s.db.Exec(ctx, keep, key, now, s.keyring.Seal(raw, hex.EncodeToString(key)))
	}
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	return nil
}

// again answers a request whose key is taken.
func (s *Store) again(c echo.Context, key, mark []byte) error {
	var of, sealed []byte
	err := s.db.QueryRow(c.Request().Context(), find, key).Scan(&of, &sealed)
	switch {
	case err != nil && !errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("look for idempotency key: %w", err)
	case err == nil && !bytes.Equal(of, mark):
		return problem(http.StatusUnprocessableEntity, "idempotency_key_reused", "this Idempotency-Key was used for another request")
	case err != nil || sealed == nil: // it failed just now, or is still worked on
		c.Response().Header().Set("Retry-After", "1")
		return problem(http.StatusConflict, "in_progress", "the request with this Idempotency-Key is being worked on")
	}
	raw, err := s.keyring.Open(sealed, hex.EncodeToString(key))
	if err != nil {
		return fmt.Errorf("open kept answer: %w", err)
	}
	var a answer
	if err := json.Unmarshal(raw, &a); err != nil {
		return fmt.Errorf("read kept answer: %w", err)
	}
	h := c.Response().Header()
	for name := range a.Header {
		h.Set(name, a.Header.Get(name))
	}
	h.Set(ReplayedHeader, "true")
	c.Response().WriteHeader(a.Status)
	_, err = c.Response().Write(a.Body)
	return err
}

func problem(status int, reason, detail string) error {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

// recorder holds an answer back until it is kept.
type recorder struct {
	header http.Header
	to     http.ResponseWriter
	status int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *recorder) Header() http.Header { return r.header }

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) { r.status = status }

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	if r.status == 0 {
		r.status = http.StatusOK
	}
	return r.body.Write(p)
}

func (r *recorder) send() error {
	if r.status == 0 {
		return nil // nothing was answered
	}
	r.to.WriteHeader(r.status)
	_, err := r.to.Write(r.body.Bytes())
	return err
}
