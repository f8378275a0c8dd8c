package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"golang.org/x/sync/errgroup"

	"versola/modules/central/audit"
	"versola/platform/clock"
	"versola/platform/postgres"
	"versola/platform/secret"
)

var (
	// ErrNotFound reports that there is no such webhook, secret or delivery.
	ErrNotFound = errors.New("not found")
	// ErrBusy reports that a process is making the delivery just now.
	ErrBusy = errors.New("the delivery is being made just now")
	// ErrLastSecret reports that a webhook would be left without a secret, and
	// nothing could be delivered.
	ErrLastSecret = errors.New("it is the last one: make another first")
	// ErrTooMany reports that a webhook has as many secrets as it may.
	ErrTooMany = fmt.Errorf("there are %d already: drop one first", maxSecrets)

	errNoSecret = errors.New("the webhook has no secret: make one")
)

const (
	// lookEvery is how often the log and the queue are looked at: a webhook is
	// told within about a second.
	lookEvery = time.Second
	// sweepEvery is how often what is old is forgotten.
	sweepEvery = time.Minute
)

// Log appends to the audit log: *audit.Log.
type Log interface {
	Append(ctx context.Context, tx pgx.Tx, entries ...audit.Entry) error
}

// Deps is what the package works with.
type Deps struct {
	DB         *postgres.DB
	Clock      clock.Clock
	Random     io.Reader
	Encryption []secret.Key // seal the secrets; the active one first
	Audit      Log
	Client     *http.Client // with the address filter of platform/outbound, following no redirect
	Log        *slog.Logger
	Meter      metric.Meter
}

// Webhooks tells webhooks what happened, and administers their secrets and
// deliveries.
type Webhooks struct {
	Deps
	keyring *secret.Keyring
	results metric.Int64Counter
	wake    chan struct{}
	running running
}

// New makes it. Errors: no encryption keys.
func New(d Deps) (*Webhooks, error) {
	w := &Webhooks{Deps: d, wake: make(chan struct{}, 1)}
	var err error
	if w.keyring, err = secret.NewKeyring(d.Encryption, "webhook"); err != nil {
		return nil, fmt.Errorf("webhook keys: %w", err)
	}
	w.results, err = d.Meter.Int64Counter("versola.webhook.attempts", metric.WithDescription("Attempts to tell a webhook, by result."))
	if err != nil {
		return nil, fmt.Errorf("make webhook metrics: %w", err)
	}
	return w, nil
}

// Results of an attempt, as the metric has them.
const (
	resultDelivered = "delivered"
	resultFailed    = "failed"
	resultDead      = "dead"
)

func (w *Webhooks) count(ctx context.Context, result string) {
	w.results.Add(ctx, 1, metric.WithAttributes(attribute.String("result", result)))
}

func (w *Webhooks) wakeUp() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Run dispatches and delivers until ctx ends.
func (w *Webhooks) Run(ctx context.Context) error {
	sweeper := &postgres.Sweeper{DB: w.DB, Now: w.Clock.Now, Every: sweepEvery, Log: w.Log,
		Sweeps: []postgres.Sweep{{Table: "central.webhook_delivery", Column: "expires_at"}}}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return sweeper.Run(ctx) })
	g.Go(func() error { return w.follow(ctx) })
	err := g.Wait()
	w.running.wait.Wait()
	return err //nolint:wrapcheck // both say what they are
}

func (w *Webhooks) follow(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
			w.turn(ctx, func() (int, error) {
				n, _, err := w.Dispatch(ctx)
				return n, err
			}, dispatchBatch)
		case <-w.wake:
		}
		w.turn(ctx, func() (int, error) { return w.deliverDue(ctx) }, 1)
	}
}

// Settle makes the attempts that are due now and waits for them.
func (w *Webhooks) Settle(ctx context.Context) error {
	for {
		n, err := w.deliverDue(ctx)
		w.running.wait.Wait()
		if err != nil || n == 0 {
			return err
		}
	}
}

// turn repeats a step while it finds as much as it can take.
func (w *Webhooks) turn(ctx context.Context, step func() (int, error), full int) {
	for {
		n, err := step()
		if err != nil && ctx.Err() == nil && !postgres.Unavailable(err) {
			w.Log.WarnContext(ctx, "webhooks", "error", err)
		}
		if err != nil || n < full {
			return
		}
	}
}

// record does something and says so in the audit log: both or neither.
func (w *Webhooks) record(ctx context.Context, by audit.Entry, do func(tx pgx.Tx) error) error {
	return pgx.BeginFunc(ctx, w.DB, func(tx pgx.Tx) error {
		if err := do(tx); err != nil {
			return err
		}
		return w.Audit.Append(ctx, tx, by)
	})
}

const existsSQL = `SELECT 1 FROM central.webhook WHERE tenant_id = $1 AND id = $2 FOR KEY SHARE`

func (w *Webhooks) exists(ctx context.Context, tx pgx.Tx, tenant, webhook string) error {
	var one int
	switch err := tx.QueryRow(ctx, existsSQL, tenant, webhook).Scan(&one); {
	case errors.Is(err, pgx.ErrNoRows):
		return ErrNotFound
	case err != nil:
		return fmt.Errorf("read webhook: %w", err)
	}
	return nil
}
