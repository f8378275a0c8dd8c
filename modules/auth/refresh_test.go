package auth

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/modules/auth/refresh"
	"versola/modules/central/catalog"
	"versola/platform/dpop"
	"versola/platform/dpop/dpoptest"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/secret"
)

func refreshing(token string) url.Values {
	return form("grant_type", "refresh_token", "refresh_token", token)
}

func (g *rig) refresh(token string) tokens {
	g.Helper()
	return g.tokensOf(g.post("/token", refreshing(token), basic("app")))
}

func (g *rig) refreshRefused(token string) {
	g.Helper()
	g.refused(g.post("/token", refreshing(token), basic("app")), 400, "invalid_grant")
}

func TestRefresh_RotatesInOneStatement(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first, _, sid := g.signInAndExchange("openid email")
	g.clock.Advance(time.Minute)
	var second tokens
	g.statements(1, func() { second = g.refresh(first.refresh) })
	if second.refresh == first.refresh || second.refresh == "" || second.id != "" {
		t.Errorf("tokens: %+v", second)
	}
	before, after := claims(t, first.access), claims(t, second.access)
	for _, name := range []string{"sub", "sid", "gid", "client_id", "scope", "auth_time", "tenant"} {
		if diff := cmp.Diff(before[name], after[name]); diff != "" {
			t.Errorf("%s changed: %s", name, diff)
		}
	}
	if after["sid"] != sid.String() || after["jti"] == before["jti"] {
		t.Errorf("claims: %v", after)
	}
}

func TestRefresh_RotationStaysHeapOnlyAndCommitsWithoutWaiting(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	for range 5 {
		got = g.refresh(got.refresh)
	}
	// Statistics of a backend arrive when it is idle for a second, or ends.
	g.db.Reset()
	deadline := time.Now().Add(15 * time.Second)
	var updates, hot int
	for time.Now().Before(deadline) && updates < 5 {
		must(t, g.db.QueryRow(context.Background(), `SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables
			WHERE schemaname = 'auth' AND relname = 'grants'`).Scan(&updates, &hot))
	}
	if updates != 5 || hot != 5 {
		t.Errorf("%d updates, %d of them heap-only", updates, hot)
	}
}

// The setting of the rotating transaction, as its own UPDATE sees it: a trigger
// notes it at the end of the statement, right before the commit.
func TestRefresh_RotationDoesNotWaitForTheDiskAndRevocationDoes(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	g.exec(`CREATE TABLE noted (setting text)`)
	g.exec(`CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS $$
		BEGIN INSERT INTO noted VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$`)
	g.exec(`CREATE CONSTRAINT TRIGGER note AFTER UPDATE ON auth.grants DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note()`)
	old := got
	for range 3 {
		got = g.refresh(got.refresh)
	}
	if n := g.count("SELECT count(*) FROM noted WHERE setting = 'off'"); n != 3 {
		t.Errorf("%d of 3 rotations commit without waiting", n)
	}
	g.exec("DELETE FROM noted")
	g.clock.Advance(time.Minute)
	g.refreshRefused(old.refresh)
	if n := g.count("SELECT count(*) FROM noted WHERE setting <> 'off'"); n != 1 {
		t.Errorf("%d durable revocations", n)
	}
	if n := g.count("SELECT count(*) FROM noted"); n != 1 {
		t.Errorf("%d updates for a reuse", n)
	}
}

func TestRefresh_ParallelUseOfOneTokenKeepsOneFamily(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	first, _, _ := g.signInAndExchange("openid")
	const uses = 50
	got := make([]tokens, uses)
	var wg sync.WaitGroup
	for i := range uses {
		wg.Go(func() {
			if a := g.post("/token", refreshing(first.refresh), basic("app")); a.StatusCode == 200 {
				got[i] = g.tokensOf(a)
			} else {
				t.Errorf("use %d: %d %s", i, a.StatusCode, a.body)
			}
		})
	}
	wg.Wait()
	for _, x := range got {
		if x.refresh != got[0].refresh {
			t.Fatal("two successors of one token")
		}
	}
	if n := g.count("SELECT count(*) FROM auth.grants WHERE revoked_at IS NULL AND generation = 2"); n != 1 {
		t.Errorf("%d living families", n)
	}
	g.refresh(got[0].refresh)
}

func TestRefresh_GraceGivesTheSameSuccessorAgain(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one, _, _ := g.signInAndExchange("openid")
	two := g.refresh(one.refresh)
	g.clock.Advance(10 * time.Second)
	var again tokens
	g.statements(1, func() { again = g.refresh(one.refresh) })
	if again.refresh != two.refresh {
		t.Error("another successor within grace")
	}
	three := g.refresh(two.refresh)
	if again = g.refresh(one.refresh); again.refresh != two.refresh {
		t.Error("the last but one gives another successor within grace")
	}
	// Older, within a burst: refused, and nobody is signed out.
	g.refresh(three.refresh)
	g.refreshRefused(one.refresh)
	g.refresh(three.refresh)
	if n := g.count("SELECT count(*) FROM auth.grants WHERE revoked_at IS NOT NULL"); n != 0 {
		t.Error("a burst revoked the family")
	}
}

func TestRefresh_ReuseOutsideGraceRevokesTheFamily(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]int{"previous": 1, "last but one": 2, "older": 4} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newRig(t)
			one, _, _ := g.signInAndExchange("openid")
			last := one
			for range steps {
				last = g.refresh(last.refresh)
			}
			g.clock.Advance(11 * time.Second)
			g.refreshRefused(one.refresh)
			g.refreshRefused(last.refresh)
			g.refused(g.get("/userinfo", nil, bearer(last.access)), 401, "invalid_token")
			if n := g.count("SELECT count(*) FROM auth.revocation WHERE kind = 'grant'"); n != 1 {
				t.Errorf("%d entries in the revocation log", n)
			}
		})
	}
}

func TestRefresh_ATokenAheadOfTheRowIsAccepted(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	one, _, _ := g.signInAndExchange("openid")
	two := g.refresh(one.refresh)
	three := g.refresh(two.refresh)
	// A crash of the database lost both rotations.
	g.exec("UPDATE auth.grants SET generation = 1")
	four := g.refresh(three.refresh)
	if again := g.refresh(three.refresh); again.refresh != four.refresh {
		t.Error("two successors after a crash")
	}
}

func TestRefresh_ForgedTokensTouchNoDatabase(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	other, err := refresh.NewFormat([]secret.Key{testKey(t, 9)})
	must(t, err)
	forged := map[string]string{
		"empty key":     other.First(g.user, id.UUID{1}),
		"truncated":     got.refresh[:len(got.refresh)-1],
		"longer":        got.refresh + "A",
		"padded":        got.refresh + "=",
		"line break":    got.refresh[:40] + "\n" + got.refresh[41:],
		"garbage":       "garbage",
		"access token":  got.access,
		"not base64url": "+" + got.refresh[1:],
	}
	for _, at := range []int{0, 20, 30, 45, 60, 90} {
		b := []byte(got.refresh)
		b[at] = 'A' + (b[at]-'A'+1)%26
		forged[fmt.Sprintf("character %d changed", at)] = string(b)
	}
	for name, token := range forged {
		g.statements(0, func() { g.refreshRefused(token) })
		if t.Failed() {
			t.Fatal(name)
		}
	}
	g.refresh(got.refresh)
}

func TestRefresh_AnotherClientsUseHarmsNothing(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	theirs := with(refreshing(got.refresh), "client_id", "native")
	g.refused(g.post("/token", theirs), 400, "invalid_grant")
	two := g.refresh(got.refresh)
	g.clock.Advance(time.Hour)
	g.refused(g.post("/token", theirs), 400, "invalid_grant")
	g.refresh(two.refresh)
}

func TestRefresh_ScopeNarrowsAndNeverWidens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid email")
	use := func(token, scope string) answer {
		return g.post("/token", with(refreshing(token), "scope", scope), basic("app"))
	}
	g.refused(use(got.refresh, "openid profile"), 400, "invalid_scope")
	g.refused(use(got.refresh, "openid  email"), 400, "invalid_scope")
	narrow := g.tokensOf(use(got.refresh, "openid"))
	if narrow.scope != "openid" || claims(t, narrow.access)["scope"] != "openid" {
		t.Errorf("narrowed scope is %q", narrow.scope)
	}
	g.refused(use(got.refresh, "openid profile"), 400, "invalid_scope") // within grace
	if full := g.refresh(narrow.refresh); full.scope != "openid email" {
		t.Errorf("the narrowing stayed: %q", full.scope)
	}
	// What the client may no longer ask for, it no longer gets.
	g.spec.Clients[0].Scopes = []string{"openid"}
	g.compile()
	if less := g.refresh(narrow.refresh); less.scope != "openid" {
		t.Errorf("a scope taken from the client is in %q", less.scope)
	}
}

func TestRefresh_IdleAndAbsoluteLifetime(t *testing.T) {
	t.Parallel()
	settings := func(s *catalog.Snapshot) {
		s.Tenants[0].Settings.RefreshIdle = catalog.Duration(time.Hour)
		s.Tenants[0].Settings.RefreshAbsolute = catalog.Duration(3 * time.Hour)
	}
	g := newRig(t, settings)
	got, _, _ := g.signInAndExchange("openid offline_access")
	g.clock.Advance(time.Hour)
	g.refreshRefused(got.refresh)
	got, _, _ = g.signInAndExchange("openid offline_access")
	for range 3 {
		g.clock.Advance(59 * time.Minute)
		got = g.refresh(got.refresh)
	}
	g.clock.Advance(3 * time.Minute)
	g.refreshRefused(got.refresh)
}

func TestRefresh_EndsWithUserAndSession(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	online, _, sid := g.signInAndExchange("openid")
	offline, _, offlineSID := g.signInAndExchange("openid offline_access")
	g.exec("UPDATE auth.users SET status = 'disabled'")
	g.refreshRefused(online.refresh)
	g.refreshRefused(offline.refresh)
	g.exec("UPDATE auth.users SET status = 'active'")
	online, offline = g.refresh(online.refresh), g.refresh(offline.refresh)
	g.exec("UPDATE auth.session SET ended_at = $1 WHERE id = ANY ($2)", g.clock.Now(), []id.UUID{sid, offlineSID})
	g.refreshRefused(online.refresh)
	// Offline access outlives the session, and its tokens no longer name it.
	offline = g.refresh(offline.refresh)
	if c := claims(t, offline.access); c["sid"] != nil || c["gid"] == nil {
		t.Errorf("claims of an offline grant: %v", c)
	}
	if a := g.get("/userinfo", nil, bearer(offline.access)); a.StatusCode != 200 {
		t.Errorf("userinfo of an offline grant: %d %s", a.StatusCode, a.body)
	}
}

func TestRefresh_PublicClientRotatesToo(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	uri := "http://127.0.0.1:49152/callback"
	code := g.code(cookie, with(authRequest(), "client_id", "native", "redirect_uri", uri))
	one := g.tokensOf(g.post("/token", with(exchange(code), "client_id", "native", "redirect_uri", uri)))
	two := g.tokensOf(g.post("/token", with(refreshing(one.refresh), "client_id", "native")))
	if one.refresh == two.refresh {
		t.Error("not rotated")
	}
}

func FuzzParseRefreshToken(f *testing.F) {
	format, err := refresh.NewFormat([]secret.Key{{ID: "a", Value: make([]byte, secret.KeyBytes)}})
	if err != nil {
		f.Fatal(err)
	}
	good := format.First(id.UUID{1}, id.UUID{2})
	f.Add(good)
	f.Add(good[:50])
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		token, ok := format.Parse(text)
		if ok && format.String(token) != text {
			t.Errorf("two spellings of one token: %q", text)
		}
	})
}

func benchmarkToken(b *testing.B, next func(*rig) url.Values, client string, change ...func(*rig, *http.Request)) {
	g := newRig(b)
	v := next(g)
	wal := func() int {
		return g.count("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")
	}
	statements, written := g.db.Statements(), wal()
	b.ReportAllocs()
	for b.Loop() {
		got := g.tokensOf(g.post("/token", v, basic(client), func(r *http.Request) {
			for _, f := range change {
				f(g, r)
			}
		}))
		if got.refresh != "" {
			v = refreshing(got.refresh)
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(wal()-written)/float64(b.N), "WAL-B/op")
	b.ReportMetric(float64(g.db.Statements()-statements-1)/float64(b.N), "statements/op")
}

func BenchmarkRefresh(b *testing.B) {
	benchmarkToken(b, func(g *rig) url.Values {
		got, _, _ := g.signInAndExchange("openid")
		return refreshing(got.refresh)
	}, "app")
}

// BenchmarkRefresh_DPoP has a proof with each refresh. One sender waits for each
// answer, so every proof costs a statement; in parallel they share statements
// (platform/replay). Making the proof, some 0.1 ms, is in it too.
func BenchmarkRefresh_DPoP(b *testing.B) {
	k := dpoptest.NewKey(b, jose.ES256)
	nonce := ""
	benchmarkToken(b, func(g *rig) url.Values {
		nonce = g.nonce(k)
		got, _, _ := g.signInAndExchange("openid")
		return refreshing(got.refresh)
	}, "app", func(g *rig, r *http.Request) {
		r.Header.Set(dpop.Header, k.Proof("POST", issuer+"/token", g.clock.Now(), dpoptest.Claims{"nonce": nonce}))
	})
}

func BenchmarkClientCredentials(b *testing.B) {
	benchmarkToken(b, func(*rig) url.Values { return form("grant_type", "client_credentials") }, "service")
}
