package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/audit"
	"versola/platform/id"
)

// States of a delivery.
const (
	StatePending   = "pending"   // waits for its first or next attempt
	StateDelivered = "delivered" // accepted
	StateDead      = "dead"      // given up
)

// Delivery is one event for one webhook.
type Delivery struct {
	ID       id.UUID    `json:"id"`
	Event    string     `json:"event"`
	Seq      *int64     `json:"seq,omitempty"` // of the audit log
	State    string     `json:"state"`
	Attempts int        `json:"attempts"`
	Created  time.Time  `json:"created_at"`
	Next     *time.Time `json:"next_attempt_at,omitempty"` // of a pending one
	Last     *time.Time `json:"last_attempt_at,omitempty"`
	Status   *int       `json:"status,omitempty"` // HTTP status of the last answer
	Error    *string    `json:"error,omitempty"`  // why the last attempt failed
	// Body is what is sent; only where one delivery is asked for.
	Body json.RawMessage `json:"body,omitempty"`
}

const (
	deliveryColumns = `id, event, seq, state, attempts, created_at, next_at, last_at, status, error`
	ofWebhook       = ` FROM central.webhook_delivery WHERE tenant_id = $1 AND webhook_id = $2`
	listDeliveries  = `SELECT ` + deliveryColumns + ofWebhook + ` AND ($3 = '' OR state = $3) AND id < $4 ORDER BY id DESC LIMIT $5`
	countDeliveries = `SELECT count(*)` + ofWebhook + ` AND ($3 = '' OR state = $3)`
	getDelivery     = `SELECT ` + deliveryColumns + `, body` + ofWebhook + ` AND id = $3`
	// retryDelivery starts a delivery anew, unless an attempt is under way.
	retryDelivery = `UPDATE central.webhook_delivery SET state = 'pending', attempts = 0, next_at = $4, expires_at = $5
		WHERE tenant_id = $1 AND webhook_id = $2 AND id = $3 AND (claimed_until IS NULL OR claimed_until <= $4)`
	discardDelivery = `DELETE FROM central.webhook_delivery WHERE tenant_id = $1 AND webhook_id = $2 AND id = $3`
)

func (d *Delivery) targets() []any {
	return []any{&d.ID, &d.Event, &d.Seq, &d.State, &d.Attempts, &d.Created, &d.Next, &d.Last, &d.Status, &d.Error}
}

// tidy leaves out what does not apply.
func (d *Delivery) tidy() {
	d.Created = d.Created.UTC()
	if d.State != StatePending {
		d.Next = nil
	}
	for _, at := range []*time.Time{d.Next, d.Last} {
		if at != nil {
			*at = at.UTC()
		}
	}
}

// newest is after every delivery.
var newest = id.UUID{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}

// List returns up to limit deliveries of a webhook, newest first, that are
// older than after (nil: from the newest), and how many there are in all. An
// empty state is any. Errors: [ErrNotFound].
func (w *Webhooks) List(ctx context.Context, tenant, webhook, state string, after id.UUID, limit int) (list []Delivery, total int64, err error) {
	if after.IsNil() {
		after = newest
	}
	list = []Delivery{}
	err = pgx.BeginTxFunc(ctx, w.DB, pgx.TxOptions{}, func(tx pgx.Tx) error {
		if err := w.exists(ctx, tx, tenant, webhook); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, listDeliveries, tenant, webhook, state, after, limit)
		if err != nil {
			return err
		}
		for rows.Next() {
			var d Delivery
			if err := rows.Scan(d.targets()...); err != nil {
				rows.Close()
				return err
			}
			d.tidy()
			list = append(list, d)
		}
		if err := rows.Err(); err != nil {
			return err
		}
		return tx.QueryRow(ctx, countDeliveries, tenant, webhook, state).Scan(&total)
	})
	if err != nil {
		return nil, 0, fmt.Errorf("list webhook deliveries: %w", err)
	}
	return list, total, nil
}

// Get returns one delivery with its body. Errors: [ErrNotFound].
func (w *Webhooks) Get(ctx context.Context, tenant, webhook string, which id.UUID) (*Delivery, error) {
	var d Delivery
	var body string
	switch err := w.DB.QueryRow(ctx, getDelivery, tenant, webhook, which).Scan(append(d.targets(), &body)...); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, ErrNotFound
	case err != nil:
		return nil, fmt.Errorf("read webhook delivery: %w", err)
	}
	d.tidy()
	d.Body = json.RawMessage(body)
	return &d, nil
}

// Retry makes a delivery wait for its first attempt again, which is made at
// once. Errors: [ErrNotFound], [ErrBusy].
func (w *Webhooks) Retry(ctx context.Context, by audit.Entry, tenant, webhook string, which id.UUID) (*Delivery, error) {
	now := w.Clock.Now()
	err := w.changeDelivery(ctx, by, tenant, webhook, which, retryDelivery, now, now.Add(keepDead))
	if err != nil {
		return nil, fmt.Errorf("retry webhook delivery: %w", err)
	}
	w.wakeUp()
	return w.Get(ctx, tenant, webhook, which)
}

// Discard forgets a delivery; an attempt that is under way is not held back.
// Errors: [ErrNotFound].
func (w *Webhooks) Discard(ctx context.Context, by audit.Entry, tenant, webhook string, which id.UUID) error {
	if err := w.changeDelivery(ctx, by, tenant, webhook, which, discardDelivery); err != nil {
		return fmt.Errorf("discard webhook delivery: %w", err)
	}
	return nil
}

func (w *Webhooks) changeDelivery(ctx context.Context, by audit.Entry, tenant, webhook string, which id.UUID, statement string, more ...any) error {
	by.Detail = map[string]string{"delivery": which.String()}
	return w.record(ctx, by, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, statement, append([]any{tenant, webhook, which}, more...)...)
		if err != nil || tag.RowsAffected() == 1 {
			return err
		}
		if _, err := w.Get(ctx, tenant, webhook, which); err != nil {
			return err
		}
		return ErrBusy
	})
}
