package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/modules/central/validate"
	"versola/platform/id"
)

const lockRevision = `SELECT revision FROM central.revision FOR UPDATE`

// Lock makes tx the only writer of configuration until it ends, and returns
// the revision that it starts from.
func Lock(ctx context.Context, tx pgx.Tx) (int64, error) {
	var revision int64
	if err := tx.QueryRow(ctx, lockRevision).Scan(&revision); err != nil {
		return 0, fmt.Errorf("lock configuration: %w", err)
	}
	return revision, nil
}

// Statements that write one entity: $1 tenant, $2 id, $3 spec, $4 now. Every
// write is a new version; who calls has compared before.
const (
	putEdge = `INSERT INTO central.edge (id, spec, created_at, updated_at) VALUES ($2, $3, $4, $4)
ON CONFLICT (id) DO UPDATE SET spec = $3, version = central.edge.version + 1, updated_at = $4 WHERE $1 = ''`
	putTenant = `INSERT INTO central.tenant (id, edge_id, spec, created_at, updated_at) VALUES ($2, NULLIF($5, ''), $3, $4, $4)
ON CONFLICT (id) DO UPDATE SET edge_id = NULLIF($5, ''), spec = $3, version = central.tenant.version + 1, updated_at = $4 WHERE $1 = ''`
	putPreset = `INSERT INTO central.preset (tenant_id, id, edge_id, spec, created_at, updated_at) VALUES ($1, $2, $5, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET edge_id = $5, spec = $3, version = central.preset.version + 1, updated_at = $4`
	putScope = `INSERT INTO central.scope (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $3, version = central.scope.version + 1, updated_at = $4`
	putResource = `INSERT INTO central.resource (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $3, version = central.resource.version + 1, updated_at = $4`
	putPermission = `INSERT INTO central.permission (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $3, version = central.permission.version + 1, updated_at = $4`
	putRole = `INSERT INTO central.role (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $3, version = central.role.version + 1, updated_at = $4`
	putClient = `INSERT INTO central.client (tenant_id, id, spec, created_at, updated_at) VALUES ($1, $2, $3, $4, $4)
ON CONFLICT (tenant_id, id) DO UPDATE SET spec = $3, version = central.client.version + 1, updated_at = $4`
)

// Put creates or replaces one entity: *catalog.EdgeSpec, *catalog.TenantSpec
// and so on. A client's secrets are written by [PutSecrets]. References must
// be there already: edges, tenants, then the rest.
func Put(ctx context.Context, tx pgx.Tx, spec any, now time.Time) error {
	var of validate.Ref
	var statement string
	var args []any // beyond the common four
	switch s := spec.(type) {
	case *catalog.EdgeSpec:
		of, statement = validate.Ref{Kind: validate.KindEdge, ID: s.ID}, putEdge
	case *catalog.TenantSpec:
		of, statement, args = validate.Ref{Kind: validate.KindTenant, ID: s.ID}, putTenant, []any{s.Edge}
	case *catalog.ScopeSpec:
		of, statement = validate.Ref{Kind: validate.KindScope, Tenant: s.Tenant, ID: s.ID}, putScope
	case *catalog.ResourceSpec:
		of, statement = validate.Ref{Kind: validate.KindResource, Tenant: s.Tenant, ID: s.ID}, putResource
	case *catalog.PermissionSpec:
		of, statement = validate.Ref{Kind: validate.KindPermission, Tenant: s.Tenant, ID: s.ID}, putPermission
	case *catalog.RoleSpec:
		of, statement = validate.Ref{Kind: validate.KindRole, Tenant: s.Tenant, ID: s.ID}, putRole
	case *catalog.ClientSpec:
		bare := *s
		bare.Secrets = nil
		of, statement, spec = validate.Ref{Kind: validate.KindClient, Tenant: s.Tenant, ID: s.ID}, putClient, &bare
	case *catalog.PresetSpec:
		of, statement, args = validate.Ref{Kind: validate.KindPreset, Tenant: s.Tenant, ID: s.ID}, putPreset, []any{s.Edge}
	default:
		return fmt.Errorf("store %T: %w", spec, errors.ErrUnsupported)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encode %s: %w", of, err)
	}
	if _, err := tx.Exec(ctx, statement, append([]any{of.Tenant, of.ID, raw, now}, args...)...); err != nil {
		return fmt.Errorf("store %s: %w", of, err)
	}
	return nil
}

const (
	deleteSecrets = `DELETE FROM central.client_secret WHERE tenant_id = $1 AND client_id = $2`
	insertSecret  = `INSERT INTO central.client_secret (tenant_id, client_id, id, sealed, created_at) VALUES ($1, $2, $3, $4, $5)`
)

// Secret is a sealed secret and when it came to be, which orders them.
type Secret struct {
	ID      id.UUID
	Sealed  []byte
	Created time.Time
}

// PutSecrets replaces all secrets of a client.
func PutSecrets(ctx context.Context, tx pgx.Tx, tenant, client string, secrets []Secret) error {
	b := &pgx.Batch{}
	b.Queue(deleteSecrets, tenant, client)
	for _, s := range secrets {
		b.Queue(insertSecret, tenant, client, s.ID, s.Sealed, s.Created)
	}
	if err := tx.SendBatch(ctx, b).Close(); err != nil {
		return fmt.Errorf("store secrets of client %s/%s: %w", tenant, client, err)
	}
	return nil
}
