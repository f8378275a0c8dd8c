package client

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/jose"
)

// AssertionType is the only type of assertion (RFC 7523 section 2.2).
const AssertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// Bounds of assertions.
const (
	// maxAssertion bounds what is read before anything is proven: five claims,
	// and a certificate in the header, are some KiB.
	maxAssertion = 8 << 10
	// maxAssertionID bounds a jti, of which a hash is remembered.
	maxAssertionID = 256
	// maxLifetime is how long an assertion may live, and so how long its jti is
	// remembered: ten minutes is the longest that common libraries choose.
	maxLifetime = 10 * time.Minute
	// Skew is how far the clocks of client and server may be apart: FAPI 2.0
	// section 5.3.2.1 wants 10 s to be accepted and 60 s to be refused.
	Skew = 10 * time.Second
)

// Longest is the most time that passes between an assertion being accepted and
// the end of the memory of it: what a [Replay] has to know.
const Longest = maxLifetime + 2*Skew

// replayScope keeps the ids of assertions apart from others in the memory.
const replayScope = "client_assertion"

// Replay remembers what was used.
type Replay interface {
	Claim(ctx context.Context, scope, id string, expires time.Time) (fresh bool, err error)
}

// assertion is a client's signed statement of who it is, with nothing proven.
type assertion struct {
	jose.Parsed
	claims map[string]json.RawMessage
}

// readAssertion reads the assertion of a request; the client is its subject.
func readAssertion(p oauth.Params) (presented, error) {
	for _, name := range []string{"client_assertion", "client_assertion_type"} {
		if !p.Has(name) {
			return presented{}, oauth.Refuse(oauth.InvalidRequest, "%s is missing", name)
		}
	}
	if p.Get("client_assertion_type") != AssertionType {
		return presented{}, oauth.Refuse(oauth.InvalidClient, "client_assertion_type must be "+AssertionType)
	}
	raw := p.Get("client_assertion")
	if len(raw) > maxAssertion {
		return presented{}, failed(refusal("an assertion that is too long"))
	}
	parsed, err := jose.Parse(raw)
	if err != nil {
		return presented{}, failed(err)
	}
	claims, err := jose.Members(parsed.Payload)
	if err != nil {
		return presented{}, failed(err)
	}
	subject, ok := jose.Text(claims["sub"])
	if issuer, is := jose.Text(claims["iss"]); !ok || !is || issuer != subject || subject == "" {
		return presented{}, failed(refusal("an assertion whose iss and sub are not one client id"))
	}
	if p.Has("client_id") && p.Get("client_id") != subject {
		return presented{}, oauth.Refuse(oauth.InvalidRequest, "client_id is not the client of the client_assertion")
	}
	method := catalog.AuthPrivateKeyJWT
	if parsed.Header.Alg == jose.HS256 {
		method = catalog.AuthSecretJWT
	}
	return presented{id: subject, method: method, assertion: &assertion{parsed, claims}}, nil
}

// asserted makes sure that an assertion is the client's, for this server, of
// now, and used for the first time. The id is used up last: what is not the
// client's own uses up nothing. Errors: a [refusal], or a fault of the memory.
func (a *Authenticator) asserted(ctx context.Context, t tenant.At, cl *catalog.Client, as *assertion) error {
	if !isAssertionType(as.Header.Typ) {
		return refusal("an assertion of another typ")
	}
	if !slices.Contains(cl.AssertionAlgs(), as.Header.Alg) {
		return refusal(fmt.Sprintf("an assertion signed by %.32q, which the client is not registered for", as.Header.Alg))
	}
	if err := a.signed(ctx, cl, as); err != nil {
		return err
	}
	if !a.addressed(t, as.claims["aud"]) {
		return refusal("an assertion with another aud")
	}
	jti, ok := jose.Text(as.claims["jti"])
	if !ok || jti == "" || len(jti) > maxAssertionID {
		return refusal("an assertion without a jti of 1 to 256 bytes")
	}
	until, err := lifetime(as.claims, a.Clock.Now())
	if err != nil {
		return err
	}
	// A jti is unique among those of its issuer; names have no NUL.
	fresh, err := a.Used.Claim(ctx, replayScope, t.ID+"\x00"+cl.ID+"\x00"+jti, until)
	switch {
	case err != nil:
		return fmt.Errorf("remember assertion: %w", err)
	case !fresh:
		return refusal("an assertion that was used before")
	}
	return nil
}

// isAssertionType tells whether a typ can be that of an assertion: another kind
// of token that the client signs is none (RFC 8725 section 3.11). Most say JWT
// or nothing; draft-ietf-oauth-rfc7523bis gives them a name.
func isAssertionType(typ string) bool {
	return jose.IsType(typ, "", "JWT", "client-authentication+jwt")
}

// signed checks the signature with what is registered for the client.
func (a *Authenticator) signed(ctx context.Context, cl *catalog.Client, as *assertion) error {
	if cl.AuthMethod == catalog.AuthSecretJWT {
		for _, s := range cl.Secrets {
			if as.Authentic([]byte(s.Reveal())) {
				return nil
			}
		}
		return refusal("an assertion that no secret of the client made")
	}
	ok, err := a.Keys.Any(ctx, cl, func(k jose.PublicKey) bool {
		return (as.Header.Kid == "" || as.Header.Kid == k.ID) && as.Signed(k)
	})
	if err != nil {
		return err
	}
	if !ok {
		return refusal("an assertion that no key of the client signed")
	}
	return nil
}

// addressed tells whether an assertion is meant for the tenant: under fapi2 the
// audience is the issuer as a single string (FAPI 2.0 section 5.3.2.1), else
// the issuer or the token endpoint is among it (RFC 7523 section 3), or the
// endpoint that is called.
func (a *Authenticator) addressed(t tenant.At, aud json.RawMessage) bool {
	list, single, ok := jose.Texts(aud)
	switch {
	case !ok:
		return false
	case t.Profile == catalog.ProfileFAPI2:
		return single && list[0] == t.Issuer
	default:
		return slices.Contains(list, t.Issuer) || slices.Contains(list, t.Issuer+a.TokenPath) || a.path != "" && slices.Contains(list, t.Issuer+a.path)
	}
}

// lifetime checks an assertion's times, and returns until when its id is to be
// remembered. With iat that is counted from there, so that after a loss of the
// memory only what was made before it is refused.
func lifetime(claims map[string]json.RawMessage, now time.Time) (until time.Time, err error) {
	p, err := jose.ReadPeriod(claims, now, Skew)
	switch {
	case err != nil:
		return until, refusal("an assertion that " + err.Error())
	case p.Expires.After(now.Add(maxLifetime + Skew)), !p.Issued.IsZero() && p.Expires.Sub(p.Issued) > maxLifetime:
		return until, refusal("an assertion that lives too long")
	case p.Issued.IsZero():
		return p.Expires.Add(Skew), nil
	}
	return p.Issued.Add(maxLifetime + Skew), nil
}
