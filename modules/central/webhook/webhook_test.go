package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel/metric/noop"

	"versola/db"
	"versola/modules/central/audit"
	"versola/modules/central/webhook"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/outbound"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

// received is one request to a receiver.
type received struct {
	id, timestamp, signature, body string
}

// receiver is another system: it verifies what it is sent, and answers as the
// test says.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []received
	status atomic.Int64
}

func newReceiver(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{}
	r.status.Store(http.StatusNoContent)
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		r.mu.Lock()
		r.got = append(r.got, received{q.Header.Get("Webhook-Id"), q.Header.Get("Webhook-Timestamp"), q.Header.Get("Webhook-Signature"), string(body)})
		r.mu.Unlock()
		if status := int(r.status.Load()); status == http.StatusFound {
			http.Redirect(w, q, "http://127.0.0.1:1/", status)
		} else {
			w.WriteHeader(status)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) all() []received {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// world is the package on a database of its own.
type world struct {
	t     *testing.T
	db    *postgres.DB
	clock *clock.Fake
	log   *audit.Log
	keys  []secret.Key
	hooks *webhook.Webhooks
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, db: pgtest.Open(t, db.Central()), clock: clock.NewFake(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))}
	text, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if w.keys, err = secret.ParseKeys([]secret.Text{text}); err != nil {
		t.Fatal(err)
	}
	if w.log, err = audit.New(audit.Deps{DB: w.db, Clock: w.clock, Encryption: w.keys}); err != nil {
		t.Fatal(err)
	}
	w.hooks = w.process(true)
	for _, tenant := range []string{"system", "demo", "other"} {
		w.exec(`INSERT INTO central.tenant (id, spec, created_at, updated_at) VALUES ($1, '{}', now(), now())`, tenant)
	}
	return w
}

// process makes another process's webhooks on the same database.
func (w *world) process(private bool) *webhook.Webhooks {
	w.t.Helper()
	hooks, err := webhook.New(webhook.Deps{DB: w.db, Clock: w.clock, Random: rand.Reader, Encryption: w.keys, Audit: w.log,
		Client: outbound.New(outbound.Options{AllowPrivate: private}), Log: slog.New(slog.DiscardHandler), Meter: noop.Meter{}})
	if err != nil {
		w.t.Fatal(err)
	}
	return hooks
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

// register makes a webhook with a secret.
func (w *world) register(tenant, name, url string, events ...string) secret.Text {
	w.t.Helper()
	w.bare(tenant, name, url, events...)
	_, plain, err := w.hooks.NewSecret(w.t.Context(), by("webhook.secret_created"), tenant, name)
	if err != nil {
		w.t.Fatal(err)
	}
	return plain
}

func (w *world) bare(tenant, name, url string, events ...string) {
	w.t.Helper()
	spec, err := json.Marshal(map[string]any{"tenant": tenant, "id": name, "url": url, "events": events})
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`INSERT INTO central.webhook (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)`, tenant, name, spec, w.clock.Now())
}

func by(action string) audit.Entry {
	return audit.Entry{Action: action, Actor: audit.Actor{Kind: audit.ActorSystem}}
}

func (w *world) happens(tenant, action string) {
	w.t.Helper()
	if err := w.log.Write(w.t.Context(), audit.Entry{Action: action, Tenant: tenant, Actor: audit.Actor{Kind: audit.ActorSystem}}); err != nil {
		w.t.Fatal(err)
	}
}

// settle dispatches and delivers what is due, until nothing is.
func (w *world) settle(hooks ...*webhook.Webhooks) {
	w.t.Helper()
	for _, h := range append(hooks, w.hooks) {
		if _, _, err := h.Dispatch(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
		if err := h.Settle(w.t.Context()); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *world) deliveries(tenant, name, state string) []webhook.Delivery {
	w.t.Helper()
	list, _, err := w.hooks.List(w.t.Context(), tenant, name, state, id.Nil, 100)
	if err != nil {
		w.t.Fatal(err)
	}
	return list
}

// verified checks a request as docs/webhooks.md tells receivers to.
func verified(r received, s secret.Text, now time.Time) bool {
	key, err := webhook.ParseSecret(s.Reveal())
	if err != nil {
		return false
	}
	seconds, err := strconv.ParseInt(r.timestamp, 10, 64)
	if err != nil || now.Sub(time.Unix(seconds, 0)).Abs() > 5*time.Minute {
		return false
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(r.id + "." + r.timestamp + "." + r.body))
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	return slices.Contains(strings.Fields(r.signature), want)
}

func TestDelivery_IsSignedAndTellsTheEvent(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	key := w.register("demo", "crm", r.URL, "client.*")
	w.happens("demo", "client.created")
	w.settle()
	got := r.all()
	if len(got) != 1 || !verified(got[0], key, w.clock.Now()) {
		t.Fatalf("received %+v", got)
	}
	var e struct {
		Type string `json:"type"`
		Seq  int64  `json:"seq"`
		Data struct {
			Action string `json:"action"`
			Tenant string `json:"tenant"`
		} `json:"data"`
	}
	if err := json.Unmarshal([]byte(got[0].body), &e); err != nil || e.Type != "client.created" || e.Data.Action != e.Type || e.Data.Tenant != "demo" || e.Seq == 0 {
		t.Errorf("told %s, %v", got[0].body, err)
	}
	changed := got[0]
	changed.body += " "
	if verified(changed, key, w.clock.Now()) || verified(got[0], key, w.clock.Now().Add(time.Hour)) {
		t.Error("a changed or replayed request verifies")
	}
	if d := w.deliveries("demo", "crm", ""); len(d) != 1 || d[0].State != webhook.StateDelivered || d[0].Attempts != 1 || *d[0].Status != http.StatusNoContent || d[0].ID.String() != got[0].id {
		t.Errorf("delivery %+v", d)
	}
}

func TestDispatch_TellsEachWebhookWhatItAskedForOfItsTenant(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.happens("demo", "client.created") // before any webhook
	w.clock.Advance(time.Second)
	for _, k := range []struct {
		tenant, name string
		events       []string
	}{
		{"demo", "exact", []string{"client.created"}}, {"demo", "prefix", []string{"client.*"}}, {"demo", "all", []string{"*"}},
		{"other", "all", []string{"*"}}, {"system", "all", []string{"sign_in.*", "client.*"}}, {"demo", "none", []string{"user.*", "client"}},
	} {
		w.bare(k.tenant, k.name, r.URL, k.events...)
	}
	w.clock.Advance(time.Second)
	for _, e := range [][2]string{{"demo", "client.created"}, {"demo", "client.updated"}, {"other", "client.created"}, {"", "signing_key.rotated"}} {
		w.happens(e[0], e[1])
	}
	if read, made, err := w.hooks.Dispatch(t.Context()); err != nil || read != 5 || made != 9 {
		t.Errorf("read %d, made %d, %v", read, made, err)
	}
	for _, k := range []struct {
		tenant, name string
		want         string
	}{
		{"demo", "exact", "client.created"}, {"demo", "prefix", "client.created client.updated"}, {"demo", "all", "client.created client.updated"},
		{"other", "all", "client.created"}, {"system", "all", "client.created client.created client.updated"}, {"demo", "none", ""},
	} {
		var events []string
		for _, d := range w.deliveries(k.tenant, k.name, "") {
			events = append(events, d.Event)
		}
		slices.Sort(events)
		if got := strings.Join(events, " "); got != k.want {
			t.Errorf("%s/%s is told %q, want %q", k.tenant, k.name, got, k.want)
		}
	}
	if read, _, err := w.hooks.Dispatch(t.Context()); err != nil || read != 0 {
		t.Errorf("a second time: read %d, %v", read, err)
	}
}

func TestDelivery_IsRetriedThenDeadThenRetriedByHand(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	key := w.register("demo", "crm", r.URL, "*")
	r.status.Store(http.StatusInternalServerError)
	w.happens("demo", "client.created")
	w.settle()
	d := w.deliveries("demo", "crm", webhook.StatePending)
	if len(d) == 0 {
		t.Fatal("nothing waits")
	}
	first := d[len(d)-1]
	if first.Attempts != 1 || *first.Status != http.StatusInternalServerError || !strings.Contains(*first.Error, "500") || !first.Next.After(w.clock.Now()) {
		t.Errorf("after one attempt: %+v", first)
	}
	w.settle()
	if n := len(r.all()); n != 1 {
		t.Errorf("tried %d times before it was time", n)
	}
	for range 40 {
		w.clock.Advance(10 * time.Hour)
		w.settle()
	}
	dead := w.deliveries("demo", "crm", webhook.StateDead)
	if len(dead) != 1 || dead[0].Attempts != 12 || dead[0].Next != nil || len(w.deliveries("demo", "crm", webhook.StatePending)) != 0 {
		t.Fatalf("dead %+v", dead)
	}
	if n := len(r.all()); n != 12 {
		t.Errorf("tried %d times", n)
	}
	r.status.Store(http.StatusOK)
	again, err := w.hooks.Retry(t.Context(), by("webhook.delivery_retried"), "demo", "crm", dead[0].ID)
	if err != nil || again.State != webhook.StatePending || again.Attempts != 0 {
		t.Fatalf("retry: %+v, %v", again, err)
	}
	w.settle()
	got := r.all()
	if last := got[len(got)-1]; last.id != got[0].id || !verified(last, key, w.clock.Now()) {
		t.Errorf("the last attempt %+v is not the first delivery's", last)
	}
	if left := w.deliveries("demo", "crm", webhook.StateDelivered); len(left) == 0 {
		t.Error("not delivered")
	}
	if err := w.hooks.Discard(t.Context(), by("webhook.delivery_discarded"), "demo", "crm", dead[0].ID); err != nil {
		t.Error(err)
	}
	if _, err := w.hooks.Get(t.Context(), "demo", "crm", dead[0].ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("after it was discarded: %v", err)
	}
	for _, tenant := range []string{"other", "demo"} {
		if _, err := w.hooks.Retry(t.Context(), by("x"), tenant, "crm", dead[0].ID); !errors.Is(err, webhook.ErrNotFound) {
			t.Errorf("retry by %s: %v", tenant, err)
		}
	}
}

func TestDelivery_FailsForWhatIsNotAnAnswer(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	w.register("demo", "redirects", r.URL, "client.created")
	w.register("demo", "gone", gone.URL+"/?token=hidden", "client.created")
	w.bare("demo", "no-secret", r.URL, "client.created")
	r.status.Store(http.StatusFound)
	w.happens("demo", "client.created")
	w.settle()
	for name, want := range map[string]string{"redirects": "302", "gone": "refused", "no-secret": "no secret"} {
		d := w.deliveries("demo", name, "")
		if len(d) != 1 || d[0].State != webhook.StatePending || d[0].Error == nil || !strings.Contains(*d[0].Error, want) || strings.Contains(*d[0].Error, "hidden") {
			t.Errorf("%s: %+v %v", name, d, d[0].Error)
		}
	}
	outside := w.process(false)
	w.clock.Advance(time.Minute)
	if err := outside.Settle(t.Context()); err != nil {
		t.Fatal(err)
	}
	if d := w.deliveries("demo", "redirects", ""); !strings.Contains(*d[0].Error, "network") {
		t.Errorf("a private address: %s", *d[0].Error)
	}
}

func TestDelivery_WaitsWhileTheWebhookIsDisabled(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.register("demo", "crm", r.URL, "*")
	w.happens("demo", "client.created")
	if _, _, err := w.hooks.Dispatch(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.exec(`UPDATE central.webhook SET spec = spec || '{"disabled":true}'`)
	w.happens("demo", "client.updated")
	w.settle()
	if n := len(r.all()); n != 0 {
		t.Errorf("a disabled webhook was told %d times", n)
	}
	w.exec(`UPDATE central.webhook SET spec = spec - 'disabled'`)
	w.settle()
	for _, got := range r.all() {
		if strings.Contains(got.body, "client.updated") {
			t.Error("told what happened while it was disabled")
		}
	}
	if len(r.all()) == 0 {
		t.Error("what waited was not delivered")
	}
}

func TestSecrets_RotateWithOverlap(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	old := w.register("demo", "crm", r.URL, "client.*")
	w.clock.Advance(time.Second)
	made, fresh, err := w.hooks.NewSecret(t.Context(), by("webhook.secret_created"), "demo", "crm")
	if err != nil || fresh == old {
		t.Fatalf("%v", err)
	}
	w.happens("demo", "client.created")
	w.settle()
	if got := r.all(); len(got) != 1 || !verified(got[0], old, w.clock.Now()) || !verified(got[0], fresh, w.clock.Now()) {
		t.Errorf("not signed with both: %+v", got)
	}
	list, err := w.hooks.Secrets(t.Context(), "demo", "crm")
	if err != nil || len(list) != 2 || list[0].ID != made.ID {
		t.Fatalf("secrets %+v, %v", list, err)
	}
	if err := w.hooks.DropSecret(t.Context(), by("webhook.secret_dropped"), "demo", "crm", list[1].ID); err != nil {
		t.Fatal(err)
	}
	w.happens("demo", "client.updated")
	w.settle()
	if got := r.all(); len(got) != 2 || verified(got[1], old, w.clock.Now()) || !verified(got[1], fresh, w.clock.Now()) {
		t.Errorf("a dropped secret still signs: %+v", got)
	}
	if err := w.hooks.DropSecret(t.Context(), by("x"), "demo", "crm", list[0].ID); !errors.Is(err, webhook.ErrLastSecret) {
		t.Errorf("dropping the last: %v", err)
	}
	if err := w.hooks.DropSecret(t.Context(), by("x"), "demo", "crm", list[1].ID); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("dropping one twice: %v", err)
	}
	for range 4 {
		if _, _, err := w.hooks.NewSecret(t.Context(), by("x"), "demo", "crm"); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := w.hooks.NewSecret(t.Context(), by("x"), "demo", "crm"); !errors.Is(err, webhook.ErrTooMany) {
		t.Errorf("a sixth secret: %v", err)
	}
	if _, _, err := w.hooks.NewSecret(t.Context(), by("x"), "other", "crm"); !errors.Is(err, webhook.ErrNotFound) {
		t.Errorf("another tenant's webhook: %v", err)
	}
	var stored string
	if err := w.db.QueryRow(t.Context(), `SELECT string_agg(encode(sealed, 'escape'), ' ') FROM central.webhook_secret`).Scan(&stored); err != nil || strings.Contains(stored, fresh.Reveal()[6:30]) {
		t.Errorf("a secret is readable in the database, %v", err)
	}
}

func TestProcesses_NeverHaveOneDeliveryAtOnce(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	w.register("demo", "crm", r.URL, "client.*")
	const events = 40
	for range events {
		w.happens("demo", "client.created")
	}
	var group sync.WaitGroup
	for range 3 {
		p := w.process(true)
		group.Go(func() {
			for range 4 {
				if _, _, err := p.Dispatch(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
				if err := p.Settle(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	w.settle()
	seen := map[string]int{}
	for _, got := range r.all() {
		seen[got.id]++
	}
	if len(seen) != events {
		t.Errorf("%d of %d events arrived", len(seen), events)
	}
	for which, n := range seen {
		if n != 1 {
			t.Errorf("delivery %s was made %d times", which, n)
		}
	}
}

func TestRun_TellsWithinSecondsAndASlowReceiverHoldsUpNobody(t *testing.T) {
	t.Parallel()
	w, r := newWorld(t), newReceiver(t)
	stuck := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-stuck }))
	defer slow.Close()
	defer close(stuck)
	w.register("demo", "slow", slow.URL, "client.*")
	w.register("demo", "quick", r.URL, "client.*")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	for range 50 {
		w.happens("demo", "client.created")
	}
	go func() { done <- w.hooks.Run(ctx) }()
	deadline := time.After(8 * time.Second) // less than the slow one's attempt takes
	for len(r.all()) < 50 {
		select {
		case <-deadline:
			t.Fatalf("%d of 50 arrived", len(r.all()))
		case <-time.After(20 * time.Millisecond):
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	// What was under way waits for its lease, and is not lost.
	if d := w.deliveries("demo", "slow", webhook.StatePending); len(d) != 50 {
		t.Errorf("%d of 50 still wait", len(d))
	}
}
