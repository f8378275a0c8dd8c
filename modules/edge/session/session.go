package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync/atomic"
	"time"
	"unique"

	"golang.org/x/sync/singleflight"

	"versola/modules/central/catalog"
	"versola/modules/edge/lru"
	"versola/modules/edge/provider"
	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Bounds of sessions.
const (
	// cached bounds the memory: 64 Ki sessions of under 1 KiB are 64 MiB.
	cached = 64 << 10
	// maxCached is how long an entry is believed without reading its row
	// again: the net below notifications.
	maxCached = 60 * time.Second
	// askAgain is how long an absent database is not asked about sessions that
	// are in memory: its return is noticed within that.
	askAgain = time.Second
	// defaultTTL is a session's absolute lifetime where the preset sets none.
	defaultTTL = 12 * time.Hour
	// cookieLength is the length of a cookie's value (256 bits in base64url).
	cookieLength = 43
)

// Errors of this package; others mean that the database is away or damaged.
var (
	// ErrNone: the cookie names no live session.
	ErrNone = errors.New("no such session")
	// ErrAuth: the access token is over and auth cannot be asked for the next
	// one right now. The session lives on.
	ErrAuth = errors.New("session cannot be refreshed now")
)

// Session is a live session. It is shared between requests: it must not be
// changed.
type Session struct {
	Hash      lru.Key
	Tenant    string
	Preset    string
	SessionID string // at auth
	Claims    *token.Claims
	Version   int32
	AccessEnd time.Time
	Expires   time.Time

	access  secret.Text // kept only where a resource of the tenant forwards it
	loaded  time.Time
	retryAt atomic.Int64 // unix microseconds: no refresh ahead of time before
}

// AccessToken returns the access token, if some resource of the tenant
// forwards it, or "".
func (s *Session) AccessToken() secret.Text { return s.access }

// Refresher gets new tokens from auth.
type Refresher interface {
	Refresh(ctx context.Context, p *catalog.Preset, old provider.Tokens, subject string) (provider.Tokens, error)
}

// Deps are what sessions need.
type Deps struct {
	DB        *postgres.DB
	Catalog   *catalog.Holder
	EdgeID    string
	Keys      []secret.Key // seal the tokens; the first seals
	Clock     clock.Clock
	Random    io.Reader
	Log       *slog.Logger
	Refresher Refresher
	Verifier  *token.Verifier
	// OnRefresh, when set, hears of the outcome of every refresh.
	OnRefresh func(outcome Outcome)
}

// Outcome is how a refresh ended.
type Outcome string

// The outcomes.
const (
	Refreshed   Outcome = "refreshed"
	Over        Outcome = "ended"       // invalid_grant
	Unavailable Outcome = "unavailable" // auth is away
	Unstored    Outcome = "unstored"    // new tokens could not be stored
)

// Outcomes lists the set.
func Outcomes() []Outcome { return []Outcome{Refreshed, Over, Unavailable, Unstored} }

// Sessions finds, makes, refreshes and ends sessions.
type Sessions struct {
	d          Deps
	store      store
	cache      *lru.Cache[*Session]
	dropped    atomic.Int64 // rises with every drop: see put
	flights    singleflight.Group
	refreshing atomic.Int64 // refreshes under way
	away       atomic.Int64 // unix microseconds: the database is not asked again before; see revalidate
}

// New makes the sessions of an edge. Errors: unusable keys.
func New(d Deps) (*Sessions, error) {
	keys, err := secret.NewKeyring(d.Keys, "edge/session")
	if err != nil {
		return nil, fmt.Errorf("make session keyring: %w", err)
	}
	return &Sessions{d: d, store: store{d.DB, keys}, cache: lru.New[*Session](cached)}, nil
}

// Run follows the sessions that other processes end, until ctx ends; then it
// lets refreshes under way finish.
func (s *Sessions) Run(ctx context.Context) error {
	l := postgres.Listener{
		URL: s.d.DB.Config().ConnConfig.ConnString(), Channel: channel, Log: s.d.Log,
		OnConnect: func(context.Context) { s.dropAll() },
		OnNotify: func(_ context.Context, payload string) {
			var hash lru.Key
			if n, err := hex.Decode(hash[:], []byte(payload)); err == nil && n == len(hash) {
				s.drop(hash)
			}
		},
	}
	defer s.settle()
	return l.Run(ctx)
}

// Cached returns how many sessions are in memory.
func (s *Sessions) Cached() int { return s.cache.Len() }

func (s *Sessions) drop(hash lru.Key) {
	s.dropped.Add(1)
	s.cache.Delete(hash)
}

func (s *Sessions) dropAll() {
	s.dropped.Add(1)
	s.cache.Clear()
}

// put caches a session, unless something was dropped since epoch was read: it
// may have been this one.
func (s *Sessions) put(e *Session, epoch int64) {
	if s.dropped.Load() != epoch {
		return
	}
	s.cache.Put(e.Hash, e)
	if s.dropped.Load() != epoch {
		s.cache.Delete(e.Hash)
	}
}

// Hash returns what names a cookie's session; false: no session has such a
// cookie.
func Hash(cookie string) (lru.Key, bool) {
	if len(cookie) != cookieLength {
		return lru.Key{}, false
	}
	return sha256.Sum256([]byte(cookie)), true
}

// Find returns the live session of a preset's cookie, refreshed if it was due.
// Errors: [ErrNone], [ErrAuth], or the database's.
func (s *Sessions) Find(ctx context.Context, preset *catalog.Preset, cookie string) (*Session, error) {
	e, err := s.Look(ctx, preset, cookie)
	if err != nil {
		return nil, err
	}
	if e.AccessEnd.Sub(s.d.Clock.Now()) > refreshAhead {
		return e, nil
	}
	return s.fresh(ctx, preset, e)
}

// Look returns the session of a preset's cookie as it is: its access token may
// be over, and Claims nil. Errors: [ErrNone], or the database's.
func (s *Sessions) Look(ctx context.Context, preset *catalog.Preset, cookie string) (*Session, error) {
	hash, ok := Hash(cookie)
	if !ok {
		return nil, ErrNone
	}
	now := s.d.Clock.Now()
	e, hit := s.cache.Get(hash)
	if !hit || now.Sub(e.loaded) >= maxCached {
		var err error
		if e, err = s.revalidate(ctx, hash, e); err != nil {
			return nil, err
		}
	}
	// A cookie counts under its own preset's name alone.
	if e.Preset != preset.ID || e.Tenant != preset.Owner.ID || !now.Before(e.Expires) {
		return nil, ErrNone
	}
	return e, nil
}

// revalidate reads the row of a session that is not in memory (known is nil),
// or was for too long. What is in memory outlives an absence of the database:
// nobody can end a session there meanwhile, revocations come another way, and
// the access token's end still bounds it.
func (s *Sessions) revalidate(ctx context.Context, hash lru.Key, known *Session) (*Session, error) {
	now := s.d.Clock.Now()
	if known != nil && now.UnixMicro() < s.away.Load() {
		return known, nil
	}
	e, err := s.load(ctx, hash)
	if known != nil && ctx.Err() == nil && postgres.Unavailable(err) {
		s.away.Store(now.Add(askAgain).UnixMicro())
		return known, nil
	}
	return e, err
}

// load reads a session's row into the cache.
func (s *Sessions) load(ctx context.Context, hash lru.Key) (*Session, error) {
	epoch := s.dropped.Load()
	r, err := s.store.load(ctx, hash, s.d.Clock.Now())
	if err != nil {
		return nil, err
	}
	e := s.entry(r)
	s.put(e, epoch)
	return e, nil
}

// entry makes what is kept of a row. An access token that does not verify
// (expired, or its key was withdrawn) leaves the session due for a refresh.
func (s *Sessions) entry(r row) *Session {
	now := s.d.Clock.Now()
	e := &Session{
		Hash: r.hash, Tenant: r.tenant, Preset: r.preset, SessionID: r.sid, Version: r.version,
		AccessEnd: r.accessEnd, Expires: r.expires, loaded: now,
	}
	e.Claims = r.tokens.Claims
	if e.Claims == nil {
		claims, err := s.d.Verifier.Read(r.tokens.Access.Reveal())
		if err != nil || claims.Tenant != r.tenant || claims.Subject != r.subject {
			e.AccessEnd = time.Time{}
			return e
		}
		e.Claims = claims
	}
	// Texts that claims or configuration hold are not kept twice.
	e.Tenant, e.Preset = e.Claims.Tenant, unique.Make(r.preset).Value()
	if e.SessionID == e.Claims.SessionID {
		e.SessionID = e.Claims.SessionID
	}
	if s.forwards(r.tenant) {
		e.access = r.tokens.Access
	}
	return e
}

// forwards tells whether some resource of the tenant is sent the caller's
// token.
func (s *Sessions) forwards(tenant string) bool {
	c := s.d.Catalog.Current()
	if c == nil {
		return false
	}
	t, ok := c.Tenant(tenant)
	if !ok {
		return false
	}
	for _, r := range t.Resources() {
		if r.Upstream.ForwardToken {
			return true
		}
	}
	return false
}

// Token returns the access token of a session that was cached without it.
func (s *Sessions) Token(ctx context.Context, e *Session) (secret.Text, error) {
	if !e.access.Empty() {
		return e.access, nil
	}
	r, err := s.store.load(ctx, e.Hash, s.d.Clock.Now())
	if err != nil {
		return "", err
	}
	s.cache.Delete(e.Hash) // the next load keeps it
	return r.tokens.Access, nil
}

// Create stores a new session and returns its cookie, and how long it lives.
// The session of oldCookie, if any, ends: what was planted in the browser
// before the sign-in is worth nothing after it.
func (s *Sessions) Create(ctx context.Context, p *catalog.Preset, t provider.Tokens, oldCookie string) (cookie string, ttl time.Duration, err error) {
	cookie = id.NewHandle(s.d.Random)
	hash, _ := Hash(cookie)
	now := s.d.Clock.Now()
	ttl = p.SessionTTL.D(defaultTTL)
	r := row{
		hash: hash, tenant: p.Owner.ID, preset: p.ID, subject: t.Claims.Subject, sid: t.Session, tokens: t,
		accessEnd: t.Claims.ExpiresAt, version: 1, expires: now.Add(ttl),
	}
	var old *lru.Key
	if h, ok := Hash(oldCookie); ok {
		old = &h
	}
	if err := s.store.insert(ctx, r, now, old); err != nil {
		return "", 0, err
	}
	if old != nil {
		s.drop(*old)
	}
	return cookie, ttl, nil
}

// Ended is what is left of a session that was ended.
type Ended struct {
	Tenant    string
	Preset    string
	SessionID string
	IDToken   secret.Text // the hint for RP-initiated logout
}

// End ends the session of a cookie, in every process. Errors: [ErrNone], or
// the database's.
func (s *Sessions) End(ctx context.Context, cookie string) (Ended, error) {
	hash, ok := Hash(cookie)
	if !ok {
		return Ended{}, ErrNone
	}
	return s.EndHash(ctx, hash)
}

// EndHash ends a session by its hash.
func (s *Sessions) EndHash(ctx context.Context, hash lru.Key) (Ended, error) {
	s.drop(hash)
	e, err := s.store.delete(ctx, hash)
	s.drop(hash) // also what was loaded between the two
	return e, err
}

// Logout names the sessions that a logout token ends.
type Logout struct {
	Issuer    string
	TokenID   string    // jti
	ExpiresAt time.Time // until when the jti is remembered
	Tenant    string
	Presets   []string // of the token's client
	SessionID string   // sid; empty: every session of Subject
	Subject   string   // empty: whoever's
}

// Logout claims a logout token and ends its sessions, in one statement; false:
// the token was used before.
func (s *Sessions) Logout(ctx context.Context, l Logout) (fresh bool, ended int, err error) {
	fresh, gone, err := s.store.logout(ctx, l)
	for _, hash := range gone {
		s.drop(hash)
	}
	return fresh, len(gone), err
}

// CookieBase returns the base name of a preset's cookie (see
// httpserver.Cookies).
func CookieBase(p *catalog.Preset) string {
	if p.CookieName != "" {
		return p.CookieName
	}
	return "versola_edge_" + p.ID
}
