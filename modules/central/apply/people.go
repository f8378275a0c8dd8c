package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/secret"
)

// Passwords in documents: as long as NIST SP 800-63B section 3.1.1.2 asks, and
// short enough to hash at once. The tenant's policy is for people's own.
const (
	minPassword = 8
	maxPassword = 1024
)

// newcomer is a person to create, as a document describes them.
type newcomer struct {
	of                  catalog.Ref
	password, temporary secret.Text
	user.New
}

// decidePeople validates the documents of people and returns those to create.
func (p *plan) decidePeople(ctx context.Context) (create []newcomer, changes []Change, err error) {
	tenants := p.tenants()
	for _, d := range p.people {
		who := d.spec.(*person) //nolint:errcheck,forcetypeassert // the kind's type
		before := len(p.errs)
		n := newcomer{d.of, who.Password, who.TemporaryPassword, user.New{
			Directory: who.Directory, Phone: who.Phone, PhoneVerified: who.PhoneVerified, Email: who.Email,
			EmailVerified: who.EmailVerified, Username: who.Username, Disabled: who.Disabled,
			Claims: who.Claims, Roles: who.Roles, Now: p.applier.Clock.Now(),
		}}
		for _, problem := range n.Problems() {
			p.fail(d, fieldOf(problem.Pointer), "%s", problem.Detail)
		}
		p.person(d, who, tenants)
		ids := p.identifiers(d, &n.New)
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
			create = append(create, n)
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

// identifiers are what a person can sign in with, normalised. Every one is of
// one document alone.
func (p *plan) identifiers(d *document, n *user.New) []user.Identifier {
	var ids []user.Identifier
	for _, i := range []user.Identifier{{Kind: user.KindPhone, Value: n.Phone}, {Kind: user.KindEmail, Value: n.Email}, {Kind: user.KindUsername, Value: n.Username}} {
		if i.Value == "" {
			continue
		}
		ids = append(ids, i)
		key := n.Directory + " " + string(i.Kind) + " " + i.Key()
		if other, twice := p.byPerson[key]; twice {
			p.fail(d, string(i.Kind), "is that of the person at %s:%d too", other.file, other.line)
		}
		p.byPerson[key] = d
	}
	return ids
}

// fieldOf turns a JSON pointer into a field as documents have it: "/roles/a/1"
// into "roles.a[1]".
func fieldOf(pointer string) string {
	field := ""
	for _, part := range strings.Split(pointer, "/")[1:] {
		if _, err := strconv.Atoi(part); err == nil {
			field += "[" + part + "]"
			continue
		}
		field = join(field, strings.NewReplacer("~1", "/", "~0", "~").Replace(part))
	}
	return field
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

func (a *Applier) createPeople(ctx context.Context, tx pgx.Tx, people []newcomer) error {
	for _, n := range people {
		for _, p := range []struct {
			plain secret.Text
			hash  *string
		}{{n.password, &n.PasswordHash}, {n.temporary, &n.TemporaryPasswordHash}} {
			if p.plain.Empty() {
				continue
			}
			hash, err := a.Hasher.Hash(ctx, p.plain.Reveal())
			if err != nil {
				return fmt.Errorf("hash password of %s: %w", n.of, err)
			}
			*p.hash = hash
		}
		if _, err := a.Users.Create(ctx, tx, n.New); err != nil {
			return fmt.Errorf("create %s: %w", n.of, err)
		}
	}
	return nil
}
