package keys

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	// MinPublish is the least time that a key is published before it signs in
	// an orderly rotation: twice as long as relying parties may keep the key
	// set (max-age of jwks.json, 5 minutes).
	MinPublish = 10 * time.Minute
	// MaxPublish is the most: an operator who wants more has mistyped.
	MaxPublish = 30 * 24 * time.Hour
	// MinRetire is longer than any token lives: validation allows 24 hours, and
	// an hour covers clocks and processes that were late to learn of it.
	MinRetire = 25 * time.Hour
	// MaxRetire bounds how many keys are published at once.
	MaxRetire = 90 * 24 * time.Hour
	// MinRotate is the fastest: no more than a few keys overlap.
	MinRotate = 24 * time.Hour
	// MaxRotate is the slowest: of a key of two years nobody knows how it is
	// replaced.
	MaxRotate = 2 * 365 * 24 * time.Hour
	// tickEvery is how often a process looks for what is due.
	tickEvery = 20 * time.Second
)

// Errors of this package.
var (
	ErrUnknown   = errors.New("no such signing key")
	ErrAlgorithm = errors.New("unsupported algorithm")
	ErrPublish   = fmt.Errorf("the time between publishing and signing is from %s to %s", MinPublish, MaxPublish)
)

// Policy is the schedule.
type Policy struct {
	// RotateEvery is how long a key signs; 0: only by hand.
	RotateEvery time.Duration
	// PublishFor is how long the schedule publishes a key before it signs, for
	// relying parties that look seldom; 0: [MinPublish].
	PublishFor time.Duration
	// RetireAfter is how long a key is published after it signed last; 0:
	// [MinRetire].
	RetireAfter time.Duration
}

// Check reports what is wrong with a policy, by the name of the setting.
func (p Policy) Check(report func(setting, message string)) {
	if p.RotateEvery != 0 && (p.RotateEvery < MinRotate || p.RotateEvery > MaxRotate) {
		report("rotate_every", fmt.Sprintf("must be 0 (only by hand), or from %s to %s", MinRotate, MaxRotate))
	}
	if p.PublishFor < MinPublish || p.PublishFor > MaxPublish {
		report("publish_for", fmt.Sprintf("must be from %s to %s", MinPublish, MaxPublish))
	} else if p.RotateEvery > 0 && p.PublishFor >= p.RotateEvery {
		report("publish_for", "must be shorter than rotate_every: the key after the next would be published before the next signs")
	}
	if p.RetireAfter < MinRetire || p.RetireAfter > MaxRetire {
		report("retire_after", fmt.Sprintf("must be from %s, which is longer than any token lives, to %s", MinRetire, MaxRetire))
	}
}

// Deps is what a [Rotator] works with.
type Deps struct {
	DB         *postgres.DB
	Encryption []secret.Key // seal the keys; the active one first
	Clock      clock.Clock
	Log        *slog.Logger
	Audit      *audit.Log
	Policy     Policy
	// Committed, where given, is called after each change.
	Committed func(context.Context)
}

// Rotator moves keys from state to state.
type Rotator struct {
	Deps
	keyring *secret.Keyring
}

// New makes a rotator. Errors: no or unusable encryption keys.
func New(d Deps) (*Rotator, error) {
	keyring, err := secret.NewKeyring(d.Encryption, catalog.SealPurpose)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	d.Policy.PublishFor = max(MinPublish, d.Policy.PublishFor)
	d.Policy.RetireAfter = max(MinRetire, d.Policy.RetireAfter)
	return &Rotator{Deps: d, keyring: keyring}, nil
}

// Key is a signing key as it may be shown.
type Key struct {
	ID      string          `json:"id"`
	Alg     string          `json:"alg"`
	State   string          `json:"state"` // next, active, retiring
	Public  json.RawMessage `json:"public_jwk"`
	Created time.Time       `json:"created_at"`
	// ActiveSince is when it began to sign; zero for a next key.
	ActiveSince *time.Time `json:"active_since,omitempty"`
	// Due is when a next key begins to sign, or a retiring one is removed.
	Due *time.Time `json:"due_at,omitempty"`
}

// Caller is who asks for a step, for the audit log.
type Caller struct {
	Actor     audit.Actor
	Address   string
	RequestID string
}

const (
	selectKeys = `SELECT id, alg, state, public_jwk, created_at, active_since, due_at FROM central.signing_key
ORDER BY alg, array_position(ARRAY['active', 'next', 'retiring'], state), created_at, id`
	insertKey = `INSERT INTO central.signing_key (id, alg, state, public_jwk, sealed, created_at, updated_at, due_at, active_since) VALUES ($1, $2, $3, $4, $5, $6, $6, $7, $8)`
	toActive  = `UPDATE central.signing_key SET state = 'active', active_since = $2, due_at = NULL, updated_at = $2 WHERE id = $1`
	toRetired = `UPDATE central.signing_key SET state = 'retiring', due_at = $3, updated_at = $2 WHERE id = $1`
	dueAt     = `UPDATE central.signing_key SET due_at = $3, updated_at = $2 WHERE id = $1`
	deleteKey = `DELETE FROM central.signing_key WHERE id = $1`
)

// List returns all keys, by algorithm, the active one first.
func (r *Rotator) List(ctx context.Context) ([]Key, error) { return list(ctx, r.DB) }

type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

func list(ctx context.Context, q querier) ([]Key, error) {
	rows, err := q.Query(ctx, selectKeys)
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	keys, err := pgx.CollectRows(rows, pgx.RowToStructByPos[Key])
	if err != nil {
		return nil, fmt.Errorf("list signing keys: %w", err)
	}
	return keys, nil
}

// Rotate publishes a next key for each algorithm (none: for all that have an
// active key), which signs after publish. With publish 0 it signs at once: for
// an emergency, since relying parties may not know it yet. A next key that is
// there already is taken: its time is brought forward, never put off. Errors:
// [ErrAlgorithm], [ErrPublish], or the database's.
func (r *Rotator) Rotate(ctx context.Context, by Caller, algs []string, publish time.Duration) ([]Key, error) {
	if publish != 0 && (publish < MinPublish || publish > MaxPublish) {
		return nil, ErrPublish
	}
	for _, alg := range algs {
		if !slices.Contains(jose.Algorithms(), jose.Algorithm(alg)) {
			return nil, fmt.Errorf("%w %.20q", ErrAlgorithm, alg)
		}
	}
	return r.change(ctx, by, func(s *step) error {
		if len(algs) == 0 {
			for _, k := range s.keys {
				if k.State == catalog.KeyActive {
					algs = append(algs, k.Alg)
				}
			}
		}
		slices.Sort(algs)
		for _, alg := range slices.Compact(algs) {
			if err := s.publish(alg, s.now.Add(publish)); err != nil {
				return err
			}
		}
		return s.due()
	})
}

// Retire removes a key at once, published or not: for one that is compromised.
// What it signed no longer verifies. An active key is replaced in the same
// step. Errors: [ErrUnknown], or the database's.
func (r *Rotator) Retire(ctx context.Context, by Caller, kid string) ([]Key, error) {
	return r.change(ctx, by, func(s *step) error {
		i := slices.IndexFunc(s.keys, func(k Key) bool { return k.ID == kid })
		if i < 0 {
			return fmt.Errorf("%w: %.100q", ErrUnknown, kid)
		}
		if k := s.keys[i]; k.State == catalog.KeyActive {
			if err := s.publish(k.Alg, s.now); err != nil {
				return err
			}
			if err := s.due(); err != nil {
				return err
			}
		}
		return s.remove(kid, "retired")
	})
}

// Tick takes every step that is due. It is cheap when nothing is.
func (r *Rotator) Tick(ctx context.Context) error {
	keys, err := r.List(ctx)
	if err != nil {
		return err
	}
	s := &step{r: r, now: r.Clock.Now(), keys: keys}
	if !s.pending() {
		return nil
	}
	_, err = r.change(ctx, Caller{Actor: audit.Actor{Kind: audit.ActorSystem, ID: "schedule"}}, func(s *step) error {
		if err := s.scheduled(); err != nil {
			return err
		}
		return s.due()
	})
	return err
}

// Run takes the steps that are due until ctx ends.
func (r *Rotator) Run(ctx context.Context) error {
	every := time.NewTicker(tickEvery)
	defer every.Stop()
	for {
		if err := r.Tick(ctx); err != nil && ctx.Err() == nil && !postgres.Unavailable(err) {
			r.Log.ErrorContext(ctx, "signing key schedule", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-every.C:
		}
	}
}
