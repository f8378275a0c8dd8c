package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/bcrypt"

	"versola/modules/app/apptest"
)

const adminPassword = "administrator-demo-1"

// signInAdmin signs the first administrator in, who has to choose a password.
func signInAdmin(t *testing.T, s *apptest.System) *apptest.Browser {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(s.Config.StateDir, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	var first struct {
		Password string `json:"admin_one_time_password"`
	}
	if err := json.Unmarshal(raw, &first); err != nil {
		t.Fatal(err)
	}
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/admin")
	b.Submit(map[string]string{"identifier": "admin@versola.local"})
	b.Submit(map[string]string{"password": first.Password})
	if page := b.Submit(map[string]string{"new_password": adminPassword}); page.Status != http.StatusOK || page.URL.String() != s.Edge+"/resources/central/" {
		t.Fatalf("expected the administration page, got %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	return b
}

// administer calls the administration API through the edge.
func administer(t *testing.T, s *apptest.System, b *apptest.Browser, method, path, contentType, body string) *apptest.Page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.Edge+"/resources/central"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"Accept": "application/json", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Site": "same-origin", "Origin": s.Edge,
		"Content-Type": contentType, "If-Match": "*"} {
		r.Header.Set(name, value)
	}
	return b.Do(r)
}

// find returns the path of the one person that a search finds.
func find(t *testing.T, s *apptest.System, admin *apptest.Browser, q string) string {
	t.Helper()
	page := administer(t, s, admin, http.MethodGet, "/v1/directories/demo/users?q="+q, "", "")
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("search for %s: %d %s", q, page.Status, page.Body)
	}
	return "/v1/directories/demo/users/" + list.Items[0].ID
}

func TestUsers_WhoIsDisabledIsOutEverywhereWithinASecond(t *testing.T) {
	s := apptest.Start(t, nil)
	admin, alice := signInAdmin(t, s), apptest.NewBrowser(t)
	for name, end := range map[string]func(path string) *apptest.Page{
		"disabled": func(path string) *apptest.Page {
			return administer(t, s, admin, http.MethodPatch, path, "application/merge-patch+json", `{"status":"disabled"}`)
		},
		"signed out": func(path string) *apptest.Page {
			return administer(t, s, admin, http.MethodDelete, path+"/sessions", "", "")
		},
	} {
		path := find(t, s, admin, "alice@")
		signInByPassword(t, s, alice, "alice@example.com", "wonderland-demo-1")
		if p := call(t, s, alice, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
			t.Fatalf("%s, before: %d", name, p.Status)
		}
		if p := end(path); p.Status != http.StatusOK {
			t.Fatalf("%s: %d %s", name, p.Status, p.Body)
		}
		apptest.Eventually(t, time.Second, name, func() bool {
			return call(t, s, alice, http.MethodGet, "/resources/bank/accounts", "").Status == http.StatusUnauthorized
		})
		if p := alice.Open(s.Edge + "/login/demo"); !strings.HasPrefix(p.URL.String(), s.Issuer+"/login/") {
			t.Errorf("%s: a new login went straight to %s", name, p.URL)
		}
		if p := administer(t, s, admin, http.MethodPatch, path, "application/merge-patch+json", `{"status":"active"}`); p.Status != http.StatusOK {
			t.Fatalf("enable: %d %s", p.Status, p.Body)
		}
	}
}

func TestUsers_ImportedPasswordSignsInAndIsRenewed(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	hash, err := bcrypt.GenerateFromPassword([]byte("from-another-system"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	fmt.Fprintf(&lines, `{"external_id":"crm-1","email":"carol@example.com","roles":{"demo":["customer"]},"password_hash":%q}`+"\n", hash)
	for i := range 5000 { // above the bound of other bodies
		fmt.Fprintf(&lines, `{"external_id":"crm-%d","email":"person%d@example.com","claims":{"name":"Person Number %d"}}`+"\n", i+2, i, i)
	}
	p := administer(t, s, admin, http.MethodPost, "/v1/directories/demo/users:import", "application/x-ndjson", lines.String())
	if p.Status != http.StatusOK || !strings.Contains(p.Body, `"created":5001,`) {
		t.Fatalf("import: %d %.500s", p.Status, p.Body)
	}
	carol := find(t, s, admin, "carol@")
	if p := administer(t, s, admin, http.MethodGet, carol+"/factors", "", ""); !strings.Contains(p.Body, `"imported":true`) {
		t.Errorf("before: %s", p.Body)
	}
	for range 2 {
		signInByPassword(t, s, apptest.NewBrowser(t), "carol@example.com", "from-another-system")
		if p := administer(t, s, admin, http.MethodGet, carol+"/factors", "", ""); strings.Contains(p.Body, "imported") || !strings.Contains(p.Body, `"password"`) {
			t.Errorf("after: %s", p.Body)
		}
	}
}

func TestUsers_TemporaryPasswordReplacesTheOldOneAndMustBeReplaced(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	alice := find(t, s, admin, "alice@")
	p := administer(t, s, admin, http.MethodPost, alice+"/password", "application/json", `{}`)
	var answer struct {
		Password string `json:"temporary_password"`
	}
	if err := json.Unmarshal([]byte(p.Body), &answer); err != nil || answer.Password == "" {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	if p := b.Submit(map[string]string{"password": "wonderland-demo-1"}); p.URL.String() == s.Edge+demoPage {
		t.Fatal("the old password still signs in")
	}
	b.Submit(map[string]string{"password": answer.Password})
	if p := b.Submit(map[string]string{"new_password": "chosen-by-alice-1"}); p.URL.String() != s.Edge+demoPage {
		t.Fatalf("at %s\n%s", p.URL, p.Body)
	}
	signInByPassword(t, s, apptest.NewBrowser(t), "alice@example.com", "chosen-by-alice-1")
}

func TestUsers_LimitsThatWereResetLetThePersonIn(t *testing.T) {
	s := apptest.Start(t, nil)
	admin, b := signInAdmin(t, s), apptest.NewBrowser(t)
	for range 7 { // more than are allowed
		b.Open(s.Edge + "/login/demo")
		b.Submit(map[string]string{"identifier": "alice@example.com"})
		b.Submit(map[string]string{"password": "not-the-password"})
	}
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	if p := b.Submit(map[string]string{"password": "wonderland-demo-1"}); p.URL.String() == s.Edge+demoPage {
		t.Fatal("nobody was kept out")
	}
	if p := administer(t, s, admin, http.MethodDelete, find(t, s, admin, "alice@")+"/limits", "", ""); p.Status != http.StatusOK {
		t.Fatalf("%d %s", p.Status, p.Body)
	}
	signInByPassword(t, s, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
}
