package apply

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
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
	DB         *postgres.DB
	Encryption []secret.Key // seal client secrets; the active one first
	Users      Users
	Hasher     Hasher
	Clock      clock.Clock
	Random     io.Reader
	Rules      validate.Rules
}

// Applier applies documents.
type Applier struct {
	Deps
	keyring  *secret.Keyring
	compiler *catalog.Compiler
}

// New makes an applier. Errors: no or unusable encryption keys.
func New(d Deps) (*Applier, error) {
	keyring, err := secret.NewKeyring(d.Encryption, catalog.SealPurpose)
	if err != nil {
		return nil, fmt.Errorf("encryption keys: %w", err)
	}
	return &Applier{Deps: d, keyring: keyring, compiler: &catalog.Compiler{Open: keyring.Open}}, nil
}

// Action is what was done to an entity.
type Action string

// The actions.
const (
	Created   Action = "created"
	Updated   Action = "updated"
	Unchanged Action = "unchanged"
)

// Change is what became of one document.
type Change struct {
	Of     validate.Ref
	Action Action
	// Fields are the members that differ, for an update.
	Fields []string
}

// String returns the change as one line.
func (c Change) String() string {
	s := string(c.Action) + " " + c.Of.String()
	for i, f := range c.Fields {
		sep := ", "
		if i == 0 {
			sep = " ("
		}
		s += sep + f
	}
	if len(c.Fields) > 0 {
		s += ")"
	}
	return s
}

// errDryRun ends the transaction of a dry run.
var errDryRun = errors.New("dry run")

// Apply makes the configuration what the documents say, in a transaction of
// its own; with dryRun it only tells what would be done. The error is [Errors]
// when the documents are wrong, else the database's.
func (a *Applier) Apply(ctx context.Context, docs *Documents, dryRun bool) ([]Change, error) {
	var changes []Change
	err := pgx.BeginFunc(ctx, a.DB, func(tx pgx.Tx) (err error) {
		changes, err = a.In(ctx, tx, docs)
		if err == nil && dryRun {
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
// After an error tx must be rolled back.
func (a *Applier) In(ctx context.Context, tx pgx.Tx, docs *Documents) ([]Change, error) {
	if _, err := store.Lock(ctx, tx); err != nil {
		return nil, err
	}
	current, err := store.Read(ctx, tx)
	if err != nil {
		return nil, err
	}
	p := newPlan(a, current)
	p.errs = append(p.errs, docs.errs...)
	for _, d := range docs.list {
		p.add(d)
	}
	p.validate()
	people, err := p.people(ctx)
	if err != nil {
		return nil, err
	}
	if err := p.errs.orNil(); err != nil {
		return nil, err
	}
	if err := p.write(ctx, tx); err != nil {
		return nil, err
	}
	if err := a.createPeople(ctx, tx, people); err != nil {
		return nil, err
	}
	return p.changes(), nil
}

// write stores what differs, referred entities first, and makes sure that the
// result compiles.
func (p *plan) write(ctx context.Context, tx pgx.Tx) error {
	now := p.applier.Clock.Now()
	wrote := false
	for _, kind := range writeOrder {
		for _, e := range p.entries {
			if e.doc.of.Kind != kind || e.change.Action == Unchanged {
				continue
			}
			wrote = true
			if err := store.Put(ctx, tx, e.doc.spec, now); err != nil {
				return err
			}
			if err := p.writeSecrets(ctx, tx, e, now); err != nil {
				return err
			}
		}
	}
	if !wrote {
		return nil
	}
	next, err := store.Read(ctx, tx)
	if err != nil {
		return err
	}
	if _, err := p.applier.compiler.Compile(next); err != nil {
		return fmt.Errorf("check the new configuration: %w", err)
	}
	return nil
}

var writeOrder = []string{validate.KindEdge, validate.KindTenant, validate.KindScope, validate.KindResource,
	validate.KindPermission, validate.KindRole, validate.KindClient, validate.KindPreset}

func (p *plan) writeSecrets(ctx context.Context, tx pgx.Tx, e *entry, now time.Time) error {
	if e.secrets == nil {
		return nil
	}
	a := p.applier
	sealed := make([]store.Secret, len(*e.secrets))
	for i, text := range *e.secrets {
		s := store.Secret{ID: id.NewUUID(now, a.Random), Created: now.Add(-time.Duration(i) * time.Microsecond)}
		s.Sealed = a.keyring.Seal([]byte(text.Reveal()), catalog.ClientSecretContext(e.doc.of.Tenant, e.doc.of.ID, s.ID))
		sealed[i] = s
	}
	return store.PutSecrets(ctx, tx, e.doc.of.Tenant, e.doc.of.ID, sealed)
}
