package reset

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/message"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/secret"
)

// Bounds of links.
const (
	// maxSent is how many are sent to one person within sentWindow: enough for a
	// mail that is lost, too few to be a nuisance.
	maxSent    = 5
	sentWindow = time.Hour
	// kept is how long a row outlives its link, to say that it was used and to
	// count those that were sent.
	kept = 24 * time.Hour
	// messageName is that of the message in the catalogue of texts.
	messageName = "password_reset"
)

// Links makes links.
type Links struct {
	Clock  clock.Clock
	Random io.Reader
	Outbox *message.Outbox // takes messages; it need not be the one that sends
}

// link is what a row is made of.
type link struct {
	token secret.Text
	ends  time.Time
}

const makeSQL = `
WITH replaced AS (
	UPDATE auth.password_reset SET ended_at = $5 WHERE user_id = $2 AND ended_at IS NULL
)
INSERT INTO auth.password_reset (token_hash, user_id, tenant_id, sent, created_at, valid_until, expires_at) VALUES ($1, $2, $3, $4, $5, $6, $7)`

func (l *Links) make(ctx context.Context, tx pgx.Tx, t *catalog.Tenant, who id.UUID, sent bool, ttl time.Duration) (link, error) {
	now := l.Clock.Now()
	k := link{secret.Text(id.NewHandle(l.Random)), now.Add(ttl)}
	if _, err := tx.Exec(ctx, makeSQL, secret.Hash(k.token.Reveal()), who, t.ID, sent, now, k.ends, k.ends.Add(kept)); err != nil {
		return link{}, fmt.Errorf("make reset link: %w", err)
	}
	return k, nil
}

func (k link) address(t *catalog.Tenant) string { return t.Issuer + path + "/" + k.token.Reveal() }

// Show makes a link at a tenant's address within tx, and ends those that the
// person had. It returns the link and when it ends.
func (l *Links) Show(ctx context.Context, tx pgx.Tx, t *catalog.Tenant, u *user.User, ttl time.Duration) (address string, ends time.Time, err error) {
	k, err := l.make(ctx, tx, t, u.ID, false, ttl)
	if err != nil {
		return "", time.Time{}, err
	}
	return k.address(t), k.ends, nil
}

const sentSQL = `SELECT count(*), min(created_at) FROM (
	SELECT created_at FROM auth.password_reset WHERE user_id = $1 AND sent AND created_at > $2 ORDER BY created_at DESC LIMIT $3) AS lately`

// Send makes a link like [Links.Show] and queues it to the person: to the
// address of a kind, or where kind is empty to a verified address, e-mail first,
// and else to any. The person's row must be locked. Errors: [user.ErrChannel],
// *[user.Throttled].
func (l *Links) Send(ctx context.Context, tx pgx.Tx, t *catalog.Tenant, u *user.User, kind user.Kind, ttl time.Duration) (to user.Identifier, ends time.Time, err error) {
	to, ok := channel(u, kind)
	if !ok {
		return to, ends, user.ErrChannel
	}
	now, n, first := l.Clock.Now(), 0, (*time.Time)(nil)
	if err := tx.QueryRow(ctx, sentSQL, u.ID, now.Add(-sentWindow), maxSent).Scan(&n, &first); err != nil {
		return to, ends, fmt.Errorf("count reset links: %w", err)
	}
	if n >= maxSent {
		return to, ends, &user.Throttled{RetryAfter: first.Add(sentWindow).Sub(now)}
	}
	k, err := l.make(ctx, tx, t, u.ID, true, ttl)
	if err != nil {
		return to, ends, err
	}
	return to, k.ends, l.Outbox.Queue(ctx, tx, id.NewUUID(now, l.Random), t.ID, write(t, u, to, k, ttl), k.ends)
}

// channel chooses where a person is written to.
func channel(u *user.User, kind user.Kind) (user.Identifier, bool) {
	type address struct {
		user.Identifier
		verified bool
	}
	all := []address{
		{user.Identifier{Kind: user.KindEmail, Value: u.Email}, u.EmailVerified},
		{user.Identifier{Kind: user.KindPhone, Value: u.Phone}, u.PhoneVerified},
	}
	for _, verified := range []bool{true, false} {
		for _, a := range all {
			if a.Value != "" && a.verified == verified && (kind == "" || kind == a.Kind) {
				return a.Identifier, true
			}
		}
	}
	return user.Identifier{}, false
}

// write returns the message, in the person's language where they say one.
func write(t *catalog.Tenant, u *user.User, to user.Identifier, k link, ttl time.Duration) message.Message {
	var wanted []string
	if l, ok := u.Claims["locale"].(string); ok {
		wanted = []string{l}
	}
	m := message.Message{To: to, Locale: t.Texts.Locale(wanted, "")}
	by := texts.SMS
	if to.Kind == user.KindEmail {
		by = texts.Email
	}
	m.Subject, m.Text = t.Texts.Message(m.Locale, messageName, by,
		"link", k.address(t), "tenant", t.Name, "minutes", strconv.Itoa(int(math.Ceil(ttl.Minutes()))))
	return m
}
