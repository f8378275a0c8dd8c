package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
	"versola/modules/edge/session"
	"versola/modules/edge/token"
	"versola/platform/dpop"
	"versola/platform/secret"
)

// caller is who calls, and how they proved it. The zero value is nobody.
type caller struct {
	claims  *token.Claims
	may     policy.Caller
	session *session.Session // with a cookie
	preset  *catalog.Preset  // of the cookie
	cookie  string
	bearer  secret.Text // with a token
	scheme  string      // that the token was sent with
}

// policy returns the caller as the decision core knows it; nil: nobody.
func (c *caller) policy() *policy.Caller {
	if c.claims == nil {
		return nil
	}
	return &c.may
}

// identify finds out who calls, and with several candidates which resource
// they mean: their own tenant's. Without a caller, an endpoint that needs none
// goes on.
func (h *Handler) identify(c echo.Context, x *exchange, name string, candidates []*route) *Refusal {
	r := c.Request()
	given, reason := credentials(r.Header)
	x.caller.scheme = given.scheme
	if reason != policy.Allowed {
		return h.unauthorized(x, name, reason, nil)
	}
	if given.token != "" {
		return h.byToken(r, x, given, name, candidates)
	}
	refusal := h.byCookie(c, x, name, candidates)
	if refusal != nil && x.endpoint != nil && x.endpoint.Public {
		x.caller = caller{} // a stranger may as well, also while sessions cannot be looked up
		return nil
	}
	return refusal
}

// schemeBearer is that of tokens which are bound to no key.
const schemeBearer = "Bearer"

// presented is an access token as a request has it.
type presented struct{ scheme, token string }

// credentials reads the token of an Authorization header (RFC 6750 section
// 2.1, RFC 9449 section 7.1).
func credentials(h http.Header) (presented, policy.Reason) {
	values := h["Authorization"]
	switch len(values) {
	case 0:
		return presented{}, policy.Allowed
	case 1:
	default:
		return presented{}, policy.HeaderAmbiguous
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	given := presented{schemeBearer, strings.Trim(token, " ")}
	switch {
	case dpop.IsScheme(scheme):
		given.scheme = dpop.Scheme
	case !strings.EqualFold(scheme, schemeBearer):
		return presented{}, policy.SchemeUnknown
	}
	if !ok || given.token == "" {
		return given, policy.TokenInvalid
	}
	return given, policy.Allowed
}

func (h *Handler) byToken(r *http.Request, x *exchange, given presented, name string, candidates []*route) *Refusal {
	claims, err := h.d.Verifier.Verify(given.token)
	switch {
	case errors.Is(err, token.ErrExpired):
		return h.unauthorized(x, name, policy.TokenExpired, err)
	case err != nil:
		return h.unauthorized(x, name, policy.TokenInvalid, err)
	}
	if _, revoked := h.d.Revoked.Revoked(claims); revoked {
		return h.unauthorized(x, name, policy.TokenRevoked, nil)
	}
	may, reason := callerOf(x.routes.catalog, claims)
	if reason != policy.Allowed {
		return h.unauthorized(x, name, reason, nil)
	}
	if claims.Bound.Bound() || given.scheme != schemeBearer {
		if refusal := h.prove(r, x, given, claims, may.Tenant, name); refusal != nil {
			return refusal
		}
	}
	x.caller = caller{claims: claims, may: may, bearer: secret.Text(given.token), scheme: given.scheme}
	return x.choose(claims.Tenant, r.Method, candidates)
}

// callerOf turns claims into a caller, as the catalog has them now: a client
// that was disabled or removed is shut out at once.
func callerOf(c *catalog.Catalog, claims *token.Claims) (policy.Caller, policy.Reason) {
	tenant, ok := c.Tenant(claims.Tenant)
	if !ok {
		return policy.Caller{}, policy.WrongTenant
	}
	client, ok := tenant.Client(claims.ClientID)
	if !ok || client.Disabled {
		return policy.Caller{}, policy.ClientDisabled
	}
	may := policy.Caller{Tenant: tenant, Audience: claims.Audience, SignedInAt: claims.AuthTime}
	if claims.Service() {
		may.Service = client
	} else {
		may.Roles = claims.Roles
	}
	return may, policy.Allowed
}

// choose takes the candidate of the caller's tenant.
func (x *exchange) choose(tenant, method string, candidates []*route) *Refusal {
	for _, candidate := range candidates {
		if candidate.resource.Tenant != tenant {
			continue
		}
		if x.route != candidate {
			x.to(candidate, method)
		}
		if x.endpoint == nil {
			return refuse(policy.EndpointUnknown, nil)
		}
		return nil
	}
	return refuse(policy.WrongTenant, nil)
}

// byCookie looks for a live session under the cookies of the presets of the
// tenants that have the resource, in the presets' order.
func (h *Handler) byCookie(c echo.Context, x *exchange, name string, candidates []*route) *Refusal {
	r := c.Request()
	dead := false
	if len(r.Header["Cookie"]) > 0 {
		for _, p := range x.routes.presets[name] {
			base := session.CookieBase(p)
			cookie := h.d.Cookies.Get(r, base)
			if cookie == "" {
				continue
			}
			if !safe(r.Method) && !h.sameOrigin(r.Header) && !shared(candidates, r.Header) {
				return refuse(policy.CSRF, nil)
			}
			s, refusal := h.session(r.Context(), x, p, name, cookie)
			if refusal != nil {
				return refusal
			}
			if s == nil {
				dead = true
				h.d.Cookies.Clear(c.Response(), base)
				continue
			}
			return x.choose(s.Tenant, r.Method, candidates)
		}
	}
	if dead {
		return h.signIn(r, x, name, policy.SessionEnded)
	}
	return h.signIn(r, x, name, policy.NoCredentials)
}

// session puts the live session of a cookie into the exchange; nil: there is
// none.
func (h *Handler) session(ctx context.Context, x *exchange, p *catalog.Preset, name, cookie string) (*session.Session, *Refusal) {
	s, err := h.d.Sessions.Find(ctx, p, cookie)
	switch {
	case errors.Is(err, session.ErrNone):
		return nil, nil
	case errors.Is(err, session.ErrAuth):
		return nil, refuse(policy.AuthUnavailable, err)
	case ctx.Err() != nil:
		return nil, refuse(policy.ClientGone, ctx.Err())
	case err != nil:
		return nil, refuse(policy.StoreUnavailable, err)
	}
	if _, revoked := h.d.Revoked.Revoked(s.Claims); revoked {
		h.d.Sessions.EndRevoked(ctx, s.Hash)
		return nil, nil
	}
	may, reason := callerOf(x.routes.catalog, s.Claims)
	if reason != policy.Allowed {
		return nil, h.unauthorized(x, name, reason, nil)
	}
	x.caller = caller{claims: s.Claims, may: may, session: s, preset: p, cookie: cookie}
	return s, nil
}

// safe tells whether a method changes nothing (RFC 9110 section 9.2.1).
func safe(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	return false
}

// shared tells whether a request comes from a page that the resource, whoever's
// of that name it is, lets call it with cookies.
func shared(candidates []*route, header http.Header) bool {
	for _, c := range candidates {
		if c.cors == nil || !c.cors.credentials || !c.cors.allows(origin(header)) {
			return false
		}
	}
	return true
}

// sameOrigin tells whether an unsafe request with a cookie comes from this
// origin. What the browser states decides, and what is stated twice or not at
// all does not pass. Sec-Fetch-Site "none" is the person's own doing: no site
// can cause it. An Origin of "null" says nothing (a page under the referrer
// policy no-referrer sends it too), so it passes with a Sec-Fetch-Site only.
func (h *Handler) sameOrigin(header http.Header) bool {
	site, origin := header["Sec-Fetch-Site"], header["Origin"]
	if len(site) > 1 || len(origin) > 1 {
		return false
	}
	if len(origin) == 1 && origin[0] != h.origin && (origin[0] != "null" || len(site) == 0) {
		return false
	}
	if len(site) == 1 {
		return site[0] == "same-origin" || site[0] == "none"
	}
	return len(origin) == 1
}
