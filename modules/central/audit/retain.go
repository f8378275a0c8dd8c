package audit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// retainBatch is how many entries are removed at once, since nobody appends
// meanwhile: tens of milliseconds.
const retainBatch = 10_000

const (
	// The entries before a time are those before the first one that is not
	// older; clocks of processes differ, so times are not quite in order.
	selectOlder = `
SELECT e.seq, e.hash FROM central.audit_entry e
WHERE e.seq < COALESCE((SELECT min(seq) FROM central.audit_entry WHERE at >= $1), (SELECT seq FROM central.audit_head))
AND e.seq <= (SELECT base_seq FROM central.audit_head) + $2
ORDER BY e.seq DESC LIMIT 1`
	allowRetain = `SELECT set_config('versola.audit_retain', $1, true)`
	deleteOlder = `DELETE FROM central.audit_entry WHERE seq <= $1`
)

// Retain removes the entries older than a time, from the beginning of the
// chain, and records that it did, in transactions of [retainBatch]. The newest
// entry always stays. It returns how many were removed.
func (l *Log) Retain(ctx context.Context, before time.Time, by Actor) (int64, error) {
	var total int64
	for {
		removed, err := l.retain(ctx, before, by)
		total += removed
		if err != nil || removed < retainBatch {
			return total, err
		}
	}
}

func (l *Log) retain(ctx context.Context, before time.Time, by Actor) (int64, error) {
	var removed int64
	err := pgx.BeginFunc(ctx, l.db, func(tx pgx.Tx) error {
		h, err := scanHead(tx.QueryRow(ctx, lockHead))
		if err != nil {
			return fmt.Errorf("lock audit log: %w", err)
		}
		if !l.authentic(h) {
			return errors.New("the head of the audit log is not authentic; verify it before anything is removed")
		}
		var last Anchor
		var hash []byte
		if err := tx.QueryRow(ctx, selectOlder, before, retainBatch).Scan(&last.Seq, &hash); errors.Is(err, pgx.ErrNoRows) {
			return nil
		} else if err != nil {
			return fmt.Errorf("look for old entries: %w", err)
		}
		copy(last.Hash[:], hash)
		h.base = last
		b := &pgx.Batch{}
		b.Queue(allowRetain, strconv.FormatInt(last.Seq, 10))
		b.Queue(deleteOlder, last.Seq).Exec(func(ct pgconn.CommandTag) error { removed = ct.RowsAffected(); return nil })
		l.queueHead(b, h)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return fmt.Errorf("remove old entries: %w", err)
		}
		return l.Append(ctx, tx, Entry{Action: "audit.retained", Actor: by, Detail: map[string]string{
			"up_to": strconv.FormatInt(last.Seq, 10), "removed": strconv.FormatInt(removed, 10), "before": before.UTC().Format(time.RFC3339)}})
	})
	if err != nil {
		return 0, err
	}
	return removed, nil
}
