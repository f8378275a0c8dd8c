package app_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"versola/modules/app/apptest"
	"versola/modules/central/keys"
	"versola/platform/clock"
)

// maxAge is how long relying parties may keep the key set.
const maxAge = 5 * time.Minute

// stubborn is a cache between a relying party and auth that gives the same key
// set out for all of its max-age: a kid that is not in it is not looked for
// again.
type stubborn struct {
	url     string
	clock   *clock.Offset
	mu      sync.Mutex
	body    []byte
	fetched time.Time
	fetches int
}

func (c *stubborn) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := c.clock.Now(); c.body == nil || now.Sub(c.fetched) >= maxAge {
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = resp.Body.Close() }()
		if got := resp.Header.Get("Cache-Control"); got != "public, max-age=300" {
			return nil, fmt.Errorf("the key set has Cache-Control %q", got)
		}
		if c.body, err = io.ReadAll(resp.Body); err != nil {
			return nil, err
		}
		c.fetched = now
		c.fetches++
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(c.body)), Request: r}, nil
}

// refresh fetches the key set again when its max-age is over, whoever needs it.
func (c *stubborn) refresh(t *testing.T) {
	t.Helper()
	resp, err := c.RoundTrip(mustGet(t, c.url))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// strict is a relying party that verifies with a key set out of a cache.
type strict struct {
	*party
	sys    *apptest.System
	cache  *stubborn
	keys   oidc.KeySet
	ids    *oidc.IDTokenVerifier
	mu     sync.Mutex
	signed map[string]int // tokens by their algorithm and key
}

func newStrict(t *testing.T, s *apptest.System, client, secret string) *strict {
	t.Helper()
	p := &strict{party: newParty(t, s, client, secret, callback, "offline_access"), sys: s, cache: &stubborn{clock: s.Clock}, signed: map[string]int{}}
	var meta struct {
		JWKS string `json:"jwks_uri"`
	}
	if err := p.provider.Claims(&meta); err != nil {
		t.Fatal(err)
	}
	p.cache.url = meta.JWKS
	p.keys = oidc.NewRemoteKeySet(oidc.ClientContext(context.WithoutCancel(t.Context()), &http.Client{Transport: p.cache}), meta.JWKS)
	p.ids = oidc.NewVerifier(s.Issuer, p.keys, &oidc.Config{ClientID: client, Now: s.Clock.Now})
	return p
}

// verify checks the tokens of an answer. One that expired because the test
// turned the clock is no fault.
func (p *strict) verify(ctx context.Context, tok *oauth2.Token) error {
	raw, _ := tok.Extra("id_token").(string)
	for _, token := range []string{raw, tok.AccessToken} {
		if token == "" {
			continue // a refresh gives no ID token
		}
		if _, err := p.keys.VerifySignature(ctx, token); err != nil {
			return fmt.Errorf("%s: %w", headerOf(token), err)
		}
		p.mu.Lock()
		p.signed[headerOf(token)]++
		p.mu.Unlock()
	}
	if raw == "" {
		return nil
	}
	var expired *oidc.TokenExpiredError
	if _, err := p.ids.Verify(ctx, raw); err != nil && !errors.As(err, &expired) {
		return fmt.Errorf("ID token: %w", err)
	}
	return nil
}

// headerOf returns the algorithm and key that a token names.
func headerOf(token string) string {
	var h struct{ Alg, Kid string }
	first, _, _ := strings.Cut(token, ".")
	raw, err := base64.RawURLEncoding.DecodeString(first)
	if err != nil || json.Unmarshal(raw, &h) != nil {
		return "malformed"
	}
	return h.Alg + " " + h.Kid
}

// refreshing refreshes one family without a pause until ctx ends.
func (p *strict) refreshing(ctx context.Context, t *testing.T, tok *oauth2.Token) {
	for ctx.Err() == nil {
		next, err := p.config.TokenSource(ctx, &oauth2.Token{RefreshToken: tok.RefreshToken}).Token()
		if err != nil {
			if ctx.Err() == nil {
				t.Errorf("refresh: %v", err)
			}
			return
		}
		if err := p.verify(ctx, next); err != nil && ctx.Err() == nil {
			t.Errorf("after a refresh: %v", err)
			return
		}
		tok = next
	}
}

func TestKeys_RotatedUnderLoadLeaveNoTokenUnverifiable(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	rp := newStrict(t, s, "demo-app", "demo-app-secret")
	signIn := func(b *apptest.Browser) *oauth2.Token {
		t.Helper()
		code, verifier := rp.authorize(t, b, "alice@example.com", "wonderland-demo-1")
		tok := rp.exchange(t, code, verifier)
		if err := rp.verify(t.Context(), tok); err != nil {
			t.Errorf("after a sign-in: %v", err)
		}
		if status := bearer(t, s.Edge+"/resources/bank/accounts", tok.AccessToken); status != http.StatusOK {
			t.Errorf("the edge answers %d to a token of a sign-in", status)
		}
		return tok
	}
	rotate := func() (list []keys.Key) {
		t.Helper()
		page := administer(t, s, admin, http.MethodPost, "/v1/keys:rotate", "application/json", `{}`)
		var answer struct{ Items []keys.Key }
		if err := json.Unmarshal([]byte(page.Body), &answer); err != nil || page.Status != http.StatusOK {
			t.Fatalf("rotate: %d %s", page.Status, page.Body)
		}
		return answer.Items
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 3 {
		tok := signIn(apptest.NewBrowser(t))
		load.Go(func() { rp.refreshing(ctx, t, tok) })
	}
	silent := apptest.NewBrowser(t)
	signIn(silent)
	for range 4 {
		rotate() // publishes the next keys
		for range 4 {
			rp.cache.refresh(t)
			signIn(silent)
			s.Clock.Advance(keys.MinPublish / 4)
		}
		rotate() // has them sign
		signIn(silent)
	}
	last := rotate()
	tok := signIn(silent)
	stop()
	load.Wait()

	perAlg := map[string]int{}
	for header := range rp.signed {
		alg, _, _ := strings.Cut(header, " ")
		perAlg[alg]++
	}
	if perAlg["ES256"] < 4 || perAlg["RS256"] < 4 {
		t.Errorf("tokens were signed by %v keys: the rotations did not come through", perAlg)
	}
	if rp.cache.fetches < 7 || rp.cache.fetches > 9 {
		t.Errorf("%d fetches of the key set in 40 minutes: it is not cached as allowed", rp.cache.fetches)
	}
	t.Logf("tokens by key: %v", rp.signed)

	// A key that is retired takes what it signed with it, at once.
	_, kid, _ := strings.Cut(headerOf(tok.AccessToken), " ")
	if page := administer(t, s, admin, http.MethodDelete, "/v1/keys/"+kid, "application/json", ""); page.Status != http.StatusOK || strings.Contains(page.Body, kid) {
		t.Fatalf("retire %s of %d keys: %d %s", kid, len(last), page.Status, page.Body)
	}
	if status := bearer(t, s.Edge+"/resources/bank/accounts", tok.AccessToken); status != http.StatusUnauthorized {
		t.Errorf("the edge answers %d to a token of a retired key", status)
	}
	fresh := newStrict(t, s, "demo-app", "demo-app-secret")
	if err := fresh.verify(t.Context(), tok); err == nil {
		t.Error("a token of a retired key verifies")
	}
	next := refresh(t, rp.party, tok.RefreshToken)
	if err := fresh.verify(t.Context(), next); err != nil {
		t.Errorf("after a key was retired: %v", err)
	}
}

// command runs a command of the built binary with the environment of a child.
func (c *child) command(input string, args ...string) string {
	c.t.Helper()
	cmd := exec.CommandContext(c.t.Context(), versola(c.t), args...) //nolint:gosec // our own binary
	cmd.Dir, cmd.Env, cmd.Stdin = c.dir, append(os.Environ(), c.env...), strings.NewReader(input)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		c.t.Fatalf("versola %s: %v\n%s%s", strings.Join(args, " "), err, &out, &errs)
	}
	return out.String()
}

// serveBank answers for the demo's API, at the address that env has for it.
func serveBank(t *testing.T, env []string) {
	t.Helper()
	i := slices.IndexFunc(env, func(v string) bool { return strings.HasPrefix(v, "VERSOLA_DEMO_UPSTREAM_LISTEN=") })
	_, address, _ := strings.Cut(env[i], "=")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	bank := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "[]") }))
	_ = bank.Listener.Close()
	bank.Listener = listener
	bank.Start()
	t.Cleanup(bank.Close)
}

// accounts calls an API with a browser's session.
func accounts(ctx context.Context, b *apptest.Browser, edge string) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, edge+"/resources/bank/accounts", nil)
	if err != nil {
		return 0, err
	}
	r.Header.Set("Sec-Fetch-Mode", "cors")
	resp, err := b.Client.Do(r)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err
}

// The edge's processes are replaced one by one, as behind a load balancer,
// while a person goes on working.
func TestEdge_KeysRotateWhileAPersonGoesOnWorking(t *testing.T) {
	p := newPair(t)
	dir := p.auth.dir
	file := func(name string) string { return filepath.Join(dir, name) }
	p.auth.command("", "edge", "keygen", "--out", file("first.json"))
	withKeys := func(env []string, name string) []string {
		return append(env, "VERSOLA_EDGE_PRIVATE_KEYS_FILE="+file(name))
	}
	p.auth.env, p.edge.env = withKeys(p.auth.env, "first.json"), withKeys(p.edge.env, "first.json")
	// The API is not the demo's, which would end with the edge's process.
	p.edge.env = append(p.edge.env, "VERSOLA_DEMO_ENABLED=false")
	serveBank(t, p.edge.env)
	p.auth.start()
	p.edge.start()
	apptest.WaitReady(t, p.authDiag)
	apptest.WaitReady(t, p.edgeDiag)
	b := p.journey(t)

	// The second process of the edge: same database, another address.
	ports := apptest.FreePorts(t, 2)
	at := func(i int) string { return fmt.Sprintf("127.0.0.1:%d", ports[i]) }
	second := newChild(t, dir, append(withKeys(p.edge.env, "both.json"), "VERSOLA_STATE_DIR="+file("second"), "VERSOLA_EDGE_LISTEN="+at(0),
		"VERSOLA_DIAGNOSTICS_EDGE="+at(1)), "serve", "--role=edge")
	secret, err := os.ReadFile(file("state/secrets.json"))
	if err == nil {
		err = errors.Join(os.MkdirAll(file("second"), 0o700), os.WriteFile(file("second/secrets.json"), secret, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}

	firstAt, secondAt := p.sys.Edge, fmt.Sprintf("http://localhost:%d", ports[0])
	ctx, stop := context.WithCancel(t.Context())
	var target atomic.Pointer[string]
	var calls atomic.Int64
	target.Store(&firstAt)
	// use sends what follows to another process, as a load balancer does before
	// the one of before stops.
	use := func(address string) {
		t.Helper()
		target.Store(&address)
		since := calls.Load()
		apptest.Eventually(t, 10*time.Second, "calls to "+address, func() bool { return t.Failed() || calls.Load() > since+2 })
	}
	var work sync.WaitGroup
	work.Go(func() {
		for ctx.Err() == nil {
			if status, err := accounts(ctx, b, *target.Load()); ctx.Err() == nil && (err != nil || status != http.StatusOK) {
				t.Errorf("call %d: %d %v", calls.Load(), status, err)
				return
			}
			calls.Add(1)
			<-time.After(10 * time.Millisecond) // leaves the machine to the processes
		}
	})
	register := func(name string) {
		t.Helper()
		public := p.auth.command("", "edge", "public", file(name))
		if err := os.WriteFile(file("edge.yaml"), []byte("kind: edge\nid: local\njwks: "+public), 0o600); err != nil {
			t.Fatal(err)
		}
		p.auth.command("", "apply", "-f", file("edge.yaml"))
	}
	p.auth.command("", "edge", "keygen", "--from", file("first.json"), "--out", file("both.json"))
	register("both.json")
	second.start()
	apptest.WaitReady(t, "http://"+at(1))
	use(secondAt)
	if code := p.edge.stop(); code != 0 {
		t.Errorf("the first process exited with %d", code)
	}
	p.auth.command("", "edge", "prune", file("both.json"), "--out", file("last.json"))
	register("last.json")
	p.edge.env = withKeys(p.edge.env, "last.json")
	p.edge.start()
	apptest.WaitReady(t, p.edgeDiag)
	use(firstAt)
	if code := second.stop(); code != 0 {
		t.Errorf("the second process exited with %d", code)
	}
	// The client's secret is encrypted to the new key alone by now, and a
	// sign-in needs it.
	p.journey(t)
	stop()
	work.Wait()
	if t.Failed() || calls.Load() < 20 {
		t.Errorf("%d calls", calls.Load())
	}
}
