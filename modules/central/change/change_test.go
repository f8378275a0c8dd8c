package change

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/central/store"
	"versola/platform/clock"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var encryption = []secret.Key{{ID: "k", Value: []byte("0123456789abcdef0123456789abcdef")}}

// journal keeps events that were committed with their transaction.
type journal struct {
	events []Event
	fail   error
}

func (j *journal) Record(_ context.Context, _ pgx.Tx, events []Event) error {
	j.events = append(j.events, events...)
	return j.fail
}

type world struct {
	*Engine
	journal *journal
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, pgtest.Open(t, db.Central()))
}

func newWorldOn(t testing.TB, dbx *postgres.DB) *world {
	t.Helper()
	w := &world{journal: &journal{}}
	e, err := New(Deps{DB: dbx, Encryption: encryption, Clock: clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)),
		Random: rand.Reader, Auditor: w.journal})
	if err != nil {
		t.Fatal(err)
	}
	w.Engine = e
	return w
}

func (w *world) do(t testing.TB, ops ...Op) *Result {
	t.Helper()
	r, err := w.Do(t.Context(), System("test"), ops, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func tenant(id string) *catalog.TenantSpec {
	return &catalog.TenantSpec{ID: id, Name: id, Profile: catalog.ProfileStandard}
}

func client(tenant string) *catalog.ClientSpec {
	return &catalog.ClientSpec{Tenant: tenant, ID: "web", Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic,
		GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{"https://a.example/cb"}, Scopes: []string{"openid"}}
}

// twoTenants have entities of equal ids.
func (w *world) twoTenants(t testing.TB) {
	t.Helper()
	for _, id := range []string{"one", "two"} {
		c := client(id)
		w.do(t, Put{Spec: tenant(id)}, Put{Spec: &catalog.ScopeSpec{Tenant: id, ID: "openid"}}, Put{Spec: c}, AddSecret{Client: c.Ref(), Plain: "the-secret-of-" + secret.Text(id)})
	}
}

func TestDo_NotesWhatChangedAndWritesOnlyThat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	before, err := w.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	same := w.do(t, Put{Spec: client("one")})
	if same.Revision != before.Revision || same.Changes[0].Action != Unchanged {
		t.Errorf("an equal entity: revision %d after %d, %s", same.Revision, before.Revision, same.Changes[0].Action)
	}
	c := client("one")
	c.Disabled, c.Name = true, catalog.Text{"en": "Web", "ru": "Сайт"}
	r := w.do(t, Put{Spec: c})
	if got := r.Changes[0]; got.Action != Updated || got.Version != r.Revision || r.Revision != before.Revision+1 || !cmp.Equal(got.Fields, []string{"disabled", "name"}) {
		t.Errorf("%+v", got)
	}
	after, err := w.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	other := client("two").Ref()
	if after.Meta(other) != before.Meta(other) {
		t.Error("the client of equal id in the other tenant has another version")
	}
	stored, err := store.LoadState(t.Context(), w.DB, nil)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := json.Marshal(after.Snapshot)
	b, _ := json.Marshal(stored.Snapshot)
	if diff := cmp.Diff(string(b), string(a)); diff != "" {
		t.Errorf("what is kept in memory is not what is stored:\n%s", diff)
	}
	for ref, m := range stored.Metas {
		if got := after.Meta(ref); got.Version != m.Version || !got.Updated.Equal(m.Updated) || !got.Created.Equal(m.Created) {
			t.Errorf("%s: %+v in memory, %+v stored", ref, got, m)
		}
	}
}

func TestDo_ExpectsVersions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	ref := client("one").Ref()
	v, _ := w.View(t.Context())
	version := v.Meta(ref).Version
	gone := catalog.Ref{Kind: catalog.KindNameScope, Tenant: "one", ID: "gone"}
	for name, c := range map[string]struct {
		op   Op
		want error
	}{
		"another version":         {Put{Spec: client("one"), IfVersion: version + 1}, ErrConflict},
		"delete another version":  {Delete{Ref: ref, IfVersion: version - 1}, ErrConflict},
		"secret, another version": {AddSecret{Client: ref, IfVersion: version + 1}, ErrConflict},
		"a version of nothing":    {Put{Spec: &catalog.ScopeSpec{Tenant: "one", ID: "gone"}, IfVersion: 1}, ErrNotFound},
		"delete nothing":          {Delete{Ref: gone}, ErrNotFound},
		"create what exists":      {Put{Spec: client("one"), CreateOnly: true}, ErrExists},
		"unknown kind":            {Delete{Ref: catalog.Ref{Kind: "user", ID: "x"}}, ErrNotFound},
		"secret of nobody":        {AddSecret{Client: gone}, ErrNotFound},
		"drop an unknown secret":  {DropSecret{Client: ref}, ErrNotFound},
	} {
		if _, err := w.Do(t.Context(), System("test"), []Op{c.op}, Options{}); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	changed := client("one")
	changed.Disabled = true
	w.do(t, Put{Spec: changed, IfVersion: version})
}

func TestDo_AVersionNeverComesBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	scope := &catalog.ScopeSpec{Tenant: "one", ID: "more"}
	first := w.do(t, Put{Spec: scope}).Changes[0].Version
	w.do(t, Delete{Ref: scope.Ref(), IfVersion: first})
	second := w.do(t, Put{Spec: scope}).Changes[0].Version
	if _, err := w.Do(t.Context(), System("test"), []Op{Delete{Ref: scope.Ref(), IfVersion: first}}, Options{}); !errors.Is(err, ErrConflict) || first == second {
		t.Errorf("the version before the deletion is accepted: %d, then %d, %v", first, second, err)
	}
}

func TestDo_WhatIsInUseIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	openid := catalog.Ref{Kind: catalog.KindNameScope, Tenant: "one", ID: "openid"}
	_, err := w.Do(t.Context(), System("test"), []Op{Delete{Ref: openid}}, Options{})
	var used *InUse
	if !errors.As(err, &used) || !cmp.Equal(used.By, []Use{{By: client("one").Ref(), Field: "scopes[0]"}}) {
		t.Fatalf("%v", err)
	}
	if _, err := w.Do(t.Context(), System("test"), []Op{Delete{Ref: tenant("one").Ref()}}, Options{}); !errors.As(err, &used) || len(used.By) != 2 {
		t.Errorf("a tenant with a scope and a client: %v", err)
	}
	// Together they go; the other tenant's stay.
	w.do(t, Delete{Ref: tenant("one").Ref()}, Delete{Ref: openid}, Delete{Ref: client("one").Ref()})
	v, _ := w.View(t.Context())
	if _, ok := v.Get(client("two").Ref()); !ok || len(slices.Collect(v.List(catalog.KindNameClient, ""))) != 1 {
		t.Error("the other tenant's client is gone")
	}
}

func TestDo_InvalidChangesNothingAndNamesTheField(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	before, _ := w.View(t.Context())
	events := len(w.journal.events)
	bad := client("one")
	bad.RedirectURIs = append(bad.RedirectURIs, "javascript:x")
	_, err := w.Do(t.Context(), System("test"), []Op{Put{Spec: tenant("three")}, Put{Spec: bad}}, Options{})
	var invalid *Invalid
	if !errors.As(err, &invalid) || len(invalid.Problems) != 1 || invalid.Problems[0].Pointer() != "/redirect_uris/1" {
		t.Fatalf("%v", err)
	}
	profile := tenant("one")
	profile.Profile = catalog.ProfileFAPI2
	if _, err := w.Do(t.Context(), System("test"), []Op{Put{Spec: profile}}, Options{}); !errors.As(err, &invalid) || invalid.Problems[0].Field != "security_profile" {
		t.Errorf("the profile changes: %v", err)
	}
	if after, _ := w.View(t.Context()); after != before || len(w.journal.events) != events {
		t.Error("a refused change left something behind")
	}
}

func TestDo_SecretsOfAClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	ref := client("one").Ref()
	made := w.do(t, AddSecret{Client: ref}).Changes[0].NewSecrets
	if len(made) != 1 || len(made[0].Plain.Reveal()) < 43 {
		t.Fatalf("%v", made)
	}
	v, _ := w.View(t.Context())
	list := v.Secrets(ref)
	if len(list) != 2 || list[0].ID != made[0].ID || !list[0].Created.Equal(w.Clock.Now()) {
		t.Fatalf("the new secret is not the first of %v", list)
	}
	w.do(t, Put{Spec: client("one")}) // a declaration says nothing of secrets
	w.do(t, DropSecret{Client: ref, ID: list[1].ID})
	if v, _ = w.View(t.Context()); len(v.Secrets(ref)) != 1 || v.Secrets(ref)[0].ID != made[0].ID {
		t.Errorf("%v", v.Secrets(ref))
	}
	if _, err := w.Do(t.Context(), System("test"), []Op{DropSecret{Client: ref, ID: made[0].ID}}, Options{}); err == nil {
		t.Error("the last secret of a client that needs one is dropped")
	}
	for range 4 {
		w.do(t, AddSecret{Client: ref})
	}
	if _, err := w.Do(t.Context(), System("test"), []Op{AddSecret{Client: ref}}, Options{}); err == nil {
		t.Error("a client has more secrets than are tried at a sign-in")
	}
	if len(v.Secrets(client("two").Ref())) != 1 {
		t.Error("the other tenant's client has other secrets")
	}
	for _, e := range w.journal.events {
		for _, text := range []string{string(e.Before), string(e.After)} {
			if strings.Contains(text, made[0].Plain.Reveal()) || strings.Contains(text, "sealed") || strings.Contains(text, "the-secret-of") {
				t.Errorf("an audit entry has a secret: %s", text)
			}
		}
	}
}

func TestDo_ASecretForAssertionsIsLongEnough(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t) // with secrets of 15 characters
	asserting := client("one")
	asserting.AuthMethod = catalog.AuthSecretJWT
	long := secret.Text(strings.Repeat("x", 32))
	for name, ops := range map[string][]Op{
		"kept from before": {Put{Spec: asserting}},
		"added":            {Put{Spec: asserting}, SetSecrets{Client: asserting.Ref(), Plain: []secret.Text{long, long[1:]}}},
	} {
		_, err := w.Do(t.Context(), System("test"), ops, Options{})
		if invalid, ok := errors.AsType[*Invalid](err); !ok || len(invalid.Problems) != 1 || invalid.Problems[0].Field != "secret" {
			t.Errorf("%s: %v", name, err)
		}
	}
	w.do(t, Put{Spec: asserting}, SetSecrets{Client: asserting.Ref(), Plain: []secret.Text{long}})
	w.do(t, AddSecret{Client: asserting.Ref()})
}

func TestDo_AuditIsPartOfTheTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.journal.fail = errors.New("no audit")
	if _, err := w.Do(t.Context(), System("test"), []Op{Put{Spec: tenant("one")}}, Options{}); !errors.Is(err, w.journal.fail) {
		t.Fatalf("%v", err)
	}
	if v, _ := w.View(t.Context()); len(slices.Collect(v.List(catalog.KindNameTenant, ""))) != 0 {
		t.Error("a change that is not in the audit log is committed")
	}
}

func TestDo_AuthorizeSeesTheChangeAndMayRefuseIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	refused := errors.New("no")
	c := client("one")
	c.Disabled = true
	_, err := w.Do(t.Context(), System("test"), []Op{Put{Spec: c}}, Options{Authorize: func(before, after *View, changes []Change) error {
		was, _ := before.Get(c.Ref())
		is, _ := after.Get(c.Ref())
		if was.Spec.(*catalog.ClientSpec).Disabled || !is.Spec.(*catalog.ClientSpec).Disabled || len(changes) != 1 {
			t.Error("the views are not those before and after")
		}
		return refused
	}})
	if !errors.Is(err, refused) {
		t.Fatalf("%v", err)
	}
	v, _ := w.View(t.Context())
	if e, _ := v.Get(c.Ref()); e.Spec.(*catalog.ClientSpec).Disabled {
		t.Error("the refused change is there")
	}
}

func TestDo_DryRunDoesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before, _ := w.View(t.Context())
	r, err := w.Do(t.Context(), System("test"), []Op{Put{Spec: tenant("one")}}, Options{DryRun: true})
	if err != nil || r.Changes[0].Action != Created {
		t.Fatalf("%v, %v", r, err)
	}
	if after, _ := w.View(t.Context()); after.Revision != before.Revision {
		t.Error("a dry run changed something")
	}
}

func TestDo_TwoProcessesSeeEachOther(t *testing.T) {
	t.Parallel()
	a := newWorld(t)
	b := newWorldOn(t, a.DB)
	a.twoTenants(t)
	if _, err := b.View(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		c := client("one")
		c.RedirectURIs = []string{fmt.Sprintf("https://a.example/%d", i)}
		a.do(t, Put{Spec: c})
		v, err := b.View(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		e, _ := v.Get(c.Ref())
		if got := e.Spec.(*catalog.ClientSpec).RedirectURIs[0]; got != c.RedirectURIs[0] {
			t.Fatalf("the other process sees %s, want %s", got, c.RedirectURIs[0])
		}
		b.do(t, Put{Spec: &catalog.ScopeSpec{Tenant: "two", ID: fmt.Sprintf("s%d", i)}})
	}
}

func TestDo_ParallelWritersWithOneVersionOneWins(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.twoTenants(t)
	v, _ := w.View(t.Context())
	version := v.Meta(client("one").Ref()).Version
	const writers = 8
	done := make(chan error)
	for i := range writers {
		go func() {
			c := client("one")
			c.RedirectURIs = []string{fmt.Sprintf("https://a.example/%d", i)}
			_, err := w.Do(context.Background(), System("test"), []Op{Put{Spec: c, IfVersion: version}}, Options{})
			done <- err
		}()
	}
	won := 0
	for range writers {
		if err := <-done; err == nil {
			won++
		} else if !errors.Is(err, ErrConflict) {
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won", won)
	}
}

// BenchmarkDo_OneClientOfTenThousand is what one change costs in a large
// deployment: 1,000 tenants, 10,000 clients, 50,000 endpoints.
func BenchmarkDo_OneClientOfTenThousand(b *testing.B) {
	w := newWorld(b)
	w.Auditor = nil
	var ops []Op
	for t := range 1000 {
		id := fmt.Sprintf("t%d", t)
		ops = append(ops, Put{Spec: tenant(id)}, Put{Spec: &catalog.ScopeSpec{Tenant: id, ID: "openid"}})
		r := &catalog.ResourceSpec{Tenant: id, ID: "api", Upstream: catalog.UpstreamSpec{URL: "http://127.0.0.1:1"}}
		p := &catalog.PermissionSpec{Tenant: id, ID: "all"}
		for e := range 50 {
			r.Endpoints = append(r.Endpoints, catalog.EndpointSpec{ID: fmt.Sprintf("e%d", e), Method: "GET", Path: fmt.Sprintf("/e%d/{id}", e)})
			p.Endpoints = append(p.Endpoints, fmt.Sprintf("api:e%d", e))
		}
		ops = append(ops, Put{Spec: r}, Put{Spec: p}, Put{Spec: &catalog.RoleSpec{Tenant: id, ID: "user", Permissions: []string{"all"}}})
		for c := range 10 {
			spec := client(id)
			spec.ID = fmt.Sprintf("c%d", c)
			ops = append(ops, Put{Spec: spec}, AddSecret{Client: spec.Ref()})
		}
	}
	w.do(b, ops...)
	n := 0
	for b.Loop() {
		n++
		c := client("t500")
		c.ID = "c5"
		c.RedirectURIs = []string{fmt.Sprintf("https://a.example/%d", n)}
		w.do(b, Put{Spec: c})
	}
}
