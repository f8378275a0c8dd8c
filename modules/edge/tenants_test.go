package edge_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/edge"
)

// twoTenants gives both tenants a resource "bank", each with an upstream and a
// preset of its own, under equal ids wherever that is possible.
func twoTenants(w *world) *fakeUpstream {
	other := newFakeUpstream(w.t)
	s := &w.snapshot
	bank := s.Resources[0]
	bank.Tenant, bank.Upstream.URL = "other", other.URL
	s.Resources = append(s.Resources, bank)
	s.Permissions = append(s.Permissions, catalog.PermissionSpec{Tenant: "other", ID: "read", Endpoints: []string{"bank:list"}})
	s.Roles = append(s.Roles, catalog.RoleSpec{Tenant: "other", ID: "reader", Permissions: []string{"read"}})
	for i := range s.Clients {
		if s.Clients[i].Tenant == "other" {
			s.Clients[i] = s.Clients[0]
			s.Clients[i].Tenant = "other"
		}
	}
	p := s.Presets[0]
	p.Tenant, p.ID = "other", "other"
	s.Presets = append(s.Presets, p)
	w.compile()
	return other
}

func asOther(id, access map[string]any) {
	id["iss"], access["iss"], access["tenant"] = issuer+"/t/other", issuer+"/t/other", "other"
}

func TestTenants_TheCallersOwnDecidesBetweenEqualNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := twoTenants(w)
	e := w.edge()
	hostOf := func(u *fakeUpstream) string { return strings.TrimPrefix(u.URL, "http://") }
	token := func(roles ...string) string {
		return "Bearer " + w.auth.bearer(func(c map[string]any) { c["iss"], c["tenant"], c["roles"] = issuer+"/t/other", "other", roles })
	}
	if got := newBrowser(t).get(e.URL+accounts, "Authorization", token("reader")).reached(t); got.Host != hostOf(other) || got.Header["X-Versola-Tenant"][0] != "other" {
		t.Errorf("reached %s as %v", got.Host, got.Header)
	}
	// "customer" is a role of the first tenant; the second has none of that name.
	if res := newBrowser(t).get(e.URL+accounts, "Authorization", token("customer")); res.reason() != "not_permitted" {
		t.Errorf("a role of the other tenant counts: %d %s", res.StatusCode, res.body)
	}
	if got := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+w.auth.bearer(nil)).reached(t); got.Host != hostOf(w.upstream) {
		t.Errorf("reached %s", got.Host)
	}
	if res := newBrowser(t).get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody: %d", res.StatusCode)
	}
}

func TestTenants_PresetsLiveSideBySide(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	other := twoTenants(w)
	e, b := w.edge(), newBrowser(t)
	w.auth.set(func() { w.auth.roles = []string{"reader"} })
	signInOther := func() {
		res := b.get(e.URL + "/login/other")
		to, err := url.Parse(res.Header.Get("Location"))
		must(t, err)
		if !strings.HasPrefix(to.String(), issuer+"/t/other/authorize?") {
			t.Fatalf("sent to %s", to)
		}
		answer := w.auth.answer(to.Query())
		answer.Set("iss", issuer+"/t/other")
		w.auth.set(func() { w.auth.change = asOther })
		b.get(e.URL + "/complete?" + answer.Encode())
		w.auth.set(func() { w.auth.change = nil })
	}
	signInOther()
	if got := b.get(e.URL + accounts).reached(t); got.Host != strings.TrimPrefix(other.URL, "http://") {
		t.Errorf("with the second tenant's session alone: %s", got.Host)
	}
	b.signIn(w, e)
	if b.cookies[sessionCookie] == "" || b.cookies["versola_edge_other"] == "" {
		t.Errorf("cookies are %v", b.cookies)
	}
	// Both match: the presets' order decides.
	if got := b.get(e.URL + accounts).reached(t); got.Host != strings.TrimPrefix(w.upstream.URL, "http://") {
		t.Errorf("with both: %s", got.Host)
	}
	// A session is worth nothing under the other preset's name.
	swapped := &browser{t, map[string]string{"versola_edge_other": b.cookies[sessionCookie]}}
	if res := swapped.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("swapped: %d %s", res.StatusCode, res.body)
	}
	b.get(e.URL + "/logout/demo")
	if got := b.get(e.URL + accounts).reached(t); got.Host != strings.TrimPrefix(other.URL, "http://") {
		t.Errorf("after one sign-out: %s", got.Host)
	}
}

func TestTenants_OfAnotherEdgeAreNotServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.snapshot.Tenants[0].Edge = "elsewhere"
	w.compile()
	e := w.edge()
	if res := newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+w.auth.bearer(nil)); res.reason() != "resource_unknown" {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
}

func TestCookies_OnHTTPSAreTiedToTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(func(d *edge.Deps) { d.PublicURL = "https://edge.test/" }), newBrowser(t)
	check := func(res *response, name string) {
		t.Helper()
		for _, c := range res.Cookies() {
			if c.Name == name && c.Secure && c.HttpOnly && c.SameSite == http.SameSiteLaxMode && c.Path == "/" && c.Domain == "" {
				return
			}
		}
		t.Errorf("no good cookie %s in %q", name, res.Header.Values("Set-Cookie"))
	}
	res := b.get(e.URL + "/login/demo")
	check(res, "__Host-versola_edge_login")
	to, err := url.Parse(res.Header.Get("Location"))
	must(t, err)
	check(b.get(e.URL+"/complete?"+w.auth.answer(to.Query()).Encode()), "__Host-versola_edge_demo")
	b.get(e.URL + accounts).reached(t)
	plain := &browser{t, map[string]string{sessionCookie: b.cookies["__Host-versola_edge_demo"]}}
	if res := plain.get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
		t.Errorf("without the prefix: %d", res.StatusCode)
	}
}

func TestLogout_DuringARefreshIsNotUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two, b := w.edge(), w.edge(), newBrowser(t)
	b.signIn(w, one)
	b.get(one.URL + accounts).reached(t)
	cookie := b.cookies[sessionCookie]
	w.clock.Advance(6 * time.Minute)
	w.auth.mu.Lock() // the refresh hangs in auth
	call := make(chan *response)
	go func() { call <- (&browser{t, map[string]string{sessionCookie: cookie}}).get(one.URL + accounts) }()
	eventually(t, "the lease", func() bool {
		var leased bool
		must(t, one.db.QueryRow(t.Context(), "SELECT lease_until > clock_timestamp() FROM edge.session").Scan(&leased))
		return leased
	})
	if res := b.get(two.URL + "/logout/demo"); res.StatusCode != http.StatusSeeOther {
		t.Errorf("logout: %d", res.StatusCode)
	}
	w.auth.mu.Unlock()
	if res := <-call; res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the waiting call: %d %s", res.StatusCode, res.body)
	}
	for _, e := range []*running{one, two} {
		if res := (&browser{t, map[string]string{sessionCookie: cookie}}).get(e.URL + accounts); res.StatusCode != http.StatusUnauthorized {
			t.Errorf("afterwards: %d %s", res.StatusCode, res.body)
		}
	}
}

func TestRefresh_ACrashedProcessesLeaseRunsOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	b.signIn(w, e)
	w.clock.Advance(6 * time.Minute)
	_, err := e.db.Exec(t.Context(), "UPDATE edge.session SET lease_until = clock_timestamp() + '300 ms'")
	must(t, err)
	b.get(e.URL + accounts).reached(t)
	if w.auth.refreshes != 1 {
		t.Errorf("%d refreshes", w.auth.refreshes)
	}
}
