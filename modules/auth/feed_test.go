package auth

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/keys"
	"versola/modules/auth/revocation"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/edgeauth"
	"versola/platform/jose"
	"versola/platform/postgres"
)

// withEdge declares edge "local" and returns what authenticates it.
func withEdge(t testing.TB) (func(*catalog.Snapshot), *jose.Signer) {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	must(t, err)
	signer, err := jose.NewSigner("", jose.ES256, key)
	must(t, err)
	jwk, err := signer.Public().JWK()
	must(t, err)
	return func(s *catalog.Snapshot) {
		s.Edges = []catalog.EdgeSpec{{ID: "local", JWKS: json.RawMessage(`{"keys":[` + string(jwk) + `]}`)}}
	}, signer
}

func (g *rig) asEdge(signer *jose.Signer) func(*http.Request) {
	g.Helper()
	raw, err := edgeauth.Sign(signer, "local", g.clock.Now(), rand.Reader)
	must(g, err)
	return bearer(raw)
}

func (g *rig) feed(query string, signer *jose.Signer) revocation.Batch {
	g.Helper()
	a := g.do(http.MethodGet, "/internal/revocations"+query, nil, g.asEdge(signer))
	var b revocation.Batch
	if a.StatusCode != http.StatusOK || json.Unmarshal(a.body, &b) != nil {
		g.Fatalf("feed %s: %d %s", query, a.StatusCode, a.body)
	}
	return b
}

const entrySQL = `INSERT INTO auth.revocation (kind, subject, at, expires_at) VALUES ('token', $1, $2, $3)`

func (g *rig) entry(name string) {
	g.Helper()
	g.exec(entrySQL, name, g.clock.Now(), g.clock.Now().Add(time.Hour))
}

func (g *rig) pull() {
	g.Helper()
	must(g, g.module.follower.Pull(context.Background()))
}

func TestFeed_EdgesOnly(t *testing.T) {
	t.Parallel()
	declare, signer := withEdge(t)
	_, stranger := withEdge(t)
	g := newRig(t, declare)
	for name, change := range map[string]func(*http.Request){
		"nobody": func(*http.Request) {}, "stranger": g.asEdge(stranger), "garbage": bearer("x.y.z"), "client": basic("app"),
	} {
		if a := g.do(http.MethodGet, "/internal/revocations", nil, change); a.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	for _, query := range []string{"?after=x", "?after=-1", "?after=1&gaps=1,,2", "?after=1&gaps=x"} {
		if a := g.do(http.MethodGet, "/internal/revocations"+query, nil, g.asEdge(signer)); a.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %d", query, a.StatusCode)
		}
	}
}

func TestFeed_GivesWhatIsNewAndFillsGaps(t *testing.T) {
	t.Parallel()
	declare, signer := withEdge(t)
	g := newRig(t, declare)
	if b := g.feed("", signer); len(b.Entries) != 0 || b.Head != 0 {
		t.Errorf("an empty log: %+v", b)
	}
	ctx := context.Background()
	// Number 1 is taken and not yet committed when number 2 is visible.
	tx, err := g.db.Begin(ctx)
	must(t, err)
	_, err = tx.Exec(ctx, entrySQL, "one", g.clock.Now(), g.clock.Now().Add(time.Hour))
	must(t, err)
	g.entry("two")
	g.pull()
	if b := g.feed("?after=0", signer); len(b.Entries) != 1 || b.Entries[0].Subject != "two" || b.Head != 2 {
		t.Fatalf("before the commit: %+v", b)
	}
	must(t, tx.Commit(ctx))
	g.pull()
	if b := g.feed("?after=2&gaps=1", signer); len(b.Entries) != 1 || b.Entries[0].Subject != "one" {
		t.Errorf("the gap: %+v", b)
	}
	if b := g.feed("", signer); len(b.Entries) != 2 {
		t.Errorf("everything: %+v", b)
	}
	g.clock.Advance(time.Hour)
	if b := g.feed("", signer); len(b.Entries) != 0 || b.Head != 2 {
		t.Errorf("expired entries: %+v", b)
	}
	// A number that was rolled back is asked for no longer than a minute.
	tx, err = g.db.BeginTx(ctx, pgx.TxOptions{})
	must(t, err)
	_, err = tx.Exec(ctx, entrySQL, "never", g.clock.Now(), g.clock.Now())
	must(t, err)
	must(t, tx.Rollback(ctx))
	g.entry("four")
	g.pull()
	if b := g.feed("?after=2", signer); len(b.Entries) != 1 || b.Head != 4 {
		t.Errorf("after a rollback: %+v", b)
	}
}

func TestFollower_ResyncFollowsALogThatLostItsEnd(t *testing.T) {
	t.Parallel()
	declare, signer := withEdge(t)
	g := newRig(t, declare)
	got, _, _ := g.signInAndExchange("openid")
	for range 3 {
		g.entry("lost")
	}
	g.pull()
	g.exec("TRUNCATE auth.revocation RESTART IDENTITY")
	g.exec("INSERT INTO auth.revocation (kind, subject, at, expires_at) VALUES ('token', $1, $2, $3)",
		claims(t, got.access)["jti"], g.clock.Now(), g.clock.Now().Add(time.Hour))
	must(t, g.module.follower.Resync(context.Background()))
	g.refused(g.get("/userinfo", nil, bearer(got.access)), 401, "invalid_token")
	if b := g.feed("", signer); len(b.Entries) != 1 || b.Head != 1 {
		t.Errorf("the feed still has %+v", b)
	}
}

func TestFeed_WaitsAndWakes(t *testing.T) {
	t.Parallel()
	declare, signer := withEdge(t)
	g := newRig(t, declare)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.module.follower.Run(ctx) }()
	defer func() {
		cancel()
		must(t, <-done)
	}()
	got := make(chan revocation.Batch, 1)
	go func() { got <- g.feed("?after=0", signer) }()
	select {
	case b := <-got:
		t.Fatalf("answered with nothing to tell: %+v", b)
	case <-time.After(100 * time.Millisecond):
	}
	g.entry("one")
	select {
	case b := <-got:
		if len(b.Entries) != 1 || b.Entries[0].Subject != "one" {
			t.Errorf("%+v", b)
		}
	case <-time.After(5 * time.Second):
		t.Error("not woken")
	}
}

func TestFeed_NotLoadedIs503(t *testing.T) {
	t.Parallel()
	declare, signer := withEdge(t)
	g := newRig(t, declare)
	fresh := revocation.NewFollower(g.db, "", g.clock, nil)
	if fresh.Ready() == nil {
		t.Error("ready before the first reading")
	}
	g.module.feed.Follower = fresh
	hurried, hangUp := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer hangUp()
	a := g.do(http.MethodGet, "/internal/revocations", nil, g.asEdge(signer), func(r *http.Request) { *r = *r.WithContext(hurried) })
	if a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
		t.Errorf("%d %s", a.StatusCode, a.body)
	}
}

func TestKeys_OneActivePerAlgorithmHoweverManyStart(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.exec("DELETE FROM central.signing_key")
	g.compile()
	for _, path := range []string{"/.well-known/jwks.json", "/.well-known/openid-configuration"} {
		if a := g.do(http.MethodGet, path, nil); a.StatusCode != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s without keys: %d %v", path, a.StatusCode, a.Header)
		}
	}
	errs := make(chan error)
	const processes = 4
	for range processes {
		go func() { errs <- keys.Ensure(context.Background(), g.db, g.keyring, g.clock.Now()) }()
	}
	for range processes {
		must(t, <-errs)
	}
	if n := g.count("SELECT count(*) FROM central.signing_key WHERE state = 'active'"); n != len(keys.Algorithms()) {
		t.Errorf("%d active keys", n)
	}
	if n := g.count("SELECT count(*) FROM central.signing_key WHERE encode(sealed, 'escape') LIKE '%PRIVATE%' OR public_jwk ? 'd'"); n != 0 {
		t.Error("a private key lies open")
	}
	g.compile()
	g.tokensOf(g.post("/token", form("grant_type", "client_credentials"), basic("service")))
	if err := g.module.Ready(); err != nil {
		t.Error(err)
	}
}

func TestSweep_DeletesWhatHasExpired(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	g.signInAndExchange("openid")
	g.entry("one")
	g.clock.Advance(365 * 24 * time.Hour)
	must(t, g.module.sweeper.Once(context.Background()))
	for _, s := range swept() {
		if n := g.count(fmt.Sprintf("SELECT count(*) FROM %s", s.Table)); n != 0 {
			t.Errorf("%d rows left in %s", n, s.Table)
		}
	}
}

func TestModule_RunsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.module.Run(ctx) }()
	g.entry("one")
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
		if g.module.follower.Head() == 1 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	if g.module.follower.Head() != 1 {
		t.Error("the log is not followed")
	}
	cancel()
	select {
	case err := <-done:
		if err != nil && !errors.Is(err, context.Canceled) && !postgres.Unavailable(err) {
			t.Error(err)
		}
	case <-time.After(5 * time.Second):
		t.Error("does not stop")
	}
}
