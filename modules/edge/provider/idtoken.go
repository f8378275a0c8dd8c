package provider

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/edge/token"
	"versola/platform/jose"
	"versola/platform/secret"
)

// leeway is how far the clocks of one deployment may differ.
const leeway = 10 * time.Second

type idClaims struct {
	Issuer    string         `json:"iss"`
	Subject   string         `json:"sub"`
	Audience  token.Audience `json:"aud"`
	Azp       string         `json:"azp"`
	Expires   int64          `json:"exp"`
	IssuedAt  int64          `json:"iat"`
	AuthTime  int64          `json:"auth_time"`
	Nonce     string         `json:"nonce"`
	AtHash    string         `json:"at_hash"`
	SessionID string         `json:"sid"`
}

// idToken validates an ID token (OpenID Connect Core 1.0 sections 3.1.3.7 and
// 3.1.3.8). The nonce is the caller's to compare. Errors: [ErrAnswer].
func (c *Client) idToken(p *catalog.Preset, raw, access secret.Text) (idClaims, error) {
	current := c.catalog.Current()
	if current == nil || raw == "" {
		return idClaims{}, fmt.Errorf("%w: no ID token", ErrAnswer)
	}
	header, payload, err := current.Keys().Verify(raw.Reveal(), "")
	if err != nil {
		return idClaims{}, fmt.Errorf("%w: ID token: %w", ErrAnswer, err)
	}
	// A logout token or an access token is signed with the same keys.
	if header.Typ != "" && !strings.EqualFold(header.Typ, "JWT") {
		return idClaims{}, fmt.Errorf("%w: ID token of type %q", ErrAnswer, header.Typ)
	}
	var id idClaims
	if err := json.Unmarshal(payload, &id); err != nil {
		return idClaims{}, fmt.Errorf("%w: ID token claims: %w", ErrAnswer, err)
	}
	now := c.clock.Now()
	switch {
	case id.Issuer != p.Owner.Issuer:
		err = fmt.Errorf("%w: ID token of issuer %q", ErrAnswer, id.Issuer)
	case id.Subject == "":
		err = fmt.Errorf("%w: ID token without sub", ErrAnswer)
	case !slices.Contains(id.Audience, p.Client):
		err = fmt.Errorf("%w: ID token for another audience", ErrAnswer)
	case len(id.Audience) > 1 && id.Azp != p.Client, id.Azp != "" && id.Azp != p.Client:
		err = fmt.Errorf("%w: ID token for another authorized party", ErrAnswer)
	case now.Unix() >= id.Expires:
		err = fmt.Errorf("%w: ID token expired", ErrAnswer)
	case id.IssuedAt <= 0 || time.Unix(id.IssuedAt, 0).After(now.Add(leeway)):
		err = fmt.Errorf("%w: ID token issued in the future", ErrAnswer)
	case id.AtHash != "" && id.AtHash != accessHash(header.Alg, access.Reveal()):
		err = fmt.Errorf("%w: at_hash is of another access token", ErrAnswer)
	}
	return id, err
}

// accessHash is the left half of the access token's hash, under the hash
// function of the ID token's algorithm (section 3.1.3.6); Ed25519 signs with
// SHA-512.
func accessHash(alg jose.Algorithm, access string) string {
	if alg == jose.EdDSA {
		sum := sha512.Sum512([]byte(access))
		return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
	}
	sum := sha256.Sum256([]byte(access))
	return base64.RawURLEncoding.EncodeToString(sum[:len(sum)/2])
}
