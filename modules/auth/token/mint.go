package token

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/id"
	"versola/platform/jose"
)

// Types of the provider's tokens, as their headers state them.
const (
	TypeAccess = "at+jwt"
	TypeID     = "JWT"
	TypeLogout = "logout+jwt"
)

// Token types of an answer (RFC 6750 section 6.1.1, RFC 9449 section 5).
const (
	TypeBearer = "Bearer"
	TypeDPoP   = "DPoP"
)

const (
	// jtiBytes makes a token's id unique and unguessable.
	jtiBytes = 16
	// logoutTTL is the life of a logout token: it is used at once (Back-Channel
	// Logout section 2.4 recommends two minutes at the most).
	logoutTTL = 2 * time.Minute
	// logoutEvents is the "events" claim of a logout token.
	logoutEvents = `{"http://schemas.openid.net/event/backchannel-logout":{}}`
)

// Person is whom and which grant a token is about.
type Person struct {
	authorization.Authentication
	GrantID id.UUID
	Roles   []string // in the token's tenant
	// Detached marks a grant that has outlived its session (offline access):
	// its tokens name no session, so that the session's end does not end them.
	Detached bool
}

// Response is the answer of the token endpoint (RFC 6749 section 5.1).
type Response struct {
	AccessToken  string `json:"access_token"`
	TokenType    string `json:"token_type"`
	ExpiresIn    int64  `json:"expires_in"` // seconds
	RefreshToken string `json:"refresh_token,omitempty"`
	IDToken      string `json:"id_token,omitempty"`
	Scope        string `json:"scope,omitempty"`
}

// Minter makes tokens.
type Minter struct{ Random io.Reader }

// Check tells whether the tokens of a client can be signed, before anything is
// spent on them. Errors: an [oauth.Error], temporarily_unavailable.
func (m *Minter) Check(t tenant.At, cl *catalog.Client) error {
	for _, alg := range []jose.Algorithm{cl.TokenAlg(), cl.IDAlg()} {
		if _, ok := t.Catalog.Signer(alg); !ok {
			return oauth.Refuse(oauth.TemporarilyUnavailable, "there is no signing key for the client's tokens yet").
				Because(fmt.Errorf("no active %s key", alg))
		}
	}
	return nil
}

// Access makes an access token for a person, or for the client itself where p
// is nil, and the answer around it. It is bound to what its sender has shown to
// hold.
func (m *Minter) Access(t tenant.At, cl *catalog.Client, p *Person, scopes []string, bound jose.Confirmation, now time.Time) (*Response, error) {
	scope, ttl := strings.Join(scopes, " "), cl.TokenTTL()
	o := newObject()
	o.text("iss", t.Issuer)
	if p != nil {
		o.text("sub", p.UserID.String())
	} else {
		o.text("sub", cl.ID) // RFC 9068 section 2.2
	}
	o.audience(cl.TokenAudience())
	o.number("exp", now.Add(ttl).Unix())
	o.number("iat", now.Unix())
	o.text("jti", id.Short(m.Random, jtiBytes))
	o.text("client_id", cl.ID)
	o.optional("scope", scope)
	o.text("tenant", t.ID)
	if p != nil {
		if !p.Detached {
			o.text("sid", p.SessionID.String())
		}
		o.text("gid", p.GrantID.String())
		o.number("auth_time", p.AuthTime.Unix())
		o.optional("acr", p.ACR)
		if len(p.AMR) > 0 {
			o.list("amr", p.AMR)
		}
		o.list("roles", p.Roles)
	}
	kind := TypeBearer
	if bound.JKT != "" {
		kind = TypeDPoP
	}
	o.confirmation(bound)
	raw, err := sign(t, cl.TokenAlg(), TypeAccess, o.end())
	if err != nil {
		return nil, fmt.Errorf("make access token: %w", err)
	}
	return &Response{AccessToken: raw, TokenType: kind, ExpiresIn: int64(ttl / time.Second), Scope: scope}, nil
}

// ID makes the ID token that goes with an access token.
func (m *Minter) ID(t tenant.At, cl *catalog.Client, p *Person, nonce, access string, now time.Time) (string, error) {
	alg := cl.IDAlg()
	o := newObject()
	o.text("iss", t.Issuer)
	o.text("sub", p.UserID.String())
	o.text("aud", cl.ID)
	o.number("exp", now.Add(cl.IDTTL()).Unix())
	o.number("iat", now.Unix())
	o.number("auth_time", p.AuthTime.Unix())
	o.optional("nonce", nonce)
	o.optional("acr", p.ACR)
	if len(p.AMR) > 0 {
		o.list("amr", p.AMR)
	}
	o.text("sid", p.SessionID.String())
	o.text("at_hash", halfHash(alg, access))
	raw, err := sign(t, alg, TypeID, o.end())
	if err != nil {
		return "", fmt.Errorf("make id token: %w", err)
	}
	return raw, nil
}

// Logout makes a logout token for a client of the session: no nonce, and typed,
// so that it never passes for an ID token.
func (m *Minter) Logout(t tenant.At, cl *catalog.Client, subject, sessionID id.UUID, now time.Time) (string, error) {
	o := newObject()
	o.text("iss", t.Issuer)
	o.text("sub", subject.String())
	o.text("aud", cl.ID)
	o.number("iat", now.Unix())
	o.number("exp", now.Add(logoutTTL).Unix())
	o.text("jti", id.Short(m.Random, jtiBytes))
	o.text("sid", sessionID.String())
	o.raw("events", logoutEvents)
	raw, err := sign(t, cl.IDAlg(), TypeLogout, o.end())
	if err != nil {
		return "", fmt.Errorf("make logout token: %w", err)
	}
	return raw, nil
}

func sign(t tenant.At, alg jose.Algorithm, typ string, payload []byte) (string, error) {
	signer, ok := t.Catalog.Signer(alg)
	if !ok {
		return "", fmt.Errorf("no active signing key for %s", alg)
	}
	return signer.Sign(typ, payload)
}

// halfHash is the left half of the hash that goes with alg (OpenID Connect Core
// section 3.1.3.6).
func halfHash(alg jose.Algorithm, value string) string {
	if alg == jose.EdDSA {
		sum := sha512.Sum512([]byte(value))
		return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
	}
	sum := sha256.Sum256([]byte(value))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}
