package audit_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/request"
	"versola/modules/central/audit"
	"versola/modules/central/openapi"
	"versola/platform/httpserver"
)

func get(l *audit.Log, target string, within ...string) *httptest.ResponseRecorder {
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { httpserver.WriteProblem(c, err) }
	e.GET("/v1/audit", func(c echo.Context) error { return l.HandleList(c, within) }, described("list-audit"))
	e.GET("/v1/audit/:seq", func(c echo.Context) error { return l.HandleEntry(c, within) }, described("get-audit-entry"))
	e.GET("/v1/audit:export", func(c echo.Context) error {
		return l.HandleExport(c, within, audit.Actor{Kind: audit.ActorUser, ID: "auditor"})
	}, described("export-audit"))
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
	return w
}

// described reads the query as the router does.
func described(id string) echo.MiddlewareFunc {
	operations, err := openapi.Operations()
	at := slices.IndexFunc(operations, func(op openapi.Operation) bool { return op.ID == id })
	if err != nil || at < 0 {
		panic(fmt.Sprint("no operation ", id, err))
	}
	return request.Described(operations[at])
}

func TestHandleList_PagesToTheEnd(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	for range 5 {
		write(t, l, event("test.one"))
	}
	after, seen := "", 0
	for range 5 {
		w := get(l, "/v1/audit?limit=2"+after)
		var page struct {
			Items []struct{ Seq int64 }
			Next  string
		}
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != 200 {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		seen += len(page.Items)
		if page.Next == "" {
			break
		}
		after = "&after=" + page.Next
	}
	if seen != 5 {
		t.Errorf("saw %d", seen)
	}
	if w := get(l, "/v1/audit?user=nobody"); !strings.Contains(w.Body.String(), `"items":[]`) {
		t.Errorf("an empty page: %s", w.Body)
	}
}

func TestHandleList_RefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "limit=1e1", "after=0", "after=-1", "after=x", "after=99999999999999999999",
		"from=yesterday", "to=2026-13-01T00:00:00Z", "acton=x", "actor=a&actor=b", "user=%00", "user=%ff", "user=" + strings.Repeat("x", 600)} {
		w := get(l, "/v1/audit?"+q)
		name, _, _ := strings.Cut(q, "=")
		if w.Code != 400 || w.Header().Get("Content-Type") != "application/problem+json" || !strings.Contains(w.Body.String(), `parameter \"`+name+`\"`) {
			t.Errorf("%.40s: %d %s", q, w.Code, w.Body)
		}
	}
	for _, q := range []string{"tenant=%zz", "limit=5&actor=%", "tenant=a;user=b"} {
		if w := get(l, "/v1/audit?"+q); w.Code != 400 {
			t.Errorf("%s: %d %s", q, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/v1/audit/x", "/v1/audit/0", "/v1/audit/99999999999999999999", "/v1/audit/-1"} {
		if w := get(l, path); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

func TestHandle_ATenantAdministratorSeesTheirTenantAlone(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	for _, tenant := range []string{"a", "b", ""} {
		write(t, l, audit.Entry{Action: "test.one", Actor: audit.Actor{Kind: audit.ActorSystem}, Tenant: tenant, User: "same"})
	}
	for _, target := range []string{"/v1/audit", "/v1/audit?tenant=a", "/v1/audit?user=same", "/v1/audit:export"} {
		w := get(l, target, "a")
		if body := w.Body.String(); w.Code != 200 || !strings.Contains(body, `"tenant":"a"`) || strings.Contains(body, `"tenant":"b"`) || strings.Contains(body, `"seq":3,`) {
			t.Errorf("%s: %d %s", target, w.Code, body)
		}
	}
	for target, want := range map[string]int{"/v1/audit?tenant=b": 403, "/v1/audit:export?tenant=b": 403, "/v1/audit/1": 200, "/v1/audit/2": 404, "/v1/audit/3": 404} {
		if w := get(l, target, "a"); w.Code != want {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
	}
}

func TestHandleExport_IsOneDocumentALineAndAnEntryItself(t *testing.T) {
	t.Parallel()
	l, _, _ := open(t)
	for range 2100 / 100 {
		entries := make([]audit.Entry, 100)
		for i := range entries {
			entries[i] = event("test.one")
		}
		write(t, l, entries...)
	}
	w := get(l, "/v1/audit:export?action="+url.QueryEscape("test."))
	lines := strings.Split(strings.TrimSuffix(w.Body.String(), "\n"), "\n")
	if w.Code != 200 || len(lines) != 2100 || w.Header().Get("Content-Type") != "application/x-ndjson" {
		t.Fatalf("%d, %d lines, %s", w.Code, len(lines), w.Header())
	}
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Fatal(line)
		}
	}
	page, err := l.Page(t.Context(), audit.Filter{Action: "audit.exported", Actor: "auditor"}, 0, 2)
	if err != nil || len(page) != 1 || !strings.Contains(string(page[0].Body), "action=test.") {
		t.Errorf("%d entries, %v", len(page), err)
	}
}
