package userinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/postgres"
)

// Revocations tells what was revoked before it expired.
type Revocations interface {
	Revoked(a *token.Access) bool
}

// Sender makes sure that the sender of a request with an access token holds
// what the token is bound to. Errors: an [oauth.Error], or a passing fault.
type Sender interface {
	Held(c echo.Context, t tenant.At, a *token.Access, scheme, raw, path string) error
}

// Path of the endpoint, below the issuer.
const Path = "/userinfo"

// Endpoint is the UserInfo endpoint.
type Endpoint struct {
	DB          *postgres.DB
	Clock       clock.Clock
	Revocations Revocations
	Sender      Sender
}

// Handle answers GET and POST /userinfo.
func (e *Endpoint) Handle(c echo.Context) error {
	t := tenant.Of(c)
	given, err := find(c.Request())
	if err == nil {
		err = e.answer(c, t, given)
	}
	if refusal, ok := oauth.AsError(err); ok {
		challenge(refusal, given.scheme, t.ProofAlgs())
	}
	return err
}

func (e *Endpoint) answer(c echo.Context, t tenant.At, given presented) error {
	now := e.Clock.Now()
	access, err := token.ReadAccess(t, given.token, now)
	if err != nil {
		description := "the access token is not valid"
		if errors.Is(err, token.ErrExpired) {
			description = "the access token has expired"
		}
		return oauth.Refuse(oauth.InvalidToken, "%s", description).Because(err)
	}
	httpserver.Annotate(c, slog.String("tenant", t.ID), slog.String("client", access.ClientID))
	if cl, ok := t.Client(access.ClientID); !ok || cl.Disabled {
		return oauth.Refuse(oauth.InvalidToken, "the client of the access token is not active")
	}
	if !access.Person() {
		return oauth.Refuse(oauth.InvalidToken, "the access token is not about a person")
	}
	if !access.HasScope("openid") {
		return oauth.Refuse(oauth.InsufficientScope, "the access token lacks scope openid")
	}
	if e.Revocations.Revoked(access) {
		return revoked(errors.New("in the revocation log"))
	}
	if err := e.Sender.Held(c, t, access, given.scheme, given.token, Path); err != nil {
		return err
	}
	p, err := e.read(c.Request().Context(), access, now)
	if err != nil {
		return err
	}
	if p == nil {
		return revoked(errors.New("user, grant or session is over"))
	}
	return oauth.JSON(c, p.release(t, access))
}

func revoked(why error) error {
	return oauth.Refuse(oauth.InvalidToken, "the access token was revoked").Because(why)
}

// readSQL reads a person's claims, if the token's grant and session live.
const readSQL = `
SELECT u.claims, COALESCE(u.email, ''), u.email_verified, COALESCE(u.phone, ''), u.phone_verified, COALESCE(u.username, ''), u.updated_at
FROM auth.users u
    JOIN auth.grants g ON g.user_id = u.id AND g.id = $2
    LEFT JOIN auth.session s ON s.user_id = u.id AND s.id = g.session_id
WHERE u.id = $1 AND u.status = 'active'
  AND g.revoked_at IS NULL AND g.tenant_id = $3 AND g.client_id = $4
  AND (g.offline OR s.ended_at IS NULL AND s.expires_at > $5)`

type person struct {
	claims                 map[string]json.RawMessage
	email, phone, username string
	emailVerified          bool
	phoneVerified          bool
	updatedAt              time.Time
}

func (e *Endpoint) read(ctx context.Context, a *token.Access, now time.Time) (*person, error) {
	var p person
	err := e.DB.QueryRow(ctx, readSQL, a.UserID, a.GrantID, a.Tenant, a.ClientID, now).
		Scan(&p.claims, &p.email, &p.emailVerified, &p.phone, &p.phoneVerified, &p.username, &p.updatedAt)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	return &p, nil
}

// release returns the claims of the token's scopes.
func (p *person) release(t tenant.At, a *token.Access) map[string]any {
	out := map[string]any{}
	for _, name := range a.Scopes {
		scope, ok := t.Scope(name)
		if !ok {
			continue
		}
		for _, claim := range scope.Claims {
			if v, ok := p.claim(claim); ok {
				out[claim] = v
			}
		}
	}
	out["sub"] = a.Subject
	return out
}

// claim returns a claim's value; one that the person lacks is left out, never
// null or empty (OpenID Connect Core section 5.3.2).
func (p *person) claim(name string) (any, bool) {
	switch name {
	case "email":
		return p.email, p.email != ""
	case "email_verified":
		return p.emailVerified, p.email != ""
	case "phone_number":
		return p.phone, p.phone != ""
	case "phone_number_verified":
		return p.phoneVerified, p.phone != ""
	case "updated_at":
		return p.updatedAt.Unix(), true
	case "preferred_username":
		if p.username != "" {
			return p.username, true
		}
	}
	v, ok := p.claims[name]
	return v, ok && string(v) != "null" && string(v) != `""`
}
