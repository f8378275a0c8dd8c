package apply

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/change"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// Users is where people are kept: *user.Store.
type Users interface {
	// Find returns user.ErrNotFound for nobody.
	Find(ctx context.Context, directory string, i user.Identifier) (*user.User, error)
	Create(ctx context.Context, tx pgx.Tx, n user.New) (id.UUID, error)
}

// Hasher hashes passwords: *password.Hasher.
type Hasher interface {
	Hash(ctx context.Context, plain string) (string, error)
}

// Deps is what an [Applier] works with.
type Deps struct {
	DB     *postgres.DB
	Engine *change.Engine
	Users  Users
	Hasher Hasher
	Clock  clock.Clock
	Random io.Reader
}

// Applier applies documents.
type Applier struct{ Deps }

// New makes an applier.
func New(d Deps) *Applier { return &Applier{Deps: d} }

// Prune says what is deleted when no document declares it.
type Prune int

// What is deleted.
const (
	// PruneNothing deletes nothing.
	PruneNothing Prune = iota
	// PruneDeclared deletes what belongs to the tenants that documents declare.
	PruneDeclared
	// PruneAll deletes edges and whole tenants too; what belongs to the system
	// tenant only where a document declares that tenant.
	PruneAll
)

// systemTenant is the built-in tenant of those who administer the deployment.
const systemTenant = "system"

// Options of one application.
type Options struct {
	DryRun bool // only tell what would be done
	Prune  Prune
	// KeepExisting leaves an entity that is there already as it is, whatever its
	// document says: what is built in never overwrites what an operator wrote.
	KeepExisting bool
	Actor        change.Actor
}

// Change is what became of one document, or of an entity that was pruned.
type Change struct {
	change.Change
	// Person names a person, who is no entity; empty for entities.
	Person string
}

// String returns the change as one line.
func (c Change) String() string {
	if c.Person != "" {
		return string(c.Action) + " " + c.Person
	}
	s := string(c.Action) + " " + c.Ref.String()
	if len(c.Fields) > 0 {
		s += " (" + strings.Join(c.Fields, ", ") + ")"
	}
	return s
}

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Apply makes the configuration what the documents say, in a transaction of
// its own. The error is [Errors] when the documents are wrong, *[change.InUse]
// when what is pruned is in use, else the database's.
func (a *Applier) Apply(ctx context.Context, docs *Documents, o Options) ([]Change, error) {
	var changes []Change
	err := pgx.BeginFunc(ctx, a.DB, func(tx pgx.Tx) (err error) {
		changes, err = a.In(ctx, tx, docs, o)
		if err == nil && o.DryRun {
			return errDryRun
		}
		return err
	})
	if err != nil && !errors.Is(err, errDryRun) {
		return nil, err
	}
	return changes, nil
}

// In does the work of [Applier.Apply] within tx, which must be at the
// isolation level "read committed": what was read before the lock is not used.
// After an error tx must be rolled back; so it must after a dry run.
func (a *Applier) In(ctx context.Context, tx pgx.Tx, docs *Documents, o Options) ([]Change, error) {
	before, err := a.Engine.Locked(ctx, tx)
	if err != nil {
		return nil, err
	}
	p := newPlan(a, before, docs, o)
	create, changes, err := p.decidePeople(ctx)
	if err != nil {
		return nil, err
	}
	result, err := a.Engine.In(ctx, tx, o.Actor, p.ops, change.Options{DryRun: o.DryRun})
	var invalid *change.Invalid
	if errors.As(err, &invalid) {
		p.refused(invalid)
		err = nil
	}
	if wrong := p.errs.orNil(); wrong != nil {
		return nil, wrong
	}
	if err != nil {
		return nil, err
	}
	if err := a.createPeople(ctx, tx, create); err != nil {
		return nil, err
	}
	entities := make([]Change, len(result.Changes))
	for i, c := range result.Changes {
		entities[i] = Change{Change: c}
	}
	return append(entities, changes...), nil
}
