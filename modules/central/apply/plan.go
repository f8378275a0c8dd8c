package apply

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"versola/modules/central/catalog"
	"versola/modules/central/validate"
	"versola/platform/id"
	"versola/platform/secret"
)

// plan is the configuration as it will be, and what has to be written for it.
type plan struct {
	applier  *Applier
	current  *catalog.Snapshot
	next     *catalog.Snapshot    // its clients' secrets are only counted
	index    map[validate.Ref]int // where an entity stands in next's list of its kind
	entries  []*entry
	byRef    map[validate.Ref]*entry
	byPerson map[string]*document // "directory identifier" -> who has it
	errs     Errors
}

// entry is one document and what becomes of it.
type entry struct {
	doc    *document
	change Change
	// secrets replace a client's; nil: they stay.
	secrets *[]secret.Text
}

func newPlan(a *Applier, current *catalog.Snapshot) *plan {
	next := *current
	next.Edges = slices.Clone(current.Edges)
	next.Tenants = slices.Clone(current.Tenants)
	next.Scopes = slices.Clone(current.Scopes)
	next.Resources = slices.Clone(current.Resources)
	next.Permissions = slices.Clone(current.Permissions)
	next.Roles = slices.Clone(current.Roles)
	next.Clients = slices.Clone(current.Clients)
	next.Presets = slices.Clone(current.Presets)
	p := &plan{applier: a, current: current, next: &next, index: map[validate.Ref]int{}, byRef: map[validate.Ref]*entry{}, byPerson: map[string]*document{}}
	for i, e := range next.Edges {
		p.index[validate.Ref{Kind: validate.KindEdge, ID: e.ID}] = i
	}
	for i, e := range next.Tenants {
		p.index[validate.Ref{Kind: validate.KindTenant, ID: e.ID}] = i
	}
	for i, e := range next.Scopes {
		p.index[validate.Ref{Kind: validate.KindScope, Tenant: e.Tenant, ID: e.ID}] = i
	}
	for i, e := range next.Resources {
		p.index[validate.Ref{Kind: validate.KindResource, Tenant: e.Tenant, ID: e.ID}] = i
	}
	for i, e := range next.Permissions {
		p.index[validate.Ref{Kind: validate.KindPermission, Tenant: e.Tenant, ID: e.ID}] = i
	}
	for i, e := range next.Roles {
		p.index[validate.Ref{Kind: validate.KindRole, Tenant: e.Tenant, ID: e.ID}] = i
	}
	for i, e := range next.Clients {
		p.index[validate.Ref{Kind: validate.KindClient, Tenant: e.Tenant, ID: e.ID}] = i
	}
	for i, e := range next.Presets {
		p.index[validate.Ref{Kind: validate.KindPreset, Tenant: e.Tenant, ID: e.ID}] = i
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

// add lays one document over the configuration.
func (p *plan) add(d *document) {
	e := &entry{doc: d, change: Change{Of: d.of}}
	p.entries = append(p.entries, e)
	if d.of.Kind == validate.KindUser {
		return // people are told apart by their identifiers
	}
	if other, twice := p.byRef[d.of]; twice && d.of.ID != "" {
		p.fail(d, "", "is declared twice, first at %s:%d", other.doc.file, other.doc.line)
		return
	}
	p.byRef[d.of] = e
	switch s := d.spec.(type) {
	case *catalog.EdgeSpec:
		overlay(p, e, &p.next.Edges, s)
	case *catalog.TenantSpec:
		p.tenant(e, s)
	case *catalog.ScopeSpec:
		overlay(p, e, &p.next.Scopes, s)
	case *catalog.ResourceSpec:
		overlay(p, e, &p.next.Resources, s)
	case *catalog.PermissionSpec:
		overlay(p, e, &p.next.Permissions, s)
	case *catalog.RoleSpec:
		overlay(p, e, &p.next.Roles, s)
	case *catalog.ClientSpec:
		p.client(e, s)
	case *catalog.PresetSpec:
		overlay(p, e, &p.next.Presets, s)
	}
}

// overlay puts spec in the place of the entity that it declares, or after the
// last, and notes what differs. It returns the entity that was there.
func overlay[T any](p *plan, e *entry, list *[]T, spec *T) *T {
	i, ok := p.index[e.doc.of]
	if !ok {
		e.change.Action = Created
		p.index[e.doc.of] = len(*list)
		*list = append(*list, *spec)
		return nil
	}
	was := (*list)[i]
	e.change.Action = Unchanged
	if e.change.Fields = differences(was, *spec); len(e.change.Fields) > 0 {
		e.change.Action = Updated
	}
	(*list)[i] = *spec
	return &was
}

// differences names the members whose JSON differs. JSON is what is stored,
// and the database keeps its meaning, not its bytes.
func differences(a, b any) []string {
	before, after := members(a), members(b)
	var names []string
	for name, v := range after {
		if !reflect.DeepEqual(before[name], v) {
			names = append(names, name)
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func members(v any) map[string]any {
	out := map[string]any{}
	raw, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(raw, &out)
	}
	if err != nil {
		// Only a malformed raw member cannot be encoded, and that has been
		// reported; the document is not stored.
		out["?"] = err.Error()
	}
	return out
}

func (p *plan) tenant(e *entry, s *catalog.TenantSpec) {
	was := overlay(p, e, &p.next.Tenants, s)
	if was != nil && was.Profile != s.Profile {
		p.fail(e.doc, "security_profile", "is %q and cannot be changed", was.Profile)
	}
}

// client lays a client over the configuration and decides about its secrets.
func (p *plan) client(e *entry, s *catalog.ClientSpec) {
	var stored []catalog.SealedSecret
	if i, ok := p.index[e.doc.of]; ok {
		stored = p.next.Clients[i].Secrets
		p.next.Clients[i].Secrets = nil // compared by themselves
	}
	overlay(p, e, &p.next.Clients, s)
	at := p.index[e.doc.of]
	p.next.Clients[at].Secrets = stored
	want, declared := e.doc.secrets, e.doc.secrets != nil
	switch {
	case s.AuthMethod == catalog.AuthNone && !declared:
		want, declared = []secret.Text{}, len(stored) > 0
	case e.doc.generate && len(stored) == 0:
		want, declared = []secret.Text{secret.Text(id.NewHandle(p.applier.Random))}, true
	}
	if !declared || p.sameSecrets(s, stored, want) {
		return
	}
	e.secrets = &want
	p.next.Clients[at].Secrets = make([]catalog.SealedSecret, len(want))
	if e.change.Action == Unchanged {
		e.change.Action = Updated
	}
	if e.change.Action == Updated {
		e.change.Fields = append(e.change.Fields, "secrets")
	}
}

// sameSecrets compares what is stored with what is wanted. A secret that does
// not open is another.
func (p *plan) sameSecrets(s *catalog.ClientSpec, stored []catalog.SealedSecret, want []secret.Text) bool {
	if len(stored) != len(want) {
		return false
	}
	for i, sealed := range stored {
		plain, err := p.applier.keyring.Open(sealed.Sealed, catalog.ClientSecretContext(s.Tenant, s.ID, sealed.ID))
		if err != nil || !secret.Equal(plain, []byte(want[i].Reveal())) {
			return false
		}
	}
	return true
}

// validate checks the configuration as it will be. What is wrong elsewhere
// counts only when these documents make it so.
func (p *plan) validate() {
	known := map[validate.Problem]bool{}
	for _, problem := range p.applier.Rules.Snapshot(p.current) {
		known[problem] = true
	}
	for _, problem := range p.applier.Rules.Snapshot(p.next) {
		if e, ok := p.byRef[problem.Of]; ok {
			p.fail(e.doc, problem.Field, "%s", problem.Message)
		} else if !known[problem] {
			p.errs = append(p.errs, Error{Message: "in the database: " + problem.String()})
		}
	}
}

func (p *plan) changes() []Change {
	out := make([]Change, len(p.entries))
	for i, e := range p.entries {
		out[i] = e.change
	}
	return out
}
