package logout

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"mime"
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/session"
	"versola/modules/edge/token"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

const (
	// tokenType is the media type of logout tokens (Back-Channel Logout 1.0
	// section 2.4). The type is recommended there and required here: it keeps
	// any other token of ours out.
	tokenType = "logout+jwt"
	// event is the member that makes a token a logout token.
	event = "http://schemas.openid.net/event/backchannel-logout"
	// leeway is how far the clocks of one deployment may differ.
	leeway = 10 * time.Second
	// maxAge is how old a logout token may be, and so how long its jti has to
	// be remembered: far above any delivery with retries of one token.
	maxAge = 10 * time.Minute
	// maxForm bounds the request.
	maxForm = 64 << 10
)

var errLogoutToken = errors.New("logout token does not validate")

// BackChannel handles POST /logout/backchannel.
func (h *Handler) BackChannel(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "no-store")
	raw, err := readForm(c)
	if err != nil {
		return refuse(c, err)
	}
	l, err := h.validate(raw)
	if err != nil {
		return refuse(c, err)
	}
	fresh, ended, err := h.d.Sessions.Logout(c.Request().Context(), l)
	if err != nil {
		return err
	}
	if !fresh {
		return refuse(c, fmt.Errorf("%w: it was used before", errLogoutToken))
	}
	httpserver.Annotate(c, slog.String("tenant", l.Tenant), slog.Int("sessions_ended", ended))
	return c.NoContent(http.StatusOK)
}

// refuse answers as section 2.8 says.
func refuse(c echo.Context, err error) error {
	httpserver.NoteError(c, err)
	return c.JSON(http.StatusBadRequest, map[string]string{"error": "invalid_request", "error_description": err.Error()})
}

func readForm(c echo.Context) (string, error) {
	r := c.Request()
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return "", errors.New("the body must be a form")
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return "", errors.New("the body is not a readable form")
	}
	if len(r.PostForm["logout_token"]) != 1 {
		return "", errors.New("logout_token is required, once")
	}
	return r.PostForm.Get("logout_token"), nil
}

type claims struct {
	Issuer    string                     `json:"iss"`
	Subject   string                     `json:"sub"`
	Audience  token.Audience             `json:"aud"`
	IssuedAt  int64                      `json:"iat"`
	Expires   int64                      `json:"exp"`
	ID        string                     `json:"jti"`
	SessionID string                     `json:"sid"`
	Events    map[string]json.RawMessage `json:"events"`
}

// validate checks a logout token (section 2.6) and tells what it ends.
func (h *Handler) validate(raw string) (session.Logout, error) {
	current := h.d.Catalog.Current()
	if current == nil {
		return session.Logout{}, errors.New("no catalog yet")
	}
	_, payload, err := current.Keys().Verify(raw, tokenType)
	if err != nil {
		return session.Logout{}, fmt.Errorf("%w: %w", errLogoutToken, err)
	}
	members, err := jose.Members(payload)
	if err != nil {
		return session.Logout{}, fmt.Errorf("%w: %w", errLogoutToken, err)
	}
	var t claims
	if err := json.Unmarshal(payload, &t); err != nil {
		return session.Logout{}, fmt.Errorf("%w: claims are malformed", errLogoutToken)
	}
	tenant, ok := current.TenantByIssuer(t.Issuer)
	if !ok {
		return session.Logout{}, fmt.Errorf("%w: iss is unknown", errLogoutToken)
	}
	presets := h.presetsOf(current, tenant, t.Audience)
	now := h.d.Clock.Now()
	issued := time.Unix(t.IssuedAt, 0)
	_, hasNonce := members["nonce"]
	switch {
	case len(presets) == 0:
		err = fmt.Errorf("%w: aud is no client of this edge", errLogoutToken)
	case t.IssuedAt <= 0 || issued.After(now.Add(leeway)) || issued.Before(now.Add(-maxAge)):
		err = fmt.Errorf("%w: iat is too old or in the future", errLogoutToken)
	case t.Expires <= 0 || now.Unix() >= t.Expires:
		err = fmt.Errorf("%w: exp is missing or past", errLogoutToken)
	case t.ID == "":
		err = fmt.Errorf("%w: jti is missing", errLogoutToken)
	case hasNonce:
		err = fmt.Errorf("%w: it has a nonce", errLogoutToken)
	case !isObject(t.Events[event]):
		err = fmt.Errorf("%w: events does not name a logout", errLogoutToken)
	case t.SessionID == "" && t.Subject == "":
		err = fmt.Errorf("%w: neither sid nor sub", errLogoutToken)
	}
	return session.Logout{
		Issuer: t.Issuer, TokenID: t.ID, ExpiresAt: issued.Add(maxAge + leeway), Tenant: tenant.ID,
		Presets: presets, SessionID: t.SessionID, Subject: t.Subject,
	}, err
}

// presetsOf returns the presets of this edge and tenant whose client is in the
// audience.
func (h *Handler) presetsOf(c *catalog.Catalog, t *catalog.Tenant, audience []string) []string {
	var ids []string
	for _, p := range c.Presets(h.d.EdgeID) {
		if p.Owner.ID == t.ID && slices.Contains(audience, p.Client) {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

func isObject(raw json.RawMessage) bool {
	return len(raw) > 0 && raw[0] == '{'
}
