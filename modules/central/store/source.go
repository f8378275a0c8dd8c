package store

import (
	"context"
	"sync"
	"sync/atomic"

	"versola/platform/postgres"
)

// Source keeps the newest state that this process knows, for all who need one.
type Source struct {
	db     *postgres.DB
	mu     sync.Mutex // one reads, the others find it read
	newest atomic.Pointer[State]
}

// NewSource makes a source that knows nothing yet.
func NewSource(db *postgres.DB) *Source { return &Source{db: db} }

// Known returns the newest state without asking the database; nil: none.
func (s *Source) Known() *State { return s.newest.Load() }

// Newest returns the configuration as it is in the database now: one statement
// where nothing changed. Errors: [ErrDamaged], or the database's.
func (s *Source) Newest(ctx context.Context) (*State, error) {
	mark, err := Current(ctx, s.db)
	if err != nil {
		return nil, err
	}
	if known := s.newest.Load(); known != nil && known.Mark == mark {
		return known, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.newest.Load()
	state, err := LoadState(ctx, s.db, known)
	if err != nil {
		return nil, err
	}
	// A writer may have kept what it has just committed.
	if s.newest.CompareAndSwap(known, state) {
		return state, nil
	}
	if now := s.newest.Load(); now.Revision > state.Revision {
		return now, nil
	}
	return state, nil
}

// Keep offers the state that a writer has committed.
func (s *Source) Keep(state *State) {
	for {
		was := s.newest.Load()
		if was != nil && was.Revision >= state.Revision || s.newest.CompareAndSwap(was, state) {
			return
		}
	}
}
