package revocation

import (
	"sync"
	"time"

	"versola/modules/edge/token"
	"versola/platform/id"
)

// Kind is what an entry revokes.
type Kind string

// The kinds.
const (
	Session Kind = "session" // sid
	Grant   Kind = "grant"   // gid
	Token   Kind = "token"   // jti
	User    Kind = "user"    // sub: tokens issued before the entry's time
)

// Entry is one revocation.
type Entry struct {
	Seq       int64     `json:"seq"`
	Kind      Kind      `json:"kind"`
	Subject   string    `json:"subject"`
	At        time.Time `json:"at"`
	ExpiresAt time.Time `json:"expires_at"`
}

// Set is what is revoked. The zero value is not usable; call [NewSet]. It is
// safe for concurrent use.
type Set struct {
	mu      sync.RWMutex
	revoked map[name]times
}

type name struct {
	kind    Kind
	subject string
}

type times struct{ at, expires time.Time }

// NewSet returns an empty set.
func NewSet() *Set { return &Set{revoked: map[name]times{}} }

// Add adds entries. Of two for one subject the later times count.
func (s *Set) Add(entries ...Entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range entries {
		k := name{e.Kind, e.Subject}
		t := s.revoked[k]
		if e.At.After(t.at) {
			t.at = e.At
		}
		if e.ExpiresAt.After(t.expires) {
			t.expires = e.ExpiresAt
		}
		s.revoked[k] = t
	}
}

// Purge drops what has expired by now.
func (s *Set) Purge(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, t := range s.revoked {
		if !now.Before(t.expires) {
			delete(s.revoked, k)
		}
	}
}

// Len returns how many subjects are revoked.
func (s *Set) Len() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return len(s.revoked)
}

// Revoked tells whether a token is revoked, and by which kind of entry. A
// token's issue time has whole seconds; one of the very second of a user's
// revocation counts as older.
func (s *Set) Revoked(c *token.Claims) (Kind, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if len(s.revoked) == 0 {
		return "", false
	}
	if c.SessionID != "" {
		if _, ok := s.revoked[name{Session, c.SessionID}]; ok {
			return Session, true
		}
	}
	if c.GrantID != "" {
		if _, ok := s.revoked[name{Grant, c.GrantID}]; ok {
			return Grant, true
		}
	}
	if _, ok := s.revoked[name{Token, c.ID}]; ok {
		return Token, true
	}
	if t, ok := s.revoked[name{User, c.Subject}]; ok && granted(c).Before(t.at) {
		return User, true
	}
	return "", false
}

// granted is when the sign-in behind a token was. The grant's id tells it to the
// millisecond, where iat has whole seconds: who signs in within the second of a
// revocation is not part of it.
func granted(c *token.Claims) time.Time {
	if gid, err := id.ParseUUID(c.GrantID); err == nil && gid.Ordered() {
		return gid.Time()
	}
	return c.IssuedAt
}
