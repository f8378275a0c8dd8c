package webhook

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/audit"
	"versola/platform/id"
	"versola/platform/secret"
)

const (
	// secretPrefix is how Standard Webhooks writes secrets.
	secretPrefix = "whsec_"
	// secretBytes of a secret (Standard Webhooks: 24 to 64).
	secretBytes = 32
	// maxSecrets: every delivery is signed with each.
	maxSecrets = 5
)

const (
	selectSecrets = `SELECT id, sealed, created_at FROM central.webhook_secret WHERE tenant_id = $1 AND webhook_id = $2 ORDER BY created_at DESC, id DESC`
	lockSecrets   = selectSecrets + ` FOR UPDATE`
	insertSecret  = `INSERT INTO central.webhook_secret (tenant_id, webhook_id, id, sealed, created_at) VALUES ($1, $2, $3, $4, $5)`
	deleteSecret  = `DELETE FROM central.webhook_secret WHERE tenant_id = $1 AND webhook_id = $2 AND id = $3`
)

// Secret is what may be told of a secret.
type Secret struct {
	ID      id.UUID   `json:"id"`
	Created time.Time `json:"created_at"`
}

type sealedSecret struct {
	ID      id.UUID
	Sealed  []byte
	Created time.Time
}

func sealContext(tenant, webhook string, secretID id.UUID) string {
	return "webhook_secret/" + tenant + "/" + webhook + "/" + secretID.String()
}

// NewSecret gives a webhook another secret, which is returned this once:
// "whsec_" and 32 bytes in base64. Errors: [ErrNotFound], [ErrTooMany].
func (w *Webhooks) NewSecret(ctx context.Context, by audit.Entry, tenant, webhook string) (Secret, secret.Text, error) {
	raw := make([]byte, secretBytes)
	if _, err := io.ReadFull(w.Random, raw); err != nil {
		return Secret{}, "", fmt.Errorf("read random bytes: %w", err)
	}
	now := w.Clock.Now()
	made := Secret{id.NewUUID(now, w.Random), now}
	by.Detail = map[string]string{"secret": made.ID.String()}
	err := w.record(ctx, by, func(tx pgx.Tx) error {
		if err := w.exists(ctx, tx, tenant, webhook); err != nil {
			return err
		}
		have, err := readSecrets(ctx, tx, lockSecrets, tenant, webhook)
		if err != nil {
			return err
		}
		if len(have) >= maxSecrets {
			return ErrTooMany
		}
		_, err = tx.Exec(ctx, insertSecret, tenant, webhook, made.ID, w.keyring.Seal(raw, sealContext(tenant, webhook, made.ID)), now)
		return err
	})
	if err != nil {
		return Secret{}, "", fmt.Errorf("make webhook secret: %w", err)
	}
	return made, secret.Text(secretPrefix + base64.StdEncoding.EncodeToString(raw)), nil
}

// DropSecret takes a secret away. Errors: [ErrNotFound], [ErrLastSecret].
func (w *Webhooks) DropSecret(ctx context.Context, by audit.Entry, tenant, webhook string, secretID id.UUID) error {
	by.Detail = map[string]string{"secret": secretID.String()}
	err := w.record(ctx, by, func(tx pgx.Tx) error {
		have, err := readSecrets(ctx, tx, lockSecrets, tenant, webhook)
		if err != nil {
			return err
		}
		tag, err := tx.Exec(ctx, deleteSecret, tenant, webhook, secretID)
		switch {
		case err != nil:
			return err
		case tag.RowsAffected() == 0:
			return ErrNotFound
		case len(have) == 1:
			return ErrLastSecret
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("drop webhook secret: %w", err)
	}
	return nil
}

// Secrets lists a webhook's secrets, newest first. Errors: [ErrNotFound].
func (w *Webhooks) Secrets(ctx context.Context, tenant, webhook string) ([]Secret, error) {
	out := []Secret{}
	err := pgx.BeginFunc(ctx, w.DB, func(tx pgx.Tx) error {
		if err := w.exists(ctx, tx, tenant, webhook); err != nil {
			return err
		}
		have, err := readSecrets(ctx, tx, selectSecrets, tenant, webhook)
		for _, s := range have {
			out = append(out, Secret{s.ID, s.Created.UTC()})
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list webhook secrets: %w", err)
	}
	return out, nil
}

// secrets opens a webhook's secrets, newest first.
func (w *Webhooks) secrets(ctx context.Context, tenant, webhook string) ([][]byte, error) {
	have, err := readSecrets(ctx, w.DB, selectSecrets, tenant, webhook)
	if err != nil {
		return nil, fmt.Errorf("read webhook secrets: %w", err)
	}
	var out [][]byte
	for _, s := range have {
		plain, err := w.keyring.Open(s.Sealed, sealContext(tenant, webhook, s.ID))
		if err != nil {
			return nil, fmt.Errorf("open webhook secret: %w", err)
		}
		out = append(out, plain)
	}
	return out, nil
}

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func readSecrets(ctx context.Context, q querier, statement, tenant, webhook string) ([]sealedSecret, error) {
	rows, err := q.Query(ctx, statement, tenant, webhook)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowToStructByPos[sealedSecret])
}

// ParseSecret returns the bytes of a secret as [Webhooks.NewSecret] wrote it:
// for receivers, and tests.
func ParseSecret(s string) ([]byte, error) {
	text, ok := strings.CutPrefix(s, secretPrefix)
	if !ok {
		return nil, fmt.Errorf("a webhook's secret begins with %s", secretPrefix)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("a webhook's secret is base64 after %s", secretPrefix)
	}
	return raw, nil
}
