package admin_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"versola/modules/central/catalog"
)

// clerk is an administrator who may change what belongs to tenants, the system
// tenant too, and does not hold what the deployment's administrators do.
func (f *fixture) clerk(t *testing.T) string {
	t.Helper()
	f.put(t, &catalog.RoleSpec{Tenant: catalog.SystemTenant, ID: "clerk", Permissions: []string{"use-api", "view-configuration", "manage-tenant"}})
	return f.as(t, "clerk")
}

func TestGrant_NobodyGrantsMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, clerk := f.as(t, "admin"), f.clerk(t)
	deployer := service("deployer")
	deployer["permissions"] = []string{"manage-deployment"}
	made := f.call(t, admin, http.MethodPost, "/v1/tenants/system/clients", deployer)
	if made.Code != http.StatusCreated {
		t.Fatalf("%d %s", made.Code, made.Body)
	}
	second := f.call(t, admin, http.MethodPost, "/v1/tenants/system/clients/deployer/secrets", nil)
	f.sync(t)
	type d = map[string]any
	more, held := []string{"view-configuration", "manage-deployment"}, []string{"view-configuration"}
	with := func(permissions []string) d { s := service("mine"); s["permissions"] = permissions; return s }
	interactive := d{"id": "phish", "client_kind": "native", "auth_method": "none", "grant_types": []string{"authorization_code"}, "redirect_uris": []string{"com.evil:/cb"}}
	in := "/v1/tenants/system/"
	for _, c := range []struct {
		name, method, path string
		body               any
		want               int
	}{
		{"a new role with more", "POST", in + "roles", d{"id": "boss", "permissions": more}, 403},
		{"a role they hold, replaced", "PUT", in + "roles/clerk", d{"permissions": more}, 403},
		{"a role they hold, patched", "PATCH", in + "roles/clerk", d{"permissions": more}, 403},
		{"another's role widened", "PATCH", in + "roles/viewer", d{"permissions": more}, 403},
		{"a stronger role, replaced", "PUT", in + "roles/admin", d{"permissions": more}, 403},
		{"more within one tenant", "POST", in + "roles", d{"id": "boss", "permissions": more, "within": "demo"}, 403},
		{"a tenant's role made one of all tenants", "PATCH", in + "roles/demo-admin", d{"within": nil, "permissions": more}, 403},
		{"a new permission with more", "POST", in + "permissions", d{"id": "p", "endpoints": []string{"central:rotate-keys"}}, 403},
		{"a permission they hold, widened", "PATCH", in + "permissions/use-api", d{"endpoints": []string{"central:me", "central:rotate-keys"}}, 403},
		{"the endpoints behind permissions", "PATCH", in + "resources/central", d{"name": "x"}, 403},
		{"a service client with more", "POST", in + "clients", with(more), 403},
		{"a service client, widened", "PATCH", in + "clients/deployer", d{"permissions": more}, 403},
		{"a stronger service client, disabled", "PATCH", in + "clients/deployer", d{"disabled": true}, 403},
		{"a secret of a stronger service client", "POST", in + "clients/deployer/secrets", nil, 403},
		{"its secret dropped", "DELETE", in + "clients/deployer/secrets/" + second.text("id"), nil, 403},
		{"a client that administrators sign in with", "POST", in + "clients", interactive, 403},
		{"theirs, changed", "PATCH", in + "clients/console", d{"disabled": true}, 403},
		{"its secret", "POST", in + "clients/console/secrets", nil, 403},
		{"a preset of administrators", "PATCH", in + "presets/admin", d{"after_login": "/elsewhere"}, 403},
		{"what their scopes release", "POST", in + "scopes", d{"id": "more"}, 403},
		{"the system tenant", "PATCH", "/v1/tenants/system", d{"settings": d{"session_idle_ttl": "100h"}}, 403},
		{"a tenant that signs administrators in", "PATCH", "/v1/tenants/other", d{"directory": "system"}, 403},
		{"a new tenant", "POST", "/v1/tenants", d{"id": "evil", "security_profile": "standard", "directory": "system"}, 403},

		{"a role with what they hold", "POST", in + "roles", d{"id": "peer", "permissions": held}, 201},
		{"a permission with what they hold", "POST", in + "permissions", d{"id": "mine", "endpoints": []string{"central:me"}}, 201},
		{"a service client with what they hold", "POST", in + "clients", with(held), 201},
		{"another tenant's roles", "POST", "/v1/tenants/demo/roles", d{"id": "boss"}, 201},
	} {
		a := f.call(t, clerk, c.method, c.path, c.body, "If-Match", "*")
		if a.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", c.name, a.Code, c.want, a.Body)
		}
		if reason := a.text("reason"); c.want == 403 && reason != "not_held" && reason != "not_permitted" {
			t.Errorf("%s: reason %q", c.name, reason)
		}
	}
	// What such a service client may is what it was given.
	f.sync(t)
	token := f.token(t, "at+jwt", d{"sub": "mine", "client_id": "mine", "roles": nil, "sid": nil, "gid": nil})
	if a := f.call(t, token, http.MethodPost, in+"roles", d{"id": "x"}); a.Code != http.StatusForbidden {
		t.Errorf("the service client: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, admin, http.MethodPatch, "/v1/tenants/other", d{"directory": "system"}, "If-Match", "*"); a.Code != http.StatusOK {
		t.Errorf("who holds everything: %d %s", a.Code, a.Body)
	}
}

func TestGrant_SecurityReplacesSecretsOfWhatItHoldsAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	admin, security := f.as(t, "admin"), f.as(t, "security")
	for id, permissions := range map[string][]string{"deployer": {"manage-deployment"}, "reader": {"view-configuration"}} {
		d := service(id)
		d["permissions"] = permissions
		if a := f.call(t, admin, http.MethodPost, "/v1/tenants/system/clients", d); a.Code != http.StatusCreated {
			t.Fatalf("%d %s", a.Code, a.Body)
		}
	}
	for path, want := range map[string]int{"system/clients/deployer": 403, "system/clients/console": 403, "system/clients/reader": 201, "demo/clients/demo-app": 201} {
		if a := f.call(t, security, http.MethodPost, "/v1/tenants/"+path+"/secrets", nil); a.Code != want || want == 403 && strings.Contains(a.Body.String(), `"secret"`) {
			t.Errorf("%s: %d, want %d: %s", path, a.Code, want, a.Body)
		}
	}
}

func TestGrant_ATenantAdministratorTouchesTheirTenantAloneAmongEqualIDs(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	app := func(tenant string) *catalog.ClientSpec {
		return &catalog.ClientSpec{Tenant: tenant, ID: "same", Name: catalog.Plain("of " + tenant), Kind: catalog.KindNative, AuthMethod: catalog.AuthNone,
			GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{"com.example.app:/cb"}}
	}
	for _, tenant := range []string{"demo", "other"} {
		f.put(t, app(tenant), &catalog.ScopeSpec{Tenant: tenant, ID: "same"}, &catalog.ClaimSpec{Tenant: tenant, ID: "same"},
			&catalog.ResourceSpec{Tenant: tenant, ID: "same", Upstream: catalog.UpstreamSpec{URL: "http://127.0.0.1:9"}},
			&catalog.PermissionSpec{Tenant: tenant, ID: "same"}, &catalog.RoleSpec{Tenant: tenant, ID: "same"}, &catalog.ThemeSpec{Tenant: tenant, ID: "same"})
	}
	token, all := f.as(t, "demo-admin"), f.as(t, "admin")
	for _, many := range []string{"clients", "scopes", "claims", "resources", "permissions", "roles", "themes"} {
		mine, theirs := "/v1/tenants/demo/"+many, "/v1/tenants/other/"+many
		before := f.call(t, all, http.MethodGet, theirs+"/same", nil)
		if a := f.call(t, token, http.MethodGet, mine+"?q=same", nil); a.Code != http.StatusOK || a.doc["total"] != 1. || strings.Contains(a.Body.String(), `"tenant":"other"`) {
			t.Errorf("%s: %d %s", many, a.Code, a.Body)
		}
		for _, c := range []struct {
			method, path string
			body         any
		}{
			{"GET", theirs, nil}, {"GET", theirs + "?q=same", nil}, {"GET", theirs + "/same", nil}, {"POST", theirs, map[string]any{"id": "more"}},
			{"PUT", theirs + "/same", map[string]any{}}, {"PATCH", theirs + "/same", map[string]any{}}, {"DELETE", theirs + "/same", nil},
		} {
			if a := f.call(t, token, c.method, c.path, c.body, "If-Match", "*"); a.Code != http.StatusForbidden || a.text("reason") != "not_permitted" {
				t.Errorf("%s %s: %d %s", c.method, c.path, a.Code, a.Body)
			}
		}
		// A document cannot say that it is of another tenant than its path.
		for _, method := range []string{"PUT", "PATCH"} {
			if a := f.call(t, token, method, mine+"/same", map[string]any{"tenant": "other"}, "If-Match", "*"); a.Code != http.StatusUnprocessableEntity {
				t.Errorf("%s %s as another tenant's: %d %s", method, many, a.Code, a.Body)
			}
		}
		if a := f.call(t, token, http.MethodDelete, mine+"/same", nil, "If-Match", "*"); a.Code != http.StatusNoContent {
			t.Errorf("DELETE %s: %d %s", mine, a.Code, a.Body)
		}
		if after := f.call(t, all, http.MethodGet, theirs+"/same", nil); after.Code != http.StatusOK || after.Body.String() != before.Body.String() {
			t.Errorf("%s of the other tenant: %d %s, before %s", many, after.Code, after.Body, before.Body)
		}
	}
	a := f.call(t, token, http.MethodGet, "/v1/tenants", nil)
	if a.doc["total"] != 1. || strings.Contains(a.Body.String(), `"id":"other"`) {
		t.Errorf("tenants: %s", a.Body)
	}
	for _, query := range []string{"", "?object_id=same&object_kind=client", "?action=client."} {
		if a := f.call(t, token, http.MethodGet, "/v1/audit"+query, nil); a.Code != http.StatusOK || strings.Contains(fmt.Sprint(a.doc), "other") {
			t.Errorf("audit%s: %d %s", query, a.Code, a.Body)
		}
	}
	if a := f.call(t, token, http.MethodPatch, "/v1/tenants/demo", map[string]any{"directory": "other"}, "If-Match", "*"); a.Code != http.StatusForbidden {
		t.Errorf("another directory: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, token, http.MethodPost, "/v1/tenants/demo/roles", map[string]any{"id": "x", "within": "other"}); a.Code != http.StatusUnprocessableEntity {
		t.Errorf("a role over another tenant: %d %s", a.Code, a.Body)
	}
}
