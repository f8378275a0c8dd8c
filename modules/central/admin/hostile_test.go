package admin_test

import (
	"net/http"
	"strings"
	"testing"

	"versola/modules/central/catalog"
	"versola/modules/central/openapi"
)

// hostile are documents that nobody may send, by what is wrong with them.
var hostile = map[string]string{
	"nothing":        "",
	"half":           `{"id":`,
	"two documents":  `{"id":"a"} {"id":"b"}`,
	"a member twice": `{"id":"a","id":"b"}`,
	"deep":           strings.Repeat(`{"a":`, 10000) + "1" + strings.Repeat("}", 10000),
	"deep lists":     strings.Repeat("[", 10000) + strings.Repeat("]", 10000),
	"NUL":            `{"id":"a\u0000b"}`,
	"not UTF-8":      "{\"id\":\"\xff\xfe\"}",
	"half a pair":    `{"id":"\ud800"}`,
	"a list":         `[]`,
	"null":           `null`,
	"a text":         `"x"`,
	"a wrong type":   `{"id":{"a":1},"tenant":["x"],"name":1e999}`,
	"a huge number":  `{"id":1` + strings.Repeat("0", 5000) + `}`,
	"an unknown":     `{"id":"a","nobody_knows":true}`,
	"a long id":      `{"id":"` + strings.Repeat("a", 70000) + `"}`,
	"a control char": `{"id":"a\u0007b c"}`,
	"of a prototype": `{"__proto__":{"id":"a"},"id":"a"}`,
}

// writes tells the operations that take a document of an entity.
func writes(op openapi.Operation) bool {
	return !strings.Contains(op.Path, "/users") && !strings.Contains(op.Path, "{secret}") &&
		(strings.HasPrefix(op.ID, "create-") && !strings.HasSuffix(op.ID, "-secret") || strings.HasPrefix(op.ID, "replace-") || strings.HasPrefix(op.ID, "update-"))
}

func TestAPI_HostileDocumentsAreRefusedOfEveryKind(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// One of each kind, so that what is replaced and updated is there.
	ids := map[string]string{"tenants": "other", "edges": "edge", "directories": "other"}
	operations, err := openapi.Operations()
	must(t, err)
	token, tried := f.as(t, "admin"), 0
	for _, op := range operations {
		if !writes(op) {
			continue
		}
		parts := strings.Split(op.Path, "/")
		many := parts[len(parts)-1]
		if strings.HasPrefix(many, "{") {
			many = parts[len(parts)-2]
		}
		id, ok := ids[many]
		if !ok {
			id = "customer"
		}
		path := strings.NewReplacer("{tenant}", "other", "{id}", id).Replace(op.Path)
		for name, body := range hostile {
			tried++
			a := f.call(t, token, op.Method, path, body, "If-Match", "*")
			if a.Code < 400 || a.Code >= 500 {
				t.Errorf("%s, %s: %d %.300s", op.ID, name, a.Code, a.Body)
			}
			if a.text("title") == "" || a.doc["status"] != float64(a.Code) || !strings.HasPrefix(a.Header().Get("Content-Type"), "application/problem+json") {
				t.Errorf("%s, %s: no problem document: %.300s", op.ID, name, a.Body)
			}
			if a.Body.Len() > 8<<10 {
				t.Errorf("%s, %s: an answer of %d bytes", op.ID, name, a.Body.Len())
			}
		}
	}
	if tried < 15*3*len(hostile) {
		t.Errorf("only %d requests", tried)
	}
}

func TestAPI_TakesDocumentsOfItsMediaTypeAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	for mediaType, want := range map[string]int{
		"application/json": 201, "application/json; charset=utf-8": 201, "Application/JSON": 201,
		"text/plain": 415, "": 415, "application/jsonx": 415, "application/json/x": 415, "application/merge-patch+json": 415,
		"application/x-www-form-urlencoded": 415, "multipart/form-data; boundary=x": 415, "application/json, text/plain": 415,
	} {
		id := "r" + strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' {
				return r
			}
			return -1
		}, mediaType)
		a := f.call(t, token, http.MethodPost, "/v1/tenants/other/roles", `{"id":"`+id+`"}`, "Content-Type", mediaType)
		if a.Code != want && (want != 201 || a.Code != http.StatusConflict) {
			t.Errorf("%q: %d %s", mediaType, a.Code, a.Body)
		}
	}
}

func TestAPI_ListsRefuseMalformedQueries(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	for _, path := range []string{"/v1/tenants", "/v1/tenants/demo/clients", "/v1/tenants/demo/roles", "/v1/audit"} {
		for _, query := range []string{"limit=0", "limit=501", "limit=x", "limit=1&limit=2", "after=%21", "after=", "nothing=1", "limit=1;after=x", "limit=%31&%", "q=%00", "after=%FF"} {
			r := f.call(t, token, http.MethodGet, path+"?"+query, nil)
			if r.Code != http.StatusBadRequest {
				t.Errorf("%s?%s: %d %.200s", path, query, r.Code, r.Body)
			}
		}
	}
	for _, q := range []string{"%25", "_", ".*", "%5C", "%27%3B--", "(("} {
		a := f.call(t, token, http.MethodGet, "/v1/tenants?q="+q, nil)
		if a.Code != http.StatusOK || a.doc["total"] != 0. {
			t.Errorf("q=%s: %d %.200s", q, a.Code, a.Body)
		}
	}
}

func TestAPI_DeletionOfWhatIsUsedNamesEveryUser(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	v, err := f.engine.View(t.Context())
	must(t, err)
	paths := map[string]string{catalog.KindNameClient: "clients", catalog.KindNameScope: "scopes", catalog.KindNameResource: "resources",
		catalog.KindNamePermission: "permissions", catalog.KindNameTheme: "themes", catalog.KindNameDetailType: "authorization-detail-types"}
	global := map[string]string{catalog.KindNameTenant: "tenants", catalog.KindNameEdge: "edges", catalog.KindNameDirectory: "directories"}
	used := map[catalog.Ref]map[string]bool{} // by whom and where
	for _, kind := range append([]string{catalog.KindNameTenant}, catalog.KindNameClient, catalog.KindNameResource, catalog.KindNamePermission, catalog.KindNameRole, catalog.KindNamePreset) {
		for _, tenant := range []string{"", "demo", "other"} {
			for e := range v.List(kind, tenant) {
				by := e.Ref()
				e.Refers(func(_ string, r catalog.Ref) {
					if used[r] == nil {
						used[r] = map[string]bool{}
					}
					used[r][by.Kind+" "+by.Tenant+" "+by.ID] = true
				})
			}
		}
	}
	tried := map[string]bool{}
	for r, by := range used {
		path := "/v1/tenants/" + r.Tenant + "/" + paths[r.Kind] + "/" + r.ID
		if many, ok := global[r.Kind]; ok {
			path = "/v1/" + many + "/" + r.ID
		}
		if r.Kind == catalog.KindNameTenant {
			continue // goes with what is in it
		}
		a := f.call(t, token, http.MethodDelete, path, nil, "If-Match", "*")
		if a.Code == http.StatusNotFound {
			continue // what every tenant has without declaring it
		}
		tried[r.Kind] = true
		said := a.Body.String()
		for name := range by {
			fields := strings.Split(name, " ")
			if a.Code != http.StatusConflict || !strings.Contains(said, `"`+fields[2]+`"`) || !strings.Contains(said, `"`+fields[0]+`"`) {
				t.Errorf("DELETE %s: %d does not name %s: %s", path, a.Code, name, said)
			}
		}
	}
	for _, kind := range []string{catalog.KindNameClient, catalog.KindNameResource, catalog.KindNamePermission, catalog.KindNameEdge} {
		if !tried[kind] {
			t.Errorf("no %s was tried", kind)
		}
	}
}
