package admin_test

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
)

func TestAPI_ADirectoryWithPeopleIsNotDeletedNorItsLastTenant(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	f.put(t, &catalog.TenantSpec{ID: "first", Profile: catalog.ProfileStandard, Directory: "people"},
		&catalog.TenantSpec{ID: "second", Profile: catalog.ProfileStandard, Directory: "people"},
		&catalog.TenantSpec{ID: "own", Profile: catalog.ProfileStandard},
		&catalog.DirectorySpec{ID: "people"})
	people, living := user.NewStore(f.db, rand.Reader), map[string]string{}
	must(t, pgx.BeginFunc(t.Context(), f.db, func(tx pgx.Tx) error {
		for _, directory := range []string{"people", "own"} {
			one, err := people.Create(t.Context(), tx, user.New{Directory: directory, Email: "same@example.com", Now: now})
			if err != nil {
				return err
			}
			living[directory] = one.String()
		}
		return nil
	}))
	for _, step := range []struct {
		path, usedBy string // usedBy: part of the refusal; empty: done
	}{
		{"/v1/directories/people", `"kind":"tenant"`},
		{"/v1/tenants/first", ""}, // the other one still has the directory
		{"/v1/tenants/second", living["people"]},
		{"/v1/tenants/own", living["own"]},
	} {
		a := f.call(t, token, http.MethodDelete, step.path, nil, "If-Match", "*")
		switch {
		case step.usedBy == "" && a.Code != http.StatusNoContent:
			t.Errorf("DELETE %s: %d %s", step.path, a.Code, a.Body)
		case step.usedBy != "" && (a.Code != http.StatusConflict || a.text("reason") != "in_use" || !strings.Contains(a.Body.String(), step.usedBy)):
			t.Errorf("DELETE %s: %d does not name %s: %s", step.path, a.Code, step.usedBy, a.Body)
		}
	}
	// Without a tenant, a directory with people is still theirs.
	if a := f.call(t, token, http.MethodPatch, "/v1/tenants/second", map[string]any{"directory": "elsewhere"}, "If-Match", "*"); a.Code != http.StatusOK {
		t.Fatalf("move: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, token, http.MethodDelete, "/v1/directories/people", nil, "If-Match", "*"); a.Code != http.StatusConflict || !strings.Contains(a.Body.String(), living["people"]) {
		t.Errorf("directory without a tenant: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, token, http.MethodDelete, "/v1/tenants/second", nil, "If-Match", "*"); a.Code != http.StatusNoContent {
		t.Errorf("tenant of an empty directory: %d %s", a.Code, a.Body)
	}
}

func TestAPI_DeletionAndANewReferenceAtOnceKeepTheConfigurationWhole(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	for round := range 8 {
		scope := fmt.Sprintf("scope-%d", round)
		f.put(t, &catalog.ScopeSpec{Tenant: "other", ID: scope})
		var deleted, created answer
		var both sync.WaitGroup
		both.Go(func() {
			deleted = f.call(t, token, http.MethodDelete, "/v1/tenants/other/scopes/"+scope, nil, "If-Match", "*")
		})
		both.Go(func() {
			created = f.call(t, token, http.MethodPost, "/v1/tenants/other/clients", map[string]any{"id": fmt.Sprintf("app-%d", round), "client_kind": "native",
				"auth_method": "none", "grant_types": []string{"authorization_code"}, "redirect_uris": []string{"com.example.app:/cb"}, "scopes": []string{scope}})
		})
		both.Wait()
		first := deleted.Code == http.StatusNoContent && created.Code == http.StatusUnprocessableEntity
		second := deleted.Code == http.StatusConflict && created.Code == http.StatusCreated
		if !first && !second {
			t.Errorf("deletion %d %s, creation %d %s", deleted.Code, deleted.Body, created.Code, created.Body)
		}
	}
}
