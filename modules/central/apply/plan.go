package apply

import (
	"fmt"
	"slices"

	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/validate"
	"versola/platform/id"
	"versola/platform/secret"
)

// plan is what documents ask for, held against the configuration.
type plan struct {
	applier  *Applier
	before   *change.View
	byRef    map[validate.Ref]*document
	byPerson map[string]*document // "directory identifier" -> who has it
	ops      []change.Op
	people   []*document
	errs     Errors
}

func newPlan(a *Applier, before *change.View, docs *Documents, o Options) *plan {
	p := &plan{applier: a, before: before, byRef: map[validate.Ref]*document{}, byPerson: map[string]*document{}, errs: slices.Clone(docs.errs)}
	for _, d := range docs.list {
		p.add(d, o.KeepExisting)
	}
	if o.Prune != PruneNothing {
		p.prune(o.Prune)
	}
	return p
}

func (p *plan) fail(d *document, field, format string, args ...any) {
	if d.broken[field] {
		return
	}
	msg := fmt.Sprintf(format, args...)
	if field != "" {
		msg = field + ": " + msg
	}
	p.errs = append(p.errs, Error{File: d.file, Line: lineOf(d.lines, field, d.line), Message: d.of.String() + ": " + msg})
}

// add makes the operations of one document: none where its entity is there
// already and is to be kept.
func (p *plan) add(d *document, keep bool) {
	if d.of.Kind == validate.KindUser {
		p.people = append(p.people, d)
		return // people are told apart by their identifiers
	}
	if other, twice := p.byRef[d.of]; twice && d.of.ID != "" {
		p.fail(d, "", "is declared twice, first at %s:%d", other.file, other.line)
		return
	}
	p.byRef[d.of] = d
	if _, there := p.before.Get(d.of); there && keep {
		return
	}
	spec := d.spec.(catalog.Entity) //nolint:errcheck,forcetypeassert // all but people are
	p.ops = append(p.ops, change.Put{Spec: spec})
	switch {
	case d.secrets != nil:
		p.ops = append(p.ops, change.SetSecrets{Client: d.of, Plain: d.secrets})
	case d.generate:
		p.ops = append(p.ops, change.SetSecrets{Client: d.of, Plain: []secret.Text{secret.Text(id.NewHandle(p.applier.Random))}, IfNone: true})
	}
}

// prune makes the operations that delete what no document declares. What stays
// and needs one of those is an error, where a document declares it at its line.
func (p *plan) prune(how Prune) {
	s, before := p.before.Snapshot, len(p.errs)
	gone := map[catalog.Ref]bool{}
	var deletes []change.Op
	for _, k := range slices.Backward(catalog.Kinds) {
		for i := range k.Len(s) {
			r := k.At(s, i).Ref()
			if p.byRef[r] == nil && p.pruned(r, how) {
				gone[r] = true
				deletes = append(deletes, change.Delete{Ref: r})
			}
		}
	}
	for _, k := range catalog.Kinds {
		for i := range k.Len(s) {
			if e := k.At(s, i); !gone[e.Ref()] && p.byRef[e.Ref()] == nil {
				e.Refers(func(field string, to catalog.Ref) {
					if gone[to] {
						p.errs = append(p.errs, Error{Message: fmt.Sprintf("in the database: %s: %s: needs %s, which would be pruned", e.Ref(), field, to)})
					}
				})
			}
		}
	}
	for _, d := range p.byRef {
		d.spec.(catalog.Entity).Refers(func(field string, to catalog.Ref) { //nolint:errcheck,forcetypeassert // all but people are
			if gone[to] {
				p.fail(d, field, "needs %s, which no document declares and which would be pruned", to)
			}
		})
	}
	if len(p.errs) == before { // else the engine would stop there, and not say what else is wrong
		p.ops = append(p.ops, deletes...)
	}
}

// pruned tells whether an entity that no document declares is to go.
func (p *plan) pruned(r catalog.Ref, how Prune) bool {
	tenant := r
	if r.Tenant != "" {
		tenant = catalog.Ref{Kind: catalog.KindNameTenant, ID: r.Tenant}
	}
	if p.byRef[tenant] != nil {
		return true
	}
	return how == PruneAll && tenant != (catalog.Ref{Kind: catalog.KindNameTenant, ID: systemTenant})
}

// refused brings what the engine says of the operations to the documents.
func (p *plan) refused(invalid *change.Invalid) {
	for _, problem := range invalid.Problems {
		if d, ok := p.byRef[problem.Of]; ok {
			p.fail(d, problem.Field, "%s", problem.Message)
		} else {
			p.errs = append(p.errs, Error{Message: "in the database: " + problem.String()})
		}
	}
}

// tenants returns the tenants as they will be, and roles the roles.
func (p *plan) tenants() map[string]catalog.TenantSpec {
	out := map[string]catalog.TenantSpec{}
	for _, t := range p.before.Snapshot.Tenants {
		out[t.ID] = t
	}
	for _, d := range p.byRef {
		if t, ok := d.spec.(*catalog.TenantSpec); ok {
			out[t.ID] = *t
		}
	}
	return out
}

func (p *plan) hasRole(r catalog.Ref) bool {
	if p.byRef[r] != nil {
		return true
	}
	_, ok := p.before.Get(r)
	return ok && !slices.ContainsFunc(p.ops, func(o change.Op) bool { d, ok := o.(change.Delete); return ok && d.Ref == r })
}
