package keys_test

import (
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/db"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/keys"
	"versola/modules/central/store"
	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var encryption = []secret.Key{{ID: "a", Value: []byte(strings.Repeat("k", secret.KeyBytes))}}

type fixture struct {
	*keys.Rotator
	db    *postgres.DB
	clock *clock.Fake
	audit *audit.Log
}

var operator = keys.Caller{Actor: audit.Actor{Kind: audit.ActorUser, ID: "security"}, Address: "192.0.2.1", RequestID: "r1"}

func newFixture(t *testing.T, every time.Duration) *fixture {
	t.Helper()
	f := &fixture{db: pgtest.Open(t, db.Central()), clock: clock.NewFake(time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC))}
	var err error
	if f.audit, err = audit.New(audit.Deps{DB: f.db, Clock: f.clock, Encryption: encryption}); err != nil {
		t.Fatal(err)
	}
	f.Rotator = f.process(t, every)
	return f
}

func (f *fixture) process(t *testing.T, every time.Duration) *keys.Rotator {
	t.Helper()
	r, err := keys.New(keys.Deps{DB: f.db, Encryption: encryption, Clock: f.clock, Log: slog.New(slog.DiscardHandler), Audit: f.audit, Policy: keys.Policy{RotateEvery: every, PublishFor: min(24*time.Hour, every/4)}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func (f *fixture) rotate(t *testing.T, publish time.Duration, algs ...string) []keys.Key {
	t.Helper()
	list, err := f.Rotate(t.Context(), operator, algs, publish)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func (f *fixture) tick(t *testing.T, d time.Duration) []string {
	t.Helper()
	f.clock.Advance(d)
	if err := f.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f.states(t)
}

func (f *fixture) states(t *testing.T) []string {
	t.Helper()
	list, err := f.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, k := range list {
		out = append(out, k.Alg+" "+k.State)
	}
	return out
}

func expect(t *testing.T, when string, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s: %s", when, diff)
	}
}

func TestRotate_PublishesThenSignsThenKeepsUntilTokensHaveExpired(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	first := f.rotate(t, 0, "ES256")[0].ID
	expect(t, "the first key", f.states(t), "ES256 active")
	second := f.rotate(t, keys.MinPublish)[1].ID
	expect(t, "published", f.tick(t, keys.MinPublish-time.Second), "ES256 active", "ES256 next")
	expect(t, "due", f.tick(t, time.Second), "ES256 active", "ES256 retiring")
	list, _ := f.List(t.Context())
	if list[0].ID != second || list[1].ID != first {
		t.Errorf("%s signs, %s retires", list[0].ID, list[1].ID)
	}
	expect(t, "a token of 24 hours is valid", f.tick(t, 24*time.Hour), "ES256 active", "ES256 retiring")
	expect(t, "none is", f.tick(t, time.Hour), "ES256 active")

	page, err := f.audit.Page(t.Context(), audit.Filter{ObjectKind: "signing_key", ObjectID: first}, 0, 10)
	if err != nil || len(page) != 4 { // published, activated, retiring, removed
		t.Errorf("%d entries, %v", len(page), err)
	}
	if r, err := f.audit.Verify(t.Context()); err != nil || r.Broken != nil {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestRotate_AgainBringsForwardAndNeverPutsOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	f.rotate(t, 0, "ES256", "EdDSA", "ES256")
	f.rotate(t, 2*time.Hour)
	list := f.rotate(t, time.Hour)
	expect(t, "one next key each", f.states(t), "ES256 active", "ES256 next", "EdDSA active", "EdDSA next")
	if due := *list[1].Due; !due.Equal(f.clock.Now().Add(time.Hour)) {
		t.Errorf("due %s", due)
	}
	if due := *f.rotate(t, 3*time.Hour)[1].Due; !due.Equal(f.clock.Now().Add(time.Hour)) {
		t.Errorf("put off to %s", due)
	}
	f.rotate(t, 0, "EdDSA")
	expect(t, "at once", f.states(t), "ES256 active", "ES256 next", "EdDSA active", "EdDSA retiring")
}

func TestRotate_RefusesWhatItCannotDo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	for _, alg := range []string{"", "none", "HS256", "ES512", "es256", "ES256\x00"} {
		if _, err := f.Rotate(t.Context(), operator, []string{"ES256", alg}, 0); !errors.Is(err, keys.ErrAlgorithm) {
			t.Errorf("%q: %v", alg, err)
		}
	}
	for _, d := range []time.Duration{-time.Hour, time.Nanosecond, keys.MinPublish - 1, keys.MaxPublish + 1} {
		if _, err := f.Rotate(t.Context(), operator, []string{"ES256"}, d); !errors.Is(err, keys.ErrPublish) {
			t.Errorf("%s: %v", d, err)
		}
	}
	expect(t, "nothing was made", f.states(t))
}

func TestRetire_RemovesAtOnceAndReplacesTheActiveKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	first := f.rotate(t, 0, "ES256")[0].ID
	next := f.rotate(t, time.Hour)[1].ID
	list, err := f.Retire(t.Context(), operator, first)
	if err != nil || len(list) != 1 || list[0].ID != next || list[0].State != catalog.KeyActive {
		t.Fatalf("the next key takes over: %+v, %v", list, err)
	}
	if list, err = f.Retire(t.Context(), operator, next); err != nil || len(list) != 1 || list[0].ID == next {
		t.Fatalf("a new key takes over: %+v, %v", list, err)
	}
	for _, kid := range []string{"", first, "x\x00", strings.Repeat("x", 1<<16)} {
		if _, err := f.Retire(t.Context(), operator, kid); !errors.Is(err, keys.ErrUnknown) || len(err.Error()) > 300 {
			t.Errorf("%.20q: %v", kid, err)
		}
	}
}

func TestTick_FollowsTheSchedule(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 90*24*time.Hour)
	f.rotate(t, 0, "ES256")
	expect(t, "day 88", f.tick(t, 88*24*time.Hour), "ES256 active")
	expect(t, "day 89", f.tick(t, 24*time.Hour), "ES256 active", "ES256 next")
	expect(t, "day 90", f.tick(t, 24*time.Hour), "ES256 active", "ES256 retiring")
	expect(t, "day 92", f.tick(t, 48*time.Hour), "ES256 active")
	expect(t, "day 179", f.tick(t, 87*24*time.Hour), "ES256 active", "ES256 next")
}

func TestTick_ManyProcessesTakeAStepOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 0)
	f.rotate(t, 0, "ES256", "RS256")
	f.rotate(t, keys.MinPublish)
	f.clock.Advance(keys.MinPublish)
	before, _ := store.Current(t.Context(), f.db)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f.process(t, 0).Tick(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	expect(t, "after", f.states(t), "ES256 active", "ES256 retiring", "RS256 active", "RS256 retiring")
	if after, _ := store.Current(t.Context(), f.db); after.Revision != before.Revision+1 {
		t.Errorf("%d revisions", after.Revision-before.Revision)
	}
}

// load gives what a process sees now.
func (f *fixture) load(t *testing.T) *catalog.Catalog {
	t.Helper()
	ring, err := secret.NewKeyring(encryption, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Load(t.Context(), f.db)
	if err != nil {
		t.Fatal(err)
	}
	c, err := (&catalog.Compiler{Open: ring.Open}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A relying party refreshes its key set as late as it may, five minutes after
// it was last fetched; a process learns of a change a second late.
func TestRotate_NoRelyingPartySeesAnUnverifiableToken(t *testing.T) {
	t.Parallel()
	f := newFixture(t, 12*time.Hour)
	f.rotate(t, 0, "ES256")
	const step, maxAge, lifetime = 20 * time.Second, 5 * time.Minute, 10 * time.Minute
	type issued struct {
		token string
		until time.Time
	}
	process, party := f.load(t), f.load(t)
	fetched, signed, checked := f.clock.Now(), map[string]bool{}, 0
	var live []issued
	for at := range int(60 * time.Hour / step) {
		f.clock.Advance(step)
		now := f.clock.Now()
		if err := f.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		if at%15 == 0 { // signs with what it knew before the step
			signer, _ := process.Signer(jose.ES256)
			token, err := signer.Sign("at+jwt", []byte(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			live = append(live, issued{token, now.Add(lifetime)})
			process = f.load(t)
		}
		if now.Sub(fetched) >= maxAge {
			party, fetched = f.load(t), now
		}
		for len(live) > 0 && live[0].until.Before(now) {
			live = live[1:]
		}
		for _, i := range live {
			header, _, err := party.Keys().Verify(i.token, "at+jwt")
			if err != nil {
				t.Fatalf("at %s: %v", now, err)
			}
			signed[header.Kid] = true
			checked++
		}
	}
	if len(signed) < 4 || checked < 1000 {
		t.Errorf("%d keys signed, %d checks", len(signed), checked)
	}
}
