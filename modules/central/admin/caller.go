package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

const (
	// Tenant is whose people administer the deployment.
	Tenant = "system"
	// Role is the role that may.
	Role = "admin"
	// Audience is the "aud" of tokens for this API.
	Audience = "central"
	// tokenType is that of access tokens (RFC 9068 section 2.1).
	tokenType = "at+jwt"
	// skew is how far two processes' clocks may be apart.
	skew = 30 * time.Second
)

// caller is who calls, as proven by the token.
type caller struct {
	Subject string   `json:"sub"`
	Client  string   `json:"client_id"`
	Tenant  string   `json:"tenant"`
	Roles   []string `json:"roles"`
}

const callerKey = "versola.admin.caller"

// authenticate lets administrators through and answers everyone else.
func (a *API) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		current := a.holder.Current()
		if current == nil {
			return problem(http.StatusServiceUnavailable, "no_catalog", "the configuration is not loaded yet", nil)
		}
		who, err := authenticate(current, c.Request(), a.clock.Now())
		if err != nil {
			c.Response().Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			return problem(http.StatusUnauthorized, "token_invalid", "an access token of the system tenant for the audience central is needed", err)
		}
		if !slices.Contains(who.Roles, Role) {
			c.Response().Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			return problem(http.StatusForbidden, "not_permitted", "the role admin is needed", nil)
		}
		c.Set(callerKey, who)
		c.Response().Header().Set("Cache-Control", "no-store")
		return next(c)
	}
}

func problem(status int, reason, detail string, cause error) error {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail, Cause: cause}
}

func authenticate(cat *catalog.Catalog, r *http.Request, now time.Time) (*caller, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return nil, fmt.Errorf("%d Authorization headers", len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, errors.New("no bearer token")
	}
	_, payload, err := cat.Keys().Verify(token, tokenType)
	if err != nil {
		return nil, err
	}
	if _, err := jose.Members(payload); err != nil {
		return nil, err
	}
	var c struct {
		caller
		Issuer   string   `json:"iss"`
		Audience audience `json:"aud"`
		Expires  int64    `json:"exp"`
		IssuedAt int64    `json:"iat"`
	}
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, fmt.Errorf("read claims: %w", err)
	}
	t, ok := cat.TenantByIssuer(c.Issuer)
	switch {
	case !ok || t.ID != Tenant || c.Tenant != Tenant:
		return nil, errors.New("another tenant's token")
	case !slices.Contains(c.Audience, Audience):
		return nil, errors.New("another audience")
	case now.Unix() >= c.Expires:
		return nil, errors.New("expired")
	case c.IssuedAt > now.Add(skew).Unix():
		return nil, errors.New("iat is in the future")
	case c.Subject == "":
		return nil, errors.New("no subject")
	}
	return &c.caller, nil
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
