package admin_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"testing"

	"versola/modules/central/catalog"
)

// ids returns the ids of a page.
func ids(t *testing.T, a answer) []string {
	t.Helper()
	if a.Code != http.StatusOK {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	items, _ := a.doc["items"].([]any)
	out := make([]string, len(items))
	for i, item := range items {
		members, _ := item.(map[string]any)
		out[i] = fmt.Sprint(members["id"])
	}
	return out
}

func TestLists_PagesNeitherRepeatNorLeaveOutWhatStays(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "viewer")
	for i := range 30 {
		f.put(t, &catalog.ScopeSpec{Tenant: "other", ID: fmt.Sprintf("s%02d", i)})
	}
	admin, seen, next := f.as(t, "admin"), map[string]int{}, ""
	for page := range 20 {
		path := "/v1/tenants/other/scopes?limit=7"
		if next != "" {
			path += "&after=" + url.QueryEscape(next)
		}
		a := f.call(t, token, http.MethodGet, path, nil)
		list := ids(t, a)
		for _, id := range list {
			seen[id]++
		}
		// Between two pages, one that was shown goes (the last one: the cursor
		// names it), and others come before and behind.
		if page == 0 {
			last := list[len(list)-1]
			if d := f.call(t, admin, http.MethodDelete, "/v1/tenants/other/scopes/"+last, nil, "If-Match", "*"); d.Code != http.StatusNoContent {
				t.Fatalf("%d %s", d.Code, d.Body)
			}
			f.put(t, &catalog.ScopeSpec{Tenant: "other", ID: "a-before"}, &catalog.ScopeSpec{Tenant: "other", ID: "z-behind"})
		}
		if next = a.text("next"); next == "" {
			break
		}
	}
	for i := range 30 {
		if id := fmt.Sprintf("s%02d", i); seen[id] != 1 {
			t.Errorf("%s was seen %d times", id, seen[id])
		}
	}
	if seen["a-before"] != 0 || seen["z-behind"] != 1 {
		t.Errorf("before %d, behind %d", seen["a-before"], seen["z-behind"])
	}
}

func TestLists_ACursorIsAPlaceAndGivesNothingBeyondTheList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "demo-admin")
	cursor := func(id string) string {
		return url.QueryEscape(base64.RawURLEncoding.EncodeToString([]byte(id)))
	}
	whole := ids(t, f.call(t, token, http.MethodGet, "/v1/tenants/demo/clients", nil))
	for _, id := range []string{" ", "'; DROP TABLE central.client --", "\xff\x00", whole[0], "~"} {
		a := f.call(t, token, http.MethodGet, "/v1/tenants/demo/clients?after="+cursor(id), nil)
		want := 0
		for _, one := range whole {
			if one > id {
				want++
			}
		}
		if got := ids(t, a); len(got) != want || a.doc["total"] != float64(len(whole)) {
			t.Errorf("%q: %v of %v", id, got, a.doc["total"])
		}
	}
	for _, id := range []string{"other", "a"} { // of tenants that the caller does not reach
		if got := ids(t, f.call(t, token, http.MethodGet, "/v1/tenants?after="+cursor(id), nil)); len(got) > 1 || len(got) == 1 && got[0] != "demo" {
			t.Errorf("%q: %v", id, got)
		}
	}
}

func TestLists_FilterAndSearchByWhatIsWritten(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "viewer")
	app := func(id string, name catalog.Text, disabled bool) *catalog.ClientSpec {
		return &catalog.ClientSpec{Tenant: "other", ID: id, Name: name, Kind: catalog.KindNative, AuthMethod: catalog.AuthNone, Disabled: disabled,
			GrantTypes: []string{catalog.GrantCode}, RedirectURIs: []string{"com.example.app:/cb"}}
	}
	f.put(t, app("a_b", catalog.Plain("100% Shop"), false), app("a.b", catalog.Text{"en": "Bank", "ru": "Банк Ё"}, true), app("axb", nil, false))
	for query, want := range map[string]string{
		"q=%25": "[a_b]", "q=_": "[a_b]", "q=a.b": "[a.b]", "q=.": "[a.b]", "q=A": "[a.b a_b axb]", "q=%5B": "[]", "q=%5C": "[]", "q=^a": "[]", "q=a*": "[]",
		"q=%D0%B1%D0%B0%D0%BD%D0%BA": "[a.b]", "q=%D1%91": "[a.b]", "q=SHOP": "[a_b]", "q=nothing": "[]", "q=": "[a.b a_b axb]",
		"disabled=true": "[a.b]", "disabled=false": "[a_b axb]", "client_kind=native&disabled=true": "[a.b]", "client_kind=service": "[]", "q=b&disabled=false": "[a_b axb]",
	} {
		a := f.call(t, token, http.MethodGet, "/v1/tenants/other/clients?"+query, nil)
		if got := ids(t, a); fmt.Sprint(got) != want || a.doc["total"] != float64(len(got)) {
			t.Errorf("%s: %v of %v, want %s", query, got, a.doc["total"], want)
		}
	}
}
