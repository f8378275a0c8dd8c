package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// What the demo declares.
const (
	demoClient   = "demo-app"
	demoSecret   = "demo-app-secret" //nolint:gosec // the demo's public secret
	demoRedirect = "http://localhost:9999/callback"
	demoPhone    = "+77000000001"
	demoCode     = "123456"
	demoCall     = "/resources/bank/accounts"
)

// session is a signed-in person's tokens.
type session struct {
	o       driveOptions
	client  *http.Client
	access  string
	refresh string
}

func (s *session) do(ctx context.Context, kind string) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if kind == stepRefresh {
		return s.renew(ctx)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.o.Edge+demoCall, nil)
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Authorization", "Bearer "+s.access)
	_, err = s.send(r)
	return err
}

func (s *session) renew(ctx context.Context) error {
	raw, err := s.token(ctx, url.Values{"grant_type": {"refresh_token"}, "refresh_token": {s.refresh}})
	if err != nil {
		return err
	}
	s.access, s.refresh = raw.Access, raw.Refresh
	return nil
}

type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
}

func (s *session) token(ctx context.Context, form url.Values) (tokens, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.Auth+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		return tokens{}, fmt.Errorf("make request: %w", err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth(demoClient, demoSecret)
	body, err := s.send(r)
	if err != nil {
		return tokens{}, err
	}
	var t tokens
	if err := json.Unmarshal(body, &t); err != nil || t.Access == "" || t.Refresh == "" {
		return tokens{}, errors.New("the token response lacks a token")
	}
	return t, nil
}

func (s *session) send(r *http.Request) ([]byte, error) {
	resp, err := s.client.Do(r)
	if err != nil {
		return nil, errors.New("no answer") // the text would make a kind of its own of each
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, errors.New("the answer broke off")
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return body, nil
}

// signIn makes sessions by real sign-ins, one after the other.
func signIn(ctx context.Context, o driveOptions) ([]*session, error) {
	shared := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: o.Sessions, IdleConnTimeout: time.Minute}}
	sessions := make([]*session, 0, o.Sessions)
	for range o.Sessions {
		s := &session{o: o, client: shared}
		if err := s.begin(ctx); err != nil {
			return nil, fmt.Errorf("sign in at %s: %w (is the demo running?)", o.Auth, err)
		}
		sessions = append(sessions, s)
	}
	return sessions, nil
}

// begin walks the sign-in pages as a browser would.
func (s *session) begin(ctx context.Context) error {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return fmt.Errorf("make cookie jar: %w", err)
	}
	var answer *url.URL
	browser := &http.Client{Jar: jar, Transport: s.client.Transport, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if strings.HasPrefix(r.URL.String(), demoRedirect) {
			answer = r.URL
			return http.ErrUseLastResponse
		}
		return nil
	}}
	verifier := oauth2.GenerateVerifier()
	page, err := load(ctx, browser, http.MethodGet, s.o.Auth+"/authorize?"+url.Values{
		"client_id": {demoClient}, "redirect_uri": {demoRedirect}, "response_type": {"code"}, "scope": {"openid offline_access"}, "state": {"s"},
		"code_challenge": {oauth2.S256ChallengeFromVerifier(verifier)}, "code_challenge_method": {"S256"},
	}.Encode(), nil)
	if err != nil {
		return err
	}
	for _, field := range [][2]string{{"identifier", demoPhone}, {"code", demoCode}} {
		if page, err = page.submit(ctx, browser, field[0], field[1]); err != nil {
			return err
		}
	}
	if answer == nil || answer.Query().Get("code") == "" {
		return errors.New("the sign-in did not end with a code")
	}
	t, err := s.token(ctx, url.Values{"grant_type": {"authorization_code"}, "code": {answer.Query().Get("code")}, "redirect_uri": {demoRedirect}, "code_verifier": {verifier}})
	if err != nil {
		return err
	}
	s.access, s.refresh = t.Access, t.Refresh
	return nil
}

type page struct {
	url  *url.URL
	body string
}

func load(ctx context.Context, c *http.Client, method, address string, form url.Values) (page, error) {
	r, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return page{}, fmt.Errorf("make request: %w", err)
	}
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := c.Do(r)
	if err != nil {
		return page{}, fmt.Errorf("load page: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return page{}, fmt.Errorf("read page: %w", err)
	}
	if resp.StatusCode >= http.StatusBadRequest {
		return page{}, fmt.Errorf("page %s answers %d", resp.Request.URL.Path, resp.StatusCode)
	}
	return page{resp.Request.URL, string(body)}, nil
}

var (
	formPattern   = regexp.MustCompile(`(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>`)
	hiddenPattern = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)"`)
)

// submit fills in the form that has the field.
func (p page) submit(ctx context.Context, c *http.Client, field, value string) (page, error) {
	for _, form := range formPattern.FindAllStringSubmatch(p.body, -1) {
		if !strings.Contains(form[2], `name="`+field+`"`) {
			continue
		}
		values := url.Values{field: {value}}
		for _, in := range hiddenPattern.FindAllStringSubmatch(form[2], -1) {
			values.Set(in[1], html.UnescapeString(in[2]))
		}
		action, err := p.url.Parse(html.UnescapeString(form[1]))
		if err != nil {
			return page{}, fmt.Errorf("read form: %w", err)
		}
		return load(ctx, c, http.MethodPost, action.String(), values)
	}
	return page{}, fmt.Errorf("page %s has no field %q", p.url.Path, field)
}
