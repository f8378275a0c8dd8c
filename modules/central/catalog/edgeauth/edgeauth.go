package edgeauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
)

const (
	// Type is the "typ" of an edge's token.
	Type = "versola-edge+jwt"
	// Audience is the "aud" of an edge's token: the internal listener of any
	// process of the deployment.
	Audience = "versola-internal"
	// MaxLifetime bounds a token's life: it is made for one request.
	MaxLifetime = 60 * time.Second
	// leeway is how far the clocks of two machines may be apart; with NTP it
	// is milliseconds, and half a minute forgives a machine that just woke up.
	leeway = 30 * time.Second
	// jtiBytes makes a token's id unique (96 bits); it need not be secret.
	jtiBytes = 12
)

// ErrRefused is the cause of every refusal.
var ErrRefused = errors.New("edge not authenticated")

type claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	IssuedAt int64  `json:"iat"` // seconds since 1970
	Expires  int64  `json:"exp"`
	ID       string `json:"jti"`
}

// Sign makes the token of one request; send it as "Authorization: Bearer".
func Sign(signer *jose.Signer, edgeID string, now time.Time, random io.Reader) (string, error) {
	payload, err := json.Marshal(claims{
		Issuer: edgeID, Subject: edgeID, Audience: Audience,
		IssuedAt: now.Unix(), Expires: now.Add(MaxLifetime).Unix(), ID: id.Short(random, jtiBytes),
	})
	if err != nil {
		return "", fmt.Errorf("encode edge token: %w", err)
	}
	token, err := signer.Sign(Type, payload)
	if err != nil {
		return "", fmt.Errorf("sign edge token: %w", err)
	}
	return token, nil
}

// Verify returns the id of the edge that made the request. Errors are problems
// that a handler returns as they are: 503 before the first catalog, else 401
// with [ErrRefused] as their cause.
func Verify(cat *catalog.Catalog, r *http.Request, now time.Time) (edgeID string, err error) {
	if cat == nil {
		return "", &httpserver.Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
			Detail: "the configuration is not loaded yet", Reason: "no_catalog"}
	}
	edgeID, err = verify(cat, r, now)
	if err != nil {
		return "", &httpserver.Problem{Title: http.StatusText(http.StatusUnauthorized), Status: http.StatusUnauthorized,
			Detail: "a token signed by a known edge is needed", Reason: "edge_unauthenticated",
			Cause: fmt.Errorf("%w: %w", ErrRefused, err)}
	}
	return edgeID, nil
}

func verify(cat *catalog.Catalog, r *http.Request, now time.Time) (string, error) {
	token, err := bearer(r)
	if err != nil {
		return "", err
	}
	parsed, err := jose.Parse(token)
	if err != nil {
		return "", err
	}
	c, err := parseClaims(parsed.Payload)
	if err != nil {
		return "", err
	}
	edge, ok := cat.Edge(c.Issuer)
	if !ok {
		return "", fmt.Errorf("no edge %.64q", c.Issuer)
	}
	if _, _, err := edge.SignatureKeys.Verify(token, Type); err != nil {
		return "", fmt.Errorf("edge %s: %w", edge.ID, err)
	}
	if err := c.check(now); err != nil {
		return "", fmt.Errorf("edge %s: %w", edge.ID, err)
	}
	return edge.ID, nil
}

func bearer(r *http.Request) (string, error) {
	values := r.Header.Values("Authorization")
	if len(values) != 1 {
		return "", fmt.Errorf("%d Authorization headers", len(values))
	}
	scheme, token, ok := strings.Cut(values[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return "", errors.New("no bearer token")
	}
	return token, nil
}

func parseClaims(payload []byte) (claims, error) {
	members, err := jose.Members(payload)
	if err != nil {
		return claims{}, err
	}
	var c claims
	for name, dst := range map[string]any{
		"iss": &c.Issuer, "sub": &c.Subject, "aud": &c.Audience, "iat": &c.IssuedAt, "exp": &c.Expires, "jti": &c.ID,
	} {
		raw, ok := members[name]
		if !ok {
			return claims{}, fmt.Errorf("no claim %q", name)
		}
		if err := json.Unmarshal(raw, dst); err != nil {
			return claims{}, fmt.Errorf("claim %q: %w", name, err)
		}
	}
	return c, nil
}

func (c claims) check(now time.Time) error {
	switch {
	case c.Issuer == "" || c.Subject != c.Issuer:
		return errors.New("sub is not iss")
	case c.Audience != Audience:
		return errors.New("aud is another")
	case c.ID == "":
		return errors.New("jti is empty")
	case c.IssuedAt < now.Add(-MaxLifetime-leeway).Unix():
		return errors.New("iat is too long ago") // also keeps the difference below from overflowing
	case c.Expires <= c.IssuedAt || c.Expires-c.IssuedAt > int64(MaxLifetime/time.Second):
		return fmt.Errorf("exp is not within %s of iat", MaxLifetime)
	case c.IssuedAt > now.Add(leeway).Unix():
		return errors.New("iat is in the future")
	case c.Expires <= now.Add(-leeway).Unix():
		return errors.New("expired")
	}
	return nil
}
