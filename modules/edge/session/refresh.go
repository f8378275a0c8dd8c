package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/singleflight"

	"versola/modules/central/catalog"
	"versola/modules/edge/lru"
	"versola/modules/edge/provider"
	"versola/platform/clock"
)

// Bounds of a refresh.
const (
	// refreshAhead is how long before its end an access token is replaced:
	// longer than a call takes to reach the upstream and be checked there.
	refreshAhead = 10 * time.Second
	// refreshTimeout bounds a refresh with all its waiting: a call to auth
	// (5 s), storing, and a wait for another process.
	refreshTimeout = 12 * time.Second
	// leaseTime is how long a process may take before another tries: a call
	// to auth and storing what it gave.
	leaseTime = 8 * time.Second
	// pollFirst and pollMost bound the pause between looks at a row that
	// another process refreshes, which takes some 20 ms.
	pollFirst = 25 * time.Millisecond
	pollMost  = 200 * time.Millisecond
	// settleTimeout bounds the wait for refreshes at shutdown, within the
	// 15 s that a shutdown may take in all.
	settleTimeout = 3 * time.Second
	// retryAhead is the pause after a refresh ahead of time failed.
	retryAhead = 2 * time.Second
	// storeAttempts with pauses from storePause on bound how long new tokens
	// are held while the database is away: about 3 s, under auth's grace for
	// the old refresh token.
	storeAttempts = 6
	storePause    = 50 * time.Millisecond
)

// fresh returns the session with a live access token. One that still lives is
// returned at once, while its successor is fetched in the background.
func (s *Sessions) fresh(ctx context.Context, preset *catalog.Preset, e *Session) (*Session, error) {
	now := s.d.Clock.Now()
	if now.Before(e.AccessEnd) {
		if now.UnixMicro() >= e.retryAt.Load() {
			e.retryAt.Store(now.Add(retryAhead).UnixMicro())
			s.start(ctx, preset, e)
		}
		return e, nil
	}
	done := s.start(ctx, preset, e)
	select {
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for refresh: %w", ctx.Err())
	case res := <-done:
		if res.Err != nil {
			return nil, res.Err
		}
		return res.Val.(*Session), nil //nolint:errcheck,forcetypeassert // start returns nothing else
	}
}

// start runs or joins the one refresh of a session in this process. It goes on
// when its first caller hangs up: others wait for it, and a rotated token must
// be stored.
func (s *Sessions) start(ctx context.Context, preset *catalog.Preset, e *Session) <-chan singleflight.Result {
	return s.flights.DoChan(string(e.Hash[:]), func() (any, error) {
		s.refreshing.Add(1)
		defer s.refreshing.Add(-1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), refreshTimeout)
		defer cancel()
		next, err := s.refresh(ctx, preset, e)
		if err != nil {
			return nil, err
		}
		return next, nil
	})
}

// settle waits for refreshes under way: what auth has rotated must be stored.
func (s *Sessions) settle() {
	for start := clock.Monotonic(); s.refreshing.Load() > 0 && clock.Since(start) < settleTimeout; {
		time.Sleep(pollFirst)
	}
}

// refresh takes the lease and asks auth, or waits for who has it.
func (s *Sessions) refresh(ctx context.Context, preset *catalog.Preset, e *Session) (*Session, error) {
	epoch := s.dropped.Load()
	version := e.Version
	pause := pollFirst
	for {
		r, got, err := s.store.lease(ctx, e.Hash, version, s.d.Clock.Now())
		if err != nil {
			return nil, err
		}
		if got {
			return s.ask(ctx, preset, r, epoch)
		}
		// The lease is taken, the version is another, or the row is gone.
		r, err = s.store.load(ctx, e.Hash, s.d.Clock.Now())
		if errors.Is(err, ErrNone) {
			s.drop(e.Hash)
			return nil, ErrNone
		}
		if err != nil {
			return nil, err
		}
		if r.version != version {
			next := s.entry(r)
			if s.d.Clock.Now().Before(next.AccessEnd) {
				s.put(next, epoch)
				return next, nil
			}
			version = r.version // its token is over as well
			continue
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("%w: another process is at it for too long", ErrAuth)
		case <-time.After(pause):
		}
		pause = min(pause*2, pollMost)
	}
}

// ask gets new tokens from auth, with the lease in hand.
func (s *Sessions) ask(ctx context.Context, preset *catalog.Preset, r row, epoch int64) (*Session, error) {
	tokens, err := s.d.Refresher.Refresh(ctx, preset, r.tokens, r.subject)
	switch {
	case errors.Is(err, provider.ErrGrant):
		s.note(Over)
		if _, err := s.EndHash(ctx, r.hash); err != nil && !errors.Is(err, ErrNone) {
			return nil, err
		}
		return nil, ErrNone
	case err != nil:
		s.note(Unavailable)
		s.d.Log.WarnContext(ctx, "refresh of a session", "preset", preset.ID, "error", err)
		if err := s.store.release(context.WithoutCancel(ctx), r.hash, r.version); err != nil {
			s.d.Log.WarnContext(ctx, "release the lease of a session", "error", err)
		}
		return nil, fmt.Errorf("%w: %w", ErrAuth, err)
	}
	r.tokens, r.accessEnd = tokens, tokens.Claims.ExpiresAt
	alive, err := s.keep(ctx, r)
	switch {
	case err != nil:
		// The old refresh token is in auth's grace window: the next attempt,
		// here or elsewhere, gets the same successor.
		s.note(Unstored)
		return nil, err
	case !alive:
		return s.gone(ctx, r.hash, epoch)
	}
	s.note(Refreshed)
	r.version++
	next := s.entry(r)
	s.put(next, epoch)
	return next, nil
}

// gone handles a version that was not there to be renewed: the session ended
// meanwhile, or an attempt to store that seemed to fail had worked.
func (s *Sessions) gone(ctx context.Context, hash lru.Key, epoch int64) (*Session, error) {
	r, err := s.store.load(ctx, hash, s.d.Clock.Now())
	if err != nil {
		s.drop(hash)
		return nil, err
	}
	next := s.entry(r)
	if !s.d.Clock.Now().Before(next.AccessEnd) {
		return nil, fmt.Errorf("%w: what another process stored is over as well", ErrAuth)
	}
	s.put(next, epoch)
	return next, nil
}

// keep stores refreshed tokens, through a short absence of the database.
func (s *Sessions) keep(ctx context.Context, r row) (alive bool, err error) {
	pause := storePause
	for range storeAttempts {
		if alive, err = s.store.renew(ctx, r); err == nil {
			return alive, nil
		}
		select {
		case <-ctx.Done():
			return false, err
		case <-time.After(pause):
		}
		pause *= 2
	}
	return false, err
}

func (s *Sessions) note(o Outcome) {
	if s.d.OnRefresh != nil {
		s.d.OnRefresh(o)
	}
}

// EndRevoked ends a session that auth has revoked. It is best effort: the
// revocation itself keeps the session out.
func (s *Sessions) EndRevoked(ctx context.Context, hash lru.Key) {
	if _, err := s.EndHash(ctx, hash); err != nil && !errors.Is(err, ErrNone) {
		s.d.Log.WarnContext(ctx, "end a revoked session", "error", err)
	}
}
