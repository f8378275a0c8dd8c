package catalog

import "fmt"

// DeltaIM names the form of a [Delta] in the headers A-IM and IM (RFC 3229
// section 10): whoever asks for a snapshot with it and with If-None-Match may
// be answered 226, with what differs from the one that they name.
const DeltaIM = "versola-catalog-delta"

// Delta is what differs between two snapshots of one edge.
type Delta struct {
	// Put has what is new or changed; its revision, issuer and root tenant are
	// those of the later snapshot.
	Put Snapshot `json:"put"`
	// Keys tells that Put has the signing keys; they are sent all or none.
	Keys bool `json:"keys"`
	// Remove is what is not there any more.
	Remove []Ref `json:"remove"`
}

// Apply returns the later snapshot, and what differs in it, for
// [Compiler.Advance]. The earlier one stays as it is. Errors: the delta names
// a kind that there is not.
func (d *Delta) Apply(before *Snapshot) (*Snapshot, []Ref, error) {
	next := *before
	next.Revision, next.Issuer, next.RootTenant = d.Put.Revision, d.Put.Issuer, d.Put.RootTenant
	if d.Keys {
		next.Keys = d.Put.Keys
	}
	var changed []Ref
	owned := map[string]bool{}
	own := func(k *Kind) {
		if !owned[k.Name] {
			owned[k.Name] = true
			k.Clone(&next)
		}
	}
	for _, k := range Kinds {
		for i := range k.Len(&d.Put) {
			e := k.At(&d.Put, i)
			own(k)
			k.Put(&next, e)
			changed = append(changed, e.Ref())
		}
	}
	for _, r := range d.Remove {
		k, ok := KindOf(r.Kind)
		if !ok {
			return nil, nil, fmt.Errorf("removal of unknown kind %.40q", r.Kind)
		}
		own(k)
		k.Remove(&next, r)
		changed = append(changed, r)
	}
	return &next, changed, nil
}
