package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/secret"
)

const (
	// callTimeout bounds a call to auth's token endpoint. It answers in
	// milliseconds; under a storm it queues for a second or two.
	callTimeout = 5 * time.Second
	// maxAnswer bounds a token response: three tokens of a few KiB.
	maxAnswer = 256 << 10
)

// Errors of a call.
var (
	// ErrGrant: auth says that the code or refresh token is no good
	// (invalid_grant). Final.
	ErrGrant = errors.New("grant is not valid any more")
	// ErrUnavailable: no usable answer. The same call may work later.
	ErrUnavailable = errors.New("auth is unavailable")
	// ErrAnswer: auth answered, but what it answered does not hold.
	ErrAnswer = errors.New("answer of auth does not validate")
)

// Tokens are what auth issued for a session.
type Tokens struct {
	Access  secret.Text
	Refresh secret.Text // empty: the session ends with the access token
	ID      secret.Text // the newest ID token
	Claims  *token.Claims
	Session string // the ID token's sid
}

// Client calls auth.
type Client struct {
	http     *http.Client
	base     string // scheme and host of back-channel calls; "": the issuer's own
	catalog  *catalog.Holder
	verifier *token.Verifier
	clock    clock.Clock
}

// Options configure a [Client].
type Options struct {
	Transport http.RoundTripper
	AuthURL   string // where auth is reached from here, if not at its issuer
	Catalog   *catalog.Holder
	Verifier  *token.Verifier
	Clock     clock.Clock
}

// New makes a client. Errors: an AuthURL that is no http or https URL.
func New(o Options) (*Client, error) {
	base := strings.TrimSuffix(o.AuthURL, "/")
	if base != "" {
		u, err := url.Parse(base)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, fmt.Errorf("auth url %q: not an http or https URL", o.AuthURL)
		}
	}
	return &Client{
		http: &http.Client{Transport: o.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // a token endpoint does not redirect; credentials must not follow
		}},
		base: base, catalog: o.Catalog, verifier: o.Verifier, clock: o.Clock,
	}, nil
}

// AuthorizeURL returns the tenant's authorization endpoint, for the browser.
func AuthorizeURL(t *catalog.Tenant) string { return t.Issuer + "/authorize" }

// LogoutURL returns the tenant's end session endpoint, for the browser.
func LogoutURL(t *catalog.Tenant) string { return t.Issuer + "/logout" }

// tokenURL returns the token endpoint as it is reached from here.
func (c *Client) tokenURL(t *catalog.Tenant) (string, error) {
	if c.base == "" {
		return t.Issuer + "/token", nil
	}
	issuer, err := url.Parse(t.Issuer)
	if err != nil {
		return "", fmt.Errorf("read issuer: %w", err)
	}
	return c.base + strings.TrimSuffix(issuer.EscapedPath(), "/") + "/token", nil
}

// Code is an authorization code and what it was asked for with.
type Code struct {
	Code     string
	Verifier secret.Text // PKCE
	Nonce    string
	MaxAge   *int64 // seconds, when the login asked for it
}

// Redeem exchanges an authorization code.
// Errors: [ErrGrant], [ErrUnavailable], [ErrAnswer].
func (c *Client) Redeem(ctx context.Context, p *catalog.Preset, code Code) (Tokens, error) {
	answer, err := c.call(ctx, p, url.Values{
		"grant_type": {catalog.GrantCode}, "code": {code.Code}, "redirect_uri": {p.RedirectURI}, "code_verifier": {code.Verifier.Reveal()},
	})
	if err != nil {
		return Tokens{}, err
	}
	id, err := c.idToken(p, answer.ID, answer.Access)
	if err != nil {
		return Tokens{}, err
	}
	switch {
	case !secret.Equal([]byte(id.Nonce), []byte(code.Nonce)):
		return Tokens{}, fmt.Errorf("%w: nonce of the ID token differs", ErrAnswer)
	case code.MaxAge != nil && (id.AuthTime == 0 || c.clock.Now().Unix()-id.AuthTime > *code.MaxAge+int64(leeway.Seconds())):
		return Tokens{}, fmt.Errorf("%w: signed in longer ago than max_age", ErrAnswer)
	}
	return c.tokens(p, answer, id.Subject, id.SessionID)
}

// Refresh exchanges a refresh token; the new tokens must be the same
// subject's. An answer without a new refresh or ID token keeps the old one.
// Errors: [ErrGrant], [ErrUnavailable], [ErrAnswer].
func (c *Client) Refresh(ctx context.Context, p *catalog.Preset, old Tokens, subject string) (Tokens, error) {
	if old.Refresh.Empty() {
		return Tokens{}, fmt.Errorf("%w: no refresh token", ErrGrant)
	}
	answer, err := c.call(ctx, p, url.Values{"grant_type": {catalog.GrantRefreshToken}, "refresh_token": {old.Refresh.Reveal()}})
	if err != nil {
		return Tokens{}, err
	}
	session := old.Session
	if answer.ID != "" {
		id, err := c.idToken(p, answer.ID, answer.Access)
		if err != nil {
			return Tokens{}, err
		}
		if id.Subject != subject {
			return Tokens{}, fmt.Errorf("%w: ID token of another subject", ErrAnswer)
		}
	} else {
		answer.ID = old.ID
	}
	if answer.Refresh == "" {
		answer.Refresh = old.Refresh
	}
	return c.tokens(p, answer, subject, session)
}

// tokens checks the access token against what the ID token said.
func (c *Client) tokens(p *catalog.Preset, a answer, subject, session string) (Tokens, error) {
	claims, err := c.verifier.Read(a.Access.Reveal())
	if err != nil {
		return Tokens{}, fmt.Errorf("%w: %w", ErrAnswer, err)
	}
	if claims.Subject != subject || claims.Tenant != p.Owner.ID || claims.ClientID != p.Client {
		return Tokens{}, fmt.Errorf("%w: access token of another subject, tenant or client", ErrAnswer)
	}
	if session == "" {
		session = claims.SessionID
	}
	return Tokens{Access: a.Access, Refresh: a.Refresh, ID: a.ID, Claims: claims, Session: session}, nil
}

type answer struct {
	Access, Refresh, ID secret.Text
}

// call posts to the token endpoint with the client's authentication.
func (c *Client) call(ctx context.Context, p *catalog.Preset, form url.Values) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	r, err := c.request(ctx, p, form)
	if err != nil {
		return answer{}, err
	}
	res, err := c.http.Do(r) //nolint:bodyclose // closed below
	if err != nil {
		return answer{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return answer{}, fmt.Errorf("%w: read answer: %w", ErrUnavailable, err)
	}
	if len(body) > maxAnswer {
		return answer{}, fmt.Errorf("%w: answer over %d bytes", ErrUnavailable, maxAnswer)
	}
	return read(res, body)
}

func (c *Client) request(ctx context.Context, p *catalog.Preset, form url.Values) (*http.Request, error) {
	endpoint, err := c.tokenURL(p.Owner)
	if err != nil {
		return nil, err
	}
	method := p.Of.AuthMethod
	if method != catalog.AuthNone && len(p.Of.Secrets) == 0 {
		return nil, fmt.Errorf("%w: this edge has no secret of client %s", ErrUnavailable, p.Client)
	}
	switch method {
	case catalog.AuthNone:
		form.Set("client_id", p.Client)
	case catalog.AuthPost:
		form.Set("client_id", p.Client)
		form.Set("client_secret", p.Of.Secrets[0].Reveal())
	case catalog.AuthBasic, "":
	default:
		return nil, fmt.Errorf("%w: client %s authenticates by %s", ErrUnavailable, p.Client, method)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, fmt.Errorf("make token request: %w", err)
	}
	if method == catalog.AuthBasic || method == "" {
		// Both halves are form-encoded first (RFC 6749 section 2.3.1).
		r.SetBasicAuth(url.QueryEscape(p.Client), url.QueryEscape(p.Of.Secrets[0].Reveal()))
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "application/json")
	return r, nil
}

// read turns an answer into tokens or an error. Whatever is not a clear
// "this grant is over" is passing: a session must not end because a proxy in
// between answered 400 or a secret was just rotated.
func read(res *http.Response, body []byte) (answer, error) {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	var w struct {
		Access    string `json:"access_token"`
		TokenType string `json:"token_type"`
		Refresh   string `json:"refresh_token"`
		ID        string `json:"id_token"`
		Error     string `json:"error"`
	}
	if kind == "application/json" {
		if err := json.Unmarshal(body, &w); err != nil {
			return answer{}, fmt.Errorf("%w: status %d: answer is not JSON", ErrUnavailable, res.StatusCode)
		}
	}
	switch {
	case res.StatusCode == http.StatusOK && w.Access != "" && strings.EqualFold(w.TokenType, "Bearer"):
		return answer{Access: secret.Text(w.Access), Refresh: secret.Text(w.Refresh), ID: secret.Text(w.ID)}, nil
	case res.StatusCode == http.StatusOK:
		return answer{}, fmt.Errorf("%w: no bearer token in it", ErrAnswer)
	case res.StatusCode == http.StatusBadRequest && w.Error == "invalid_grant":
		return answer{}, ErrGrant
	}
	return answer{}, fmt.Errorf("%w: status %d, error %q", ErrUnavailable, res.StatusCode, w.Error)
}
