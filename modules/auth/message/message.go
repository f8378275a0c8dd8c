package message

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Message is what is sent to a person.
type Message struct {
	To     user.Identifier `json:"to"`
	Locale string          `json:"locale"`
	// Text is the whole message, in the person's language.
	Subject string `json:"subject,omitempty"` // e-mail only
	Text    string `json:"text"`
	// Code is the one-time code within Text, for the fake sender's log.
	Code secret.Text `json:"-"`
}

// sealedMessage is the form in the table: there the code is readable.
type sealedMessage struct {
	Message
	Code string `json:"code,omitempty"`
}

// Sender delivers messages: an SMS gateway, a mail server, the demo's log.
type Sender interface {
	// Send delivers a message. An error means that it is to be tried again.
	Send(ctx context.Context, m Message) error
}

// Fake delivers nothing and writes the code to the log, which is what the demo
// is for. A production configuration refuses it.
type Fake struct{ Log *slog.Logger }

// Send implements [Sender].
func (f Fake) Send(ctx context.Context, m Message) error {
	if m.Code.Empty() {
		f.Log.InfoContext(ctx, "message (fake provider)", "to", m.To.Masked(), "subject", m.Subject, "text", m.Text)
		return nil
	}
	f.Log.InfoContext(ctx, "one-time code (fake provider)", "to", m.To.Masked(), "code", m.Code.Reveal(), "subject", m.Subject, "text", m.Text)
	return nil
}

// None delivers nothing, and says so in the log.
type None struct{ Log *slog.Logger }

// Send implements [Sender].
func (n None) Send(ctx context.Context, m Message) error {
	n.Log.WarnContext(ctx, "no message provider is configured, a message was dropped", "to", m.To.Masked())
	return nil
}

// Bounds of the queue.
const (
	// claimBatch bounds what one process takes at a time.
	claimBatch = 20
	// claimFor is how long a claimed message stays with its process; longer
	// than sendTimeout, so that nobody else sends it meanwhile.
	claimFor = 30 * time.Second
	// sendTimeout bounds one delivery.
	sendTimeout = 10 * time.Second
	// maxAttempts: with the backoff below the last attempt is about four
	// minutes after the first, when a code is about to expire anyway.
	maxAttempts  = 7
	backoffFirst = 2 * time.Second
	// pollEvery finds what another process left behind; its own messages wake
	// the sender at once.
	pollEvery = 5 * time.Second
)

// Outbox is the queue.
type Outbox struct {
	db     *postgres.DB
	clock  clock.Clock
	keys   *secret.Keyring
	sender Sender
	log    *slog.Logger
	wake   chan struct{}
}

// NewOutbox makes a queue that delivers through sender.
func NewOutbox(db *postgres.DB, c clock.Clock, encryption []secret.Key, sender Sender, log *slog.Logger) (*Outbox, error) {
	keys, err := secret.NewKeyring(encryption, "message")
	if err != nil {
		return nil, fmt.Errorf("make message keyring: %w", err)
	}
	return &Outbox{db: db, clock: c, keys: keys, sender: sender, log: log, wake: make(chan struct{}, 1)}, nil
}

func contextOf(messageID id.UUID) string { return "message/" + messageID.String() }

// Seal returns a message as its row holds it.
func (o *Outbox) Seal(messageID id.UUID, m Message) ([]byte, error) {
	b, err := json.Marshal(sealedMessage{m, m.Code.Reveal()})
	if err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	return o.keys.Seal(b, contextOf(messageID)), nil
}

const queue = `INSERT INTO auth.message (id, tenant_id, sealed, next_at, expires_at) VALUES ($1, $2, $3, $4, $5)`

// Queue puts a message into the queue within tx, to be sent until expires.
func (o *Outbox) Queue(ctx context.Context, tx pgx.Tx, messageID id.UUID, tenant string, m Message, expires time.Time) error {
	sealed, err := o.Seal(messageID, m)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, queue, messageID, tenant, sealed, o.clock.Now(), expires); err != nil {
		return fmt.Errorf("queue message: %w", err)
	}
	return nil
}

func (o *Outbox) open(messageID id.UUID, sealed []byte) (Message, error) {
	b, err := o.keys.Open(sealed, contextOf(messageID))
	if err != nil {
		return Message{}, fmt.Errorf("open message: %w", err)
	}
	var m sealedMessage
	if err := json.Unmarshal(b, &m); err != nil {
		return Message{}, fmt.Errorf("decode message: %w", err)
	}
	m.Message.Code = secret.Text(m.Code)
	return m.Message, nil
}

// Wake makes Run look at once; call it after a message's row was committed.
func (o *Outbox) Wake() {
	select {
	case o.wake <- struct{}{}:
	default: // it is about to look anyway
	}
}

// Run delivers until ctx ends.
func (o *Outbox) Run(ctx context.Context) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-o.wake:
		}
		for {
			n, err := o.Deliver(ctx)
			if err != nil && ctx.Err() == nil {
				o.log.WarnContext(ctx, "deliver messages", "error", err)
			}
			if err != nil || n < claimBatch {
				break
			}
		}
	}
}

const claim = `UPDATE auth.message SET attempts = attempts + 1, next_at = $2
	WHERE id = ANY(ARRAY(SELECT id FROM auth.message WHERE next_at <= $1 AND expires_at > $1 AND attempts < $3
		ORDER BY next_at LIMIT $4 FOR UPDATE SKIP LOCKED))
	RETURNING id, sealed, attempts`

const (
	remove = `DELETE FROM auth.message WHERE id = ANY($1)`
	retry  = `UPDATE auth.message SET next_at = $2 WHERE id = $1`
)

// Deliver sends what is due now and returns how many messages it took.
func (o *Outbox) Deliver(ctx context.Context) (int, error) {
	now := o.clock.Now()
	rows, err := o.db.Query(ctx, claim, now, now.Add(claimFor), maxAttempts, claimBatch)
	if err != nil {
		return 0, fmt.Errorf("claim messages: %w", err)
	}
	type claimed struct {
		id       id.UUID
		sealed   []byte
		attempts int
	}
	var batch []claimed
	for rows.Next() {
		var c claimed
		if err := rows.Scan(&c.id, &c.sealed, &c.attempts); err != nil {
			rows.Close()
			return 0, fmt.Errorf("read message: %w", err)
		}
		batch = append(batch, c)
	}
	if err := rows.Err(); err != nil {
		return 0, fmt.Errorf("claim messages: %w", err)
	}
	// All at once: the batch must be over before its claim is.
	results := make([]error, len(batch))
	var wg sync.WaitGroup
	for i, c := range batch {
		wg.Go(func() { results[i] = o.send(ctx, c.id, c.sealed) })
	}
	wg.Wait()
	var done []id.UUID
	var errs []error
	for i, c := range batch {
		err := results[i]
		switch {
		case err == nil:
			done = append(done, c.id)
		case errors.Is(err, secret.ErrOpen), c.attempts >= maxAttempts:
			o.log.ErrorContext(ctx, "a message was given up", "message", c.id.String(), "attempts", c.attempts, "error", err)
			done = append(done, c.id)
		default:
			wait := backoffFirst << (c.attempts - 1)
			o.log.WarnContext(ctx, "send message", "message", c.id.String(), "attempts", c.attempts, "retry_in", wait, "error", err)
			if _, err := o.db.Exec(ctx, retry, c.id, now.Add(wait)); err != nil {
				errs = append(errs, fmt.Errorf("postpone message: %w", err))
			}
		}
	}
	if len(done) > 0 {
		if _, err := o.db.Exec(ctx, remove, done); err != nil {
			errs = append(errs, fmt.Errorf("remove sent messages: %w", err))
		}
	}
	return len(batch), errors.Join(errs...)
}

func (o *Outbox) send(ctx context.Context, messageID id.UUID, sealed []byte) error {
	m, err := o.open(messageID, sealed)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	return o.sender.Send(ctx, m) //nolint:wrapcheck // the sender's own words
}
