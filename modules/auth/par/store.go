package par

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/authorization"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// URIPrefix begins every request_uri of ours (RFC 9126 section 2.2).
const URIPrefix = "urn:ietf:params:oauth:request_uri:"

// maxHandle bounds what is hashed of a stranger's: handles are 43 characters.
const maxHandle = 64

// Store keeps pushed requests.
type Store struct{ DB *postgres.DB }

// insertSQL writes an unlogged table alone, so nothing waits for its commit.
const insertSQL = `INSERT INTO auth.pushed_request (handle_hash, tenant_id, client_id, request, valid_until, expires_at)
	VALUES ($1, $2, $3, $4, $5, $5)`

// Push keeps a request until then and returns its request_uri.
func (s *Store) Push(ctx context.Context, random io.Reader, r *authorization.Request, until time.Time) (string, error) {
	handle := id.NewHandle(random)
	request, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode authorization request: %w", err)
	}
	if _, err := s.DB.Exec(ctx, insertSQL, secret.Hash(handle), r.Tenant, r.ClientID, request, until); err != nil {
		return "", fmt.Errorf("keep pushed request: %w", err)
	}
	return URIPrefix + handle, nil
}

const findSQL = `SELECT request FROM auth.pushed_request WHERE handle_hash = $1 AND tenant_id = $2 AND client_id = $3 AND valid_until > $4`

// Find returns the request of a client behind a request_uri, or nil where there
// is none, or none any more.
func (s *Store) Find(ctx context.Context, tenant, client, uri string, now time.Time) (*authorization.Request, error) {
	handle, ours := strings.CutPrefix(uri, URIPrefix)
	if !ours || handle == "" || len(handle) > maxHandle {
		return nil, nil //nolint:nilnil // a foreign request_uri is an ordinary answer
	}
	hash, r := secret.Hash(handle), &authorization.Request{}
	err := s.DB.QueryRow(ctx, findSQL, hash, tenant, client, now).Scan(r)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil //nolint:nilnil // so is one that is spent
	case err != nil:
		return nil, fmt.Errorf("find pushed request: %w", err)
	}
	r.Pushed = hash
	return r, nil
}

const spendSQL = `DELETE FROM auth.pushed_request WHERE handle_hash = $1`

// Spend ends a pushed request whose answer is an error; false: it was answered
// meanwhile.
func (s *Store) Spend(ctx context.Context, hash []byte) (bool, error) {
	tag, err := s.DB.Exec(ctx, spendSQL, hash)
	if err != nil {
		return false, fmt.Errorf("spend pushed request: %w", err)
	}
	return tag.RowsAffected() == 1, nil
}
