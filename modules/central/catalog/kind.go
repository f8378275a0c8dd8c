package catalog

import (
	"cmp"
	"slices"
)

// Names of the kinds of entity, as documents, tables and the admin API have
// them.
const (
	KindNameEdge       = "edge"
	KindNameTenant     = "tenant"
	KindNameScope      = "scope"
	KindNameResource   = "resource"
	KindNamePermission = "permission"
	KindNameRole       = "role"
	KindNameClient     = "client"
	KindNamePreset     = "preset"
	KindNameDirectory  = "directory"
	KindNameClaim      = "claim"
	KindNameDetailType = "authorization_detail_type"
	KindNameTheme      = "theme"
	KindNameTexts      = "texts"
	KindNameTemplate   = "template"
	KindNameWebhook    = "webhook"
)

// Ref names an entity. Tenant is empty for what belongs to the deployment,
// such as edges and tenants themselves.
type Ref struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
}

// String returns "kind tenant/id" or "kind id".
func (r Ref) String() string {
	if r.Tenant == "" {
		return r.Kind + " " + r.ID
	}
	return r.Kind + " " + r.Tenant + "/" + r.ID
}

// CompareRef orders entities of one kind as a snapshot's lists have them: by
// tenant, then by id, byte for byte.
func CompareRef(a, b Ref) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.ID, b.ID))
}

// Entity is a pointer to a declaration: *[ClientSpec] and so on.
type Entity interface {
	Ref() Ref
	// Refers calls visit for each entity that this one needs, with the field
	// that names it, as in a document ("scopes[1]").
	Refers(visit func(field string, to Ref))
}

// Kind is what a program needs to know to handle entities of a kind without
// knowing which. A snapshot's list of a kind is ordered by [CompareRef].
type Kind struct {
	Name string
	// Global entities belong to the deployment, not to a tenant.
	Global bool
	New    func() Entity
	Len    func(*Snapshot) int
	// At returns a pointer into the snapshot's list.
	At func(s *Snapshot, i int) Entity
	// Put replaces or adds an entity, Remove takes one out; both change the
	// list in place, so that a list that others see is cloned first.
	Put    func(*Snapshot, Entity)
	Remove func(*Snapshot, Ref)
	Clone  func(*Snapshot)
}

// Kinds are all kinds, each after those that it refers to.
var Kinds = []*Kind{
	kind(KindNameEdge, true, func(s *Snapshot) *[]EdgeSpec { return &s.Edges }),
	kind(KindNameDirectory, true, func(s *Snapshot) *[]DirectorySpec { return &s.Directories }),
	kind(KindNameTenant, true, func(s *Snapshot) *[]TenantSpec { return &s.Tenants }),
	kind(KindNameTheme, false, func(s *Snapshot) *[]ThemeSpec { return &s.Themes }),
	kind(KindNameTexts, false, func(s *Snapshot) *[]TextsSpec { return &s.Texts }),
	kind(KindNameTemplate, false, func(s *Snapshot) *[]TemplateSpec { return &s.Templates }),
	kind(KindNameWebhook, false, func(s *Snapshot) *[]WebhookSpec { return &s.Webhooks }),
	kind(KindNameClaim, false, func(s *Snapshot) *[]ClaimSpec { return &s.Claims }),
	kind(KindNameDetailType, false, func(s *Snapshot) *[]AuthorizationDetailType { return &s.DetailTypes }),
	kind(KindNameScope, false, func(s *Snapshot) *[]ScopeSpec { return &s.Scopes }),
	kind(KindNameResource, false, func(s *Snapshot) *[]ResourceSpec { return &s.Resources }),
	kind(KindNamePermission, false, func(s *Snapshot) *[]PermissionSpec { return &s.Permissions }),
	kind(KindNameRole, false, func(s *Snapshot) *[]RoleSpec { return &s.Roles }),
	kind(KindNameClient, false, func(s *Snapshot) *[]ClientSpec { return &s.Clients }),
	kind(KindNamePreset, false, func(s *Snapshot) *[]PresetSpec { return &s.Presets }),
}

// KindOf returns the kind of that name.
func KindOf(name string) (*Kind, bool) {
	i := slices.IndexFunc(Kinds, func(k *Kind) bool { return k.Name == name })
	if i < 0 {
		return nil, false
	}
	return Kinds[i], true
}

func kind[T any, P interface {
	*T
	Entity
}](name string, global bool, list func(*Snapshot) *[]T) *Kind {
	find := func(s *Snapshot, r Ref) (int, bool) {
		return slices.BinarySearchFunc(*list(s), r, func(e T, r Ref) int { return CompareRef(P(&e).Ref(), r) })
	}
	return &Kind{
		Name:   name,
		Global: global,
		New:    func() Entity { return P(new(T)) },
		Len:    func(s *Snapshot) int { return len(*list(s)) },
		At:     func(s *Snapshot, i int) Entity { return P(&(*list(s))[i]) },
		Put: func(s *Snapshot, e Entity) {
			v, l := *(e.(P)), list(s) //nolint:errcheck,forcetypeassert // the kind was looked up by the entity
			i, found := find(s, e.Ref())
			if found {
				(*l)[i] = v
				return
			}
			*l = slices.Insert(*l, i, v)
		},
		Remove: func(s *Snapshot, r Ref) {
			if i, found := find(s, r); found {
				l := list(s)
				*l = slices.Delete(*l, i, i+1)
			}
		},
		Clone: func(s *Snapshot) { l := list(s); *l = slices.Clone(*l) },
	}
}

// Find returns a pointer into the snapshot's list.
func (k *Kind) Find(s *Snapshot, r Ref) (Entity, bool) {
	lo, hi := 0, k.Len(s)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if CompareRef(k.At(s, mid).Ref(), r) < 0 {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < k.Len(s) {
		if e := k.At(s, lo); e.Ref() == r {
			return e, true
		}
	}
	return nil, false
}
