package revoke

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/client"
	"versola/modules/auth/event"
	"versola/modules/auth/oauth"
	"versola/modules/auth/refresh"
	"versola/modules/auth/revocation"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/postgres"
)

// Log is the revocation log as this process holds it.
type Log interface {
	Revoked(a *token.Access) bool
	Note(kind, name string, at time.Time)
}

// Endpoint is the revocation endpoint.
type Endpoint struct {
	DB      *postgres.DB
	Clock   clock.Clock
	Clients *client.Authenticator
	Format  *refresh.Format
	Grants  *refresh.Store
	Log     Log
	Events  event.Sink
}

// Handle answers POST /revoke.
func (e *Endpoint) Handle(c echo.Context) error {
	t, r := tenant.Of(c), c.Request()
	p, err := oauth.ReadForm(r)
	if err != nil {
		return err
	}
	cl, err := e.Clients.Authenticate(t, r, p)
	if err != nil {
		return err
	}
	httpserver.Annotate(c, slog.String("tenant", t.ID), slog.String("client", cl.ID))
	if name, twice := p.Duplicate("token", "token_type_hint"); twice {
		return oauth.Refuse(oauth.InvalidRequest, "%s was sent more than once", name)
	}
	if !p.Has("token") {
		return oauth.Refuse(oauth.InvalidRequest, "token is missing")
	}
	if err := e.revoke(c, t, cl, p.Get("token")); err != nil {
		return err
	}
	oauth.NoStore(c.Response().Header())
	return c.NoContent(http.StatusOK)
}

func (e *Endpoint) revoke(c echo.Context, t tenant.At, cl *catalog.Client, raw string) error {
	now := e.Clock.Now()
	if rt, ok := e.Format.Parse(raw); ok {
		return e.family(c, t, cl, rt, now)
	}
	access, err := token.ReadAccess(t, raw, now)
	if err != nil {
		return nil //nolint:nilerr // what is not valid needs no revoking (RFC 7009 section 2.2)
	}
	if access.ClientID != cl.ID {
		return foreign()
	}
	if e.Log.Revoked(access) {
		return nil
	}
	return e.single(c.Request().Context(), access, now)
}

func (e *Endpoint) family(c echo.Context, t tenant.At, cl *catalog.Client, rt refresh.Token, now time.Time) error {
	r, err := e.Grants.Revoke(c.Request().Context(), rt, t.ID, cl.ID, now, revocation.EntryEnd(now, cl.TokenTTL()))
	if err != nil {
		return err
	}
	if r.Known && !r.Own {
		return foreign()
	}
	if r.Ended {
		e.Log.Note(revocation.KindGrant, rt.GrantID.String(), now)
		e.Events.Take(event.Event{At: now, Kind: event.GrantRevoked, Tenant: t.ID, Directory: t.Directory, User: rt.UserID, Client: cl.ID, Grant: rt.GrantID}.From(c))
	}
	return nil
}

// tokenSQL makes a single access token invalid.
const tokenSQL = `INSERT INTO auth.revocation (kind, subject, at, expires_at) VALUES ('` + revocation.KindToken + `', $1, $2, $3)`

func (e *Endpoint) single(ctx context.Context, a *token.Access, now time.Time) error {
	if _, err := e.DB.Exec(ctx, tokenSQL, a.ID, now, revocation.EntryEnd(now, a.Expires.Sub(now))); err != nil {
		return fmt.Errorf("revoke access token: %w", err)
	}
	e.Log.Note(revocation.KindToken, a.ID, now)
	return nil
}

func foreign() error {
	return oauth.Refuse(oauth.InvalidGrant, "the token was issued to another client").Because(errors.New("foreign token"))
}
