package feed

import (
	"slices"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
)

// maxPast is how many revisions back an edge may be and still be sent the
// difference alone; each costs a few hundred bytes, or, when it moved tenants
// or presets, some 200 KiB among a thousand tenants.
const maxPast = 32

// base is what is remembered of a revision that edges may have.
type base struct {
	tag  string
	mark store.Mark
	*placement
}

// placement tells what belongs to which edge.
type placement struct {
	tenants map[string]string // tenant -> edge
	presets map[catalog.Ref]placedPreset
}

type placedPreset struct {
	edge   string
	client catalog.Ref
}

func place(s *catalog.Snapshot) *placement {
	p := &placement{make(map[string]string, len(s.Tenants)), make(map[catalog.Ref]placedPreset, len(s.Presets))}
	for i := range s.Tenants {
		p.tenants[s.Tenants[i].ID] = s.Tenants[i].Edge
	}
	for i := range s.Presets {
		e := &s.Presets[i]
		p.presets[e.Ref()] = placedPreset{e.Edge, catalog.Ref{Kind: catalog.KindNameClient, Tenant: e.Tenant, ID: e.Client}}
	}
	return p
}

// follow returns the placement at a later state where it is the same; nil where
// it may not be.
func (b base) follow(of *store.State) *placement {
	changed, known := of.Since(b.mark)
	if !known || slices.ContainsFunc(changed, func(r catalog.Ref) bool {
		return r.Kind == catalog.KindNameTenant || r.Kind == catalog.KindNamePreset
	}) {
		return nil
	}
	return b.placement
}

// used are the clients that an edge acts for.
func (p *placement) used(edgeID string) map[catalog.Ref]bool {
	used := map[catalog.Ref]bool{}
	for r, preset := range p.presets {
		if preset.edge == edgeID && p.tenants[r.Tenant] == edgeID {
			used[preset.client] = true
		}
	}
	return used
}

// knows tells whether tag is of a revision that is remembered.
func (r *revision) knows(tag string) bool {
	return slices.ContainsFunc(r.past, func(b base) bool { return b.tag == tag })
}

// difference returns what an edge lacks that has the revision of w.base; nil
// where it has to be sent all: its keys changed, or a tenant came to it or left
// it, whose entities did not change.
func difference(r *revision, w wanted, seal sealFunc) (*catalog.Delta, error) {
	was := r.past[slices.IndexFunc(r.past, func(b base) bool { return b.tag == w.base })]
	changed, known := r.state.Since(was.mark)
	if !known || moved(changed, was.placement, r.placement, w.edge) {
		return nil, nil
	}
	d := &catalog.Delta{Put: *heading(r, w.edge)}
	for _, ref := range withClients(changed, was.placement, r.placement) {
		switch ref.Kind {
		case store.KindKeys:
			d.Keys, d.Put.Keys = true, published(r.snapshot.Keys)
		case catalog.KindNameTenant, catalog.KindNameScope, catalog.KindNameResource, catalog.KindNamePermission,
			catalog.KindNameRole, catalog.KindNameClient, catalog.KindNamePreset:
			k, _ := catalog.KindOf(ref.Kind)
			if e, exists := k.Find(r.snapshot, ref); exists && r.placement.sees(w.edge, ref) {
				k.Put(&d.Put, e)
			} else if was.tenants[tenantOf(ref)] == w.edge {
				d.Remove = append(d.Remove, ref)
			}
		}
	}
	if err := resealAll(r, w.edge, d.Put.Clients, seal); err != nil {
		return nil, err
	}
	return d, nil
}

func tenantOf(r catalog.Ref) string {
	if r.Kind == catalog.KindNameTenant {
		return r.ID
	}
	return r.Tenant
}

// sees tells whether an edge is sent an entity of a tenant.
func (p *placement) sees(edgeID string, r catalog.Ref) bool {
	return p.tenants[tenantOf(r)] == edgeID && (r.Kind != catalog.KindNamePreset || p.presets[r].edge == edgeID)
}

// moved tells whether more differs for an edge than what changed.
func moved(changed []catalog.Ref, was, is *placement, edgeID string) bool {
	return slices.ContainsFunc(changed, func(r catalog.Ref) bool {
		if r.Kind == catalog.KindNameEdge {
			return r.ID == edgeID
		}
		before, had := was.tenants[r.ID]
		now, has := is.tenants[r.ID]
		return r.Kind == catalog.KindNameTenant && had && has && before != now && (before == edgeID || now == edgeID)
	})
}

// withClients adds the clients that changed presets refer to or referred to:
// their secrets are sent, or are not any more.
func withClients(changed []catalog.Ref, was, is *placement) []catalog.Ref {
	out := slices.Clone(changed)
	for _, r := range changed {
		if r.Kind == catalog.KindNamePreset {
			for _, p := range []*placement{was, is} {
				if preset, ok := p.presets[r]; ok {
					out = append(out, preset.client)
				}
			}
		}
	}
	slices.SortFunc(out, catalog.CompareRef)
	return slices.Compact(out)
}
