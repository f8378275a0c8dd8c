package feed

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/id"
	"versola/platform/secret"
)

// history is a configuration that changes at random.
type history struct {
	*rand.Rand
	ring  *secret.Keyring
	edges []*edge
	state *store.State
}

func newHistory(t *testing.T, seed uint64, edges ...*edge) *history {
	t.Helper()
	ring, err := secret.NewKeyring(keys, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	return &history{rand.New(rand.NewPCG(seed, 3)), ring, edges, of(world(t, edges...))} //nolint:gosec // repeatable
}

func (h *history) tenant() string { return "t-" + h.edges[h.IntN(len(h.edges))].id }

func (h *history) client(tenant, name string) *catalog.ClientSpec {
	c := &catalog.ClientSpec{Tenant: tenant, ID: name, Kind: catalog.KindWeb, Name: catalog.Plain(fmt.Sprint(h.IntN(9)))}
	for range h.IntN(3) {
		secretID := id.UUID{byte(h.Uint32()), byte(h.Uint32()), byte(h.Uint32())}
		c.Secrets = append(c.Secrets, catalog.SealedSecret{ID: secretID, Sealed: h.ring.Seal([]byte(fmt.Sprint(h.IntN(9))), catalog.ClientSecretContext(tenant, name, secretID))})
	}
	return c
}

// step changes one to three entities, so that the result compiles.
func (h *history) step() {
	next := *h.state.Snapshot
	for _, k := range catalog.Kinds {
		k.Clone(&next)
	}
	next.Revision++
	var refs []catalog.Ref
	for range 1 + h.IntN(3) {
		refs = append(refs, h.alter(&next))
	}
	mark := store.Mark{Revision: next.Revision, Token: id.UUID{byte(next.Revision), byte(next.Revision >> 8)}}
	h.state = h.state.Next(mark, &next, nil, refs)
}

func (h *history) alter(s *catalog.Snapshot) catalog.Ref {
	tenant := h.tenant()
	var e catalog.Entity
	switch h.IntN(12) {
	case 0: // perhaps to another edge
		e = &catalog.TenantSpec{ID: tenant, Name: fmt.Sprint(h.IntN(9)), Profile: catalog.ProfileStandard, Edge: h.edges[h.IntN(len(h.edges))].id}
	case 1:
		e = &catalog.EdgeSpec{ID: h.edges[0].id, JWKS: h.edges[0].public}
	case 2, 3:
		e = h.client(tenant, []string{"web", "service"}[h.IntN(2)])
	case 4:
		e = &catalog.PresetSpec{Tenant: tenant, ID: "login", Edge: h.edges[h.IntN(len(h.edges))].id, Client: []string{"web", "service"}[h.IntN(2)]}
	case 5:
		s.Keys = append([]catalog.KeySpec(nil), s.Keys...)
		s.Keys[0].State = []string{catalog.KeyActive, catalog.KeyRetiring}[h.IntN(2)]
		return catalog.Ref{Kind: store.KindKeys}
	case 6:
		e = &catalog.ThemeSpec{Tenant: tenant, ID: "theme"}
	case 7:
		e = &catalog.DirectorySpec{ID: "people"}
	case 8:
		gone := catalog.Ref{Kind: catalog.KindNamePreset, Tenant: tenant, ID: "login"}
		k, _ := catalog.KindOf(gone.Kind)
		k.Remove(s, gone)
		return gone
	case 9:
		gone := catalog.Ref{Kind: catalog.KindNameScope, Tenant: tenant, ID: "openid"}
		k, _ := catalog.KindOf(gone.Kind)
		k.Remove(s, gone)
		return gone
	default:
		e = &catalog.ScopeSpec{Tenant: tenant, ID: []string{"openid", "more"}[h.IntN(2)], Claims: []string{fmt.Sprint(h.IntN(9))}}
	}
	k, _ := catalog.KindOf(e.Ref().Kind)
	k.Put(s, e)
	return e.Ref()
}

// opened replaces what is encrypted to an edge, which is different each time,
// by what it says.
func (e *edge) opened(t *testing.T, s catalog.Snapshot) catalog.Snapshot {
	t.Helper()
	raw, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var out catalog.Snapshot
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	for i := range out.Clients {
		c := &out.Clients[i]
		for n := range c.Secrets {
			plain, err := e.open(c.Secrets[n].Sealed, catalog.ClientSecretContext(c.Tenant, c.ID, c.Secrets[n].ID))
			if err != nil {
				t.Fatalf("a secret of %s is not for edge %s", c.ID, e.id)
			}
			c.Secrets[n].Sealed = plain
		}
	}
	return out
}

// An edge that follows by differences has what one has that is sent all.
func TestDelta_EndsWhereTheWholeEnds(t *testing.T) {
	t.Parallel()
	edges := []*edge{newEdge(t, "alpha", 1), newEdge(t, "beta", 1), newEdge(t, "gamma", 1)}
	for seed := range uint64(3) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h, s := newHistory(t, seed, edges...), serve(t, time.Minute)
			s.setState(t, h.state.Snapshot, h.state)
			type follower struct {
				*edge
				tag    string
				has    *catalog.Snapshot
				deltas int
			}
			var followers []*follower
			for _, e := range edges {
				a := s.get(t.Context(), t, e, "")
				f := &follower{edge: e, tag: a.tag, has: &catalog.Snapshot{}}
				if err := json.Unmarshal([]byte(a.body), f.has); err != nil {
					t.Fatal(err)
				}
				followers = append(followers, f)
			}
			for range 60 {
				for range 1 + h.IntN(3) {
					h.step()
					s.setState(t, h.state.Snapshot, h.state)
				}
				for _, f := range followers {
					a := s.ask(t.Context(), t, f.edge, f.tag, catalog.DeltaIM)
					switch a.status {
					case http.StatusOK:
						f.has = &catalog.Snapshot{}
						if err := json.Unmarshal([]byte(a.body), f.has); err != nil {
							t.Fatal(err)
						}
					case http.StatusIMUsed:
						f.deltas++
						if a.header.Get("IM") != catalog.DeltaIM || a.header.Get("Delta-Base") != f.tag {
							t.Errorf("headers %v", a.header)
						}
						var d catalog.Delta
						if err := json.Unmarshal([]byte(a.body), &d); err != nil {
							t.Fatal(err)
						}
						next, _, err := d.Apply(f.has)
						if err != nil {
							t.Fatal(err)
						}
						f.has = next
					default:
						t.Fatalf("%d %s", a.status, a.body)
					}
					f.tag = a.tag
					var whole catalog.Snapshot
					if err := json.Unmarshal([]byte(s.get(t.Context(), t, f.edge, "").body), &whole); err != nil {
						t.Fatal(err)
					}
					if diff := cmp.Diff(f.opened(t, whole), f.opened(t, *f.has), cmpopts.EquateEmpty()); diff != "" {
						t.Fatalf("edge %s at revision %d (-whole +followed):\n%s\n%s", f.id, h.state.Revision, diff, a.body)
					}
				}
			}
			for _, f := range followers {
				if f.deltas < 10 {
					t.Errorf("edge %s was sent only %d differences", f.id, f.deltas)
				}
			}
		})
	}
}

func TestDelta_NamesNothingOfOtherTenants(t *testing.T) {
	t.Parallel()
	a, b := newEdge(t, "alpha", 1), newEdge(t, "beta", 1)
	h, s := newHistory(t, 1, a, b), serve(t, time.Minute)
	s.setState(t, h.state.Snapshot, h.state)
	tags := map[*edge]string{a: s.get(t.Context(), t, a, "").tag, b: s.get(t.Context(), t, b, "").tag}
	next := *h.state.Snapshot
	next.Revision++
	var refs []catalog.Ref
	for _, k := range catalog.Kinds {
		k.Clone(&next)
	}
	for _, e := range []*edge{a, b} {
		for _, changed := range []catalog.Entity{h.client("t-"+e.id, "web"), &catalog.ScopeSpec{Tenant: "t-" + e.id, ID: "new-of-" + e.id}} {
			k, _ := catalog.KindOf(changed.Ref().Kind)
			k.Put(&next, changed)
			refs = append(refs, changed.Ref())
		}
		gone := catalog.Ref{Kind: catalog.KindNameScope, Tenant: "t-" + e.id, ID: "openid"}
		k, _ := catalog.KindOf(gone.Kind)
		k.Remove(&next, gone)
		refs = append(refs, gone)
	}
	state := h.state.Next(store.Mark{Revision: next.Revision, Token: id.UUID{9}}, &next, nil, refs)
	s.setState(t, &next, state)
	for mine, other := range map[*edge]*edge{a: b, b: a} {
		got := s.ask(t.Context(), t, mine, tags[mine], catalog.DeltaIM)
		if got.status != http.StatusIMUsed || strings.Contains(got.body, other.id) || !strings.Contains(got.body, "new-of-"+mine.id) {
			t.Errorf("%s: %d %s", mine.id, got.status, got.body)
		}
	}
}

func TestDelta_WhoDoesNotAskForItOrHasSomethingElseIsSentAll(t *testing.T) {
	t.Parallel()
	e := newEdge(t, "alpha", 1)
	h, s := newHistory(t, 2, e), serve(t, time.Minute)
	s.setState(t, h.state.Snapshot, h.state)
	had := s.get(t.Context(), t, e, "").tag
	scope := &catalog.ScopeSpec{Tenant: "t-alpha", ID: "more"}
	next := *h.state.Snapshot
	next.Revision++
	k, _ := catalog.KindOf(catalog.KindNameScope)
	k.Clone(&next)
	k.Put(&next, scope)
	state := h.state.Next(store.Mark{Revision: next.Revision, Token: id.UUID{9}}, &next, nil, []catalog.Ref{scope.Ref()})
	s.setState(t, &next, state)
	for name, c := range map[string]struct {
		tag, form string
		want      int
	}{
		"asks":            {had, catalog.DeltaIM, http.StatusIMUsed},
		"does not ask":    {had, "", http.StatusOK},
		"another form":    {had, "diffe", http.StatusOK},
		"has nothing":     {"", catalog.DeltaIM, http.StatusOK},
		"unknown":         {`"7-0000000000000000"`, catalog.DeltaIM, http.StatusOK},
		"a weak tag":      {"W/" + had, catalog.DeltaIM, http.StatusOK},
		"anything at all": {"*", catalog.DeltaIM, http.StatusOK},
	} {
		if got := s.ask(t.Context(), t, e, c.tag, c.form); got.status != c.want {
			t.Errorf("%s: %d, want %d", name, got.status, c.want)
		}
	}
	// A state of which is not known how it came about.
	lone := *state.Snapshot
	lone.Revision++
	s.set(t, &lone)
	if got := s.ask(t.Context(), t, e, had, catalog.DeltaIM); got.status != http.StatusOK {
		t.Errorf("after a whole reading: %d", got.status)
	}
}
