package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

// Bounds of the memory of key sets.
const (
	// keepFor is how long a key set counts as current: a key that a client
	// withdraws is not accepted for longer.
	keepFor = 5 * time.Minute
	// askAgain is the shortest time between two requests for one key set,
	// whatever strangers send and however the client's server answers.
	askAgain = 30 * time.Second
	// keepStale is how long the last good key set serves where the client's
	// server does not answer: a working day, to mend it.
	keepStale = 12 * time.Hour
	// maxSets bounds the memory; clients are registered by administrators.
	maxSets = 10_000
	// fetchTimeout bounds one request: a sign-in waits for it.
	fetchTimeout = 5 * time.Second
)

// Keys are the public keys of clients, registered ones and those behind a
// "jwks_uri". It is safe for concurrent use.
type Keys struct {
	HTTP  *http.Client // with an address filter, and without redirects
	Clock clock.Clock

	flights singleflight.Group
	mu      sync.Mutex
	sets    map[string]keySet // by address
}

// keySet is a key set as it was fetched last.
type keySet struct {
	keys    []jose.PublicKey
	fetched time.Time // zero: never
	tried   time.Time
	err     error // of the last try
}

// Any tells whether one of the client's keys passes. A key set behind an
// address is fetched anew when it is old, or when none of its keys passes, which
// is what a new key looks like. Errors: a [refusal], where there is no key set.
func (k *Keys) Any(ctx context.Context, cl *catalog.Client, passes func(jose.PublicKey) bool) (bool, error) {
	if cl.JWKSURI == "" {
		return slices.ContainsFunc(cl.Keys, passes), nil
	}
	now := k.Clock.Now()
	set := k.known(cl.JWKSURI)
	if now.Sub(set.fetched) <= keepFor && slices.ContainsFunc(set.keys, passes) {
		return true, nil
	}
	if now.Sub(set.tried) >= askAgain {
		var err error
		if set, err = k.fetchOnce(ctx, cl.JWKSURI); err != nil {
			return false, err
		}
	}
	if now.Sub(set.fetched) > keepStale {
		return false, refusal(fmt.Sprintf("the key set behind jwks_uri cannot be had: %v", set.err))
	}
	return slices.ContainsFunc(set.keys, passes), nil
}

func (k *Keys) known(uri string) keySet {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.sets[uri]
}

// fetchOnce fetches a key set for all who wait for it at the moment; a request
// that is given up does not end it for the others. Errors: the context's.
func (k *Keys) fetchOnce(ctx context.Context, uri string) (keySet, error) {
	result := k.flights.DoChan(uri, func() (any, error) {
		now := k.Clock.Now()
		set := k.known(uri)
		if now.Sub(set.tried) < askAgain { // another one was just done
			return set, nil
		}
		set.tried = now
		keys, err := k.fetch(context.WithoutCancel(ctx), uri)
		if set.err = err; err == nil {
			set.keys, set.fetched = keys, now
		}
		k.remember(uri, set, now)
		return set, nil
	})
	select {
	case r := <-result:
		return r.Val.(keySet), nil //nolint:errcheck,forcetypeassert // what is returned above
	case <-ctx.Done():
		return keySet{}, ctx.Err() //nolint:wrapcheck // the caller's own
	}
}

// remember keeps a set; where there are too many, those that nobody asked for
// lately go, and if need be all.
func (k *Keys) remember(uri string, set keySet, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.sets) >= maxSets {
		for other, s := range k.sets {
			if now.Sub(s.tried) > keepFor {
				delete(k.sets, other)
			}
		}
	}
	if k.sets == nil || len(k.sets) >= maxSets {
		k.sets = map[string]keySet{}
	}
	k.sets[uri] = set
}

func (k *Keys) fetch(ctx context.Context, uri string) ([]jose.PublicKey, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, uri, nil)
	if err != nil {
		return nil, fmt.Errorf("ask for key set: %w", err)
	}
	r.Header.Set("Accept", "application/jwk-set+json, application/json")
	answer, err := k.HTTP.Do(r)
	if err != nil {
		return nil, fmt.Errorf("ask for key set: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("key set: status %d", answer.StatusCode)
	}
	raw, err := io.ReadAll(io.LimitReader(answer.Body, jose.MaxKeySet+1))
	if err != nil {
		return nil, fmt.Errorf("read key set: %w", err)
	}
	keys, err := jose.SignatureKeys(raw)
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, errors.New("key set without a usable key")
	}
	return keys, nil
}
