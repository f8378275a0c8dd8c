package logout

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// Bounds of delivery.
const (
	// batch is how many notices a process works on at a time, all in parallel.
	batch = 32
	// deliveryTimeout bounds one attempt.
	deliveryTimeout = 5 * time.Second
	// firstPause and longestPause bound the time between attempts; it doubles.
	// The first is longer than an attempt, so that a notice that is being
	// delivered is not claimed again.
	firstPause   = 10 * time.Second
	longestPause = 10 * time.Minute
	// lookEvery is how often notices of other processes and later attempts are
	// looked for; this process's own logouts wake it at once.
	lookEvery = 2 * time.Second
	// maxAnswer is what is read of an answer, to keep its connection.
	maxAnswer = 4 << 10
)

// Notifier delivers back-channel logout notices.
type Notifier struct {
	DB      *postgres.DB
	Catalog tenant.Source
	Clock   clock.Clock
	Minter  *token.Minter
	Client  *http.Client // with the address filter of platform/outbound
	Log     *slog.Logger
	Ender   *Ender
}

// notice is one client that has to hear of one session's end.
type notice struct {
	ID       id.UUID
	Tenant   string
	Client   string
	Subject  string
	Session  id.UUID
	Attempts int
}

// claimSQL takes notices that are due and puts off their next attempt.
const claimSQL = `
UPDATE auth.logout_notice n
SET attempts = n.attempts + 1, next_at = $1 + LEAST($3::interval * power(2, LEAST(n.attempts, 16)), $4::interval)
WHERE n.id = ANY (ARRAY(
    SELECT id FROM auth.logout_notice WHERE next_at <= $1 AND expires_at > $1
    ORDER BY next_at LIMIT $2 FOR UPDATE SKIP LOCKED))
RETURNING n.id, n.tenant_id, n.client_id, n.subject, n.session_id, n.attempts`

// putOffSQL lets what else waits for a client that does not answer wait with it:
// others' notices are not held up by more than one batch of its attempts.
const putOffSQL = `UPDATE auth.logout_notice SET next_at = $3 WHERE tenant_id = $1 AND client_id = $2 AND next_at < $3`

const doneSQL = `DELETE FROM auth.logout_notice WHERE id = $1`

// Run delivers until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		for {
			count, err := n.Once(ctx)
			if err != nil && ctx.Err() == nil && !postgres.Unavailable(err) {
				n.Log.WarnContext(ctx, "deliver logout notices", "error", err)
			}
			if err != nil || count < batch {
				break
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		case <-n.Ender.wake:
		}
	}
}

// Once delivers what is due, up to a batch, and returns how many it tried.
func (n *Notifier) Once(ctx context.Context) (int, error) {
	rows, err := n.DB.Query(ctx, claimSQL, n.Clock.Now(), batch, firstPause, longestPause)
	if err != nil {
		return 0, fmt.Errorf("claim logout notices: %w", err)
	}
	due, err := pgx.CollectRows(rows, pgx.RowToStructByPos[notice])
	if err != nil {
		return 0, fmt.Errorf("claim logout notices: %w", err)
	}
	var group errgroup.Group
	for _, x := range due {
		group.Go(func() error {
			err := n.deliver(ctx, x)
			if err != nil && ctx.Err() == nil {
				return n.putOff(ctx, x, err)
			}
			if err != nil {
				return nil // shutting down; another process tries again
			}
			if _, err := n.DB.Exec(ctx, doneSQL, x.ID); err != nil {
				return fmt.Errorf("remove delivered logout notice: %w", err)
			}
			return nil
		})
	}
	return len(due), group.Wait()
}

func (n *Notifier) putOff(ctx context.Context, x notice, cause error) error {
	n.Log.WarnContext(ctx, "back-channel logout was not accepted", "tenant", x.Tenant, "client", x.Client, "attempt", x.Attempts, "error", cause)
	if _, err := n.DB.Exec(ctx, putOffSQL, x.Tenant, x.Client, n.Clock.Now().Add(firstPause)); err != nil {
		return fmt.Errorf("put off logout notices: %w", err)
	}
	return nil
}

// deliver returns nil when the notice is done with: accepted, or without anyone
// to hear it any more.
func (n *Notifier) deliver(ctx context.Context, x notice) error {
	current := n.Catalog.Current()
	if current == nil {
		return errors.New("no configuration yet")
	}
	t, ok := current.Tenant(x.Tenant)
	if !ok {
		return nil
	}
	cl, ok := t.Client(x.Client)
	if !ok || cl.BackchannelLogoutURI == "" {
		return nil
	}
	subject, err := id.ParseUUID(x.Subject)
	if err != nil {
		return fmt.Errorf("subject of notice: %w", err)
	}
	raw, err := n.Minter.Logout(tenant.At{Tenant: t, Catalog: current}, cl, subject, x.Session, n.Clock.Now())
	if err != nil {
		return err
	}
	return n.post(ctx, cl.BackchannelLogoutURI, raw)
}

func (n *Notifier) post(ctx context.Context, uri, raw string) error {
	ctx, cancel := context.WithTimeout(ctx, deliveryTimeout)
	defer cancel()
	body := url.Values{"logout_token": {raw}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, strings.NewReader(body))
	if err != nil {
		return fmt.Errorf("make request: %w", err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := n.Client.Do(req)
	if err != nil {
		return fmt.Errorf("call client: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.CopyN(io.Discard, resp.Body, maxAnswer)
	// Section 2.8 names 200; many send 204.
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNoContent {
		return fmt.Errorf("the client answered %d", resp.StatusCode)
	}
	return nil
}
