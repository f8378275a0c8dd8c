package edgeauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

// What an edge's token states.
const (
	Type     = "versola-edge+jwt"
	Audience = "versola-internal"
)

// Bounds of an edge's token.
const (
	// MaxLife is the most between iat and exp: one call's worth.
	MaxLife = time.Minute
	// skew is how far the clocks of two machines of one deployment may be
	// apart; time synchronisation keeps them within milliseconds.
	skew = 10 * time.Second
)

// ErrUnauthenticated reports a call without a valid edge token. The wrapped
// text is for the log alone.
var ErrUnauthenticated = errors.New("not an authenticated edge")

// Source gives the current catalog.
type Source interface {
	Current() *catalog.Catalog
}

type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	IssuedAt *int64 `json:"iat"`
	Expires  *int64 `json:"exp"`
	ID       string `json:"jti"`
}

// Verify returns the edge that signed token. Errors: [ErrUnauthenticated].
func Verify(current *catalog.Catalog, token string, now time.Time) (*catalog.Edge, error) {
	parsed, err := jose.Parse(token)
	if err != nil {
		return nil, refuse(err.Error())
	}
	members, err := jose.Members(parsed.Payload)
	if err != nil {
		return nil, refuse(err.Error())
	}
	// The issuer only says whose keys to try; nothing is believed before one
	// of them verifies.
	var iss string
	if json.Unmarshal(members["iss"], &iss) != nil {
		return nil, refuse("iss is missing")
	}
	edge, ok := current.Edge(iss)
	if !ok {
		return nil, refuse("iss names no edge")
	}
	_, payload, err := edge.SignatureKeys.Verify(token, Type)
	if err != nil {
		return nil, refuse(err.Error())
	}
	var c claims
	if err := json.Unmarshal(payload, &c); err != nil {
		return nil, refuse("claims: " + err.Error())
	}
	return edge, c.check(edge.ID, now)
}

func (c *claims) check(edge string, now time.Time) error {
	switch {
	case c.Issuer != edge || c.Subject != edge:
		return refuse("iss and sub are not the edge's id")
	case c.Audience != Audience:
		return refuse("aud is not " + Audience)
	case c.IssuedAt == nil || c.Expires == nil || c.ID == "":
		return refuse("iat, exp or jti is missing")
	case *c.Expires <= *c.IssuedAt || *c.Expires-*c.IssuedAt > int64(MaxLife/time.Second):
		return refuse("exp is not within a minute after iat")
	case *c.IssuedAt > now.Add(skew).Unix():
		return refuse("iat is in the future")
	case *c.Expires <= now.Add(-skew).Unix():
		return refuse("expired")
	}
	return nil
}

func refuse(why string) error { return fmt.Errorf("%w: %s", ErrUnauthenticated, why) }

const contextKey = "versola.edge"

// Call is an authenticated call: the edge, and the catalog it was found in.
type Call struct {
	*catalog.Edge
	Catalog *catalog.Catalog
}

// Middleware lets authenticated edges through: others get 401, and everyone
// 503 while there is no catalog yet.
func Middleware(source Source, clk clock.Clock) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			current := source.Current()
			if current == nil {
				c.Response().Header().Set("Retry-After", "1")
				return echo.NewHTTPError(http.StatusServiceUnavailable, "the configuration is not loaded yet")
			}
			scheme, token, _ := strings.Cut(c.Request().Header.Get(echo.HeaderAuthorization), " ")
			err := refuse("no bearer token")
			var edge *catalog.Edge
			if strings.EqualFold(scheme, "Bearer") {
				edge, err = Verify(current, token, clk.Now())
			}
			if err != nil {
				c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
				return echo.NewHTTPError(http.StatusUnauthorized, "an edge authenticates with a JWT signed by its own key").SetInternal(err)
			}
			c.Set(contextKey, Call{edge, current})
			return next(c)
		}
	}
}

// Of returns the caller of a request that passed [Middleware].
func Of(c echo.Context) Call {
	return c.Get(contextKey).(Call) //nolint:errcheck,forcetypeassert // the middleware is on every route
}
