package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/platform/postgres"
)

// Statements that read a whole table; %s is the kind, which is the table's
// name. The order is that of catalog.CompareRef, so that equal configurations
// give equal snapshots; secrets come newest first.
const (
	selectGlobal  = `SELECT '', id, spec, version, created_at, updated_at FROM central.%s ORDER BY id COLLATE "C"`
	selectScoped  = `SELECT tenant_id, id, spec, version, created_at, updated_at FROM central.%s ORDER BY tenant_id COLLATE "C", id COLLATE "C"`
	selectSecrets = `SELECT tenant_id, client_id, id, sealed FROM central.client_secret
ORDER BY tenant_id COLLATE "C", client_id COLLATE "C", created_at DESC, id DESC`
	selectKeys = `SELECT id, alg, state, public_jwk, sealed FROM central.signing_key ORDER BY created_at, id`
)

// ErrDamaged reports a stored document that cannot be read.
var ErrDamaged = errors.New("damaged configuration in the database")

// Meta is what a row says about its entity.
type Meta struct {
	// Version is the revision that the entity was last changed by.
	Version          int64
	Created, Updated time.Time
}

// Current returns the mark of the current state: one cheap statement.
func Current(ctx context.Context, db *postgres.DB) (Mark, error) {
	var m Mark
	if err := db.QueryRow(ctx, selectMark).Scan(&m.Revision, &m.Token); err != nil {
		return Mark{}, fmt.Errorf("read catalog revision: %w", err)
	}
	return m, nil
}

// Load reads the whole configuration as of one instant. Issuer and RootTenant
// are the caller's to set. Errors: [ErrDamaged], or the database's.
func Load(ctx context.Context, db *postgres.DB) (*catalog.Snapshot, error) {
	s, err := LoadState(ctx, db, nil)
	if err != nil {
		return nil, err
	}
	return s.Snapshot, nil
}

// LoadState reads the configuration as of one instant, with what the rows say
// about their entities. Of a state that is known already only what differs is
// read; nil: everything is. Errors: [ErrDamaged], or the database's.
func LoadState(ctx context.Context, db *postgres.DB, known *State) (s *State, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		s, err = Read(ctx, tx, known)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load catalog: %w", err)
	}
	return s, nil
}

// Read is [LoadState] as tx sees the configuration, in at most three round
// trips. Nobody may change it meanwhile: tx is of one snapshot, or holds
// [Lock].
func Read(ctx context.Context, tx pgx.Tx, known *State) (*State, error) {
	return reader{ctx, tx}.advance(known)
}

// reader reads within one transaction.
type reader struct {
	ctx context.Context //nolint:containedctx // lives as long as one call
	tx  pgx.Tx
}

// whole reads everything, in one round trip.
func (r reader) whole() (*State, error) {
	state := &State{Snapshot: &catalog.Snapshot{}, Metas: map[catalog.Ref]Meta{}}
	s := state.Snapshot
	b := &pgx.Batch{}
	b.Queue(selectMark).QueryRow(func(row pgx.Row) error { return row.Scan(&state.Revision, &state.Token) })
	for _, k := range catalog.Kinds {
		statement := selectScoped
		if k.Global {
			statement = selectGlobal
		}
		queue(b, k, s, state.Metas, fmt.Sprintf(statement, k.Name))
	}
	queueKeys(b, s)
	b.Queue(selectSecrets).Query(func(rows pgx.Rows) error { return readSecrets(rows, s.Clients) })
	if err := r.tx.SendBatch(r.ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	s.Revision = state.Revision
	return state, nil
}

// queue adds a statement that reads entities of a kind, which go to the
// snapshot.
func queue(b *pgx.Batch, k *catalog.Kind, s *catalog.Snapshot, metas map[catalog.Ref]Meta, statement string, args ...any) {
	b.Queue(statement, args...).Query(func(rows pgx.Rows) error {
		at := catalog.Ref{Kind: k.Name}
		var raw []byte
		var m Meta
		_, err := pgx.ForEachRow(rows, []any{&at.Tenant, &at.ID, &raw, &m.Version, &m.Created, &m.Updated}, func() error {
			spec := k.New()
			if err := decode(raw, spec); err != nil {
				return fmt.Errorf("%w: %s: %w", ErrDamaged, at, err)
			}
			if spec.Ref() != at {
				return fmt.Errorf("%w: %s is stored as %s", ErrDamaged, spec.Ref(), at)
			}
			k.Put(s, spec)
			metas[at] = m
			return nil
		})
		return err
	})
}

// queueKeys adds the statement that reads all signing keys.
func queueKeys(b *pgx.Batch, s *catalog.Snapshot) {
	b.Queue(selectKeys).Query(func(rows pgx.Rows) error {
		var k catalog.KeySpec
		_, err := pgx.ForEachRow(rows, []any{&k.ID, &k.Alg, &k.State, &k.Public, &k.Sealed}, func() error {
			s.Keys = append(s.Keys, k)
			k = catalog.KeySpec{}
			return nil
		})
		return err
	})
}

func decode(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("data after the document")
	}
	return nil
}

// readSecrets hands each secret to its client; both are ordered by key.
func readSecrets(rows pgx.Rows, clients []catalog.ClientSpec) error {
	var tenant, client string
	var sealed catalog.SealedSecret
	at := 0
	_, err := pgx.ForEachRow(rows, []any{&tenant, &client, &sealed.ID, &sealed.Sealed}, func() error {
		for at < len(clients) && (clients[at].Tenant != tenant || clients[at].ID != client) {
			at++
		}
		if at == len(clients) {
			return fmt.Errorf("%w: secret of client %s/%s, which does not exist", ErrDamaged, tenant, client)
		}
		clients[at].Secrets = append(clients[at].Secrets, sealed)
		sealed = catalog.SealedSecret{}
		return nil
	})
	return err
}
