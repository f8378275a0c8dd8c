package change

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Deps is what an [Engine] works with.
type Deps struct {
	DB *postgres.DB
	// Source keeps what is known of the configuration; nil: one of the
	// engine's own.
	Source     *store.Source
	Encryption []secret.Key // seal client secrets; the active one first
	Clock      clock.Clock
	Random     io.Reader
	Rules      validate.Rules
	Auditor    Auditor // nil: changes are not kept in the audit log
	People     People  // nil: user directories are taken to be empty
	// Committed, where given, is called when [Engine.Do] has changed something,
	// before it returns.
	Committed func(context.Context)
}

// Engine changes configuration. It may be used by many at once.
type Engine struct {
	Deps
	keyring  *secret.Keyring
	compiler *catalog.Compiler
	current  atomic.Pointer[View] // of the state that was asked for last
}

// New makes an engine. Errors: no or unusable encryption keys.
func New(d Deps) (*Engine, error) {
	keyring, err := secret.NewKeyring(d.Encryption, catalog.SealPurpose)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	if d.Source == nil {
		d.Source = store.NewSource(d.DB)
	}
	return &Engine{Deps: d, keyring: keyring, compiler: &catalog.Compiler{Open: keyring.Open}}, nil
}

// View returns the configuration as it is in the database now: from memory
// where nothing changed.
func (e *Engine) View(ctx context.Context) (*View, error) {
	state, err := e.Source.Newest(ctx)
	if err != nil {
		return nil, err
	}
	return e.view(state), nil
}

// view returns the state's view, the same one each time while it is current,
// since a view keeps what it has worked out.
func (e *Engine) view(state *store.State) *View {
	was := e.current.Load()
	if was != nil && was.Mark == state.Mark {
		return was
	}
	v := NewView(state)
	e.current.CompareAndSwap(was, v)
	return v
}

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Do executes operations in order, as one transaction. Errors: [ErrConflict],
// [ErrExists], [ErrNotFound], *[InUse], *[Invalid], what Options.Authorize
// returns, or the database's.
func (e *Engine) Do(ctx context.Context, actor Actor, ops []Op, o Options) (*Result, error) {
	var result *Result
	var before, after *View
	err := pgx.BeginFunc(ctx, e.DB, func(tx pgx.Tx) (err error) {
		result, before, after, err = e.run(ctx, tx, actor, ops, o)
		if err == nil && o.DryRun {
			return errDryRun
		}
		return err
	})
	switch {
	case errors.Is(err, errDryRun):
		return result, nil
	case err != nil:
		return nil, err
	}
	if after != before {
		e.Source.Keep(after.State)
		if e.Committed != nil {
			e.Committed(ctx)
		}
	}
	return result, nil
}

// In does the work of [Engine.Do] within tx, which must be at the isolation
// level "read committed": what was read before the lock is not used. After an
// error tx must be rolled back; so it must after a dry run.
func (e *Engine) In(ctx context.Context, tx pgx.Tx, actor Actor, ops []Op, o Options) (*Result, error) {
	result, _, _, err := e.run(ctx, tx, actor, ops, o)
	return result, err
}

// run returns the views from before and of when tx is committed, the same one
// where nothing differs.
func (e *Engine) run(ctx context.Context, tx pgx.Tx, actor Actor, ops []Op, o Options) (result *Result, before, after *View, err error) {
	before, err = e.Locked(ctx, tx)
	if err != nil {
		return nil, nil, nil, err
	}
	p := newPlan(e, before)
	for _, op := range ops {
		if err := p.do(op); err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", op.target(), err)
		}
	}
	changes := p.changes()
	if err := p.check(changes); err != nil {
		return nil, nil, nil, err
	}
	if err := p.inhabited(ctx, tx, changes); err != nil {
		return nil, nil, nil, err
	}
	result, after = &Result{Revision: before.Revision, Changes: changes}, before
	if p.differs(changes) {
		if after, err = p.write(ctx, tx, changes); err != nil {
			return nil, nil, nil, err
		}
		result.Revision = after.Revision
	}
	if o.Authorize != nil {
		if err := o.Authorize(before, after, changes); err != nil {
			return nil, nil, nil, err
		}
	}
	if err := e.record(ctx, tx, actor, result); err != nil {
		return nil, nil, nil, err
	}
	return result, before, after, nil
}

// Locked takes the lock and returns the view that no one changes while it is
// held.
func (e *Engine) Locked(ctx context.Context, tx pgx.Tx) (*View, error) {
	mark, err := store.Lock(ctx, tx)
	if err != nil {
		return nil, err
	}
	known := e.Source.Known()
	if known != nil && known.Mark == mark {
		return e.view(known), nil
	}
	// Not kept: tx may have changed it already, and change it again without
	// another mark.
	state, err := store.Read(ctx, tx, known)
	if err != nil {
		return nil, err
	}
	return NewView(state), nil
}

func (e *Engine) record(ctx context.Context, tx pgx.Tx, actor Actor, r *Result) error {
	if e.Auditor == nil {
		return nil
	}
	var events []Event
	for _, c := range r.Changes {
		if c.Action != Unchanged {
			events = append(events, Event{Actor: actor, At: e.Clock.Now(), Revision: r.Revision, Action: c.Action, Ref: c.Ref,
				Fields: c.Fields, Before: c.Before, After: c.After})
		}
	}
	if len(events) == 0 {
		return nil
	}
	if err := e.Auditor.Record(ctx, tx, events); err != nil {
		return fmt.Errorf("record changes: %w", err)
	}
	return nil
}
