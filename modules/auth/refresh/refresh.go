package refresh

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/auth/event"
	"versola/modules/auth/oauth"
	"versola/modules/auth/revocation"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

// Revoked hears of families that this process has just revoked.
type Revoked interface {
	Note(kind, name string, at time.Time)
}

// Grant turns refresh tokens into new ones.
type Grant struct {
	Clock   clock.Clock
	Format  *Format
	Store   *Store
	Minter  *token.Minter
	Revoked Revoked
}

// Parameters implements grant.Grant.
func (g *Grant) Parameters() []string { return []string{"refresh_token", "scope"} }

// attempts bounds how often a use that lost a race is tried again: each loss
// means that another use got through, after which this one finds its place.
const attempts = 5

// invalid is what every refused token is told; the log knows more.
const invalid = "the refresh token is not valid, has expired, was revoked or was issued to another client"

// Issue implements grant.Grant.
func (g *Grant) Issue(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params, bound jose.Confirmation) (*token.Response, error) {
	if !p.Has("refresh_token") {
		return nil, oauth.Refuse(oauth.InvalidRequest, "refresh_token is missing")
	}
	scopes, err := oauth.ParseScope(p.Get("scope"))
	if err != nil {
		return nil, err
	}
	presented, ok := g.Format.Parse(p.Get("refresh_token"))
	if !ok {
		return nil, refuse(errForged)
	}
	now := g.Clock.Now()
	u := &use{token: presented, tenant: t.ID, client: cl.ID, scopes: scopes, now: now, idleSince: now.Add(-cl.RefreshIdleTTL()), sender: bound}
	for range attempts {
		f, err := g.Store.rotate(ctx, u)
		if err != nil {
			return nil, err
		}
		switch verdict, why := judge(f, u, t.RefreshGrace()); verdict {
		case accepted:
			return g.respond(t, cl, f, u)
		case lostRace:
		case reused:
			return nil, g.revoke(ctx, t, cl, f, u)
		case widened:
			return nil, oauth.Refuse(oauth.InvalidScope, "scope contains a name that was not granted")
		case rejected:
			return nil, refuse(why)
		}
	}
	return nil, &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: "too many parallel uses of one refresh token, try again"}
}

func refuse(why error) error { return oauth.Refuse(oauth.InvalidGrant, invalid).Because(why) }

type verdict int

const (
	rejected verdict = iota
	accepted         // rotated, or a repetition within grace
	lostRace         // the row changed while the statement ran
	reused           // a token that was superseded long ago
	widened          // more scope than was granted
)

// judge is the rule of the package comment. f is nil for an unknown grant.
func judge(f *family, u *use, grace time.Duration) (verdict, error) {
	switch {
	case f == nil:
		return rejected, errors.New("unknown grant")
	case f.tenant != u.tenant || f.client != u.client:
		return rejected, errors.New("grant of another client")
	case f.rotated:
		return accepted, nil
	case !f.held: // before reuse is looked at: who stole a bound token cannot end the family
		return rejected, errors.New("bound to another key or certificate")
	case f.revoked:
		return rejected, errors.New("revoked grant")
	case !f.expiresAt.After(u.now) || !f.rotatedAt.After(u.idleSince):
		return rejected, errors.New("expired grant")
	case !f.userActive:
		return rejected, errors.New("user is not active")
	case !f.offline && !f.sessionAlive:
		return rejected, errors.New("session has ended")
	}
	fresh := u.now.Sub(f.previousRotatedAt) <= grace
	switch behind := f.generation - u.token.Generation; {
	case behind == 1 && u.now.Sub(f.rotatedAt) <= grace, behind == 2 && fresh:
		if !contains(f.scope, u.scopes) {
			return widened, nil
		}
		return accepted, nil
	case behind <= 0 && !contains(f.scope, u.scopes):
		return widened, nil
	case behind <= 0:
		return lostRace, nil
	case behind > 2 && fresh:
		return rejected, errors.New("superseded within a burst")
	default:
		return reused, nil
	}
}

// revoke ends the family of a token that was used after its time (RFC 9700
// section 4.14.2).
func (g *Grant) revoke(ctx context.Context, t tenant.At, cl *catalog.Client, f *family, u *use) error {
	r, err := g.Store.Revoke(ctx, u.token, u.tenant, u.client, u.now, revocation.EntryEnd(u.now, cl.TokenTTL()))
	if err != nil {
		return err
	}
	const why = "reuse of a superseded refresh token, family revoked"
	if !r.Ended { // by a use at the same time, which is the event
		return refuse(errors.New(why))
	}
	g.Revoked.Note(revocation.KindGrant, u.token.GrantID.String(), u.now)
	return refuse(&event.Cause{Why: why, Event: event.Event{At: u.now, Kind: event.RefreshReused, Tenant: t.ID, Directory: t.Directory,
		User: u.token.UserID, Client: cl.ID, Session: f.session, Grant: u.token.GrantID}})
}

func (g *Grant) respond(t tenant.At, cl *catalog.Client, f *family, u *use) (*token.Response, error) {
	scopes := u.scopes
	if len(scopes) == 0 {
		scopes = strings.Fields(f.scope)
	}
	// What the client may no longer ask for, it no longer gets.
	scopes = slices.DeleteFunc(scopes, func(s string) bool { return !cl.HasScope(s) })
	person := &token.Person{
		Authentication: authorization.Authentication{UserID: u.token.UserID, SessionID: f.session, AuthTime: f.authTime, ACR: f.acr, AMR: f.amr},
		GrantID:        u.token.GrantID,
		Roles:          f.roles,
		Detached:       !f.sessionAlive,
	}
	response, err := g.Minter.Access(t, cl, person, scopes, u.sender, u.now)
	if err != nil {
		return nil, err
	}
	next := u.token
	next.Generation++
	response.RefreshToken = g.Format.String(next)
	return response, nil
}

func contains(granted string, wanted []string) bool {
	if len(wanted) == 0 {
		return true
	}
	have := strings.Fields(granted)
	for _, w := range wanted {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}
