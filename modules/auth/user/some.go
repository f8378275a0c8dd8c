package user

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"versola/platform/id"
)

const selectSome = `SELECT id FROM auth.users WHERE directory = $1 ORDER BY created_at DESC, id DESC LIMIT $2`

// Some returns the ids of up to limit people of a directory, the newest first.
func (s *Store) Some(ctx context.Context, tx pgx.Tx, directory string, limit int) ([]id.UUID, error) {
	rows, err := tx.Query(ctx, selectSome, directory, limit)
	if err != nil {
		return nil, fmt.Errorf("look for people of a directory: %w", err)
	}
	people, err := pgx.CollectRows(rows, pgx.RowTo[id.UUID])
	if err != nil {
		return nil, fmt.Errorf("look for people of a directory: %w", err)
	}
	return people, nil
}
