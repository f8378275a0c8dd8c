package par

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/authorization"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

// Path of the endpoint, below the issuer.
const Path = "/par"

// Clients makes a client prove who it is.
type Clients interface {
	Authenticate(t tenant.At, r *http.Request, p oauth.Params) (*catalog.Client, error)
}

// Requests validates an authorization request as the authorization endpoint
// does. Errors: an [oauth.Error], or a fault.
type Requests interface {
	ValidatePushed(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (*authorization.Request, error)
}

// Proofs reads the key of a DPoP proof, if there is one. Errors: an
// [oauth.Error], or a fault of the memory of proofs.
type Proofs interface {
	Key(c echo.Context, t tenant.At, path string) (thumbprint string, err error)
}

// Endpoint is the pushed authorization request endpoint.
type Endpoint struct {
	Clock    clock.Clock
	Random   io.Reader
	Clients  Clients
	Requests Requests
	Proofs   Proofs
	Store    *Store
}

// response is the answer to a push (RFC 9126 section 2.2).
type response struct {
	RequestURI string `json:"request_uri"`
	ExpiresIn  int64  `json:"expires_in"` // seconds
}

// Handle answers POST /par.
func (e *Endpoint) Handle(c echo.Context) error {
	t := tenant.Of(c)
	httpserver.Annotate(c, slog.String("tenant", t.ID))
	p, err := oauth.ReadForm(c.Request())
	if err != nil {
		return err
	}
	cl, err := e.Clients.Authenticate(t, c.Request(), p)
	if err != nil {
		return err
	}
	httpserver.Annotate(c, slog.String("client", cl.ID))
	r, err := e.validate(c, t, cl, p)
	if err != nil {
		return err
	}
	ttl := t.PushedRequestTTL()
	uri, err := e.Store.Push(c.Request().Context(), e.Random, r, e.Clock.Now().Add(ttl))
	if err != nil {
		return err
	}
	oauth.NoStore(c.Response().Header())
	return c.JSON(http.StatusCreated, response{uri, int64(ttl / time.Second)})
}

func (e *Endpoint) validate(c echo.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (*authorization.Request, error) {
	// Also one without a value, or sent twice: it has no place here.
	if p.Sent("request_uri") {
		return nil, oauth.Refuse(oauth.InvalidRequest, "request_uri cannot be pushed")
	}
	// It is a parameter of the request too (RFC 9126 section 2.1), and in a
	// request object it is among the claims.
	if !p.Has("client_id") && !p.Has("request") {
		return nil, oauth.Refuse(oauth.InvalidRequest, "client_id is missing")
	}
	r, err := e.Requests.ValidatePushed(c.Request().Context(), t, cl, p)
	if err != nil {
		return nil, err
	}
	key, err := e.Proofs.Key(c, t, Path)
	if err != nil {
		return nil, err
	}
	switch {
	case key == "":
	case r.DPoPKey == "":
		r.DPoPKey = key
	case r.DPoPKey != key:
		return nil, oauth.Refuse(oauth.InvalidDPoPProof, "dpop_jkt is not the key of the DPoP proof")
	}
	return r, nil
}
