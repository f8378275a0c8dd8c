package catalog

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"versola/platform/id"
)

// spread is a configuration of several tenants with equal ids throughout.
func spread(tenants int) *Snapshot {
	s := &Snapshot{Revision: 1, Issuer: "https://id.example.com", RootTenant: "t0", Edges: []EdgeSpec{{ID: "edge", JWKS: json.RawMessage(`{"keys":[]}`)}}}
	for n := range tenants {
		t := fmt.Sprintf("t%d", n)
		for _, e := range []Entity{
			&TenantSpec{ID: t, Profile: ProfileStandard}, &ScopeSpec{Tenant: t, ID: "openid"}, &ScopeSpec{Tenant: t, ID: "email"},
			&ResourceSpec{Tenant: t, ID: "api", Upstream: UpstreamSpec{URL: "http://" + t}, Endpoints: []EndpointSpec{{ID: "read", Method: "GET", Path: "/"}}},
			&PermissionSpec{Tenant: t, ID: "p", Endpoints: []string{"api:read"}}, &RoleSpec{Tenant: t, ID: "r", Permissions: []string{"p"}},
			&ClientSpec{Tenant: t, ID: "web", Secrets: []SealedSecret{{ID: id.UUID{1}, Sealed: []byte(t)}}}, &ClientSpec{Tenant: t, ID: "spa"},
			&PresetSpec{Tenant: t, ID: "login-" + t, Edge: "edge", Client: "web"},
			&TextsSpec{Tenant: t, ID: "en", Texts: map[string]string{"footer": t}}, &ThemeSpec{Tenant: t, ID: "sun", Logo: "https://" + t},
			&TemplateSpec{Tenant: t, ID: "otp", Message: "otp", Channel: "sms", Body: Plain("{code} " + t)},
		} {
			k, _ := KindOf(e.Ref().Kind)
			k.Put(s, e)
		}
	}
	return s
}

func openAny(sealed []byte, _ string) ([]byte, error) { return sealed, nil }

// What is compiled piece by piece is what is compiled whole.
func TestAdvance_GivesWhatCompileGives(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	s := spread(4)
	compiler := &Compiler{Open: openAny}
	current, err := compiler.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for step := range 400 {
		next := *s
		for _, k := range Kinds {
			k.Clone(&next)
		}
		next.Revision++
		var changed []Ref
		for range 1 + r.IntN(3) {
			changed = append(changed, alter(r, &next))
		}
		want, wantErr := compiler.Compile(&next)
		got, err := compiler.Advance(current, &next, changed)
		if fmt.Sprint(err) != fmt.Sprint(wantErr) {
			t.Fatalf("step %d, %v: %v, whole: %v", step, changed, err, wantErr)
		}
		if err != nil {
			refused++
			continue // the database would not have taken it
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: %v compile to something else alone than with all others", step, changed)
		}
		for tenant, was := range current.tenants {
			if is, ok := got.tenants[tenant]; ok && is != was && !concerns(changed, tenant) {
				t.Errorf("step %d: tenant %s was compiled again for %v", step, tenant, changed)
			}
		}
		s, current = &next, got
	}
	if refused == 0 || refused > 300 {
		t.Errorf("%d of 400 steps were refused", refused)
	}
}

func concerns(changed []Ref, tenant string) bool {
	for _, r := range changed {
		if r.Tenant == tenant || r.Kind == KindNameTenant && r.ID == tenant {
			return true
		}
	}
	return false
}

// alter changes one entity at random and says which.
func alter(r *rand.Rand, s *Snapshot) Ref {
	tenant := fmt.Sprintf("t%d", r.IntN(5))
	var e Entity
	switch r.IntN(9) {
	case 0:
		e = &TenantSpec{ID: tenant, Name: fmt.Sprint(r.IntN(9)), Profile: ProfileStandard}
	case 1:
		e = &ClientSpec{Tenant: tenant, ID: "web", Name: Plain(fmt.Sprint(r.IntN(9))), Secrets: []SealedSecret{{ID: id.UUID{1}, Sealed: []byte{byte(r.IntN(9))}}}}
	case 2:
		e = &ResourceSpec{Tenant: tenant, ID: []string{"api", "other"}[r.IntN(2)], Upstream: UpstreamSpec{URL: fmt.Sprintf("http://h%d", r.IntN(9))},
			Endpoints: []EndpointSpec{{ID: "read", Method: "GET", Path: "/"}}}
	case 3:
		e = &RoleSpec{Tenant: tenant, ID: fmt.Sprint(r.IntN(3)), Permissions: []string{"p"}}
	case 4:
		e = &PresetSpec{Tenant: tenant, ID: "login-" + tenant, Edge: "edge", Client: []string{"web", "spa"}[r.IntN(2)]}
	case 5:
		e = &EdgeSpec{ID: []string{"edge", "more"}[r.IntN(2)], JWKS: json.RawMessage(`{"keys":[]}`)}
	case 6:
		e = &RoleSpec{Tenant: tenant, ID: "dangling", Permissions: []string{"none"}}
	default:
		gone := []Ref{{KindNameTenant, "", tenant}, {KindNameScope, tenant, "email"}, {KindNameClient, tenant, "spa"}, {KindNameResource, tenant, "other"},
			{KindNamePreset, tenant, "login-" + tenant}, {KindNameEdge, "", "more"}}[r.IntN(6)]
		k, _ := KindOf(gone.Kind)
		k.Remove(s, gone)
		return gone
	}
	k, _ := KindOf(e.Ref().Kind)
	k.Put(s, e)
	return e.Ref()
}

func TestAdvance_AnotherIssuerOrRootTenantIsCompiledWhole(t *testing.T) {
	t.Parallel()
	compiler := &Compiler{Open: openAny}
	before, err := compiler.Compile(spread(2))
	if err != nil {
		t.Fatal(err)
	}
	moved, rooted := spread(2), spread(2)
	moved.Issuer, rooted.RootTenant = "https://moved.example", "t1"
	for _, s := range []*Snapshot{moved, rooted} {
		got, err := compiler.Advance(before, s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want, _ := compiler.Compile(s); !reflect.DeepEqual(got, want) {
			t.Errorf("issuers of before: %s", got.Tenants()[0].Issuer)
		}
	}
}
