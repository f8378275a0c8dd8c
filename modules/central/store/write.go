package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
)

const (
	lockRevision = `SELECT revision, token FROM central.revision FOR UPDATE`
	touch        = `SELECT central.touch()`
)

// Lock makes tx the only writer of configuration until it ends, and returns
// the state that it starts from.
func Lock(ctx context.Context, tx pgx.Tx) (Mark, error) {
	var m Mark
	if err := tx.QueryRow(ctx, lockRevision).Scan(&m.Revision, &m.Token); err != nil {
		return Mark{}, fmt.Errorf("lock configuration: %w", err)
	}
	return m, nil
}

// Touch gives tx its new revision, the same one however often it is asked.
func Touch(ctx context.Context, tx pgx.Tx) (Mark, error) {
	var m Mark
	b := &pgx.Batch{}
	b.Queue(touch)
	b.Queue(selectMark).QueryRow(func(row pgx.Row) error { return row.Scan(&m.Revision, &m.Token) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return Mark{}, fmt.Errorf("count revision: %w", err)
	}
	return m, nil
}

// Statements that write one entity of a kind, whose name is the table's.
const (
	putGlobal = `INSERT INTO central.%s (id, spec, version, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (id) DO UPDATE SET spec = $2, version = $3, updated_at = $4`
	putScoped = `INSERT INTO central.%s (tenant_id, id, spec, version, created_at, updated_at) VALUES ($5, $1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $2, version = $3, updated_at = $4`
	deleteGlobal = `DELETE FROM central.%s WHERE id = $1`
	deleteScoped = `DELETE FROM central.%s WHERE id = $1 AND tenant_id = $2`
)

// Statements about a client's secrets.
const (
	deleteSecrets = `DELETE FROM central.client_secret WHERE tenant_id = $1 AND client_id = $2 AND NOT id = ANY ($3)`
	insertSecret  = `INSERT INTO central.client_secret (tenant_id, client_id, id, sealed, created_at) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (tenant_id, client_id, id) DO NOTHING`
)

// Writes collects statements, to be sent at once. What is referred to is put
// before what refers to it, and deleted after.
type Writes struct {
	// Version and Now are those of every row written.
	Version int64
	Now     time.Time

	batch pgx.Batch
}

// Put creates or replaces an entity of kind k. A client's secrets are written
// by [Writes.PutSecrets].
func (w *Writes) Put(k *catalog.Kind, e catalog.Entity) error {
	var spec any = e
	if c, ok := e.(*catalog.ClientSpec); ok {
		bare := *c
		bare.Secrets = nil
		spec = &bare
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode %s: %w", e.Ref(), err)
	}
	if k.Global {
		w.batch.Queue(fmt.Sprintf(putGlobal, k.Name), e.Ref().ID, raw, w.Version, w.Now)
	} else {
		w.batch.Queue(fmt.Sprintf(putScoped, k.Name), e.Ref().ID, raw, w.Version, w.Now, e.Ref().Tenant)
	}
	return nil
}

// Delete removes an entity of kind k.
func (w *Writes) Delete(k *catalog.Kind, r catalog.Ref) {
	if k.Global {
		w.batch.Queue(fmt.Sprintf(deleteGlobal, k.Name), r.ID)
	} else {
		w.batch.Queue(fmt.Sprintf(deleteScoped, k.Name), r.ID, r.Tenant)
	}
}

// PutSecrets makes secrets all that a client has. Those that it had keep their
// time of creation.
func (w *Writes) PutSecrets(client catalog.Ref, secrets []catalog.SealedSecret) {
	ids := make([][16]byte, len(secrets))
	for i, s := range secrets {
		ids[i] = s.ID
	}
	w.batch.Queue(deleteSecrets, client.Tenant, client.ID, ids)
	for i, s := range secrets {
		// The first is the newest: the time orders them.
		w.batch.Queue(insertSecret, client.Tenant, client.ID, s.ID, s.Sealed, w.Now.Add(-time.Duration(i)*time.Microsecond))
	}
}

// Send executes what was collected.
func (w *Writes) Send(ctx context.Context, tx pgx.Tx) error {
	if w.batch.Len() == 0 {
		return nil
	}
	if err := tx.SendBatch(ctx, &w.batch).Close(); err != nil {
		return fmt.Errorf("store configuration: %w", err)
	}
	return nil
}
