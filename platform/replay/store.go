package replay

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// batch are claims that one statement takes.
type batch struct {
	items map[key]time.Time // when they expire
	done  chan struct{}     // closed when the rest is filled in
	fresh map[key]bool
	err   error
}

// claimSQL claims keys, and returns those that were not claimed before together
// with the beginning of the epoch; where there is none, it begins now.
const claimSQL = `
WITH present AS (
    SELECT began_at FROM {schema}.replay_epoch
), begun AS (
    INSERT INTO {schema}.replay_epoch (began_at) SELECT $3 WHERE NOT EXISTS (SELECT FROM present)
    ON CONFLICT (one) DO UPDATE SET began_at = replay_epoch.began_at
    RETURNING began_at
), claimed AS (
    INSERT INTO {schema}.replay (key, expires_at) SELECT * FROM unnest($1::bytea[], $2::timestamptz[])
    ON CONFLICT (key) DO NOTHING
    RETURNING key
)
SELECT (SELECT began_at FROM present UNION ALL SELECT began_at FROM begun), ARRAY(SELECT key FROM claimed)`

// store takes a batch to the database. Keys are in order, so that two processes
// with the same ones do not wait for each other in a circle.
func (g *Guard) store(ctx context.Context, b *batch) {
	ctx, cancel := context.WithTimeout(ctx, statementTimeout)
	defer cancel()
	keys := make([][]byte, 0, len(b.items))
	for k := range b.items {
		keys = append(keys, k[:])
	}
	slices.SortFunc(keys, bytes.Compare)
	expires := make([]time.Time, len(keys))
	for i, k := range keys {
		expires[i] = b.items[key(k)]
	}
	var epoch time.Time
	var claimed [][]byte
	if err := g.o.DB.QueryRow(ctx, g.sql, keys, expires, g.o.Clock.Now()).Scan(&epoch, &claimed); err != nil {
		b.err = fmt.Errorf("remember what was used: %w", err)
		return
	}
	b.fresh = make(map[key]bool, len(claimed))
	for _, raw := range claimed {
		k := key(raw)
		b.fresh[k] = b.items[k].After(epoch.Add(g.o.Longest))
	}
}
