package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"versola/modules/app"
	"versola/modules/app/apptest"
)

const staffPassword = "staff-of-this-test-1"

// staff makes a person of the system tenant and returns their path.
func staff(t *testing.T, s *apptest.System, admin *apptest.Browser, role string) string {
	t.Helper()
	p := administer(t, s, admin, http.MethodPost, "/v1/directories/system/users", "application/json",
		fmt.Sprintf(`{"email":"%s@staff.example","password":%q,"roles":{"system":[%q]}}`, role, staffPassword, role))
	if p.Status != http.StatusCreated {
		t.Fatalf("create %s: %d %s", role, p.Status, p.Body)
	}
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(p.Body), &made); err != nil {
		t.Fatal(err)
	}
	return "/v1/directories/system/users/" + made.ID
}

// signInStaff signs them in at the edge.
func signInStaff(t *testing.T, s *apptest.System, role string) *apptest.Browser {
	t.Helper()
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/admin")
	b.Submit(map[string]string{"identifier": role + "@staff.example"})
	if p := b.Submit(map[string]string{"password": staffPassword}); !strings.HasPrefix(p.URL.String(), s.Edge) {
		t.Fatalf("%s: at %s\n%s", role, p.URL, p.Body)
	}
	return b
}

// verb is something that is done to a person; path is below the person's.
type verb struct {
	method, path, contentType, body string
	done                            int      // the status where it is allowed
	by                              []string // the roles that may
}

// verbs are every operation on one person. Deleting comes last.
func verbs() map[string]verb {
	const patch, plain = "application/merge-patch+json", "application/json"
	viewers, helpers := []string{"admin", "security", "support", "auditor"}, []string{"admin", "security", "support"}
	return map[string]verb{
		"get":             {http.MethodGet, "", "", "", 200, viewers},
		"sessions":        {http.MethodGet, "/sessions", "", "", 200, viewers},
		"factors":         {http.MethodGet, "/factors", "", "", 200, viewers},
		"events":          {http.MethodGet, "/events", "", "", 200, viewers},
		"password":        {http.MethodPost, "/password", plain, "", 200, helpers},
		"make a link":     {http.MethodPost, "/password-reset", plain, "", 200, helpers},
		"send a link":     {http.MethodPost, "/password-reset:send", plain, "", 202, helpers},
		"end sessions":    {http.MethodDelete, "/sessions", "", "", 200, helpers},
		"end one session": {http.MethodDelete, "/sessions/01234567-89ab-7fff-bfff-000000000001", "", "", 404, helpers},
		"remove a factor": {http.MethodDelete, "/factors/passkey", "", "", 404, helpers},
		"reset limits":    {http.MethodDelete, "/limits", "", "", 200, helpers},
		"update":          {http.MethodPatch, "", patch, `{"claims":{"nickname":"x"}}`, 200, []string{"admin", "security"}},
		"replace":         {http.MethodPut, "", plain, `{"id":""}`, 422, []string{"admin"}},
	}
}

func TestPeople_EveryVerbWithEveryRole(t *testing.T) {
	s := apptest.Start(t, nil)
	first := signInAdmin(t, s)
	roles := []string{"admin", "security", "support", "auditor", "viewer"}
	path, browser := map[string]string{}, map[string]*apptest.Browser{}
	for _, role := range roles {
		path[role] = staff(t, s, first, role)
		browser[role] = signInStaff(t, s, role)
	}
	// Whom a role's holder may act on: those who reach no more than they do.
	over := map[string][]string{"admin": roles, "security": roles[1:], "support": {"support", "viewer"}, "auditor": {"auditor", "viewer"}, "viewer": {"viewer"}}
	person := func(name string) string {
		p := administer(t, s, first, http.MethodPost, "/v1/directories/demo/users", "application/json", fmt.Sprintf(`{"email":"%s@x.example"}`, name))
		var made struct{ ID string }
		if err := json.Unmarshal([]byte(p.Body), &made); err != nil || p.Status != http.StatusCreated {
			t.Fatalf("%d %s", p.Status, p.Body)
		}
		return "/v1/directories/demo/users/" + made.ID
	}
	try := func(what, role, at string, v verb, allowed bool) {
		t.Helper()
		want := http.StatusForbidden
		if allowed {
			want = v.done
		}
		if p := administer(t, s, browser[role], v.method, at+v.path, v.contentType, v.body); p.Status != want {
			t.Errorf("%s %s: %d, want %d: %.300s", role, what, p.Status, want, p.Body)
		}
	}
	for _, role := range roles {
		ordinary := person("ordinary-" + role)
		for what, v := range verbs() {
			may := slices.Contains(v.by, role)
			try(what, role, ordinary, v, may)
			if v.method == http.MethodGet {
				continue // looking at an administrator grants nothing
			}
			for _, other := range roles {
				// Nobody does it to themselves here: they would be signed out.
				if other != role && (!may || !slices.Contains(over[role], other)) {
					try(what+" of "+other, role, path[other], v, false)
				}
			}
		}
		users := "/v1/directories/demo/users"
		try("list", role, users, verb{http.MethodGet, "?q=alice", "", "", 200, nil}, role != "viewer")
		try("create", role, users, verb{http.MethodPost, "", "application/json", `{"email":"new@x.example"}`, 201, nil}, role == "admin")
		try("import", role, users, verb{http.MethodPost, ":import", "application/x-ndjson", `{"email":"new@x.example"}`, 200, nil}, role == "admin")
		try("delete", role, ordinary, verb{http.MethodDelete, "", "", "", 204, nil}, role == "admin")
	}
	// What they may do to others of the staff, the weaker before the stronger.
	for _, pair := range [][2]string{{"support", "viewer"}, {"security", "support"}, {"security", "auditor"}, {"admin", "security"}} {
		try("password of "+pair[1], pair[0], path[pair[1]], verbs()["password"], true)
	}
}

func TestPeople_ATenantsAdministratorSeesThatTenantsPeopleAlone(t *testing.T) {
	s := apptest.Start(t, nil)
	first := signInAdmin(t, s)
	send := func(b *apptest.Browser, method, path, body string) *apptest.Page {
		t.Helper()
		return administer(t, s, b, method, path, "application/json", body)
	}
	for path, body := range map[string]string{
		"/v1/tenants":              `{"id":"shop","name":"Shop","security_profile":"standard","directory":"shop","settings":{}}`,
		"/v1/tenants/system/roles": `{"id":"shop-admin","within":"shop","permissions":["use-api","view-users","support-users","manage-tenant"]}`,
	} {
		apptest.Eventually(t, 3*time.Second, "creation below "+path, func() bool { return send(first, http.MethodPost, path, body).Status == http.StatusCreated })
	}
	apptest.Eventually(t, 3*time.Second, "the new directory", func() bool {
		return send(first, http.MethodGet, "/v1/directories/shop/users", "").Status == http.StatusOK
	})
	staff(t, s, first, "shop-admin")
	// The same person, by every identifier, in both directories.
	const twin = `{"external_id":"crm-7","email":"alice@example.com","phone":"+77000000002","username":"alice","claims":{"name":"Alice"}}`
	if p := send(first, http.MethodPost, "/v1/directories/shop/users", twin); p.Status != http.StatusCreated {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	theirs := find(t, s, first, "alice@")
	shop := signInStaff(t, s, "shop-admin")
	p := send(shop, http.MethodGet, "/v1/directories/shop/users?q=alice", "")
	var list struct {
		Items []struct{ ID, Directory string }
		Total int
	}
	if err := json.Unmarshal([]byte(p.Body), &list); err != nil || len(list.Items) != 1 || list.Total != 1 || list.Items[0].Directory != "shop" {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	mine := "/v1/directories/shop/users/" + list.Items[0].ID
	for what, v := range verbs() {
		if p := administer(t, s, shop, v.method, theirs+v.path, v.contentType, v.body); p.Status != http.StatusForbidden {
			t.Errorf("%s, of the other directory: %d %s", what, p.Status, p.Body)
		}
		if p := administer(t, s, shop, v.method, strings.Replace(theirs, "/demo/", "/shop/", 1)+v.path, v.contentType, v.body); p.Status != http.StatusNotFound {
			t.Errorf("%s, of the other directory by its own: %d %s", what, p.Status, p.Body)
		}
		if p := administer(t, s, shop, v.method, mine+v.path, v.contentType, v.body); p.Status != v.done {
			t.Errorf("%s, of its own: %d %s", what, p.Status, p.Body)
		}
	}
	for _, directory := range []string{"demo", "system", "nowhere"} {
		if p := send(shop, http.MethodGet, "/v1/directories/"+directory+"/users", ""); p.Status != http.StatusForbidden {
			t.Errorf("list of %s: %d", directory, p.Status)
		}
	}
	if refusesPassword(t, s, "wonderland-demo-1") {
		t.Error("the twin's reset reached the other directory")
	}
}

func TestPeople_WhoIsDisabledIsOutOfSeparateProcessesWithinASecond(t *testing.T) {
	p := newPair(t)
	p.auth.start()
	apptest.WaitReady(t, p.authDiag)
	p.edge.start()
	apptest.WaitReady(t, p.edgeDiag)
	p.sys.Config = &app.Config{StateDir: filepath.Join(p.auth.dir, "state")}
	admin, alice := signInAdmin(t, p.sys), apptest.NewBrowser(t)
	signInByPassword(t, p.sys, alice, "alice@example.com", "wonderland-demo-1")
	rp := newParty(t, p.sys, "demo-native", "", "http://127.0.0.1:1/callback", "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tokens, err := rp.config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	userinfo := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.sys.Issuer+"/userinfo", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+tokens.AccessToken)
		return apptest.NewBrowser(t).Do(r).Status
	}
	if got := userinfo(); got != http.StatusOK {
		t.Fatalf("userinfo before: %d", got)
	}
	person := find(t, p.sys, admin, "alice@")
	if page := administer(t, p.sys, admin, http.MethodPatch, person, "application/merge-patch+json", `{"status":"disabled"}`); page.Status != http.StatusOK {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	apptest.Eventually(t, time.Second, "the end at edge and userinfo", func() bool {
		return userinfo() == http.StatusUnauthorized && call(t, p.sys, alice, http.MethodGet, "/resources/bank/accounts", "").Status == http.StatusUnauthorized
	})
	if _, err := rp.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tokens.RefreshToken}).Token(); err == nil || !strings.Contains(err.Error(), "invalid_grant") {
		t.Errorf("refresh: %v", err)
	}
	if page := administer(t, p.sys, admin, http.MethodGet, person+"/sessions", "", ""); !strings.Contains(page.Body, `"items":[]`) {
		t.Errorf("sessions: %s", page.Body)
	}
	if !refusesPassword(t, p.sys, "wonderland-demo-1") {
		t.Error("a disabled person signs in")
	}
}

// importedHashes are of "correct horse" by other implementations (bcrypt and
// argon2-cffi of Python, passlib, Django), one of each form.
var importedHashes = []string{ //nolint:gochecknoglobals // a table
	"$2b$04$8jLHUi350Tf8bkfT0blfx.APDFJbfY6p8j7lfFzPiW/xorWMAEQIm",
	"$2y$04$vgU3p8cCWugE6gJ5A5ZIUuGfipCXR3GL1r4CLYQyIaA1V5jskmO82",
	"$scrypt$ln=10,r=8,p=1$XMu517qXco4RAmCMEUIIAQ$xlH8KK5b0Yyc6hqmn4Br5itPCkOzqNyPGvueemgG3TU",
	"$pbkdf2-sha256$1000$59w7x3jPec/5H.N8T4kRIg$CnJYRiUIbH3Ejp5ZOtMv8h0WnAC/e1c5brQN13yhKRg",
	"$pbkdf2-sha256$i=1000,l=32$c2FsdHNhbHQ$qQDPSZa3Ormyy9oK1Pu0ZLLwP2Svzmx3yu8OvDdq/J0",
	"pbkdf2_sha256$1000$IoqndHqE8M7v$rJ7rX7sha+0vBXSAUdqhoLb1BW52G3VFnE3dRv+W9rU=",
	"$argon2i$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$BrUsllZA4ImdTPqwHI7P3WZCwiVVBBXuuTIuEbrDn+4",
	"$argon2d$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$0H6hCaKdR3lvhGk6GrlxIQKxCu8aipO6pTRBGZQeAzw",
	"$argon2id$v=19$m=256,t=3,p=4$MDEyMzQ1Njc4OWFiY2RlZg$USEex5GkBPi8iVdvcybwmsgcBlH/R42wvXzlHd+3IB0",
}

func TestPeople_EachFormOfImportedHashSignsInAndIsRenewed(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	var lines strings.Builder
	for i, hash := range importedHashes {
		fmt.Fprintf(&lines, `{"email":"imported%d@x.example","roles":{"demo":["customer"]},"password_hash":%q}`+"\n", i, hash)
	}
	p := administer(t, s, admin, http.MethodPost, "/v1/directories/demo/users:import", "application/x-ndjson", lines.String())
	if p.Status != http.StatusOK || !strings.Contains(p.Body, `"failed":0`) {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	for i, hash := range importedHashes {
		email := fmt.Sprintf("imported%d@x.example", i)
		person := find(t, s, admin, email)
		signInByPassword(t, s, apptest.NewBrowser(t), email, "correct horse")
		if p := administer(t, s, admin, http.MethodGet, person+"/factors", "", ""); strings.Contains(p.Body, `"imported":true`) || !strings.Contains(p.Body, `"password"`) {
			t.Errorf("%s is not renewed: %s", hash, p.Body)
		}
		signInByPassword(t, s, apptest.NewBrowser(t), email, "correct horse")
	}
}
