package webhook

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/platform/id"
	"versola/platform/outbound"
)

const (
	// attemptTimeout bounds one attempt, connection and answer included.
	attemptTimeout = 10 * time.Second
	// lease is how long a delivery stays with the process that has it: longer
	// than an attempt.
	lease = time.Minute
	// parallel bounds the attempts of one process at a time, and perHook those
	// to one webhook, so that a slow one leaves room for others.
	parallel = 32
	perHook  = 4
	// maxAttempts and pauses: the last attempt is about a day and a half after
	// the first.
	maxAttempts = 12
	// maxAnswer is what is read of an answer, to keep its connection.
	maxAnswer = 4 << 10
	// maxError bounds what is kept of a fault.
	maxError = 300
)

// pauses between attempts; the last one repeats.
var pauses = []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute, time.Hour, 2 * time.Hour, 4 * time.Hour, 8 * time.Hour}

// pause returns how long to wait after a number of attempts: up to a fifth
// more or less, so that what failed together does not come back together.
func pause(attempts int) time.Duration {
	p := pauses[min(attempts, len(pauses))-1]
	return p + time.Duration((rand.Float64()*2-1)*float64(p)/5) //nolint:gosec // only spreads load
}

const (
	// claim takes deliveries that are due, of webhooks that are enabled and not
	// among those that have enough to do.
	claim = `
UPDATE central.webhook_delivery d SET attempts = d.attempts + 1, last_at = $1, claimed_until = $2, next_at = $2
FROM central.webhook w
WHERE w.tenant_id = d.tenant_id AND w.id = d.webhook_id AND d.id = ANY (ARRAY(
    SELECT x.id FROM central.webhook_delivery x JOIN central.webhook y ON y.tenant_id = x.tenant_id AND y.id = x.webhook_id
    WHERE x.state = 'pending' AND x.next_at <= $1 AND NOT coalesce((y.spec ->> 'disabled')::boolean, false)
        AND NOT EXISTS (SELECT FROM unnest($4::text[], $5::text[]) AS busy (tenant_id, id) WHERE busy.tenant_id = x.tenant_id AND busy.id = x.webhook_id)
    ORDER BY x.next_at LIMIT $3 FOR UPDATE OF x SKIP LOCKED))
RETURNING d.id, d.tenant_id, d.webhook_id, d.event, d.body, d.attempts, w.spec ->> 'url'`
	arrived = `UPDATE central.webhook_delivery SET state = 'delivered', status = $2, error = NULL, claimed_until = NULL, expires_at = $3 WHERE id = $1`
	failed  = `UPDATE central.webhook_delivery SET state = $2, status = $3, error = $4, claimed_until = NULL, next_at = $5, expires_at = $6 WHERE id = $1`
	// putOff lets what else waits for a webhook that does not answer wait with
	// it.
	putOff = `UPDATE central.webhook_delivery SET next_at = $3 WHERE tenant_id = $1 AND webhook_id = $2 AND state = 'pending' AND claimed_until IS NULL AND next_at < $3`
)

// claimed is a delivery that this process has.
type claimed struct {
	ID           id.UUID
	Tenant, Hook string
	Event, Body  string
	Attempts     int
	URL          string
}

// deliverDue starts attempts at what is due and returns how many.
func (w *Webhooks) deliverDue(ctx context.Context) (int, error) {
	free, tenants, hooks := w.running.room()
	if free == 0 {
		return 0, nil
	}
	now := w.Clock.Now()
	rows, err := w.DB.Query(ctx, claim, now, now.Add(lease), min(free, perHook), tenants, hooks)
	if err != nil {
		return 0, fmt.Errorf("claim deliveries: %w", err)
	}
	due, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (claimed, error) {
		var c claimed
		err := row.Scan(&c.ID, &c.Tenant, &c.Hook, &c.Event, &c.Body, &c.Attempts, &c.URL)
		return c, err
	})
	if err != nil {
		return 0, fmt.Errorf("claim deliveries: %w", err)
	}
	for _, c := range due {
		w.running.start(c.Tenant, c.Hook, func() { w.attempt(ctx, c); w.wakeUp() })
	}
	return len(due), nil
}

// attempt delivers once and notes what became of it. When the process stops in
// the middle, the lease runs out and another attempt is made.
func (w *Webhooks) attempt(ctx context.Context, c claimed) {
	status, cause := w.send(ctx, c)
	if ctx.Err() != nil {
		return
	}
	if err := w.note(ctx, c, status, cause); err != nil && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "note what became of a webhook delivery", "delivery", c.ID.String(), "error", err)
	}
}

func (w *Webhooks) note(ctx context.Context, c claimed, status int, cause error) error {
	now := w.Clock.Now()
	answer := any(nil)
	if status != 0 {
		answer = status
	}
	if cause == nil {
		w.count(ctx, resultDelivered)
		_, err := w.DB.Exec(ctx, arrived, c.ID, answer, now.Add(keepDelivered))
		return err
	}
	state, next := StatePending, now.Add(pause(c.Attempts))
	result := resultFailed
	if c.Attempts >= maxAttempts {
		state, result = StateDead, resultDead
	}
	w.count(ctx, result)
	w.Log.WarnContext(ctx, "a webhook was not told", "tenant", c.Tenant, "webhook", c.Hook, "delivery", c.ID.String(), "event", c.Event,
		"attempt", c.Attempts, "state", state, "error", cause)
	text := strings.ToValidUTF8(cause.Error(), "")
	if _, err := w.DB.Exec(ctx, failed, c.ID, state, answer, text[:min(len(text), maxError)], next, now.Add(keepDead)); err != nil {
		return err
	}
	_, err := w.DB.Exec(ctx, putOff, c.Tenant, c.Hook, now.Add(pauses[0]))
	return err
}

// send makes one attempt and returns the answer's status, 0 for none.
func (w *Webhooks) send(ctx context.Context, c claimed) (int, error) {
	secrets, err := w.secrets(ctx, c.Tenant, c.Hook)
	if err != nil {
		return 0, err
	}
	if len(secrets) == 0 {
		return 0, errNoSecret
	}
	ctx, cancel := context.WithTimeout(ctx, attemptTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL, strings.NewReader(c.Body))
	if err != nil {
		return 0, errors.New("the address cannot be called")
	}
	at := w.Clock.Now()
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", "Versola-Webhook/1")
	r.Header.Set("Webhook-Id", c.ID.String())
	r.Header.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix(), 10))
	r.Header.Set("Webhook-Signature", signatures(secrets, c.ID.String(), at, c.Body))
	answer, err := w.Client.Do(r)
	if err != nil {
		return 0, reason(err)
	}
	defer func() { _ = answer.Body.Close() }()
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return answer.StatusCode, fmt.Errorf("the answer was %d", answer.StatusCode)
	}
	return answer.StatusCode, nil
}

// reason tells why nobody answered, without the address.
func reason(err error) error {
	var u *url.Error
	switch {
	case errors.Is(err, outbound.ErrAddress):
		return errors.New("the address is on a network that must not be called")
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", attemptTimeout)
	case errors.As(err, &u):
		return u.Err
	}
	return err
}

// signatures returns the value of Webhook-Signature.
func signatures(secrets [][]byte, deliveryID string, at time.Time, body string) string {
	message := deliveryID + "." + strconv.FormatInt(at.Unix(), 10) + "." + body
	out := make([]string, len(secrets))
	for i, s := range secrets {
		mac := hmac.New(sha256.New, s)
		mac.Write([]byte(message))
		out[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	return strings.Join(out, " ")
}
