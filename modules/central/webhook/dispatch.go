package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/id"
)

const (
	// dispatchBatch bounds what one turn reads of the log, at up to 64 KiB each.
	dispatchBatch = 500
	// keepDelivered is how long a delivery that has arrived can be looked at,
	// and sent once more.
	keepDelivered = 7 * 24 * time.Hour
	// keepDead is how long one that never arrived waits for somebody to care.
	keepDead = 30 * 24 * time.Hour
)

const (
	// lockCursor is for one process at a time; no row: nothing is new, or
	// somebody else is at it.
	lockCursor  = `SELECT c.seq FROM central.webhook_cursor c, central.audit_head h WHERE c.seq < h.seq FOR UPDATE OF c SKIP LOCKED`
	readEntries = `SELECT seq, at, action, coalesce(tenant_id, ''), body FROM central.audit_entry WHERE seq > $1 ORDER BY seq LIMIT $2`
	readHooks   = `SELECT tenant_id, id, spec -> 'events', created_at FROM central.webhook WHERE NOT coalesce((spec ->> 'disabled')::boolean, false)`
	moveCursor  = `UPDATE central.webhook_cursor SET seq = $1`
	enqueue     = `
INSERT INTO central.webhook_delivery (id, tenant_id, webhook_id, event, seq, body, created_at, next_at, expires_at)
SELECT id, tenant_id, webhook_id, event, nullif(seq, 0), body, $7, $7, $8
FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::bigint[], $6::text[]) AS d (id, tenant_id, webhook_id, event, seq, body)
ON CONFLICT DO NOTHING`
)

// hook is a webhook that wants to be told.
type hook struct {
	Tenant, ID string
	Events     []string
	Created    time.Time
}

// wants tells whether an event is one of the webhook's.
func (h *hook) wants(e *entry) bool {
	if h.Tenant != e.Tenant && h.Tenant != catalog.SystemTenant || e.At.Before(h.Created) {
		return false
	}
	for _, pattern := range h.Events {
		if Matches(pattern, e.Action) {
			return true
		}
	}
	return false
}

// Matches tells whether an action is one of a pattern: an action, "prefix.*" or
// "*".
func Matches(pattern, action string) bool {
	prefix, several := strings.CutSuffix(pattern, "*")
	return pattern == action || several && strings.HasPrefix(action, prefix)
}

// entry is an entry of the audit log.
type entry struct {
	Seq    int64
	At     time.Time
	Action string
	Tenant string
	Body   json.RawMessage
}

// Event is what is sent.
type Event struct {
	Type      string          `json:"type"`      // the action
	Timestamp time.Time       `json:"timestamp"` // when it happened
	Seq       int64           `json:"seq,omitempty"`
	Data      json.RawMessage `json:"data"` // the entry of the audit log
}

// deliveries are rows to be made.
type deliveries struct {
	ids                            []id.UUID
	tenants, hooks, events, bodies []string
	seqs                           []int64
}

func (d *deliveries) add(made id.UUID, h *hook, event string, seq int64, body string) {
	d.ids, d.tenants, d.hooks = append(d.ids, made), append(d.tenants, h.Tenant), append(d.hooks, h.ID)
	d.events, d.seqs, d.bodies = append(d.events, event), append(d.seqs, seq), append(d.bodies, body)
}

// Dispatch makes deliveries of what is new in the audit log. It returns how
// many entries it read, and how many deliveries it made.
func (w *Webhooks) Dispatch(ctx context.Context) (read, made int, err error) {
	err = pgx.BeginFunc(ctx, w.DB, func(tx pgx.Tx) error {
		var from int64
		switch err := tx.QueryRow(ctx, lockCursor).Scan(&from); {
		case errors.Is(err, pgx.ErrNoRows):
			return nil
		case err != nil:
			return fmt.Errorf("lock webhook cursor: %w", err)
		}
		rows, err := tx.Query(ctx, readEntries, from, dispatchBatch)
		if err != nil {
			return fmt.Errorf("read audit log: %w", err)
		}
		entries, err := pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
		if err != nil || len(entries) == 0 {
			return err
		}
		read = len(entries)
		if rows, err = tx.Query(ctx, readHooks); err != nil {
			return fmt.Errorf("read webhooks: %w", err)
		}
		hooks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[hook])
		if err != nil {
			return fmt.Errorf("read webhooks: %w", err)
		}
		d, err := w.match(entries, hooks)
		if err != nil {
			return err
		}
		made = len(d.ids)
		if err := w.put(ctx, tx, d); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, moveCursor, entries[len(entries)-1].Seq)
		return err
	})
	if err != nil {
		return 0, 0, fmt.Errorf("dispatch events: %w", err)
	}
	if made > 0 {
		w.wakeUp()
	}
	return read, made, nil
}

func (w *Webhooks) match(entries []entry, hooks []hook) (*deliveries, error) {
	d := &deliveries{}
	now := w.Clock.Now()
	for i := range entries {
		e := &entries[i]
		body := ""
		for j := range hooks {
			if !hooks[j].wants(e) {
				continue
			}
			if body == "" {
				raw, err := json.Marshal(Event{e.Action, e.At.UTC(), e.Seq, e.Body})
				if err != nil {
					return nil, fmt.Errorf("encode event %d: %w", e.Seq, err)
				}
				body = string(raw)
			}
			d.add(id.NewUUID(now, w.Random), &hooks[j], e.Action, e.Seq, body)
		}
	}
	return d, nil
}

func (w *Webhooks) put(ctx context.Context, tx pgx.Tx, d *deliveries) error {
	if len(d.ids) == 0 {
		return nil
	}
	now := w.Clock.Now()
	_, err := tx.Exec(ctx, enqueue, d.ids, d.tenants, d.hooks, d.events, d.seqs, d.bodies, now, now.Add(keepDead))
	if err != nil {
		return fmt.Errorf("queue deliveries: %w", err)
	}
	return nil
}

// Ping queues a delivery that only says hello. Errors: [ErrNotFound].
func (w *Webhooks) Ping(ctx context.Context, by audit.Entry, tenant, webhook string) (*Delivery, error) {
	now := w.Clock.Now()
	made := id.NewUUID(now, w.Random)
	raw, err := json.Marshal(Event{Type: PingEvent, Timestamp: now, Data: json.RawMessage(`{}`)})
	if err != nil {
		return nil, fmt.Errorf("encode ping: %w", err)
	}
	d := &deliveries{}
	d.add(made, &hook{Tenant: tenant, ID: webhook}, PingEvent, 0, string(raw))
	err = w.record(ctx, by, func(tx pgx.Tx) error {
		if err := w.exists(ctx, tx, tenant, webhook); err != nil {
			return err
		}
		return w.put(ctx, tx, d)
	})
	if err != nil {
		return nil, err
	}
	w.wakeUp()
	return w.Get(ctx, tenant, webhook, made)
}

// PingEvent is the type of what [Webhooks.Ping] sends.
const PingEvent = "ping"
