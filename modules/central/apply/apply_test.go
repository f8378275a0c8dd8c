package apply

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/store"
	"versola/modules/central/validate"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var keys = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}

type countingHasher struct{ n int }

func (h *countingHasher) Hash(context.Context, string) (string, error) {
	h.n++
	return fmt.Sprintf("hash %d", h.n), nil
}

type fixture struct {
	*Applier
	clock  *clock.Fake
	hasher *countingHasher

	keyring *secret.Keyring
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	f := &fixture{clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), hasher: &countingHasher{}}
	engine, err := change.New(change.Deps{DB: dbx, Encryption: keys, Clock: f.clock, Random: rand.Reader, Rules: validate.Rules{Development: true}})
	if err != nil {
		t.Fatal(err)
	}
	keyring, err := secret.NewKeyring(keys, catalog.SealPurpose)
	if err != nil {
		t.Fatal(err)
	}
	f.keyring = keyring
	f.Applier = New(Deps{DB: dbx, Engine: engine, Users: user.NewStore(dbx, rand.Reader), Hasher: f.hasher, Clock: f.clock, Random: rand.Reader})
	return f
}

func parse(t testing.TB, text string, vars map[string]string) *Documents {
	t.Helper()
	docs := &Documents{}
	if err := docs.Add("a.yaml", strings.NewReader(text), vars); err != nil {
		t.Fatal(err)
	}
	return docs
}

func (f *fixture) apply(t *testing.T, text string) []string {
	t.Helper()
	changes, err := f.Apply(t.Context(), parse(t, text, nil), Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([]string, len(changes))
	for i, c := range changes {
		out[i] = c.String()
	}
	return out
}

func load(t *testing.T, dbx *postgres.DB) *catalog.Snapshot {
	t.Helper()
	s, err := store.Load(t.Context(), dbx)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const two = `
kind: tenant
id: demo
name: Demo
security_profile: standard
---
kind: scope
tenant: demo
id: openid
---
kind: client
tenant: demo
id: web
client_kind: web
auth_method: client_secret_basic
secret: first-secret-of-web
grant_types: [authorization_code]
redirect_uris: ["https://a.example/cb"]
scopes: [openid]
access_token_ttl: 10m
---
kind: resource
tenant: demo
id: api
upstream: {url: "http://127.0.0.1:1"}
endpoints: [{id: list, method: GET, path: /}]
---
kind: permission
tenant: demo
id: read
endpoints: [api:list]
---
kind: role
tenant: demo
id: reader
permissions: [read]
---
kind: user
directory: demo
email: Ann@example.com
claims: {name: Ann, birthdate: 1990-01-31, address: {locality: Oxford}}
roles: {demo: [reader]}
password: correct-horse
`

func TestApply_TwiceChangesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	want := []string{"created tenant demo", "created scope demo/openid", "created client demo/web", "created resource demo/api",
		"created permission demo/read", "created role demo/reader", "created user demo/Ann@example.com"}
	if diff := cmp.Diff(want, f.apply(t, two)); diff != "" {
		t.Error(diff)
	}
	before := load(t, f.DB)
	f.clock.Advance(time.Hour)
	for i := range want {
		want[i] = strings.Replace(want[i], "created", "unchanged", 1)
	}
	if diff := cmp.Diff(want, f.apply(t, two)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(before, load(t, f.DB)); diff != "" {
		t.Errorf("the second time something changed, the revision included:\n%s", diff)
	}
	if f.hasher.n != 1 {
		t.Errorf("%d passwords hashed, want 1", f.hasher.n)
	}
	u, err := f.Users.Find(t.Context(), "demo", user.Identifier{Kind: user.KindEmail, Value: "ann@example.com"})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"name": "Ann", "birthdate": "1990-01-31", "address": map[string]any{"locality": "Oxford"}}, u.Claims); diff != "" {
		t.Error(diff)
	}
}

func TestApply_WritesOnlyWhatDiffersAndMovesTheRevisionOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	before := load(t, f.DB).Revision
	got := f.apply(t, strings.NewReplacer("name: Demo", "name: Renamed", "access_token_ttl: 10m", "access_token_ttl: 600s", "path: /}", "path: /list}").Replace(two))
	want := []string{"updated tenant demo (name)", "unchanged scope demo/openid", "unchanged client demo/web", "updated resource demo/api (endpoints)",
		"unchanged permission demo/read", "unchanged role demo/reader", "unchanged user demo/Ann@example.com"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if after := load(t, f.DB).Revision; after != before+1 {
		t.Errorf("revision went from %d to %d", before, after)
	}
}

func TestApply_DryRunTellsAndDoesNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := load(t, f.DB)
	changes, err := f.Apply(t.Context(), parse(t, two, nil), Options{DryRun: true})
	if err != nil || len(changes) != 7 || changes[0].Action != change.Created {
		t.Fatalf("%v, %v", changes, err)
	}
	if diff := cmp.Diff(before, load(t, f.DB)); diff != "" {
		t.Error(diff)
	}
}

// secretsOf opens a client's secrets.
func (f *fixture) secretsOf(t *testing.T, client string) []string {
	t.Helper()
	s := load(t, f.DB)
	c, err := (&catalog.Compiler{Open: f.keyring.Open}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	tenant, _ := c.Tenant("demo")
	cl, ok := tenant.Client(client)
	if !ok {
		t.Fatalf("no client %s", client)
	}
	out := []string{}
	for _, text := range cl.Secrets {
		out = append(out, text.Reveal())
	}
	return out
}

func TestApply_SecretsOfAClient(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	const head = "kind: client\ntenant: demo\nid: web\nclient_kind: web\nauth_method: client_secret_basic\ngrant_types: [authorization_code]\nredirect_uris: [\"https://a.example/cb\"]\nscopes: [openid]\naccess_token_ttl: 10m\n"
	for _, step := range []struct {
		name, doc, change string
		want              []string
	}{
		{"without secret: kept", head, "unchanged client demo/web", []string{"first-secret-of-web"}},
		{"rotation: newest first, the old one stays valid", head + "secrets: [second-secret-of-web, first-secret-of-web]\n", "updated client demo/web (secrets)", []string{"second-secret-of-web", "first-secret-of-web"}},
		{"the same again", head + "secrets: [second-secret-of-web, first-secret-of-web]\n", "unchanged client demo/web", []string{"second-secret-of-web", "first-secret-of-web"}},
		{"the order counts", head + "secrets: [first-secret-of-web, second-secret-of-web]\n", "updated client demo/web (secrets)", []string{"first-secret-of-web", "second-secret-of-web"}},
		{"the old one is dropped", head + "secret: second-secret-of-web\n", "updated client demo/web (secrets)", []string{"second-secret-of-web"}},
		{"generate_secret keeps what is there", head + "generate_secret: true\n", "unchanged client demo/web", []string{"second-secret-of-web"}},
		{"becoming public drops them", strings.NewReplacer("client_secret_basic", "none", "client_kind: web", "client_kind: native").Replace(head), "updated client demo/web (auth_method, client_kind, secrets)", []string{}},
	} {
		got := f.apply(t, step.doc)
		if diff := cmp.Diff([]string{step.change}, got); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
		if diff := cmp.Diff(step.want, f.secretsOf(t, "web")); diff != "" {
			t.Errorf("%s: %s", step.name, diff)
		}
	}
	generated := strings.ReplaceAll(head, "id: web", "id: made") + "generate_secret: true\n"
	f.apply(t, generated)
	first := f.secretsOf(t, "made")
	f.apply(t, generated)
	if second := f.secretsOf(t, "made"); len(first) != 1 || len(first[0]) < 43 || !cmp.Equal(first, second) {
		t.Errorf("generated %d secrets, then %d, equal %v", len(first), len(second), cmp.Equal(first, second))
	}
}

func TestApply_BadDocumentsListEveryErrorWithItsLineAndChangeNothing(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/bad/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no bad documents: %v", err)
	}
	f := newFixture(t)
	f.apply(t, two)
	before := load(t, f.DB)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			docs := &Documents{}
			if err := docs.Add("f", strings.NewReader(string(raw)), map[string]string{"KNOWN": "known", "EMPTY": ""}); err != nil {
				t.Fatal(err)
			}
			// A line with an error ends in a comment: "# want: part of the message".
			want := map[int][]string{}
			for n, line := range strings.Split(string(raw), "\n") {
				for _, w := range strings.Split(line, "# want: ")[1:] {
					want[n+1] = append(want[n+1], strings.TrimSpace(w))
				}
			}
			_, err = f.Apply(t.Context(), docs, Options{})
			var errs Errors
			if !errors.As(err, &errs) {
				t.Fatalf("%v", err)
			}
			if strings.Contains(err.Error(), "sesame") {
				t.Errorf("a secret is in the errors:\n%v", err)
			}
			for _, e := range errs {
				found := false
				for i, w := range want[e.Line] {
					if strings.Contains(e.Message, w) {
						want[e.Line] = append(want[e.Line][:i:i], want[e.Line][i+1:]...)
						found = true
						break
					}
				}
				if !found {
					t.Errorf("unexpected: %v", e)
				}
			}
			for line, rest := range want {
				for _, w := range rest {
					t.Errorf("line %d: missing %q", line, w)
				}
			}
			if diff := cmp.Diff(before, load(t, f.DB)); diff != "" {
				t.Errorf("something changed:\n%s", diff)
			}
		})
	}
}

func TestApply_WhatBreaksAnEntityElsewhereIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	_, err := f.Apply(t.Context(), parse(t, "kind: resource\ntenant: demo\nid: api\nupstream: {url: \"http://127.0.0.1:1\"}\nendpoints: [{id: other, method: GET, path: /}]\n", nil), Options{})
	if err == nil || !strings.Contains(err.Error(), "in the database: permission demo/read: endpoints[0]") {
		t.Errorf("%v", err)
	}
}

func TestApply_TheSecurityProfileIsFixed(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	_, err := f.Apply(t.Context(), parse(t, "kind: tenant\nid: demo\nsecurity_profile: fapi2\n", nil), Options{})
	if err == nil || !strings.Contains(err.Error(), "a.yaml:3: tenant demo: security_profile: ") {
		t.Errorf("%v", err)
	}
}

func TestApply_APersonIsCreatedOnceAndThenLeftAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	if _, err := f.DB.Exec(t.Context(), `UPDATE auth.users SET roles = '{}', claims = '{"name": "Changed"}'`); err != nil {
		t.Fatal(err)
	}
	f.apply(t, two)
	u, err := f.Users.Find(t.Context(), "demo", user.Identifier{Kind: user.KindEmail, Value: "ann@example.com"})
	if err != nil || len(u.Roles) != 0 || u.Claims["name"] != "Changed" {
		t.Errorf("%+v, %v", u, err)
	}
}

func TestApply_PeopleWithOnlyAPhoneAreToldApartAndNotNamedInFull(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.apply(t, two)
	got := f.apply(t, "kind: user\ndirectory: demo\nphone: \"+77001230001\"\n---\nkind: user\ndirectory: demo\nphone: \"+77004560001\"\n")
	if diff := cmp.Diff([]string{"created user demo/+77***01", "created user demo/+77***01"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestApply_SeveralAtOnceQueue(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	before := load(t, f.DB).Revision
	done := make(chan error)
	const parallel = 6
	for range parallel {
		go func() {
			_, err := f.Apply(context.Background(), parse(t, two, nil), Options{})
			done <- err
		}()
	}
	for range parallel {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if got := load(t, f.DB).Revision; got != before+1 {
		t.Errorf("revision %d after %d: one of them creates everything", got, before)
	}
}

func TestParse_VariablesAreReplacedInValues(t *testing.T) {
	t.Parallel()
	docs := parse(t, "kind: edge\nid: ${ID}-x${ID}\njwks: ${KEYS}\n---\nkind: tenant\nid: t\nname: \"$${ID} costs $5\"\nsecurity_profile: standard\n",
		map[string]string{"ID": "a", "KEYS": `{"keys":[]}`})
	if err := docs.Err(); err != nil {
		t.Fatal(err)
	}
	edge, _ := docs.list[0].spec.(*catalog.EdgeSpec)
	tenant, _ := docs.list[1].spec.(*catalog.TenantSpec)
	if edge.ID != "a-xa" || string(edge.JWKS) != `{"keys":[]}` || tenant.Name != "${ID} costs $5" {
		t.Errorf("%+v %s %+v", edge, edge.JWKS, tenant)
	}
}

func TestParseFS_ReadsYAMLFilesInOrderOfTheirNames(t *testing.T) {
	t.Parallel()
	doc := func(id string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("# a comment\n---\n---\nkind: tenant\nid: " + id + "\n")}
	}
	docs, err := ParseFS(fstest.MapFS{"b.yaml": doc("b"), "a.yml": doc("a"), "sub/c.yaml": doc("c"), "README.md": doc("x")}, nil)
	if err != nil || docs.Err() != nil {
		t.Fatalf("%v %v", err, docs.Err())
	}
	var ids []string
	for _, d := range docs.list {
		ids = append(ids, d.of.ID)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, ids); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(two)
	f.Add("kind: client\nsecrets: [a, [b]]\nlogin: {factors: 5}\n")
	f.Add("kind: user\nclaims: {a: {b: [1, .inf, ~]}}\nroles: [x]\n")
	f.Add("a: &a [*a]\n")
	f.Fuzz(func(t *testing.T, text string) {
		docs := &Documents{}
		if err := docs.Add("fuzz", strings.NewReader(text), map[string]string{"A": "b"}); err != nil {
			t.Skip()
		}
		before := change.NewView(&store.State{Snapshot: &catalog.Snapshot{}})
		p := newPlan(&Applier{Deps: Deps{Random: rand.Reader}}, before, docs, Options{Prune: PruneAll})
		next := &catalog.Snapshot{}
		for _, op := range p.ops {
			if put, ok := op.(change.Put); ok {
				k, _ := catalog.KindOf(put.Spec.Ref().Kind)
				k.Put(next, put.Spec)
			}
		}
		p.refused(&change.Invalid{Problems: (validate.Rules{}).Snapshot(next)})
	})
}
