package token

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unique"

	"versola/modules/central/catalog"
	"versola/modules/edge/lru"
	"versola/platform/clock"
	"versola/platform/jose"
)

const (
	// Type is the media type of access tokens (RFC 9068 section 2.1).
	Type = "at+jwt"
	// maxAhead is how far in the future a token may have been issued: clocks
	// of one deployment differ by less.
	maxAhead = 10 * time.Second
	// remembered bounds the cache: 64 Ki tokens of about 700 bytes of claims
	// are under 50 MiB.
	remembered = 64 << 10
)

// Errors of a verification. Each is final for the token.
var (
	ErrInvalid = errors.New("invalid access token")
	ErrExpired = errors.New("expired access token")
)

// Claims are what an access token says.
type Claims struct {
	Issuer    string
	Subject   string
	Audience  []string
	ClientID  string
	ID        string // jti
	SessionID string // sid: the session at auth; empty for service clients
	GrantID   string // gid: the grant it was issued from
	Tenant    string // the tenant of Issuer
	Scope     string
	ACR       string
	AMR       []string
	Roles     []string
	IssuedAt  time.Time
	ExpiresAt time.Time
	AuthTime  time.Time
	Bound     jose.Confirmation // what its sender has to hold (cnf)
}

// Service tells whether the token belongs to a client itself (RFC 6749 section
// 4.4) and not to a person.
func (c *Claims) Service() bool { return c.SessionID == "" && c.Subject == c.ClientID }

// Verifier verifies access tokens.
type Verifier struct {
	Catalog *catalog.Holder
	Clock   clock.Clock
	seen    *lru.Cache[seen]
	current atomic.Pointer[generation]
}

// seen is a verified token. It names the catalog it was verified under by
// number: by reference, ten thousands of tokens would keep every catalog of
// their lifetime in memory.
type seen struct {
	claims     *Claims
	generation uint64
}

// generation numbers a catalog, by when the verifier first saw it.
type generation struct {
	catalog *catalog.Catalog
	number  uint64
}

// generation returns the number of a catalog. No number is given twice.
func (v *Verifier) generation(c *catalog.Catalog) uint64 {
	for {
		g := v.current.Load()
		if g != nil && g.catalog == c {
			return g.number
		}
		next := &generation{catalog: c, number: 1}
		if g != nil {
			next.number = g.number + 1
		}
		if v.current.CompareAndSwap(g, next) {
			return next.number
		}
	}
}

// NewVerifier makes a verifier.
func NewVerifier(h *catalog.Holder, c clock.Clock) *Verifier {
	return &Verifier{Catalog: h, Clock: c, seen: lru.New[seen](remembered)}
}

// Verify returns the claims of a valid token, from memory when it was seen
// before. The result is shared: it must not be changed.
// Errors: [ErrInvalid], [ErrExpired].
func (v *Verifier) Verify(raw string) (*Claims, error) {
	key := sha256.Sum256([]byte(raw))
	number := v.generation(v.Catalog.Current())
	if s, ok := v.seen.Get(key); ok && s.generation == number {
		if !v.Clock.Now().Before(s.claims.ExpiresAt) {
			v.seen.Delete(key)
			return nil, ErrExpired
		}
		return s.claims, nil
	}
	claims, err := v.Read(raw)
	if err != nil {
		return nil, err
	}
	v.seen.Put(key, seen{claims, number})
	return claims, nil
}

// Read verifies a token without remembering it. Errors: as [Verifier.Verify].
func (v *Verifier) Read(raw string) (*Claims, error) {
	current := v.Catalog.Current()
	if current == nil {
		return nil, fmt.Errorf("%w: no catalog", ErrInvalid)
	}
	_, payload, err := current.Keys().Verify(raw, Type)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	claims, err := parse(payload)
	if err != nil {
		return nil, err
	}
	tenant, ok := current.TenantByIssuer(claims.Issuer)
	if !ok {
		return nil, fmt.Errorf("%w: issuer %q", ErrInvalid, claims.Issuer)
	}
	if claims.Tenant != "" && claims.Tenant != tenant.ID {
		return nil, fmt.Errorf("%w: tenant %q of another issuer", ErrInvalid, claims.Tenant)
	}
	claims.Tenant = tenant.ID
	now := v.Clock.Now()
	switch {
	case !now.Before(claims.ExpiresAt):
		return nil, ErrExpired
	case claims.IssuedAt.After(now.Add(maxAhead)):
		return nil, fmt.Errorf("%w: issued in the future", ErrInvalid)
	}
	return claims, nil
}

type wire struct {
	Iss      string   `json:"iss"`
	Sub      string   `json:"sub"`
	Aud      Audience `json:"aud"`
	Exp      int64    `json:"exp"`
	Iat      int64    `json:"iat"`
	Nbf      int64    `json:"nbf"`
	Jti      string   `json:"jti"`
	ClientID string   `json:"client_id"`
	Scope    string   `json:"scope"`
	Sid      string   `json:"sid"`
	Gid      string   `json:"gid"`
	Tenant   string   `json:"tenant"`
	ACR      string   `json:"acr"`
	AMR      []string `json:"amr"`
	Roles    []string `json:"roles"`
	AuthTime int64    `json:"auth_time"`

	Cnf jose.Confirmation `json:"cnf"` // one that is not known fails
}

// parse reads the claims that RFC 9068 section 2.2 requires and ours.
func parse(payload []byte) (*Claims, error) {
	var w wire
	if err := json.Unmarshal(payload, &w); err != nil {
		return nil, fmt.Errorf("%w: claims: %w", ErrInvalid, err)
	}
	if w.Iss == "" || w.Sub == "" || len(w.Aud) == 0 || w.Exp <= 0 || w.Iat <= 0 || w.Jti == "" || w.ClientID == "" {
		return nil, fmt.Errorf("%w: a required claim is missing", ErrInvalid)
	}
	if w.Nbf > w.Iat {
		return nil, fmt.Errorf("%w: not valid from the start", ErrInvalid)
	}
	intern(w.Aud)
	intern(w.Roles)
	intern(w.AMR)
	c := &Claims{
		Issuer: one(w.Iss), Subject: w.Sub, Audience: w.Aud, ClientID: one(w.ClientID), ID: w.Jti, SessionID: w.Sid, GrantID: w.Gid,
		Tenant: one(w.Tenant), Scope: one(w.Scope), ACR: one(w.ACR), AMR: w.AMR, Roles: w.Roles,
		IssuedAt: time.Unix(w.Iat, 0).UTC(), ExpiresAt: time.Unix(w.Exp, 0).UTC(), Bound: w.Cnf,
	}
	if w.AuthTime > 0 {
		c.AuthTime = time.Unix(w.AuthTime, 0).UTC()
	}
	return c, nil
}

// one returns the one copy of a text that many tokens share: claims are kept
// by the ten thousand, and say the same of most things.
func one(s string) string { return unique.Make(s).Value() }

func intern(texts []string) {
	for i, s := range texts {
		texts[i] = one(s)
	}
}

// Audience is an "aud" claim: a string, or an array of them (RFC 7519 section
// 4.1.3).
type Audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *Audience) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '[' {
		var many []string
		if err := json.Unmarshal(raw, &many); err != nil {
			return fmt.Errorf("read audience: %w", err)
		}
		*a = many
		return nil
	}
	var one string
	if err := json.Unmarshal(raw, &one); err != nil {
		return fmt.Errorf("read audience: %w", err)
	}
	*a = Audience{one}
	return nil
}
