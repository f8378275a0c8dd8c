package change

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"versola/modules/central/catalog"
	"versola/modules/central/validate"
	"versola/platform/id"
)

// People tells who is in a user directory: *user.Store.
type People interface {
	Some(ctx context.Context, tx pgx.Tx, directory string, limit int) ([]id.UUID, error)
}

// inhabited refuses to delete a user directory that has people, or its last
// tenant: nobody could reach them then, and who creates a tenant of that name
// later would have them.
func (p *plan) inhabited(ctx context.Context, tx pgx.Tx, changes []Change) error {
	if p.engine.People == nil {
		return nil
	}
	for _, c := range changes {
		directory := ""
		switch {
		case c.Action != Deleted:
		case c.Ref.Kind == catalog.KindNameDirectory:
			directory = c.Ref.ID
		case c.Ref.Kind == catalog.KindNameTenant:
			directory = p.directoryOf(c.Ref)
		}
		if directory == "" || p.served(directory) {
			continue
		}
		people, err := p.engine.People.Some(ctx, tx, directory, shownUses)
		if err != nil {
			return err
		}
		if len(people) == 0 {
			continue
		}
		used := &InUse{Ref: c.Ref}
		for _, one := range people {
			used.By = append(used.By, Use{By: catalog.Ref{Kind: validate.KindUser, ID: one.String()}, Field: "directory"})
		}
		return used
	}
	return nil
}

// directoryOf returns the directory that a tenant had.
func (p *plan) directoryOf(tenant catalog.Ref) (directory string) {
	if t, ok := p.before.Get(tenant); ok {
		t.Spec.Refers(func(_ string, to catalog.Ref) {
			if to.Kind == catalog.KindNameDirectory {
				directory = to.ID
			}
		})
	}
	return directory
}

// served tells whether a tenant has the directory after the change.
func (p *plan) served(directory string) bool {
	return slices.ContainsFunc(p.next.Tenants, func(t catalog.TenantSpec) bool {
		return t.Directory == directory || t.Directory == "" && t.ID == directory
	})
}
