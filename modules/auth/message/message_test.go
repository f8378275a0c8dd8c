package message_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/db"
	"versola/modules/auth/message"
	"versola/modules/auth/user"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

type sender struct {
	mu   sync.Mutex
	sent []message.Message
	err  error
	told chan struct{}
}

func (s *sender) Send(_ context.Context, m message.Message) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sent = append(s.sent, m)
	if s.told != nil {
		s.told <- struct{}{}
	}
	return s.err
}

type rig struct {
	t      *testing.T
	db     *postgres.DB
	clock  *clock.Fake
	keys   []secret.Key
	sender *sender
}

func newRig(t *testing.T) *rig {
	t.Helper()
	text, err := secret.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := secret.ParseKeys([]secret.Text{text})
	if err != nil {
		t.Fatal(err)
	}
	return &rig{t, pgtest.Open(t, db.Auth()), clock.NewFake(time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)), keys, &sender{}}
}

func (r *rig) outbox() *message.Outbox {
	r.t.Helper()
	o, err := message.NewOutbox(r.db, r.clock, r.keys, r.sender, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	return o
}

func (r *rig) queue(o *message.Outbox, m message.Message) id.UUID {
	r.t.Helper()
	messageID := id.NewUUID(r.clock.Now(), rand.Reader)
	sealed, err := o.Seal(messageID, m)
	if err != nil {
		r.t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("123456")) || bytes.Contains(sealed, []byte("7700")) {
		r.t.Error("the row shows the message")
	}
	_, err = r.db.Exec(r.t.Context(), "INSERT INTO auth.message (id, tenant_id, sealed, next_at, expires_at) VALUES ($1, 'demo', $2, $3, $4)",
		messageID, sealed, r.clock.Now(), r.clock.Now().Add(5*time.Minute))
	if err != nil {
		r.t.Fatal(err)
	}
	return messageID
}

func (r *rig) deliver(o *message.Outbox) int {
	r.t.Helper()
	n, err := o.Deliver(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return n
}

func (r *rig) left() (n int) {
	r.t.Helper()
	if err := r.db.QueryRow(r.t.Context(), "SELECT count(*) FROM auth.message").Scan(&n); err != nil {
		r.t.Fatal(err)
	}
	return n
}

var code = message.Message{To: user.Identifier{Kind: user.KindPhone, Value: "+77000000001"}, Locale: "en", Text: "123456 is your code", Code: "123456"}

func TestDeliver_SendsOnceAndForgets(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.outbox()
	r.queue(o, code)
	if n := r.deliver(o); n != 1 || r.left() != 0 || len(r.sender.sent) != 1 {
		t.Fatalf("%d taken, %d left, %d sent", n, r.left(), len(r.sender.sent))
	}
	if got := r.sender.sent[0]; got.To != code.To || got.Text != code.Text || got.Code.Reveal() != "123456" {
		t.Errorf("sent %+v", got)
	}
	if n := r.deliver(o); n != 0 {
		t.Errorf("%d taken again", n)
	}
}

func TestDeliver_RetriesWithBackoffAndGivesUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.outbox()
	r.queue(o, code)
	r.sender.err = errors.New("the gateway is away")
	for range 300 {
		r.deliver(o)
		r.clock.Advance(time.Second)
	}
	if n := len(r.sender.sent); n < 5 || n > 7 {
		t.Errorf("%d attempts in five minutes", n)
	}
	r.sender.err = nil
	before := len(r.sender.sent)
	r.clock.Advance(time.Hour)
	r.deliver(o)
	if len(r.sender.sent) != before {
		t.Error("an expired message was sent")
	}
}

func TestDeliver_IsSharedBetweenProcesses(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	first, second := r.outbox(), r.outbox()
	for range 50 {
		r.queue(first, code)
	}
	var wg sync.WaitGroup
	for _, o := range []*message.Outbox{first, second, first, second} {
		wg.Go(func() {
			for r.deliver(o) > 0 { //nolint:revive // until nothing is left
			}
		})
	}
	wg.Wait()
	if len(r.sender.sent) != 50 || r.left() != 0 {
		t.Errorf("%d sent, %d left", len(r.sender.sent), r.left())
	}
}

func TestDeliver_DropsWhatDoesNotOpen(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.outbox()
	messageID := r.queue(o, code)
	r.queue(o, code)
	// Moved to another row, a sealed message does not open.
	if _, err := r.db.Exec(t.Context(), "UPDATE auth.message SET sealed = (SELECT sealed FROM auth.message WHERE id <> $1) WHERE id = $1", messageID); err != nil {
		t.Fatal(err)
	}
	r.deliver(o)
	if len(r.sender.sent) != 1 || r.left() != 0 {
		t.Errorf("%d sent, %d left", len(r.sender.sent), r.left())
	}
}

func TestRun_IsWokenAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.sender.told = make(chan struct{}, 1)
	o := r.outbox()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- o.Run(ctx) }()
	r.queue(o, code)
	o.Wake()
	<-r.sender.told
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestFake_LogsTheCodeAndMasksTheAddress(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	if err := (message.Fake{Log: slog.New(slog.NewTextHandler(&b, nil))}).Send(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "code=123456") || strings.Contains(b.String(), "+77000000001") {
		t.Error(b.String())
	}
	b.Reset()
	if err := (message.None{Log: slog.New(slog.NewTextHandler(&b, nil))}).Send(t.Context(), code); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "123456") {
		t.Error(b.String())
	}
}
