package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/platform/postgres"
)

// Statements that read a whole table. The order is the key's, so that equal
// configurations give equal snapshots; secrets come newest first.
const (
	selectRevision    = `SELECT revision FROM central.revision`
	selectEdges       = `SELECT '', id, spec FROM central.edge ORDER BY id`
	selectTenants     = `SELECT '', id, spec FROM central.tenant ORDER BY id`
	selectScopes      = `SELECT tenant_id, id, spec FROM central.scope ORDER BY tenant_id, id`
	selectResources   = `SELECT tenant_id, id, spec FROM central.resource ORDER BY tenant_id, id`
	selectPermissions = `SELECT tenant_id, id, spec FROM central.permission ORDER BY tenant_id, id`
	selectRoles       = `SELECT tenant_id, id, spec FROM central.role ORDER BY tenant_id, id`
	selectClients     = `SELECT tenant_id, id, spec FROM central.client ORDER BY tenant_id, id`
	selectSecrets     = `SELECT tenant_id, client_id, id, sealed FROM central.client_secret ORDER BY tenant_id, client_id, created_at DESC, id DESC`
	selectPresets     = `SELECT tenant_id, id, spec FROM central.preset ORDER BY tenant_id, id`
	selectKeys        = `SELECT id, alg, state, public_jwk, sealed FROM central.signing_key ORDER BY created_at, id`
)

// ErrDamaged reports a stored document that cannot be read.
var ErrDamaged = errors.New("damaged configuration in the database")

// Revision returns the current revision: one cheap statement.
func Revision(ctx context.Context, db *postgres.DB) (int64, error) {
	var revision int64
	if err := db.QueryRow(ctx, selectRevision).Scan(&revision); err != nil {
		return 0, fmt.Errorf("read catalog revision: %w", err)
	}
	return revision, nil
}

// Load reads the configuration as of one instant. Issuer and RootTenant are
// the caller's to set. Errors: [ErrDamaged], or the database's.
func Load(ctx context.Context, db *postgres.DB) (*catalog.Snapshot, error) {
	var s *catalog.Snapshot
	err := pgx.BeginTxFunc(ctx, db, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
		s, err = Read(ctx, tx)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("load catalog: %w", err)
	}
	return s, nil
}

// Read reads the configuration as tx sees it, in one round trip.
func Read(ctx context.Context, tx pgx.Tx) (_ *catalog.Snapshot, err error) {
	s := &catalog.Snapshot{}
	b := &pgx.Batch{}
	b.Queue(selectRevision).QueryRow(func(row pgx.Row) error { return row.Scan(&s.Revision) })
	queue(b, selectEdges, &s.Edges, func(e *catalog.EdgeSpec) (string, string) { return "", e.ID })
	queue(b, selectTenants, &s.Tenants, func(t *catalog.TenantSpec) (string, string) { return "", t.ID })
	queue(b, selectScopes, &s.Scopes, func(e *catalog.ScopeSpec) (string, string) { return e.Tenant, e.ID })
	queue(b, selectResources, &s.Resources, func(e *catalog.ResourceSpec) (string, string) { return e.Tenant, e.ID })
	queue(b, selectPermissions, &s.Permissions, func(e *catalog.PermissionSpec) (string, string) { return e.Tenant, e.ID })
	queue(b, selectRoles, &s.Roles, func(e *catalog.RoleSpec) (string, string) { return e.Tenant, e.ID })
	queue(b, selectClients, &s.Clients, func(e *catalog.ClientSpec) (string, string) { return e.Tenant, e.ID })
	queue(b, selectPresets, &s.Presets, func(e *catalog.PresetSpec) (string, string) { return e.Tenant, e.ID })
	b.Queue(selectKeys).Query(func(rows pgx.Rows) error {
		var k catalog.KeySpec
		_, err := pgx.ForEachRow(rows, []any{&k.ID, &k.Alg, &k.State, &k.Public, &k.Sealed}, func() error {
			s.Keys = append(s.Keys, k)
			k = catalog.KeySpec{}
			return nil
		})
		return err
	})
	b.Queue(selectSecrets).Query(func(rows pgx.Rows) error { return readSecrets(rows, s.Clients) })
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	return s, nil
}

// queue adds a statement of (tenant, id, spec) whose rows are appended to list.
func queue[T any](b *pgx.Batch, statement string, list *[]T, key func(*T) (tenant, id string)) {
	b.Queue(statement).Query(func(rows pgx.Rows) error {
		var tenant, name string
		var raw []byte
		_, err := pgx.ForEachRow(rows, []any{&tenant, &name, &raw}, func() error {
			spec, err := decode[T](raw)
			if err != nil {
				return fmt.Errorf("%w: %T %s/%s: %w", ErrDamaged, *spec, tenant, name, err)
			}
			if t, i := key(spec); t != tenant || i != name {
				return fmt.Errorf("%w: %T %s/%s is stored under %s/%s", ErrDamaged, *spec, t, i, tenant, name)
			}
			*list = append(*list, *spec)
			return nil
		})
		return err
	})
}

func decode[T any](raw []byte) (*T, error) {
	v := new(T)
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return v, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return v, errors.New("data after the document")
	}
	return v, nil
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
