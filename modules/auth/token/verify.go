package token

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"versola/modules/auth/tenant"
	"versola/platform/id"
	"versola/platform/jose"
)

// skew is how far the clocks of two processes that sign and verify may be
// apart.
const skew = 30 * time.Second

// Errors of reading a token.
var (
	ErrInvalid = errors.New("invalid token")
	ErrExpired = errors.New("expired token")
)

// Access is what an access token of ours states.
type Access struct {
	ID       string // jti
	Tenant   string // whose it is
	Subject  string
	ClientID string
	Scopes   []string
	Issued   time.Time
	Expires  time.Time
	// UserID, SessionID and GrantID are nil in a client's own token; SessionID
	// also where the grant has outlived its session.
	UserID, SessionID, GrantID id.UUID
	Bound                      jose.Confirmation // who may present it
}

// Person tells whether the token is about a person.
func (a *Access) Person() bool { return !a.GrantID.IsNil() }

// HasScope tells whether the token carries a scope.
func (a *Access) HasScope(scope string) bool { return slices.Contains(a.Scopes, scope) }

type accessClaims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Expires  *int64 `json:"exp"`
	IssuedAt *int64 `json:"iat"`
	ID       string `json:"jti"`
	ClientID string `json:"client_id"`
	Scope    string `json:"scope"`
	Session  string `json:"sid"`
	Grant    string `json:"gid"`

	Bound jose.Confirmation `json:"cnf"`
}

// ReadAccess verifies an access token of the tenant. It does not know whether
// the token was revoked. Errors: [ErrInvalid]; [ErrExpired], where that is all
// that is wrong.
func ReadAccess(t tenant.At, raw string, now time.Time) (*Access, error) {
	payload, err := verified(t, raw, TypeAccess)
	if err != nil {
		return nil, err
	}
	var c accessClaims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("%w: claims: %w", ErrInvalid, err)
	}
	switch {
	case c.Issuer != t.Issuer:
		return nil, fmt.Errorf("%w: another issuer", ErrInvalid)
	case c.Expires == nil || c.IssuedAt == nil || c.ID == "" || c.ClientID == "" || c.Subject == "":
		return nil, fmt.Errorf("%w: a claim is missing", ErrInvalid)
	case *c.IssuedAt > now.Add(skew).Unix():
		return nil, fmt.Errorf("%w: iat is in the future", ErrInvalid)
	}
	a := &Access{ID: c.ID, Tenant: t.ID, Subject: c.Subject, ClientID: c.ClientID, Issued: time.Unix(*c.IssuedAt, 0), Expires: time.Unix(*c.Expires, 0), Bound: c.Bound}
	if c.Scope != "" {
		a.Scopes = strings.Split(c.Scope, " ")
	}
	if c.Grant != "" {
		if err := a.person(&c); err != nil {
			return nil, err
		}
	}
	if now.Unix() >= *c.Expires {
		return nil, ErrExpired
	}
	return a, nil
}

func (a *Access) person(c *accessClaims) error {
	var err error
	if a.UserID, err = id.ParseUUID(c.Subject); err != nil {
		return fmt.Errorf("%w: sub: %w", ErrInvalid, err)
	}
	if a.GrantID, err = id.ParseUUID(c.Grant); err != nil {
		return fmt.Errorf("%w: gid: %w", ErrInvalid, err)
	}
	if c.Session == "" {
		return nil
	}
	if a.SessionID, err = id.ParseUUID(c.Session); err != nil {
		return fmt.Errorf("%w: sid: %w", ErrInvalid, err)
	}
	return nil
}

// Hint is what an ID token that comes back as a hint states.
type Hint struct {
	Subject  string
	ClientID string // its audience
	Session  string // sid
}

// ReadHint verifies an ID token of the tenant that is used as a hint; it may
// have expired (OpenID Connect Core section 3.1.2.1, RP-Initiated Logout
// section 2). Errors: [ErrInvalid].
func ReadHint(t tenant.At, raw string) (*Hint, error) {
	payload, err := verified(t, raw, TypeID)
	if err != nil {
		return nil, err
	}
	var c struct {
		Issuer   string `json:"iss"`
		Subject  string `json:"sub"`
		Audience string `json:"aud"`
		Session  string `json:"sid"`
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("%w: claims: %w", ErrInvalid, err)
	}
	if c.Issuer != t.Issuer || c.Subject == "" || c.Audience == "" {
		return nil, fmt.Errorf("%w: not an ID token of this issuer", ErrInvalid)
	}
	return &Hint{Subject: c.Subject, ClientID: c.Audience, Session: c.Session}, nil
}

// verified returns the payload of a token of the deployment's keys, as a JSON
// object without doubled members.
func verified(t tenant.At, raw, typ string) ([]byte, error) {
	_, payload, err := t.Catalog.Keys().Verify(raw, typ)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if _, err := jose.Members(payload); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return payload, nil
}
