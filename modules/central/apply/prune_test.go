package apply

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/auth/user"
)

// beside is what the documents of a test do not name: another tenant with the
// ids of the first, the built-in one, and an edge.
const beside = `
{kind: tenant, id: other, name: Other, security_profile: standard}
---
{kind: scope, tenant: other, id: openid}
---
{kind: tenant, id: system, name: System, security_profile: standard}
---
{kind: scope, tenant: system, id: openid}
---
{kind: directory, id: spare}
---
kind: edge
id: west
jwks: {keys: [{kty: EC, use: sig, alg: ES256, kid: s, crv: P-256, x: f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU, y: x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0}, {kty: EC, use: enc, kid: e, crv: P-256, x: f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU, y: x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0}]}
`

const (
	demoTenant = "kind: tenant\nid: demo\nname: Demo\nsecurity_profile: standard\n"
	demoScope  = "---\nkind: scope\ntenant: demo\nid: openid\n"
	demoClient = `---
kind: client
tenant: demo
id: web
client_kind: web
auth_method: client_secret_basic
grant_types: [authorization_code]
redirect_uris: ["https://a.example/cb"]
scopes:
  - openid
access_token_ttl: 10m
`
)

func TestPrune_DeletesWhatIsGoneWithinItsScopeAndNothingElse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		docs  string
		prune Prune
		want  []string // what is deleted, in order
	}{
		"nothing is asked for":          {demoTenant, PruneNothing, nil},
		"a declared tenant":             {demoTenant + demoScope + demoClient, PruneDeclared, []string{"role demo/reader", "permission demo/read", "resource demo/api"}},
		"a declared tenant alone":       {demoTenant, PruneDeclared, []string{"client demo/web", "role demo/reader", "permission demo/read", "resource demo/api", "scope demo/openid"}},
		"no tenant is declared":         {demoScope, PruneDeclared, nil},
		"everything but system":         {demoTenant + demoScope + demoClient, PruneAll, []string{"role demo/reader", "permission demo/read", "resource demo/api", "scope other/openid", "tenant other", "directory spare", "edge west"}},
		"system where it is declared":   {demoTenant + demoScope + demoClient + "---\n{kind: tenant, id: system, name: System, security_profile: standard}\n", PruneAll, []string{"role demo/reader", "permission demo/read", "resource demo/api", "scope other/openid", "scope system/openid", "tenant other", "directory spare", "edge west"}},
		"system, where it is the scope": {"{kind: tenant, id: system, name: System, security_profile: standard}\n", PruneDeclared, []string{"scope system/openid"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.apply(t, two+"---"+beside)
			before := load(t, f.DB)
			docs := parse(t, c.docs, nil)
			dry, err := f.Apply(t.Context(), docs, Options{Prune: c.prune, DryRun: true})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(before, load(t, f.DB)); diff != "" {
				t.Errorf("a dry run changed something:\n%s", diff)
			}
			changes, err := f.Apply(t.Context(), docs, Options{Prune: c.prune})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for i, change := range changes {
				if dry[i].String() != change.String() {
					t.Errorf("the dry run says %s, and then: %s", dry[i], change)
				}
				if gone, ok := strings.CutPrefix(change.String(), "deleted "); ok {
					got = append(got, gone)
				}
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			again, err := f.Apply(t.Context(), docs, Options{Prune: c.prune})
			if err != nil {
				t.Fatal(err)
			}
			for _, change := range again {
				if change.Action != "unchanged" {
					t.Errorf("the second time: %s", change)
				}
			}
			if _, err := f.Users.Find(t.Context(), "demo", user.Identifier{Kind: user.KindEmail, Value: "ann@example.com"}); err != nil {
				t.Errorf("a person is pruned: %v", err)
			}
		})
	}
}

func TestPrune_WhatStaysAndNeedsWhatGoesIsListedAtItsLine(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two+"---"+beside+"---\n{kind: role, tenant: system, id: demo-admin, within: demo}\n")
	before := load(t, f.DB)
	for name, c := range map[string]struct {
		docs  string
		prune Prune
		want  []string
	}{
		"a declared client needs a scope": {demoTenant + demoClient + "colour: red\n", PruneDeclared,
			[]string{"a.yaml:14: client demo/web: scopes[0]: needs scope demo/openid, which no document declares", `a.yaml:16: unknown member "colour"`}},
		"a role of the system tenant needs the tenant": {"{kind: tenant, id: other, name: \"\\a\", security_profile: standard}", PruneAll,
			[]string{"in the database: role system/demo-admin: within: needs tenant demo, which would be pruned", "a.yaml:1: tenant other: name: has control characters"}},
	} {
		_, err := f.Apply(t.Context(), parse(t, c.docs, nil), Options{Prune: c.prune})
		var errs Errors
		if !errors.As(err, &errs) || len(errs) != len(c.want) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, want := range c.want {
			if !strings.HasPrefix(errs[i].Error(), want) {
				t.Errorf("%s: %s, expected %s", name, errs[i].Error(), want)
			}
		}
		if diff := cmp.Diff(before, load(t, f.DB)); diff != "" {
			t.Errorf("%s: something changed:\n%s", name, diff)
		}
	}
}
