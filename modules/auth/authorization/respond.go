package authorization

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/platform/clock"
)

const (
	// signedTTL is how long a signed answer can be read: it is used at once, by a
	// client whose clock may be off (JARM section 2.1 recommends ten minutes at
	// the most).
	signedTTL = 5 * time.Minute
	// signedType is the typ of a signed answer. JARM names none of its own.
	signedType = "JWT"
)

// Pages shows the page whose form posts an answer to the client.
type Pages interface {
	Forward(c echo.Context, action string, fields url.Values, locales []string) error
}

// Responder answers authorization requests. It is safe for concurrent use.
type Responder struct {
	Clock clock.Clock
	Pages Pages
}

// Code sends the browser back with a code.
func (x *Responder) Code(c echo.Context, t tenant.At, r *Request, code string) error {
	return x.respond(c, t, r, map[string]string{"code": code})
}

// Error sends the browser back with a refusal.
func (x *Responder) Error(c echo.Context, t tenant.At, r *Request, e *oauth.Error) error {
	v := map[string]string{"error": e.Code}
	if e.Description != "" {
		v["error_description"] = e.Description
	}
	return x.respond(c, t, r, v)
}

func (x *Responder) respond(c echo.Context, t tenant.At, r *Request, v map[string]string) error {
	if r.State != "" {
		v["state"] = r.State
	}
	v["iss"] = t.Issuer
	fields := url.Values{}
	if r.ResponseMode.Signed() {
		signed, err := x.sign(t, r, v)
		if err != nil {
			return err
		}
		// The issuer is in it, and not beside it (RFC 9207 section 2).
		fields.Set("response", signed)
	} else {
		for name, value := range v {
			fields.Set(name, value)
		}
	}
	h := c.Response().Header()
	oauth.NoStore(h)
	h.Set("Referrer-Policy", "no-referrer")
	if r.ResponseMode.Form() {
		return x.Pages.Forward(c, r.RedirectURI, fields, r.UILocales) //nolint:wrapcheck // says what it is
	}
	return c.Redirect(http.StatusSeeOther, r.ResponseMode.address(r.RedirectURI, fields)) //nolint:wrapcheck // writes a header
}

// sign makes the JWT of an answer (JARM section 2.1), signed with the client's
// algorithm. Errors: an [oauth.Error], temporarily_unavailable, where there is no
// key of it.
func (x *Responder) sign(t tenant.At, r *Request, v map[string]string) (string, error) {
	cl, ok := t.Client(r.ClientID)
	if !ok {
		return "", errors.New("sign an answer for a client that is gone")
	}
	signer, ok := t.Catalog.Signer(cl.ResponseAlg())
	if !ok {
		return "", oauth.Refuse(oauth.TemporarilyUnavailable, "there is no signing key for the client's answers yet").
			Because(fmt.Errorf("no active %s key", cl.ResponseAlg()))
	}
	claims := map[string]any{"aud": cl.ID, "exp": x.Clock.Now().Add(signedTTL).Unix()}
	for name, value := range v {
		claims[name] = value
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", fmt.Errorf("encode answer: %w", err)
	}
	signed, err := signer.Sign(signedType, payload)
	if err != nil {
		return "", fmt.Errorf("sign answer: %w", err)
	}
	return signed, nil
}
