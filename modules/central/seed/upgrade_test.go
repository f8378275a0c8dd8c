package seed_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/db"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/modules/central/seed"
	"versola/platform/pgtest"
	"versola/platform/postgres"
)

var centralResource = catalog.Ref{Kind: catalog.KindNameResource, Tenant: "system", ID: "central"}

func permissionRef(id string) catalog.Ref {
	return catalog.Ref{Kind: catalog.KindNamePermission, Tenant: "system", ID: id}
}

// older makes a deployment as an older program would have seeded it, without
// an operation, a permission and a role, and as an operator has edited it since.
func older(t *testing.T) (*postgres.DB, seed.Deps) {
	t.Helper()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	d := deps(t, dbx)
	if _, err := seed.System(t.Context(), d, params(t)); err != nil {
		t.Fatal(err)
	}
	v := view(t, d)
	resource := *get[*catalog.ResourceSpec](t, v, centralResource)
	resource.Name = "Renamed"
	resource.Endpoints = slices.DeleteFunc(slices.Clone(resource.Endpoints), func(e catalog.EndpointSpec) bool {
		return e.ID == "reset-user-limits" || e.ID == "delete-user"
	})
	ops := []change.Op{change.Put{Spec: &resource}}
	for _, id := range []string{"support-users", "manage-tenant"} {
		p := *get[*catalog.PermissionSpec](t, v, permissionRef(id))
		p.Endpoints = slices.DeleteFunc(slices.Clone(p.Endpoints), func(e string) bool {
			return e == "central:reset-user-limits" || e == "central:delete-user"
		})
		ops = append(ops, change.Put{Spec: &p})
	}
	// The operator has no use for "secure", and in the older program there was
	// neither "view-audit" nor the role auditor.
	for _, id := range []string{"admin", "security", "auditor"} {
		r := *get[*catalog.RoleSpec](t, v, catalog.Ref{Kind: catalog.KindNameRole, Tenant: "system", ID: id})
		r.Permissions = slices.DeleteFunc(slices.Clone(r.Permissions), func(p string) bool { return p == "secure" || p == "view-audit" })
		if id == "auditor" {
			ops = append(ops, change.Delete{Ref: r.Ref()})
			continue
		}
		ops = append(ops, change.Put{Spec: &r})
	}
	ops = append(ops, change.Delete{Ref: permissionRef("secure")}, change.Delete{Ref: permissionRef("view-audit")})
	if _, err := d.Applier.Engine.Do(t.Context(), change.System("test"), ops, change.Options{}); err != nil {
		t.Fatal(err)
	}
	_, err := dbx.Exec(t.Context(), `DELETE FROM central.seed WHERE name IN ('system/operation/reset-user-limits', 'system/permission/view-audit', 'system/role/auditor')`)
	if err != nil {
		t.Fatal(err)
	}
	return dbx, d
}

func view(t *testing.T, d seed.Deps) *change.View {
	t.Helper()
	v, err := d.Applier.Engine.View(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func get[T catalog.Entity](t *testing.T, v *change.View, r catalog.Ref) T {
	t.Helper()
	e, ok := v.Get(r)
	if !ok {
		t.Fatalf("there is no %s", r)
	}
	s, ok := e.Spec.(T)
	if !ok {
		t.Fatalf("%s is a %T", r, e.Spec)
	}
	return s
}

func TestUpgrade_BringsWhatIsNewAndLeavesEditsAlone(t *testing.T) {
	t.Parallel()
	_, d := older(t)
	added, err := seed.Upgrade(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(added)
	if diff := cmp.Diff([]string{"system/operation/reset-user-limits", "system/permission/view-audit", "system/role/auditor"}, added); diff != "" {
		t.Error(diff)
	}
	v := view(t, d)
	resource := get[*catalog.ResourceSpec](t, v, centralResource)
	has := func(id string) bool {
		return slices.ContainsFunc(resource.Endpoints, func(e catalog.EndpointSpec) bool { return e.ID == id })
	}
	if resource.Name != "Renamed" || !has("reset-user-limits") || has("delete-user") {
		t.Errorf("resource %q: new operation %v, operation that was taken away %v", resource.Name, has("reset-user-limits"), has("delete-user"))
	}
	for _, id := range []string{"support-users", "manage-tenant"} {
		p := get[*catalog.PermissionSpec](t, v, permissionRef(id))
		if !slices.Contains(p.Endpoints, "central:reset-user-limits") || slices.Contains(p.Endpoints, "central:delete-user") {
			t.Errorf("%s: %v", id, p.Endpoints)
		}
	}
	if _, back := v.Get(permissionRef("secure")); back {
		t.Error("a permission that was deleted is back")
	}
	for id, want := range map[string]string{
		"admin":    "use-api view-configuration view-users support-users manage-tenant manage-deployment view-audit",
		"security": "use-api view-configuration view-users support-users view-audit",
		"auditor":  "use-api view-configuration view-users view-audit",
		"support":  "use-api view-configuration view-users support-users",
	} {
		r := get[*catalog.RoleSpec](t, v, catalog.Ref{Kind: catalog.KindNameRole, Tenant: "system", ID: id})
		if got := strings.Join(r.Permissions, " "); got != want {
			t.Errorf("role %s: %s, want %s", id, got, want)
		}
	}

	again, err := seed.Upgrade(t.Context(), d)
	if err != nil || len(again) != 0 || view(t, d).Revision != v.Revision {
		t.Errorf("again: %v, %v, revision %d after %d", again, err, view(t, d).Revision, v.Revision)
	}
}

func TestUpgrade_OfADeploymentThatNotedNothingBringsMissingOperations(t *testing.T) {
	t.Parallel()
	dbx, d := older(t)
	if _, err := dbx.Exec(t.Context(), `DELETE FROM central.seed WHERE name LIKE 'system/%'`); err != nil {
		t.Fatal(err)
	}
	added, err := seed.Upgrade(t.Context(), d)
	slices.Sort(added)
	if diff := cmp.Diff([]string{"system/operation/delete-user", "system/operation/reset-user-limits"}, added); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestUpgrade_DoesNothingWhereTheSystemTenantIsNot(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	if added, err := seed.Upgrade(t.Context(), deps(t, dbx)); err != nil || len(added) != 0 {
		t.Errorf("%v, %v", added, err)
	}
	var n int
	if err := dbx.QueryRow(t.Context(), `SELECT count(*) FROM central.seed`).Scan(&n); err != nil || n != 0 {
		t.Errorf("%d noted, %v", n, err)
	}
}

func TestUpgrade_ThatAnOperatorsEndpointIsInTheWayOfChangesNothing(t *testing.T) {
	t.Parallel()
	_, d := older(t)
	resource := *get[*catalog.ResourceSpec](t, view(t, d), centralResource)
	resource.Endpoints = append(slices.Clone(resource.Endpoints), catalog.EndpointSpec{ID: "own", Method: "DELETE",
		Path: "/v1/directories/{directory}/users/{user}/limits"})
	if _, err := d.Applier.Engine.Do(t.Context(), change.System("test"), []change.Op{change.Put{Spec: &resource}}, change.Options{}); err != nil {
		t.Fatal(err)
	}
	before := view(t, d).Revision
	if added, err := seed.Upgrade(t.Context(), d); err == nil || len(added) != 0 || view(t, d).Revision != before {
		t.Errorf("%v, %v", added, err)
	}
}

func TestSeed_LeavesWhatIsThereAlready(t *testing.T) {
	t.Parallel()
	dbx := pgtest.Open(t, db.Auth(), db.Central())
	d := deps(t, dbx)
	p := params(t)
	p.AdminPassword = "" // the seed's administrator is of another directory
	own := []change.Op{
		change.Put{Spec: &catalog.EdgeSpec{ID: p.EdgeID, JWKS: edgeJWKS(t)}},
		change.Put{Spec: &catalog.TenantSpec{ID: "system", Name: "Ours", Profile: "standard", Directory: "staff", Edge: p.EdgeID}},
	}
	if _, err := d.Applier.Engine.Do(t.Context(), change.System("test"), own, change.Options{}); err != nil {
		t.Fatal(err)
	}
	if did, err := seed.System(t.Context(), d, p); err != nil || !did {
		t.Fatalf("%v, %v", did, err)
	}
	s, cat := load(t, dbx)
	if system, _ := cat.Tenant("system"); system.Name != "Ours" || system.Directory != "staff" || !system.HasRole("admin") || len(s.Edges) != 1 || string(s.Edges[0].JWKS) == string(p.EdgeJWKS) {
		t.Errorf("%q %q", system.Name, system.Directory)
	}
}
