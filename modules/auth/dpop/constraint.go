package dpop

import (
	"errors"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/jose"
)

// Constraint binds tokens to keys and asks for them again.
type Constraint struct {
	Clock  clock.Clock
	Nonces *Nonces
	Proofs dpop.Guard
}

// Bind returns what the tokens of a request to the endpoint of a tenant at path
// are bound to. Errors: an [oauth.Error], or a fault of the memory of proofs.
func (x *Constraint) Bind(c echo.Context, t tenant.At, cl *catalog.Client, path string) (jose.Confirmation, error) {
	var bound jose.Confirmation
	h := c.Request().Header
	if len(h.Values(dpop.Header)) > 0 || cl.DPoPBound {
		x.offer(c)
		proof, err := x.Proofs.Once(c.Request().Context(), h, x.request(c, t, path))
		if err != nil {
			return bound, refusal(err)
		}
		bound.JKT = proof.Thumbprint
	}
	if !bound.Bound() && t.Profile == catalog.ProfileFAPI2 {
		return bound, oauth.Refuse(oauth.InvalidDPoPProof, "the tokens of this tenant are bound to their sender: a DPoP proof is needed")
	}
	return bound, nil
}

// Key returns the thumbprint of the key whose proof a request to the endpoint of
// a tenant at path carries; empty: it carries none (RFC 9449 section 10.1).
// Errors: as of [Constraint.Bind].
func (x *Constraint) Key(c echo.Context, t tenant.At, path string) (string, error) {
	h := c.Request().Header
	if len(h.Values(dpop.Header)) == 0 {
		return "", nil
	}
	x.offer(c)
	proof, err := x.Proofs.Once(c.Request().Context(), h, x.request(c, t, path))
	if err != nil {
		return "", refusal(err)
	}
	return proof.Thumbprint, nil
}

// Held makes sure that the sender of a request with an access token to the
// endpoint of a tenant at path holds what the token is bound to; scheme is that
// of the Authorization header. Errors: as of [Constraint.Bind].
func (x *Constraint) Held(c echo.Context, t tenant.At, a *token.Access, scheme, raw, path string) error {
	r := x.request(c, t, path)
	r.AccessToken = raw
	if a.Bound.JKT != "" {
		x.offer(c)
	}
	return refusal(x.Proofs.Prove(c.Request().Context(), c.Request().Header, dpop.Presentation{Scheme: scheme, Bound: a.Bound, Request: r}))
}

// offer gives the client the nonce of its next proof.
func (x *Constraint) offer(c echo.Context) {
	c.Response().Header().Set(dpop.NonceHeader, x.Nonces.Current())
}

func (x *Constraint) request(c echo.Context, t tenant.At, path string) dpop.Request {
	return dpop.Request{
		Method: c.Request().Method, URLs: []string{t.Issuer + path}, Algorithms: t.ProofAlgs(), Nonce: x.Nonces.Valid, Now: x.Clock.Now(),
	}
}

// refusal names an error as OAuth does; others stay as they are.
func refusal(err error) error {
	var ofProof dpop.Refusal
	var ofToken dpop.TokenRefusal
	switch {
	case errors.As(err, &ofToken):
		return oauth.Refuse(oauth.InvalidToken, "%s", ofToken.Error())
	case errors.As(err, &ofProof) && ofProof == dpop.NeedsNonce:
		return oauth.Refuse(oauth.UseDPoPNonce, "%s", ofProof.Error())
	case errors.As(err, &ofProof):
		return oauth.Refuse(oauth.InvalidDPoPProof, "%s", ofProof.Error())
	}
	return err
}
