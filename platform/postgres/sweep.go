package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
)

// sweepBatch is how many rows one cleanup statement deletes: few enough to
// hold its locks for milliseconds only.
const sweepBatch = 1000

// Sweep describes the cleanup of one table: rows whose column (an indexed
// timestamptz) lies in the past are deleted. Every process sweeps; rows locked
// by another are skipped, so the work is done once.
type Sweep struct {
	Table  string // schema.table
	Column string
}

// Sweeper deletes expired rows now and then.
type Sweeper struct {
	DB     *DB
	Now    func() time.Time
	Every  time.Duration
	Sweeps []Sweep
	Log    *slog.Logger
	// OnDeleted, when set, hears how many rows went, for a metric.
	OnDeleted func(table string, rows int64)
}

// Run sweeps until ctx ends.
func (s *Sweeper) Run(ctx context.Context) error {
	tick := time.NewTicker(s.Every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := s.Once(ctx); err != nil && ctx.Err() == nil {
			s.Log.WarnContext(ctx, "cleanup of expired rows", "error", err)
		}
	}
}

// Once deletes what has expired by now, batch by batch.
func (s *Sweeper) Once(ctx context.Context) error {
	for _, sw := range s.Sweeps {
		table := pgx.Identifier(splitName(sw.Table)).Sanitize()
		column := pgx.Identifier{sw.Column}.Sanitize()
		statement := "DELETE FROM " + table + " WHERE ctid = ANY(ARRAY(SELECT ctid FROM " + table +
			" WHERE " + column + " < $1 LIMIT $2 FOR UPDATE SKIP LOCKED))"
		for {
			tag, err := s.DB.Exec(ctx, statement, s.Now(), sweepBatch)
			if err != nil {
				return fmt.Errorf("sweep %s: %w", sw.Table, err)
			}
			if s.OnDeleted != nil {
				s.OnDeleted(sw.Table, tag.RowsAffected())
			}
			if tag.RowsAffected() < sweepBatch {
				break
			}
		}
	}
	return nil
}

func splitName(name string) []string {
	for i := range len(name) {
		if name[i] == '.' {
			return []string{name[:i], name[i+1:]}
		}
	}
	return []string{name}
}
