package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/validate"
)

// Passwords in documents: as long as NIST SP 800-63B section 3.1.1.2 asks, and
// short enough to hash at once. The tenant's policy is for people's own.
const (
	minPassword = 8
	maxPassword = 1024
)

// ownClaims are columns of a person, not free claims.
var ownClaims = []string{"sub", "email", "email_verified", "phone_number", "phone_number_verified", "updated_at"}

// decidePeople validates the documents of people and returns those to create.
func (p *plan) decidePeople(ctx context.Context) (create []*document, changes []Change, err error) {
	tenants := p.tenants()
	for _, d := range p.people {
		who := d.spec.(*person) //nolint:errcheck,forcetypeassert // the kind's type
		before := len(p.errs)
		p.person(d, who, tenants)
		ids := p.identifiers(d, who)
		if len(p.errs) > before {
			continue
		}
		exists, err := p.exists(ctx, d, who, ids)
		if err != nil {
			return nil, nil, err
		}
		action := change.Unchanged
		if !exists {
			action = change.Created
			create = append(create, d)
		}
		changes = append(changes, Change{Change: change.Change{Ref: d.of, Action: action}, Person: d.of.String()})
	}
	return create, changes, nil
}

func (p *plan) person(d *document, who *person, tenants map[string]catalog.TenantSpec) {
	directories := map[string]bool{}
	for _, t := range tenants {
		directories[directory(t)] = true
	}
	if !directories[who.Directory] {
		p.fail(d, "directory", "no tenant has the user directory %q", who.Directory)
	}
	for tenant, roles := range who.Roles {
		field := "roles." + tenant
		t, ok := tenants[tenant]
		if !ok || directory(t) != who.Directory {
			p.fail(d, field, "there is no tenant %q with the user directory %q", tenant, who.Directory)
			continue
		}
		for i, role := range roles {
			if !p.hasRole(catalog.Ref{Kind: catalog.KindNameRole, Tenant: tenant, ID: role}) {
				p.fail(d, fmt.Sprintf("%s[%d]", field, i), "there is no role %q in tenant %q", role, tenant)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(who.Claims)) {
		if slices.Contains(ownClaims, name) {
			p.fail(d, "claims."+name, "is not a free claim")
		} else if err := validate.ScopeID(name); err != nil {
			p.fail(d, "claims."+name, "%s", err)
		}
	}
	for field, text := range map[string]string{"password": who.Password.Reveal(), "temporary_password": who.TemporaryPassword.Reveal()} {
		if n := len(text); n > 0 && (n < minPassword || n > maxPassword) {
			p.fail(d, field, "must have %d to %d characters", minPassword, maxPassword)
		}
	}
}

func directory(t catalog.TenantSpec) string {
	if t.Directory == "" {
		return t.ID
	}
	return t.Directory
}

// identifiers normalises what a person can sign in with. Every one is of one
// document alone.
func (p *plan) identifiers(d *document, who *person) []user.Identifier {
	var ids []user.Identifier
	for _, k := range []struct {
		kind  user.Kind
		field string
		text  string
		parse func(string) (string, error)
	}{
		{user.KindPhone, "phone", who.Phone, user.ParsePhone},
		{user.KindEmail, "email", who.Email, user.ParseEmail},
		{user.KindUsername, "username", who.Username, user.ParseUsername},
	} {
		if k.text == "" {
			continue
		}
		value, err := k.parse(k.text)
		if err != nil {
			p.fail(d, k.field, "%s", err)
			continue
		}
		i := user.Identifier{Kind: k.kind, Value: value}
		ids = append(ids, i)
		key := who.Directory + " " + string(i.Kind) + " " + i.Key()
		if other, twice := p.byPerson[key]; twice {
			p.fail(d, k.field, "is that of the person at %s:%d too", other.file, other.line)
		}
		p.byPerson[key] = d
	}
	if who.Phone+who.Email+who.Username == "" {
		p.fail(d, "", "a person needs a phone, an email or a username")
	}
	return ids
}

// exists tells whether the person is there already, under any of the
// identifiers: people change them.
func (p *plan) exists(ctx context.Context, d *document, who *person, ids []user.Identifier) (bool, error) {
	var found *user.User
	for _, i := range ids {
		u, err := p.applier.Users.Find(ctx, who.Directory, i)
		if errors.Is(err, user.ErrNotFound) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look for %s: %w", d.of, err)
		}
		if found != nil && found.ID != u.ID {
			p.fail(d, string(i.Kind), "the identifiers are those of two people in the database")
			return true, nil
		}
		found = u
	}
	return found != nil, nil
}

func (a *Applier) createPeople(ctx context.Context, tx pgx.Tx, people []*document) error {
	for _, d := range people {
		who := d.spec.(*person) //nolint:errcheck,forcetypeassert // the kind's type
		n := user.New{
			Directory: who.Directory, Phone: who.Phone, PhoneVerified: who.PhoneVerified, Email: who.Email,
			EmailVerified: who.EmailVerified, Username: who.Username, Disabled: who.Disabled,
			Claims: who.Claims, Roles: who.Roles, Now: a.Clock.Now(),
		}
		for _, p := range []struct {
			plain string
			hash  *string
		}{{who.Password.Reveal(), &n.PasswordHash}, {who.TemporaryPassword.Reveal(), &n.TemporaryPasswordHash}} {
			if p.plain == "" {
				continue
			}
			hash, err := a.Hasher.Hash(ctx, p.plain)
			if err != nil {
				return fmt.Errorf("hash password of %s: %w", d.of, err)
			}
			*p.hash = hash
		}
		if _, err := a.Users.Create(ctx, tx, n); err != nil {
			return fmt.Errorf("create %s: %w", d.of, err)
		}
	}
	return nil
}
