package admin_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/modules/central/openapi"
)

func TestAPI_RefusesEveryoneElse(t *testing.T) {
	t.Parallel()
	f, stranger := newFixture(t), newSigner(t)
	other := &fixture{signer: stranger}
	f.revoked = func(sid, gid, jti, sub string, issued time.Time) bool {
		return sid == "ended" || jti == "taken-back" || sub == "0198a000-0000-7000-8000-00000000dead" && issued.Equal(now)
	}
	changed := func(name string, v any) string { return f.token(t, "at+jwt", map[string]any{name: v}) }
	for name, c := range map[string]struct {
		authorization string
		status        int
	}{
		"nobody":                     {"", 401},
		"another scheme":             {"Basic YTpi", 401},
		"not a token":                {"Bearer x", 401},
		"an ID token":                {f.token(t, "JWT", nil), 401},
		"no type":                    {f.token(t, "", nil), 401},
		"another's signature":        {other.token(t, "at+jwt", nil), 401},
		"another audience":           {changed("aud", "bank"), 401},
		"no audience":                {changed("aud", nil), 401},
		"another tenant's issuer":    {changed("iss", "http://localhost:8080"), 401},
		"unknown issuer":             {changed("iss", "http://localhost:8080/t/system/"), 401},
		"another tenant":             {changed("tenant", "demo"), 401},
		"expired":                    {changed("exp", now.Unix()), 401},
		"no expiry":                  {changed("exp", nil), 401},
		"from the future":            {changed("iat", now.Unix()+60), 401},
		"no subject":                 {changed("sub", ""), 401},
		"an unknown client":          {changed("client_id", "none"), 401},
		"a service with roles":       {changed("sub", "console"), 401},
		"an ended session":           {changed("sid", "ended"), 401},
		"a revoked token":            {changed("jti", "taken-back"), 401},
		"a disabled person":          {changed("sub", "0198a000-0000-7000-8000-00000000dead"), 401},
		"no roles":                   {changed("roles", nil), 403},
		"another role":               {changed("roles", []string{"administrator", "Admin"}), 403},
		"another tenant's role":      {changed("roles", []string{"customer"}), 403},
		"roles that are not a list":  {changed("roles", "admin"), 401},
		"a second Authorization was": {f.token(t, "at+jwt", nil) + ", Bearer x", 401},
	} {
		for _, path := range []string{"/", "/v1/me", "/v1/tenants", "/v1/tenants/demo/clients", "/v1/audit"} {
			a := f.call(t, c.authorization, http.MethodGet, path, nil)
			if a.Code != c.status || a.Header().Get("WWW-Authenticate") == "" || strings.Contains(a.Body.String(), "Demo") {
				t.Errorf("%s: GET %s: %d %s", name, path, a.Code, a.Body)
			}
		}
	}
}

// mayRole tells what a role may, by what roles are for and not by how they are
// declared.
func mayRole(role string, op openapi.Operation) bool {
	people := strings.Contains(op.Path, "/users")
	read := op.Method == http.MethodGet
	support := slices.Contains([]string{"reset-user-password", "create-user-password-reset", "send-user-password-reset", "end-user-sessions", "end-user-session", "remove-user-factor", "reset-user-limits"}, op.ID)
	secure := slices.Contains([]string{"update-user", "create-client-secret", "delete-client-secret", "create-webhook-secret", "delete-webhook-secret", "rotate-keys", "retire-key"}, op.ID)
	logs := strings.HasPrefix(op.Path, "/v1/audit") || strings.Contains(op.Path, "/deliveries")
	switch role {
	case "admin":
		return true
	case "security":
		return read || support || secure
	case "support":
		return read && !logs || support
	case "auditor":
		return read
	case "viewer":
		return read && !people && !logs
	case "demo-admin": // in its own tenant
		inTenant := strings.Contains(op.Path, "{tenant}") || people
		return inTenant && op.ID != "delete-tenant" || op.Filtered
	}
	return false
}

func TestAPI_EveryOperationWithEveryRole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	operations, err := openapi.Operations()
	must(t, err)
	for _, role := range []string{"admin", "security", "support", "auditor", "viewer", "demo-admin", "none"} {
		token := f.as(t, role)
		for _, op := range operations {
			if op.Public {
				continue
			}
			for _, tenant := range []string{"demo", "other", "system", "missing"} {
				path := strings.NewReplacer("{tenant}", tenant, "{directory}", tenant, "{id}", "nothing", "{secret}", "0198a000-0000-7000-8000-000000000001", "{delivery}", "0198a000-0000-7000-8000-000000000001",
					"{user}", "0198a000-0000-7000-8000-000000000001", "{session}", "x", "{factor}", "password", "{seq}", "1").Replace(op.Path)
				want := mayRole(role, op)
				if role == "demo-admin" && tenant != "demo" && path != op.Path && op.ID != "get-audit-entry" {
					want = false
				}
				// Nothing is changed: what is let through lacks a body or a version.
				a := f.call(t, token, op.Method, path, nil)
				if a.Code >= 500 {
					t.Errorf("%s as %s: %d %s", op.ID, role, a.Code, a.Body)
				}
				if got := a.Code != http.StatusUnauthorized && a.Code != http.StatusForbidden; got != want {
					t.Errorf("%s as %s in %s: %d, allowed should be %v", op.ID, role, tenant, a.Code, want)
				}
			}
		}
	}
}

func TestAPI_AServiceReachesWhatItsPermissionsDo(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.call(t, f.as(t, "admin"), http.MethodPost, "/v1/tenants/system/clients", map[string]any{"id": "terraform", "client_kind": "service",
		"auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"}, "permissions": []string{"view-configuration"}, "audiences": []string{"central"}})
	if a.Code != http.StatusCreated || a.text("client_secret") == "" {
		t.Fatalf("create: %d %s", a.Code, a.Body)
	}
	f.sync(t)
	token := f.token(t, "at+jwt", map[string]any{"sub": "terraform", "client_id": "terraform", "roles": nil, "sid": nil, "gid": nil})
	if a := f.call(t, token, http.MethodGet, "/v1/tenants/demo/clients", nil); a.Code != http.StatusOK {
		t.Errorf("what it may: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, token, http.MethodGet, "/v1/audit", nil); a.Code != http.StatusForbidden {
		t.Errorf("what it may not: %d %s", a.Code, a.Body)
	}
	v := f.call(t, f.as(t, "admin"), http.MethodPatch, "/v1/tenants/system/clients/terraform", map[string]any{"disabled": true}, "If-Match", "*")
	if v.Code != http.StatusOK {
		t.Fatalf("disable: %d %s", v.Code, v.Body)
	}
	f.sync(t)
	if a := f.call(t, token, http.MethodGet, "/v1/tenants/demo/clients", nil); a.Code != http.StatusUnauthorized {
		t.Errorf("disabled: %d %s", a.Code, a.Body)
	}
}

func TestOverview_AllowsOnlyItsOwnStyleAndShowsWhatIsReached(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	a := f.call(t, f.as(t, "demo-admin"), http.MethodGet, "/", nil)
	body, policy := a.Body.String(), a.Header().Get("Content-Security-Policy")
	if a.Code != http.StatusOK || !strings.Contains(body, "demo-web") || strings.Contains(body, "console") {
		t.Errorf("%d %s", a.Code, body)
	}
	if !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, "form-action 'self' http://localhost:8080;") {
		t.Errorf("policy %s", policy)
	}
}

func TestWebhooks_WhoMayNotReadTheLogMakesNoneThatIsToldOfIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.put(t, &catalog.RoleSpec{Tenant: "system", ID: "demo-maker", Permissions: []string{"use-api", "manage-tenant"}, Within: "demo"},
		&catalog.RoleSpec{Tenant: "system", ID: "demo-reader", Permissions: []string{"view-audit"}, Within: "demo"},
		&catalog.RoleSpec{Tenant: "system", ID: "other-reader", Permissions: []string{"view-audit"}, Within: "other"})
	hook := map[string]any{"id": "crm", "url": "https://crm.example/hook", "events": []string{"*"}}
	const all, one = "/v1/tenants/demo/webhooks", "/v1/tenants/demo/webhooks/crm"
	for _, roles := range [][]string{{"demo-maker"}, {"demo-maker", "other-reader"}} {
		if a := f.call(t, f.as(t, roles...), http.MethodPost, all, hook); a.Code != http.StatusForbidden || !strings.Contains(a.Body.String(), "list-audit") {
			t.Errorf("%v: %d %s", roles, a.Code, a.Body)
		}
	}
	if a := f.call(t, f.as(t, "demo-maker", "demo-reader"), http.MethodPost, all, hook); a.Code != http.StatusCreated {
		t.Errorf("both: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, f.as(t, "demo-maker"), http.MethodPatch, one, map[string]any{"url": "https://elsewhere.example/"}, "If-Match", "*"); a.Code != http.StatusForbidden {
		t.Errorf("to turn it elsewhere: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, f.as(t, "demo-maker"), http.MethodDelete, one, nil, "If-Match", "*"); a.Code != http.StatusNoContent {
		t.Errorf("to take it away: %d %s", a.Code, a.Body)
	}
}
