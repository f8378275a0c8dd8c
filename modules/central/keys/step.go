package keys

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/jose"
)

// step is one transaction over the keys, under the lock of the configuration.
type step struct {
	r       *Rotator
	ctx     context.Context //nolint:containedctx // lives as long as one call
	tx      pgx.Tx
	now     time.Time
	by      Caller
	keys    []Key // as they are now
	entries []audit.Entry
}

// change runs do within a transaction, and returns the keys after it.
func (r *Rotator) change(ctx context.Context, by Caller, do func(*step) error) ([]Key, error) {
	var keys []Key
	err := pgx.BeginFunc(ctx, r.DB, func(tx pgx.Tx) error {
		if _, err := store.Lock(ctx, tx); err != nil {
			return err
		}
		s := &step{r: r, ctx: ctx, tx: tx, now: r.Clock.Now(), by: by}
		if err := s.reload(); err != nil {
			return err
		}
		if err := do(s); err != nil {
			return err
		}
		keys = s.keys
		return r.Audit.Append(ctx, tx, s.entries...)
	})
	if err != nil {
		return nil, err
	}
	if r.Committed != nil {
		r.Committed(ctx)
	}
	return keys, nil
}

func (s *step) reload() (err error) {
	s.keys, err = list(s.ctx, s.tx)
	return err
}

func (s *step) find(alg, state string) (Key, bool) {
	i := slices.IndexFunc(s.keys, func(k Key) bool { return k.Alg == alg && k.State == state })
	if i < 0 {
		return Key{}, false
	}
	return s.keys[i], true
}

// exec runs one statement about a key, notes it and reads the keys again.
func (s *step) exec(action, kid, alg, reason, statement string, args ...any) error {
	if _, err := s.tx.Exec(s.ctx, statement, args...); err != nil {
		return fmt.Errorf("store signing key: %w", err)
	}
	s.entries = append(s.entries, audit.Entry{Action: "signing_key." + action, Actor: s.by.Actor, Address: s.by.Address, RequestID: s.by.RequestID,
		Object: &audit.Object{Kind: "signing_key", ID: kid}, Detail: map[string]string{"alg": alg, "reason": reason}})
	return s.reload()
}

// publish makes sure that a next key signs from at on.
func (s *step) publish(alg string, at time.Time) error {
	if next, ok := s.find(alg, catalog.KeyNext); ok {
		if next.Due != nil && !next.Due.After(at) {
			return nil
		}
		return s.exec("rescheduled", next.ID, alg, "", dueAt, next.ID, s.now, at)
	}
	private, err := jose.Generate(jose.Algorithm(alg))
	if err != nil {
		return err
	}
	public, err := jose.NewPublicKey("", jose.Algorithm(alg), private.Public())
	if err != nil {
		return err
	}
	jwk, err := public.JWK()
	if err != nil {
		return err
	}
	der, err := jose.MarshalPrivate(private)
	if err != nil {
		return err
	}
	sealed := s.r.keyring.Seal(der, catalog.SigningKeyContext(public.ID))
	return s.exec("published", public.ID, alg, "", insertKey, public.ID, alg, catalog.KeyNext, jwk, sealed, s.now, at, nil)
}

// passed tells whether a key's next step is due.
func (s *step) passed(k Key) bool { return k.Due != nil && !k.Due.After(s.now) }

// due activates the next keys whose time has come, and removes the retiring
// ones.
func (s *step) due() error {
	for _, k := range slices.Clone(s.keys) {
		switch {
		case k.State == catalog.KeyNext && s.passed(k):
			if was, ok := s.find(k.Alg, catalog.KeyActive); ok {
				if err := s.exec("retiring", was.ID, k.Alg, "", toRetired, was.ID, s.now, s.now.Add(s.r.Policy.RetireAfter)); err != nil {
					return err
				}
			}
			if err := s.exec("activated", k.ID, k.Alg, "", toActive, k.ID, s.now); err != nil {
				return err
			}
		case k.State == catalog.KeyRetiring && s.passed(k):
			if err := s.remove(k.ID, "expired"); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *step) remove(kid, reason string) error {
	i := slices.IndexFunc(s.keys, func(k Key) bool { return k.ID == kid })
	return s.exec("removed", kid, s.keys[i].Alg, reason, deleteKey, kid)
}

// aged tells whether the schedule wants a new key in an active one's place.
func (s *step) aged(k Key) bool {
	if s.r.Policy.RotateEvery <= 0 || k.State != catalog.KeyActive {
		return false
	}
	since := k.Created
	if k.ActiveSince != nil {
		since = *k.ActiveSince
	}
	_, begun := s.find(k.Alg, catalog.KeyNext)
	return !begun && !s.now.Before(since.Add(s.r.Policy.RotateEvery).Add(-s.r.Policy.PublishFor))
}

// scheduled publishes the keys that the schedule wants.
func (s *step) scheduled() error {
	for _, k := range slices.Clone(s.keys) {
		if s.aged(k) {
			if err := s.publish(k.Alg, s.now.Add(s.r.Policy.PublishFor)); err != nil {
				return err
			}
		}
	}
	return nil
}

// pending tells whether anything is due.
func (s *step) pending() bool {
	return slices.ContainsFunc(s.keys, func(k Key) bool {
		return s.aged(k) || k.State != catalog.KeyActive && s.passed(k)
	})
}
