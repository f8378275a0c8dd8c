package clientcredentials

import (
	"context"
	"slices"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

// Grant issues tokens to clients themselves.
type Grant struct {
	Clock  clock.Clock
	Minter *token.Minter
}

// Parameters implements grant.Grant.
func (g *Grant) Parameters() []string { return []string{"scope"} }

// Issue implements grant.Grant.
func (g *Grant) Issue(_ context.Context, t tenant.At, cl *catalog.Client, p oauth.Params, bound jose.Confirmation) (*token.Response, error) {
	if cl.Public() {
		return nil, oauth.Refuse(oauth.UnauthorizedClient, "a public client has no credentials")
	}
	scopes, err := scopes(cl, p.Get("scope"))
	if err != nil {
		return nil, err
	}
	return g.Minter.Access(t, cl, nil, scopes, bound, g.Clock.Now())
}

// scopes returns what was asked, or without a wish everything that the client
// has (RFC 6749 section 3.3: a default that the answer states).
func scopes(cl *catalog.Client, asked string) ([]string, error) {
	if asked == "" {
		return slices.DeleteFunc(slices.Clone(cl.Scopes), ofPeople), nil
	}
	wanted, err := oauth.ParseScope(asked)
	if err != nil {
		return nil, err
	}
	for _, s := range wanted {
		if ofPeople(s) || !cl.HasScope(s) {
			return nil, oauth.Refuse(oauth.InvalidScope, "scope contains a name that the client may not ask for with this grant")
		}
	}
	return wanted, nil
}

func ofPeople(scope string) bool { return scope == "openid" || scope == "offline_access" }
