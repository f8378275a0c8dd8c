package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"versola/modules/app/apptest"
)

const callback = "http://localhost:9999/callback"

// party is a relying party made of the libraries that Go programs use.
type party struct {
	provider *oidc.Provider
	config   oauth2.Config
	verifier *oidc.IDTokenVerifier
}

func newParty(t *testing.T, s *apptest.System, client, secret, redirect string, scopes ...string) *party {
	t.Helper()
	provider, err := oidc.NewProvider(t.Context(), s.Issuer)
	if err != nil {
		t.Fatal(err)
	}
	return &party{
		provider: provider,
		config: oauth2.Config{ClientID: client, ClientSecret: secret, RedirectURL: redirect, Endpoint: provider.Endpoint(),
			Scopes: append([]string{oidc.ScopeOpenID}, scopes...)},
		verifier: provider.Verifier(&oidc.Config{ClientID: client}),
	}
}

// authorize signs a person in for the party and returns the code and the PKCE
// verifier.
func (p *party) authorize(t *testing.T, b *apptest.Browser, email, password string, opts ...oauth2.AuthCodeOption) (code, verifier string) {
	t.Helper()
	verifier = oauth2.GenerateVerifier()
	b.StopAt = p.config.RedirectURL
	page := b.Open(p.config.AuthCodeURL("the-state", append(opts, oauth2.S256ChallengeOption(verifier))...))
	if page.Location == "" {
		b.Submit(map[string]string{"identifier": email})
		page = b.Submit(map[string]string{"password": password})
	}
	q := locationQuery(t, page)
	if q.Get("state") != "the-state" || q.Get("iss") == "" {
		t.Fatalf("the answer lacks state or iss: %s", page.Location)
	}
	return q.Get("code"), verifier
}

func locationQuery(t *testing.T, page *apptest.Page) url.Values {
	t.Helper()
	u, err := url.Parse(page.Location)
	if err != nil || page.Location == "" {
		t.Fatalf("no redirect to the client: %d at %s, location %q\n%s", page.Status, page.URL, page.Location, page.Body)
	}
	return u.Query()
}

func (p *party) exchange(t *testing.T, code, verifier string) *oauth2.Token {
	t.Helper()
	tok, err := p.config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestRelyingParty_CodeFlowWithRealLibraries(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "profile", "email", "phone", "address", "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1", oidc.Nonce("the-nonce"))
	tok := rp.exchange(t, code, verifier)
	raw, _ := tok.Extra("id_token").(string)
	id, err := rp.verifier.Verify(t.Context(), raw)
	if err != nil {
		t.Fatal(err)
	}
	if id.Nonce != "the-nonce" {
		t.Errorf("nonce is %q", id.Nonce)
	}
	if err := id.VerifyAccessToken(tok.AccessToken); err != nil {
		t.Errorf("at_hash: %v", err)
	}
	info, err := rp.provider.UserInfo(t.Context(), rp.config.TokenSource(t.Context(), tok))
	if err != nil {
		t.Fatal(err)
	}
	if info.Subject != id.Subject || info.Email != "alice@example.com" || !info.EmailVerified {
		t.Errorf("userinfo is %+v", info)
	}
	refreshed := refresh(t, rp, tok.RefreshToken)
	if refreshed.RefreshToken == tok.RefreshToken || refreshed.AccessToken == tok.AccessToken {
		t.Error("the refresh did not rotate")
	}
	logout(t, rp, raw)
	if _, err := rp.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: refreshed.RefreshToken}).Token(); err != nil {
		t.Logf("a refresh after sign-out ends with %v", err)
	} else {
		t.Error("a refresh token outlived the session")
	}
}

func refresh(t *testing.T, rp *party, token string) *oauth2.Token {
	t.Helper()
	tok, err := rp.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: token}).Token()
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

// logout ends the session by RP-initiated logout, from a browser that has no
// cookies: the ID token says whose session it is.
func logout(t *testing.T, rp *party, idToken string) {
	t.Helper()
	var meta struct {
		EndSession string `json:"end_session_endpoint"`
	}
	if err := rp.provider.Claims(&meta); err != nil || meta.EndSession == "" {
		t.Fatalf("no end_session_endpoint: %v", err)
	}
	b := apptest.NewBrowser(t)
	page := b.Open(meta.EndSession + "?" + url.Values{"id_token_hint": {idToken}}.Encode())
	if page.Status != http.StatusOK {
		t.Fatalf("logout: %d %s", page.Status, page.Body)
	}
	if strings.Contains(page.Body, "<form") {
		b.Submit(map[string]string{})
	}
}

func TestRelyingParty_PublicNativeClientOnAnyLoopbackPort(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-native", "", "http://127.0.0.1:53117/callback")
	rp.config.Endpoint.AuthStyle = oauth2.AuthStyleInParams
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	if _, err := rp.verifier.Verify(t.Context(), rp.exchange(t, code, verifier).Extra("id_token").(string)); err != nil { //nolint:errcheck,forcetypeassert // a test
		t.Error(err)
	}
}

func TestRelyingParty_ServiceClientCallsTheAPI(t *testing.T) {
	s := apptest.Start(t, nil)
	cc := clientcredentials.Config{ClientID: "demo-service", ClientSecret: "demo-service-secret", TokenURL: s.Issuer + "/token"}
	resp, err := cc.Client(t.Context()).Get(s.Edge + "/resources/bank/accounts") //nolint:noctx // the library's client
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		t.Errorf("accounts for a service: %d %s", resp.StatusCode, body)
	}
}

func TestRefresh_FiftyInParallelKeepOneFamily(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tok := rp.exchange(t, code, verifier)
	var mu sync.Mutex
	successors := map[string]int{}
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			next, err := rp.config.TokenSource(context.Background(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
			if err != nil {
				t.Errorf("a parallel refresh: %v", err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			successors[next.RefreshToken]++
		})
	}
	wg.Wait()
	if len(successors) != 1 {
		t.Fatalf("%d families came out of one token", len(successors))
	}
	for next := range successors {
		refresh(t, rp, next)
	}
}

func TestCode_SecondUseKillsTheFirstsTokens(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tok := rp.exchange(t, code, verifier)
	accounts := s.Edge + "/resources/bank/accounts"
	if status := bearer(t, accounts, tok.AccessToken); status != http.StatusOK {
		t.Fatalf("the first token: %d", status)
	}
	_, err := rp.config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) || refused.ErrorCode != "invalid_grant" {
		t.Fatalf("the second use: %v", err)
	}
	if _, err := rp.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token(); err == nil {
		t.Error("the first's refresh token lives on")
	}
	if status := bearer(t, s.Issuer+"/userinfo", tok.AccessToken); status != http.StatusUnauthorized {
		t.Errorf("the first's access token at userinfo: %d", status)
	}
	apptest.Eventually(t, time.Second, "the edge to refuse the first's access token", func() bool {
		return bearer(t, accounts, tok.AccessToken) == http.StatusUnauthorized
	})
}

func bearer(t *testing.T, address, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return apptest.NewBrowser(t).Do(r).Status
}

func TestTokens_RevokedByTheClientStopAtTheEdge(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tok := rp.exchange(t, code, verifier)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Issuer+"/revoke", strings.NewReader(url.Values{"token": {tok.AccessToken}}.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.SetBasicAuth("demo-app", "demo-app-secret")
	if p := apptest.NewBrowser(t).Do(r); p.Status != http.StatusOK {
		t.Fatalf("revoke: %d %s", p.Status, p.Body)
	}
	apptest.Eventually(t, time.Second, "the edge to refuse the revoked token", func() bool {
		return bearer(t, s.Edge+"/resources/bank/accounts", tok.AccessToken) == http.StatusUnauthorized
	})
}

func TestAuthorize_WrongInput(t *testing.T) {
	s := apptest.Start(t, nil)
	good := func() url.Values {
		return url.Values{"client_id": {"demo-native"}, "redirect_uri": {"http://127.0.0.1:9/callback"}, "response_type": {"code"}, "scope": {"openid"},
			"state": {"st"}, "code_challenge": {"E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"}, "code_challenge_method": {"S256"}}
	}
	tests := map[string]struct {
		change func(url.Values)
		page   bool   // an error page, never a redirect
		code   string // otherwise the error at the client
	}{
		"unknown client":       {func(v url.Values) { v.Set("client_id", "nobody") }, true, ""},
		"no client":            {func(v url.Values) { v.Del("client_id") }, true, ""},
		"doubled client":       {func(v url.Values) { v.Add("client_id", "demo-native") }, true, ""},
		"foreign redirect":     {func(v url.Values) { v.Set("redirect_uri", "https://evil.example/callback") }, true, ""},
		"redirect with suffix": {func(v url.Values) { v.Set("redirect_uri", "http://127.0.0.1/callback/x") }, true, ""},
		"redirect userinfo":    {func(v url.Values) { v.Set("redirect_uri", "http://127.0.0.1:9@evil.example/callback") }, true, ""},
		"no redirect":          {func(v url.Values) { v.Del("redirect_uri") }, true, ""},
		"doubled redirect":     {func(v url.Values) { v.Add("redirect_uri", "http://127.0.0.1:9/callback") }, true, ""},
		"doubled scope":        {func(v url.Values) { v.Add("scope", "openid") }, false, "invalid_request"},
		"missing PKCE":         {func(v url.Values) { v.Del("code_challenge"); v.Del("code_challenge_method") }, false, "invalid_request"},
		"plain PKCE":           {func(v url.Values) { v.Set("code_challenge_method", "plain") }, false, "invalid_request"},
		"token response":       {func(v url.Values) { v.Set("response_type", "token") }, false, "unsupported_response_type"},
		"foreign scope":        {func(v url.Values) { v.Set("scope", "openid root") }, false, "invalid_scope"},
		"request object":       {func(v url.Values) { v.Set("request", "eyJ") }, false, "request_not_supported"},
		"prompt none":          {func(v url.Values) { v.Set("prompt", "none") }, false, "login_required"},
		"prompt none and more": {func(v url.Values) { v.Set("prompt", "none login") }, false, "invalid_request"},
		"garbage max_age":      {func(v url.Values) { v.Set("max_age", "soon") }, false, "invalid_request"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			v := good()
			tc.change(v)
			b := apptest.NewBrowser(t)
			b.StopAt = "http://127.0.0.1:9/"
			page := b.Open(s.Issuer + "/authorize?" + v.Encode())
			if tc.page {
				if page.Status != http.StatusBadRequest || page.Location != "" {
					t.Errorf("got %d, location %q; want an error page", page.Status, page.Location)
				}
				return
			}
			q := locationQuery(t, page)
			if q.Get("error") != tc.code || q.Get("state") != "st" || q.Get("iss") != s.Issuer {
				t.Errorf("got %v, want %s", q, tc.code)
			}
		})
	}
}

func TestToken_WrongInput(t *testing.T) {
	s := apptest.Start(t, nil)
	form := func(v url.Values) string { return v.Encode() }
	tests := map[string]struct {
		body        string
		contentType string
		user, pass  string
		status      int
		code        string
	}{
		"bad code":      {form(url.Values{"grant_type": {"authorization_code"}, "code": {"nope"}, "redirect_uri": {callback}, "code_verifier": {strings.Repeat("v", 43)}}), "", "demo-app", "demo-app-secret", 400, "invalid_grant"},
		"wrong secret":  {form(url.Values{"grant_type": {"client_credentials"}}), "", "demo-service", "wrong", 401, "invalid_client"},
		"no such grant": {form(url.Values{"grant_type": {"password"}}), "", "demo-app", "demo-app-secret", 400, "unsupported_grant_type"},
		"grant not its": {form(url.Values{"grant_type": {"client_credentials"}}), "", "demo-app", "demo-app-secret", 400, "unauthorized_client"},
		"doubled grant": {"grant_type=client_credentials&grant_type=client_credentials", "", "demo-service", "demo-service-secret", 400, "invalid_request"},
		"no grant":      {"", "", "demo-service", "demo-service-secret", 400, "invalid_request"},
		"json body":     {`{"grant_type":"client_credentials"}`, "application/json", "demo-service", "demo-service-secret", 400, "invalid_request"},
		"garbage token": {form(url.Values{"grant_type": {"refresh_token"}, "refresh_token": {"garbage"}}), "", "demo-app", "demo-app-secret", 400, "invalid_grant"},
		"over the limit": {"grant_type=client_credentials&x=" + strings.Repeat("x", 400<<10), "", "demo-service", "demo-service-secret", 413,
			"invalid_request"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Issuer+"/token", strings.NewReader(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			if tc.contentType == "" {
				tc.contentType = "application/x-www-form-urlencoded"
			}
			r.Header.Set("Content-Type", tc.contentType)
			r.SetBasicAuth(tc.user, tc.pass)
			page := apptest.NewBrowser(t).Do(r)
			var answer struct {
				Error string `json:"error"`
			}
			if err := json.Unmarshal([]byte(page.Body), &answer); err != nil {
				t.Fatalf("not JSON: %q", page.Body)
			}
			if page.Status != tc.status || answer.Error != tc.code {
				t.Errorf("got %d %s, want %d %s", page.Status, page.Body, tc.status, tc.code)
			}
			if page.Header.Get("Cache-Control") != "no-store" {
				t.Error("the refusal may be cached")
			}
		})
	}
}
