package catalog

import "slices"

// Resources returns all resources of the tenant, ordered by id.
func (t *Tenant) Resources() []*Resource {
	out := make([]*Resource, 0, len(t.resources))
	for _, r := range t.resources {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Resource) int { return compare(a.ID, b.ID) })
	return out
}

// Presets returns the login presets of an edge, ordered by id.
func (c *Catalog) Presets(edge string) []*Preset {
	var out []*Preset
	for k, p := range c.presets {
		if k.edge == edge {
			out = append(out, p)
		}
	}
	slices.SortFunc(out, func(a, b *Preset) int { return compare(a.ID, b.ID) })
	return out
}
