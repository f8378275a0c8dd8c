package code

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
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
	"versola/platform/id"
	"versola/platform/jose"
)

// RefreshTokens makes the first refresh token of a grant.
type RefreshTokens interface {
	First(userID, grantID id.UUID) string
}

// Revoked hears of grants that this process has just revoked.
type Revoked interface {
	Note(kind, name string, at time.Time)
}

// Grant exchanges codes.
type Grant struct {
	Clock   clock.Clock
	Random  io.Reader
	Store   *Store
	Minter  *token.Minter
	Refresh RefreshTokens
	Revoked Revoked
}

// Parameters implements grant.Grant.
func (g *Grant) Parameters() []string { return []string{"code", "redirect_uri", "code_verifier"} }

// Bounds of a code verifier (RFC 7636 section 4.1).
const (
	minVerifier = 43
	maxVerifier = 128
	// codeLength is that of a handle in base64url.
	codeLength = 43
)

// Issue implements grant.Grant.
func (g *Grant) Issue(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params, bound jose.Confirmation) (*token.Response, error) {
	now := g.Clock.Now()
	q, err := g.parse(t, cl, p, now)
	if err != nil {
		return nil, err
	}
	if q.sender = bound; cl.Public() {
		q.keep = bound
	}
	c, err := g.Store.take(ctx, q)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, g.refuse(ctx, t, cl, q)
	}
	person := &token.Person{Authentication: c.Authentication, GrantID: q.grant, Roles: c.roles}
	scopes := strings.Fields(c.scope)
	response, err := g.Minter.Access(t, cl, person, scopes, bound, now)
	if err != nil {
		return nil, err
	}
	if slices.Contains(scopes, "openid") {
		if response.IDToken, err = g.Minter.ID(t, cl, person, c.nonce, response.AccessToken, now); err != nil {
			return nil, err
		}
	}
	if cl.HasGrant(catalog.GrantRefreshToken) {
		response.RefreshToken = g.Refresh.First(c.UserID, q.grant)
	}
	return response, nil
}

func (g *Grant) parse(t tenant.At, cl *catalog.Client, p oauth.Params, now time.Time) (*claim, error) {
	q := &claim{tenant: t.ID, client: cl.ID, redirect: p.Get("redirect_uri"), verifier: p.Get("code_verifier"), now: now}
	value := p.Get("code")
	switch {
	case value == "":
		return nil, oauth.Refuse(oauth.InvalidRequest, "code is missing")
	case q.redirect == "":
		// It is always part of our authorization requests (RFC 6749 section 4.1.3).
		return nil, oauth.Refuse(oauth.InvalidRequest, "redirect_uri is missing")
	case q.verifier == "" && cl.PKCERequired():
		return nil, oauth.Refuse(oauth.InvalidGrant, "code_verifier is missing")
	case q.verifier != "" && !wellFormed(q.verifier):
		return nil, oauth.Refuse(oauth.InvalidGrant, "code_verifier must be 43 to 128 unreserved characters")
	case len(value) != codeLength:
		return nil, oauth.Refuse(oauth.InvalidGrant, unknown)
	case !cl.Redirect(q.redirect):
		return nil, oauth.Refuse(oauth.InvalidGrant, "redirect_uri is not the one of the authorization request")
	}
	if q.verifier != "" {
		q.challenge = challenge(q.verifier)
	}
	q.hash = authorization.CodeHash(value)
	q.grant = id.NewUUID(now, g.Random)
	// Without refresh tokens the grant matters as long as its access token
	// lives, and as long as a second use of the code can be told.
	q.grantEnd = now.Add(authorization.CodeKept + cl.TokenTTL())
	if cl.HasGrant(catalog.GrantRefreshToken) {
		q.grantEnd = now.Add(cl.RefreshAbsoluteTTL())
	}
	// It also tells that the client took part in the session, whose end it hears.
	if end := now.Add(t.SessionAbsolute()); cl.HearsOfLogout() && q.grantEnd.Before(end) {
		q.grantEnd = end
	}
	return q, nil
}

const unknown = "the code is not valid, has expired or was issued to another client"

// refuse finds out why nothing was claimed. A code of another client is not
// told from one that does not exist.
func (g *Grant) refuse(ctx context.Context, t tenant.At, cl *catalog.Client, q *claim) error {
	d, err := g.Store.diagnose(ctx, q, revocation.EntryEnd(q.now, cl.TokenTTL()))
	if err != nil {
		return err
	}
	refusal := func(description, why string) error {
		return oauth.Refuse(oauth.InvalidGrant, "%s", description).Because(errors.New(why))
	}
	switch {
	case d == nil:
		return refusal(unknown, "unknown code")
	case d.tenant != q.tenant || d.client != q.client:
		return refusal(unknown, "code of another client")
	case d.used && !d.revoked.IsNil():
		g.Revoked.Note(revocation.KindGrant, d.revoked.String(), q.now)
		return oauth.Refuse(oauth.InvalidGrant, "the code was used before; the tokens of its first use are revoked").
			Because(&event.Cause{Why: "code used twice, grant revoked", Event: event.Event{At: q.now, Kind: event.CodeReused, Tenant: t.ID,
				Directory: t.Directory, User: d.user, Client: cl.ID, Session: d.session, Grant: d.revoked}})
	case d.used:
		return refusal("the code was used before", "code used twice, grant already revoked")
	case d.expired:
		return refusal("the code has expired", "expired code")
	case d.redirect != q.redirect:
		return refusal("redirect_uri is not the one of the authorization request", "redirect URI differs")
	case d.challenge == "" && q.challenge != "":
		return refusal("code_verifier was sent, but the authorization request had no code_challenge", "verifier without challenge")
	case d.challenge != q.challenge:
		return refusal("code_verifier does not match the code_challenge", "wrong verifier")
	case d.key != "" && d.key != q.sender.JKT:
		return refusal("the code is bound to another DPoP key: dpop_jkt", "another key, or none")
	default:
		return refusal("the person can no longer sign in, or the session has ended", "user not active or session not alive")
	}
}

func wellFormed(verifier string) bool {
	if len(verifier) < minVerifier || len(verifier) > maxVerifier {
		return false
	}
	for i := range len(verifier) {
		switch c := verifier[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// challenge is the S256 transformation (RFC 7636 section 4.2).
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}
