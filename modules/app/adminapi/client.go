package adminapi

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Bounds of talking to a deployment.
const (
	// timeout of one request: an import of people is the longest.
	timeout = 5 * time.Minute
	// maxAnswer is the most that is read of an answer, in bytes: an export of
	// the audit log is the largest.
	maxAnswer = 1 << 30
	// maxDocument is the most that is read of a token or discovery answer.
	maxDocument = 1 << 20
)

// Causes when nothing was refused on its merits.
var (
	// ErrUnreachable: the deployment does not answer as one.
	ErrUnreachable = errors.New("the deployment does not answer")
	// ErrNotAccepted: it does not know the client, or refuses its secret.
	ErrNotAccepted = errors.New("the client is not accepted")
)

// Problem is a refusal (RFC 9457).
type Problem struct {
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Reason string `json:"reason"`
	Errors []struct {
		Pointer string `json:"pointer"`
		Detail  string `json:"detail"`
	} `json:"errors"`
}

// Error writes the problem and, each on a line, what is wrong where.
func (p *Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", p.Status, Printable(p.Title))
	if p.Detail != "" {
		fmt.Fprintf(&b, ": %s", Printable(p.Detail))
	}
	if p.Reason != "" {
		fmt.Fprintf(&b, " (%s)", Printable(p.Reason))
	}
	for _, e := range p.Errors {
		b.WriteString("\n  ")
		if e.Pointer != "" { // else it is about the whole
			b.WriteString(Printable(e.Pointer) + ": ")
		}
		b.WriteString(Printable(e.Detail))
	}
	return b.String()
}

// Client calls the API of a profile. It is not safe for concurrent use.
type Client struct {
	profile *Profile
	http    *http.Client
	token   string
}

// New makes a client. Errors: a CA file without certificates.
func New(p *Profile) (*Client, error) {
	conf := &tls.Config{MinVersion: tls.VersionTLS12}
	if p.ca != nil {
		conf.RootCAs = x509.NewCertPool()
		if !conf.RootCAs.AppendCertsFromPEM(p.ca) {
			return nil, errors.New("ca_file has no certificate in PEM")
		}
	}
	return &Client{profile: p, http: &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{TLSClientConfig: conf, Proxy: http.ProxyFromEnvironment},
		// A token goes nowhere but where the profile says.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Call is a request to the API.
type Call struct {
	Method, Path string // the path is escaped, and may have a query
	Header       http.Header
	Body         []byte
}

// Answer is what the API said.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do calls the API with a token. Errors: a [*Problem] for a refusal;
// [ErrUnreachable] and [ErrNotAccepted], wrapped.
func (c *Client) Do(ctx context.Context, call Call) (*Answer, error) {
	if c.token == "" {
		if err := c.authenticate(ctx); err != nil {
			return nil, fmt.Errorf("get a token of %s: %w", c.profile.Issuer, err)
		}
	}
	r, err := http.NewRequestWithContext(ctx, call.Method, c.profile.API+call.Path, strings.NewReader(string(call.Body)))
	if err != nil {
		return nil, fmt.Errorf("make a request: %w", err)
	}
	for name, values := range call.Header {
		r.Header[name] = values
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	a, err := c.send(r, maxAnswer)
	if err != nil {
		return nil, err
	}
	if a.Status < 300 {
		return a, nil
	}
	p := &Problem{}
	media, _, _ := strings.Cut(a.Header.Get("Content-Type"), ";")
	read := media == "application/problem+json" && json.Unmarshal(a.Body, p) == nil
	// The API's own refusals have a reason; another listener knows no such path.
	if !read || a.Status == http.StatusNotFound && p.Reason == "" {
		return nil, fmt.Errorf("%w: %d %s from %s, which is no administration API: see api in the profile",
			ErrUnreachable, a.Status, http.StatusText(a.Status), c.profile.API)
	}
	p.Status = a.Status
	if a.Status == http.StatusUnauthorized {
		return nil, fmt.Errorf("%w: %w", ErrNotAccepted, p)
	}
	return nil, p
}

func (c *Client) send(r *http.Request, most int64) (*Answer, error) {
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, fmt.Errorf("%w: read the answer: %w", ErrUnreachable, err)
	}
	if int64(len(body)) > most {
		return nil, fmt.Errorf("%w: the answer is longer than %d bytes", ErrUnreachable, most)
	}
	return &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body}, nil
}

// authenticate gets a token by client credentials (RFC 6749 section 4.4).
func (c *Client) authenticate(ctx context.Context) error {
	endpoint, err := c.discover(ctx)
	if err != nil {
		return err
	}
	form := url.Values{"grant_type": {"client_credentials"}}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return fmt.Errorf("make a request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	// RFC 6749 section 2.3.1: both parts are form-encoded first.
	r.SetBasicAuth(url.QueryEscape(c.profile.ClientID), url.QueryEscape(c.profile.secret.Reveal()))
	a, err := c.send(r, maxDocument)
	if err != nil {
		return err
	}
	var answer struct {
		Token string `json:"access_token"`
		Error string `json:"error"`
	}
	err = json.Unmarshal(a.Body, &answer)
	switch {
	case err == nil && a.Status >= 400 && a.Status < 500 && answer.Error != "":
		return fmt.Errorf("%w: %d %s", ErrNotAccepted, a.Status, Printable(answer.Error))
	case err != nil || a.Status != http.StatusOK || answer.Token == "":
		return fmt.Errorf("%w: %d %s without a token", ErrUnreachable, a.Status, http.StatusText(a.Status))
	}
	c.token = answer.Token
	return nil
}

func (c *Client) discover(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.profile.Issuer+"/.well-known/openid-configuration", nil)
	if err != nil {
		return "", fmt.Errorf("make a request: %w", err)
	}
	a, err := c.send(r, maxDocument)
	if err != nil {
		return "", err
	}
	var answer struct {
		Issuer string `json:"issuer"`
		Token  string `json:"token_endpoint"`
	}
	if err := json.Unmarshal(a.Body, &answer); err != nil || a.Status != http.StatusOK {
		return "", fmt.Errorf("%w: discovery says %d", ErrUnreachable, a.Status)
	}
	if answer.Issuer != c.profile.Issuer {
		return "", fmt.Errorf("%w: discovery is that of another issuer, %s", ErrUnreachable, Printable(answer.Issuer))
	}
	if err := c.profile.checkURL(answer.Token); err != nil {
		return "", fmt.Errorf("%w: token_endpoint %w", ErrUnreachable, err)
	}
	return answer.Token, nil
}

// Printable replaces what would steer a terminal: names come from strangers.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x202a && r <= 0x202e || r >= 0x2066 && r <= 0x2069 {
			return '\ufffd'
		}
		return r
	}, text)
}
