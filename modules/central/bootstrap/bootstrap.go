package bootstrap

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/seed"
	"versola/modules/central/users"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// Role is the built-in role that reaches everything.
const Role = "admin"

// mostNamed bounds how many administrators a refusal names.
const mostNamed = 5

// Errors of [Bootstrap.Administrator].
var (
	// ErrEdge: the system tenant is to be loaded, and where administrators sign
	// in is not said.
	ErrEdge = errors.New("the tenant \"" + catalog.SystemTenant + "\" is not there yet; say through which edge its administrators sign in")
	// ErrRole: an operator has deleted the role.
	ErrRole = errors.New("the tenant \"" + catalog.SystemTenant + "\" has no role \"" + Role + "\"; --recover brings back what is missing of it")
	// ErrTaken: the person is there and is no administrator.
	ErrTaken = errors.New("there is such a person already, who is no administrator or is disabled; --recover makes them one")
)

// Exists reports that there are administrators, by their masked identifiers.
type Exists struct {
	Masked []string
	More   bool
}

// Error implements error.
func (e *Exists) Error() string {
	names := strings.Join(e.Masked, ", ")
	if e.More {
		names += " and others"
	}
	return "there is an administrator already (" + names + "); --recover makes another, or lets one back in"
}

// Sessions ends sign-ins: *logout.Ender.
type Sessions interface {
	EndAll(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID id.UUID) (sessions int, err error)
}

// Deps is what bootstrapping works with.
type Deps struct {
	DB       *postgres.DB
	Seed     seed.Deps
	Engine   *change.Engine
	Users    *user.Store
	Sessions Sessions
	Limits   users.Limits // nil: the process has no key of theirs
	Hasher   users.Hasher
	Audit    users.Log
	Clock    clock.Clock
	Random   io.Reader
	// Catalog compiles the configuration as it is now.
	Catalog func(ctx context.Context) (*catalog.Catalog, error)
}

// Bootstrap makes administrators.
type Bootstrap struct{ d Deps }

// New makes it.
func New(d Deps) *Bootstrap { return &Bootstrap{d} }

// Params say who is to administer, and from where.
type Params struct {
	Identifier user.Identifier
	Name       string        // for people to see; may be empty
	ValidFor   time.Duration // how long the temporary password works
	Recover    bool
	By         audit.Actor
	// Where administrators sign in; needed where the system tenant is not
	// there yet. Keys of an edge that is declared already may be left out.
	Edge seed.Params
}

// Result is what was done.
type Result struct {
	User      id.UUID
	Directory string
	Password  secret.Text // empty: nothing was done, the person is one already
	ExpiresAt time.Time
	Created   bool // the person was not there before
}

// Administrator makes who is named an administrator with a temporary password.
// Errors: [ErrEdge], [ErrRole], [ErrTaken], *[Exists], *[change.Invalid] and
// apply's of what is loaded, the database's.
func (b *Bootstrap) Administrator(ctx context.Context, p Params) (*Result, error) {
	if err := b.load(ctx, p); err != nil {
		return nil, err
	}
	plain, err := users.NewTemporary(b.d.Random)
	if err != nil {
		return nil, err
	}
	// Before anything is locked: hashing takes its time.
	hash, err := b.d.Hasher.Hash(ctx, plain)
	if err != nil {
		return nil, fmt.Errorf("hash password: %w", err)
	}
	cat, err := b.d.Catalog(ctx)
	if err != nil {
		return nil, err
	}
	r := &Result{Password: secret.Text(plain), ExpiresAt: b.d.Clock.Now().Add(p.ValidFor)}
	err = pgx.BeginFunc(ctx, b.d.DB, func(tx pgx.Tx) error { return b.appoint(ctx, tx, cat, p, hash, r) })
	if err != nil {
		return nil, err
	}
	return r, nil
}

// load makes sure of the system tenant.
func (b *Bootstrap) load(ctx context.Context, p Params) error {
	view, err := b.d.Engine.View(ctx)
	if err != nil {
		return err
	}
	_, there := view.Get(catalog.Ref{Kind: catalog.KindNameTenant, ID: catalog.SystemTenant})
	if there && (!p.Recover || p.Edge.EdgeURL == "") {
		return nil
	}
	e := p.Edge
	if declared, ok := view.Get(catalog.Ref{Kind: catalog.KindNameEdge, ID: e.EdgeID}); ok && len(e.EdgeJWKS) == 0 {
		e.EdgeJWKS = declared.Spec.(*catalog.EdgeSpec).JWKS //nolint:errcheck,forcetypeassert // the kind's type
	}
	if e.EdgeID == "" || e.EdgeURL == "" || e.CentralURL == "" || len(e.EdgeJWKS) == 0 {
		return ErrEdge
	}
	e.AdminPassword = "" // this administrator comes another way
	if !there {
		seeded, err := seed.System(ctx, b.d.Seed, e)
		if err != nil || seeded {
			return err
		}
	}
	// It was seeded once and deleted since, or parts of it were.
	_, err = seed.Restore(ctx, b.d.Seed, e, change.Actor{Kind: p.By.Kind, ID: p.By.ID})
	return err
}

// appoint makes the person an administrator within tx.
func (b *Bootstrap) appoint(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, p Params, hash string, r *Result) error {
	// Its lock orders this with another, and with changes of the role.
	view, err := b.d.Engine.Locked(ctx, tx)
	if err != nil {
		return err
	}
	tenant, ok := view.Get(catalog.Ref{Kind: catalog.KindNameTenant, ID: catalog.SystemTenant})
	if !ok {
		return ErrEdge
	}
	if _, ok := view.Get(catalog.Ref{Kind: catalog.KindNameRole, Tenant: catalog.SystemTenant, ID: Role}); !ok {
		return ErrRole
	}
	r.Directory = tenant.Spec.(*catalog.TenantSpec).Directory //nolint:errcheck,forcetypeassert // the kind's type
	if r.Directory == "" {
		r.Directory = catalog.SystemTenant
	}
	found, err := b.d.Users.Find(ctx, r.Directory, p.Identifier)
	if err != nil && !errors.Is(err, user.ErrNotFound) {
		return err
	}
	if !p.Recover {
		done, err := b.refuse(ctx, r, found)
		if done || err != nil {
			return err
		}
	}
	if found == nil {
		return b.create(ctx, tx, p, hash, r)
	}
	return b.letIn(ctx, tx, cat, p, found.ID, hash, r)
}

// refuse tells whether the person is an administrator already; the error is why
// nothing may be done.
func (b *Bootstrap) refuse(ctx context.Context, r *Result, found *user.User) (done bool, err error) {
	if found != nil && found.Status == user.Active && slices.Contains(found.Roles[catalog.SystemTenant], Role) {
		r.User, r.Password = found.ID, ""
		return true, nil
	}
	page, err := b.d.Users.List(ctx, r.Directory, user.Filter{Status: user.Active, Tenant: catalog.SystemTenant, Role: Role}, mostNamed, "")
	switch {
	case err != nil:
		return false, err
	case len(page.Users) == 0 && found != nil:
		return false, ErrTaken
	case len(page.Users) == 0:
		return false, nil
	}
	exists := &Exists{More: page.Next != ""}
	for _, u := range page.Users {
		if all := u.Identifiers(); len(all) > 0 {
			exists.Masked = append(exists.Masked, all[0].Masked())
		}
	}
	return false, exists
}

func (b *Bootstrap) create(ctx context.Context, tx pgx.Tx, p Params, hash string, r *Result) error {
	n := user.New{Directory: r.Directory, Roles: map[string][]string{catalog.SystemTenant: {Role}}, TemporaryPasswordHash: hash,
		TemporaryPasswordEnds: r.ExpiresAt, Now: b.d.Clock.Now()}
	// Whoever runs the command answers for the address.
	if p.Identifier.Kind == user.KindPhone {
		n.Phone, n.PhoneVerified = p.Identifier.Value, true
	} else {
		n.Email, n.EmailVerified = p.Identifier.Value, true
	}
	if p.Name != "" {
		n.Claims = map[string]any{"name": p.Name}
	}
	var err error
	if r.User, err = b.d.Users.Create(ctx, tx, n); err != nil {
		return err
	}
	r.Created = true
	return b.record(ctx, tx, p, r, "user.created")
}

// letIn gives a person who is there the role and a temporary password, and takes
// away what somebody else may know or hold.
func (b *Bootstrap) letIn(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, p Params, who id.UUID, hash string, r *Result) error {
	now := b.d.Clock.Now()
	u, err := b.d.Users.Lock(ctx, tx, r.Directory, who)
	if err != nil {
		return err
	}
	r.User, u.Status = u.ID, user.Active
	if roles := u.Roles[catalog.SystemTenant]; !slices.Contains(roles, Role) {
		if u.Roles == nil {
			u.Roles = map[string][]string{}
		}
		u.Roles[catalog.SystemTenant] = append(slices.Clone(roles), Role)
	}
	if err := b.d.Users.Update(ctx, tx, u, now); err != nil {
		return err
	}
	if err := b.d.Users.RemoveFactor(ctx, tx, u.ID, user.FactorPassword); err != nil && !errors.Is(err, user.ErrNotFound) {
		return err
	}
	if err := b.d.Users.SetTemporaryPassword(ctx, tx, u.ID, hash, r.ExpiresAt, now); err != nil {
		return err
	}
	if _, err := b.d.Sessions.EndAll(ctx, tx, cat, u.Directory, u.ID); err != nil {
		return err
	}
	if b.d.Limits != nil {
		if _, err := b.d.Limits.Reset(ctx, tx, u.Directory, u.Identifiers()); err != nil {
			return err
		}
	}
	return b.record(ctx, tx, p, r, "user.recovered")
}

func (b *Bootstrap) record(ctx context.Context, tx pgx.Tx, p Params, r *Result, action string) error {
	e := audit.Entry{Action: action, Actor: p.By, Tenant: catalog.SystemTenant, User: r.User.String(),
		Object: &audit.Object{Kind: "user", Tenant: catalog.SystemTenant, ID: r.User.String()},
		Detail: map[string]string{"command": "bootstrap admin", "role": Role, "expires_at": r.ExpiresAt.UTC().Format(time.RFC3339)}}
	return b.d.Audit.Append(ctx, tx, e)
}
