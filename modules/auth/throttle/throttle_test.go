package throttle_test

import (
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"versola/db"
	"versola/modules/auth/throttle"
	"versola/modules/auth/user"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var start = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func charge(t *testing.T, d *postgres.DB, key string, rules throttle.Rules, at time.Duration) (bool, time.Duration) {
	t.Helper()
	var allowed bool
	var retry *time.Time
	err := d.QueryRow(t.Context(), "SELECT allowed, retry_at FROM auth.charge($1, $2, $3)", []byte(key), string(rules), start.Add(at)).Scan(&allowed, &retry)
	if err != nil {
		t.Fatal(err)
	}
	if retry == nil {
		return allowed, 0
	}
	return allowed, retry.Sub(start)
}

func TestCharge_Sequences(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	type attempt struct {
		at      time.Duration
		allowed bool
		retry   time.Duration // since the start
	}
	const s, m = time.Second, time.Minute
	for _, k := range []struct {
		name     string
		rules    throttle.Rules
		attempts []attempt
	}{
		{"codes are requested twice a minute", throttle.OTPRequest, []attempt{{0, true, 0}, {s, true, 0}, {2 * s, false, 30*m + 2*s}}},
		{"a minute later there is room", throttle.OTPRequest, []attempt{{0, true, 0}, {s, true, 0}, {60 * s, true, 0}, {61 * s, true, 0}, {62 * s, false, 30*m + 62*s}}},
		{"codes are requested five times an hour", throttle.OTPRequest, []attempt{{0, true, 0}, {2 * m, true, 0}, {4 * m, true, 0}, {6 * m, true, 0}, {8 * m, true, 0}, {10 * m, false, 40 * m}, {41 * m, false, 71 * m}, {72 * m, true, 0}}},
		{"three guesses in two minutes", throttle.OTPCheck, []attempt{{0, true, 0}, {s, true, 0}, {2 * s, true, 0}, {3 * s, false, 30*m + 3*s}}},
		{"a refused attempt does not prolong the rest", throttle.OTPCheck, []attempt{{0, true, 0}, {0, true, 0}, {0, true, 0}, {s, false, 30*m + s}, {20 * m, false, 30*m + s}, {30 * m, false, 30*m + s}, {31 * m, true, 0}, {31 * m, true, 0}, {32 * m, false, 62 * m}}},
		{"five passwords in fifteen minutes", throttle.Password, []attempt{{0, true, 0}, {0, true, 0}, {0, true, 0}, {0, true, 0}, {0, true, 0}, {m, false, 31 * m}, {32 * m, true, 0}}},
		{"nothing to count", throttle.None, []attempt{{0, true, 0}, {0, true, 0}}},
	} {
		for i, a := range k.attempts {
			if ok, retry := charge(t, d, k.name, k.rules, a.at); ok != a.allowed || retry != a.retry {
				t.Errorf("%s: attempt %d at %s: %v, retry at %s; want %v, %s", k.name, i+1, a.at, ok, retry, a.allowed, a.retry)
			}
		}
	}
}

func TestCharge_CodesAndPasswordsCountTogether(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	allowed := 0
	for i := range 60 {
		at := time.Duration(i) * 59 * time.Second
		for _, rules := range []throttle.Rules{throttle.OTPCheck, throttle.Password} {
			if ok, _ := charge(t, d, "both", rules, at); ok {
				allowed++
			}
		}
	}
	if allowed > 10 {
		t.Errorf("%d guesses in an hour", allowed)
	}
	if ok, _ := charge(t, d, "both", throttle.OTPRequest, 0); !ok {
		t.Error("asking for a code is counted as a guess")
	}
}

func TestCharge_ParallelAttemptsNeverExceedTheLimit(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	var allowed atomic.Int32
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			if ok, _ := charge(t, d, "parallel", throttle.Password, 0); ok {
				allowed.Add(1)
			}
		})
	}
	wg.Wait()
	if allowed.Load() != 5 {
		t.Errorf("%d attempts of 100 were allowed, want 5", allowed.Load())
	}
}

func TestCharge_RowStaysSmallAndExpires(t *testing.T) {
	t.Parallel()
	d := pgtest.Open(t, db.Auth())
	for i := range 500 {
		charge(t, d, "long", throttle.Password, time.Duration(i)*7*time.Minute)
		charge(t, d, "long", throttle.OTPRequest, time.Duration(i)*7*time.Minute)
	}
	var size int
	var left time.Duration
	var expires time.Time
	if err := d.QueryRow(t.Context(), "SELECT length(counts::text), expires_at FROM auth.throttle").Scan(&size, &expires); err != nil {
		t.Fatal(err)
	}
	if left = expires.Sub(start.Add(499 * 7 * time.Minute)); size > 1000 || left <= 0 || left > 61*time.Minute {
		t.Errorf("%d bytes, expires in %s", size, left)
	}
}

func TestKeys_TellAccountsApart(t *testing.T) {
	t.Parallel()
	text, _ := secret.GenerateKey(zeros{})
	keys, err := secret.ParseKeys([]secret.Text{text})
	if err != nil {
		t.Fatal(err)
	}
	k, err := throttle.NewKeys(keys)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]string{}
	for _, a := range []struct {
		directory string
		who       user.Identifier
	}{
		{"demo", user.Identifier{Kind: user.KindPhone, Value: "+77000000001"}},
		{"other", user.Identifier{Kind: user.KindPhone, Value: "+77000000001"}},
		{"demo", user.Identifier{Kind: user.KindEmail, Value: "a@b.c"}},
		{"demoe", user.Identifier{Kind: "mail", Value: "a@b.c"}},
		{"demo", user.Identifier{Kind: user.KindUsername, Value: "a@b.c"}},
	} {
		key := string(k.Account(a.directory, a.who))
		if other, ok := seen[key]; ok {
			t.Errorf("%v and %s have one key", a, other)
		}
		seen[key] = a.directory
	}
	upper := k.Account("demo", user.Identifier{Kind: user.KindEmail, Value: "A@B.C"})
	if _, ok := seen[string(upper)]; !ok {
		t.Error("upper case makes another account")
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }
