package change

import (
	"iter"
	"slices"
	"sort"
	"sync"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/id"
)

// View is the configuration at one revision. It never changes, and what it
// returns must not be changed.
type View struct {
	*store.State
	uses func() map[catalog.Ref][]Use
}

// Entry is an entity and what is known about it.
type Entry struct {
	Spec catalog.Entity
	store.Meta
}

// SecretInfo is what may be told of a client's secret.
type SecretInfo struct {
	ID      id.UUID
	Created time.Time
}

// NewView returns a state as a view.
func NewView(s *store.State) *View {
	return &View{s, sync.OnceValue(func() map[catalog.Ref][]Use { return usesOf(s.Snapshot) })}
}

// Get returns an entity.
func (v *View) Get(r catalog.Ref) (Entry, bool) {
	k, ok := catalog.KindOf(r.Kind)
	if !ok {
		return Entry{}, false
	}
	spec, ok := k.Find(v.Snapshot, r)
	if !ok {
		return Entry{}, false
	}
	return Entry{Spec: spec, Meta: v.Metas[r]}, true
}

// Meta returns what is known about an entity; of none, zero.
func (v *View) Meta(r catalog.Ref) store.Meta { return v.Metas[r] }

// List goes through the entities of a kind, ordered by tenant and id; those of
// one tenant where tenant is not empty.
func (v *View) List(kind, tenant string) iter.Seq[catalog.Entity] {
	return func(yield func(catalog.Entity) bool) {
		k, ok := catalog.KindOf(kind)
		if !ok {
			return
		}
		n, first := k.Len(v.Snapshot), 0
		if tenant != "" {
			first = sort.Search(n, func(i int) bool { return k.At(v.Snapshot, i).Ref().Tenant >= tenant })
		}
		for i := first; i < n; i++ {
			e := k.At(v.Snapshot, i)
			if tenant != "" && e.Ref().Tenant != tenant || !yield(e) {
				return
			}
		}
	}
}

// Uses returns who refers to an entity, ordered.
func (v *View) Uses(r catalog.Ref) []Use { return v.uses()[r] }

// Secrets returns what may be told of a client's secrets, newest first.
func (v *View) Secrets(client catalog.Ref) []SecretInfo {
	e, ok := v.Get(client)
	if !ok {
		return nil
	}
	c, ok := e.Spec.(*catalog.ClientSpec)
	if !ok {
		return nil
	}
	out := make([]SecretInfo, len(c.Secrets))
	for i, s := range c.Secrets {
		out[i] = SecretInfo{ID: s.ID, Created: s.ID.Time()}
	}
	return out
}

func usesOf(s *catalog.Snapshot) map[catalog.Ref][]Use {
	uses := map[catalog.Ref][]Use{}
	for _, k := range catalog.Kinds {
		for i := range k.Len(s) {
			e := k.At(s, i)
			by := e.Ref()
			e.Refers(func(field string, to catalog.Ref) { uses[to] = append(uses[to], Use{By: by, Field: field}) })
		}
	}
	for _, list := range uses {
		slices.SortStableFunc(list, func(a, b Use) int { return catalog.CompareRef(a.By, b.By) })
	}
	return uses
}
