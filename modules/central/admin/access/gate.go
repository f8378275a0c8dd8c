package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/central/openapi"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

const (
	// tokenType is that of access tokens (RFC 9068 section 2.1).
	tokenType = "at+jwt"
	// skew is how far two processes' clocks may be apart.
	skew = 30 * time.Second
)

// Revoked tells whether a token was revoked: by its session, grant, own id or
// subject. Empty ids are of tokens that have none.
type Revoked func(sid, gid, jti, sub string, issued time.Time) bool

// Gate authenticates and authorizes callers.
type Gate struct {
	Catalog *catalog.Holder
	Clock   clock.Clock
	Revoked Revoked // nil: nothing is
	// URL is where the API is called, as configured: proofs name it.
	URL    string
	Proofs dpop.Guard
}

// Authenticate lets known callers through and answers everyone else.
func (g *Gate) Authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		current := g.Catalog.Current()
		if current == nil {
			return refuse(http.StatusServiceUnavailable, "no_catalog", "the configuration is not loaded yet", nil)
		}
		who, presented, err := g.caller(current, c.Request())
		if err != nil {
			return unauthorized(c, "token_invalid", "an access token of the system tenant for the audience central is needed", "", err)
		}
		if err := g.held(c, presented); err != nil {
			return err
		}
		httpserver.Annotate(c, slog.String("client", who.Client))
		c.Set(callerKey, who)
		c.Response().Header().Set("Cache-Control", "no-store")
		return next(c)
	}
}

// Authorize lets callers through that reach the operation where the request's
// path points.
func (g *Gate) Authorize(op openapi.Operation) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			if !allowed(From(c), op, c) {
				c.Response().Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
				return refuse(http.StatusForbidden, "not_permitted", "your roles do not reach "+op.ID+" here", nil)
			}
			return next(c)
		}
	}
}

func allowed(w *Caller, op openapi.Operation, c echo.Context) bool {
	names := c.ParamNames()
	switch r := w.Reach(op.ID); {
	case r.All:
		return true
	case slices.Contains(names, "tenant"):
		return r.Has(c.Param("tenant"))
	case slices.Contains(names, "directory"):
		return w.ReachesDirectory(op.ID, c.Param("directory"))
	default:
		return op.Filtered && !r.None()
	}
}

func refuse(status int, reason, detail string, cause error) error {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail, Cause: cause}
}

// claims are what the API reads of an access token.
type claims struct {
	Issuer   string   `json:"iss"`
	Subject  string   `json:"sub"`
	Audience audience `json:"aud"`
	Expires  int64    `json:"exp"`
	IssuedAt int64    `json:"iat"`
	ID       string   `json:"jti"`
	Session  string   `json:"sid"`
	Grant    string   `json:"gid"`
	Client   string   `json:"client_id"`
	Tenant   string   `json:"tenant"`
	Roles    []string `json:"roles"`

	Bound jose.Confirmation `json:"cnf"` // one that is not known fails
}

// caller returns who a request's token is about, and how it was presented.
func (g *Gate) caller(cat *catalog.Catalog, r *http.Request) (who *Caller, presented dpop.Presentation, err error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, presented, fmt.Errorf("%d Authorization headers", len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") && !dpop.IsScheme(scheme) {
		return nil, presented, errors.New("neither a bearer token nor one bound to a key")
	}
	_, payload, err := cat.Keys().Verify(token, tokenType)
	if err != nil {
		return nil, presented, err
	}
	if _, err := jose.Members(payload); err != nil {
		return nil, presented, err
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, presented, fmt.Errorf("read claims: %w", err)
	}
	t, ok := cat.TenantByIssuer(c.Issuer)
	now := g.Clock.Now()
	switch {
	case !ok || t.ID != catalog.SystemTenant || c.Tenant != catalog.SystemTenant:
		return nil, presented, errors.New("another tenant's token")
	case !slices.Contains(c.Audience, Audience):
		return nil, presented, errors.New("another audience")
	case now.Unix() >= c.Expires:
		return nil, presented, errors.New("expired")
	case c.IssuedAt > now.Add(skew).Unix():
		return nil, presented, errors.New("iat is in the future")
	case c.Subject == "":
		return nil, presented, errors.New("no subject")
	case g.Revoked != nil && g.Revoked(c.Session, c.Grant, c.ID, c.Subject, time.Unix(c.IssuedAt, 0)):
		return nil, presented, errors.New("revoked")
	}
	presented = dpop.Presentation{Scheme: scheme, Bound: c.Bound, Request: dpop.Request{
		Method: r.Method, URLs: []string{g.URL + r.URL.EscapedPath()}, AccessToken: token, Algorithms: t.ProofAlgs(), Now: now,
	}}
	who, err = identify(cat, t, c)
	return who, presented, err
}

// held makes sure that the sender holds what the token is bound to. Errors: the
// answer to who does not, or a fault of the memory of proofs.
func (g *Gate) held(c echo.Context, presented dpop.Presentation) error {
	err := g.Proofs.Prove(c.Request().Context(), c.Request().Header, presented)
	var ofProof dpop.Refusal
	var ofToken dpop.TokenRefusal
	switch {
	case errors.As(err, &ofProof):
		return unauthorized(c, "proof_invalid", ofProof.Error(), "invalid_dpop_proof", err)
	case errors.As(err, &ofToken):
		return unauthorized(c, "sender_constraint", ofToken.Error(), "", err)
	}
	return err
}

// unauthorized answers who is not known, or does not hold what their token is
// bound to. ofProof is the error code where a proof is wrong (RFC 9449 section
// 7.1).
func unauthorized(c echo.Context, reason, detail, ofProof string, cause error) error {
	algs := `algs="` + dpop.List(jose.Algorithms()) + `"`
	challenge := `Bearer error="invalid_token", DPoP ` + algs
	if ofProof != "" {
		challenge = `DPoP error="` + ofProof + `", error_description="` + detail + `", ` + algs
	}
	c.Response().Header().Set("WWW-Authenticate", challenge)
	return refuse(http.StatusUnauthorized, reason, detail, cause)
}

// identify finds out whether a person or a service calls. A service's token
// has the client as its subject (RFC 9068 section 2.2) and no session.
func identify(cat *catalog.Catalog, system *catalog.Tenant, c claims) (*Caller, error) {
	client, ok := system.Client(c.Client)
	if !ok || client.Disabled {
		return nil, errors.New("its client is unknown or disabled")
	}
	w := &Caller{Subject: c.Subject, Client: c.Client, Tenant: c.Tenant, Roles: c.Roles, catalog: cat, system: system}
	if c.Subject == c.Client {
		if c.Session != "" || len(c.Roles) > 0 {
			return nil, errors.New("neither a person's token nor a service's")
		}
		w.service, w.permissions = true, client.Permissions
	}
	if w.Roles == nil {
		w.Roles = []string{}
	}
	return w, nil
}

// audience reads "aud": one text or a list (RFC 7519 section 4.1.3).
type audience []string

// UnmarshalJSON implements json.Unmarshaler.
func (a *audience) UnmarshalJSON(raw []byte) error {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		*a = audience{one}
		return nil
	}
	return json.Unmarshal(raw, (*[]string)(a))
}
