package proxy

import (
	"context"
	"errors"
	"net/http"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
	"versola/modules/edge/token"
	"versola/platform/dpop"
	"versola/platform/jose"
)

// prove makes sure that the sender of a request with a token holds what the
// token is bound to, for this very call. Nobody comes to an edge with a client
// certificate: it does not end TLS, so tokens that are bound to one are refused.
func (h *Handler) prove(r *http.Request, x *exchange, given presented, claims *token.Claims, tenant *catalog.Tenant, name string) *Refusal {
	err := h.d.Proofs.Prove(r.Context(), r.Header, dpop.Presentation{Scheme: given.scheme, Bound: claims.Bound, Request: dpop.Request{
		Method: r.Method, URLs: []string{h.d.PublicURL + x.path}, AccessToken: given.token, Algorithms: tenant.ProofAlgs(), Now: h.d.Clock.Now(),
	}})
	var ofToken dpop.TokenRefusal
	var ofProof dpop.Refusal
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ofToken):
		return h.unproven(x, name, policy.SenderConstraint, "invalid_token", err)
	case errors.As(err, &ofProof):
		return h.unproven(x, name, policy.ProofInvalid, "invalid_dpop_proof", err)
	case errors.Is(err, context.Canceled):
		return refuse(policy.ClientGone, err)
	default:
		return refuse(policy.StoreUnavailable, err)
	}
}

// unproven refuses a token whose sender did not show what it is bound to, and
// says what is missing: whoever has the token may know (RFC 9449 section 7.1).
func (h *Handler) unproven(x *exchange, name string, reason policy.Reason, code string, err error) *Refusal {
	r := refuse(reason, err)
	r.Challenge = h.challenges(x, name, code, `, error_description="`+err.Error()+`"`)
	return r
}

// challenges names the ways to present a token: with DPoP alone where that was
// tried, else either. more goes with the code.
func (h *Handler) challenges(x *exchange, name, code, more string) string {
	algs := `, algs="` + x.routes.algs(name) + `"`
	if x.caller.scheme == dpop.Scheme {
		return h.challenge(dpop.Scheme, name, code) + more + algs
	}
	return h.challenge(schemeBearer, name, code) + more + `, ` + dpop.Scheme + ` realm="` + name + `"` + algs
}

// algs are the algorithms of proofs for a resource.
func (r *routes) algs(name string) string {
	if candidates := r.byID[name]; len(candidates) > 0 {
		return dpop.List(candidates[0].resource.Owner.ProofAlgs())
	}
	return dpop.List(jose.Algorithms())
}
