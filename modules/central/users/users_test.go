package users

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/db"
	"versola/modules/auth/user"
	"versola/modules/central/admin/access"
	"versola/modules/central/admin/request"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/modules/central/openapi"
	"versola/modules/central/openapi/openapitest"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
	"versola/platform/pgtest"
	"versola/platform/postgres"
	"versola/platform/secret"
)

func TestMain(m *testing.M) { os.Exit(pgtest.Run(m)) }

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// ended notes what was to be ended.
type ended struct {
	all, one []id.UUID
	living   []user.Session
}

func (e *ended) EndAll(_ context.Context, _ pgx.Tx, _ *catalog.Catalog, _ string, u id.UUID) (int, error) {
	e.all = append(e.all, u)
	return 2, nil
}

func (e *ended) EndOne(_ context.Context, _ pgx.Tx, _ *catalog.Catalog, _ string, _, s id.UUID) (bool, error) {
	e.one = append(e.one, s)
	return slices.ContainsFunc(e.living, func(l user.Session) bool { return l.ID == s }), nil
}

func (e *ended) Living(context.Context, id.UUID) ([]user.Session, error) { return e.living, nil }

type limits struct{ reset []user.Identifier }

func (l *limits) Reset(_ context.Context, _ pgx.Tx, _ string, identifiers []user.Identifier) (int64, error) {
	l.reset = append(l.reset, identifiers...)
	return 1, nil
}

type hasher struct{}

func (hasher) Hash(_ context.Context, plain string) (string, error) { return "hash of " + plain, nil }

type fixture struct {
	t      testing.TB
	echo   *echo.Echo
	signer *jose.Signer
	db     *postgres.DB
	users  *user.Store
	log    *audit.Log
	ended  *ended
	limits *limits
	clock  *clock.Fake
}

var ops = []string{"list-users", "create-user", "import-users", "get-user", "replace-user", "update-user", "delete-user", "reset-user-password",
	"list-user-sessions", "end-user-sessions", "end-user-session", "list-user-factors", "remove-user-factor", "reset-user-limits", "list-user-events"}

func spec(t testing.TB, signer *jose.Signer) *catalog.Snapshot {
	t.Helper()
	public, err := signer.Public().JWK()
	if err != nil {
		t.Fatal(err)
	}
	s := &catalog.Snapshot{Revision: 1, Issuer: "http://localhost:8080", RootTenant: "one",
		Tenants: []catalog.TenantSpec{{ID: "one", Directory: "one"}, {ID: "two", Directory: "two"}, {ID: "shared-a", Directory: "shared"},
			{ID: "shared-b", Directory: "shared"}, {ID: "system", Directory: "system"}},
		Roles: []catalog.RoleSpec{{Tenant: "one", ID: "reader"}, {Tenant: "two", ID: "reader"}, {Tenant: "two", ID: "boss"}, {Tenant: "shared-a", ID: "reader"},
			{Tenant: "system", ID: "admin", Permissions: []string{"all", "more"}}, {Tenant: "system", ID: "support", Permissions: []string{"all"}},
			{Tenant: "system", ID: "one-admin", Permissions: []string{"all"}, Within: "one"}, {Tenant: "system", ID: "viewer", Permissions: []string{"view"}},
			{Tenant: "system", ID: "a-admin", Permissions: []string{"all"}, Within: "shared-a"}},
		Clients: []catalog.ClientSpec{{Tenant: "system", ID: "console", Kind: catalog.KindWeb, AuthMethod: catalog.AuthNone, GrantTypes: []string{"authorization_code"}}},
		Keys:    []catalog.KeySpec{{ID: signer.Public().ID, Alg: "ES256", State: catalog.KeyActive, Public: public}},
	}
	r := catalog.ResourceSpec{Tenant: "system", ID: "central", Audience: "central", Upstream: catalog.UpstreamSpec{URL: "http://127.0.0.1:1"}}
	all := catalog.PermissionSpec{Tenant: "system", ID: "all"}
	for i, op := range ops {
		r.Endpoints = append(r.Endpoints, catalog.EndpointSpec{ID: op, Method: "GET", Path: fmt.Sprintf("/%d", i)})
		all.Endpoints = append(all.Endpoints, "central:"+op)
	}
	r.Endpoints = append(r.Endpoints, catalog.EndpointSpec{ID: "rotate-keys", Method: "GET", Path: "/x"})
	s.Resources = []catalog.ResourceSpec{r}
	s.Permissions = []catalog.PermissionSpec{all, {Tenant: "system", ID: "more", Endpoints: []string{"central:rotate-keys"}},
		{Tenant: "system", ID: "view", Endpoints: []string{"central:list-users", "central:get-user"}}}
	return s
}

func newFixture(t testing.TB) *fixture {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, ended: &ended{}, limits: &limits{}, clock: clock.NewFake(now), db: pgtest.Open(t, db.Auth(), db.Central())}
	if f.signer, err = jose.NewSigner("", jose.ES256, key); err != nil {
		t.Fatal(err)
	}
	c, err := (&catalog.Compiler{Open: func(b []byte, _ string) ([]byte, error) { return b, nil }}).Compile(spec(t, f.signer))
	if err != nil {
		t.Fatal(err)
	}
	holder := catalog.NewHolder()
	holder.Set(c)
	if f.log, err = audit.New(audit.Deps{DB: f.db, Clock: f.clock, Encryption: []secret.Key{{ID: "k", Value: bytes.Repeat([]byte{1}, 32)}}}); err != nil {
		t.Fatal(err)
	}
	f.users = user.NewStore(f.db, rand.Reader)
	api := New(Deps{DB: f.db, Users: f.users, Catalog: holder, Sessions: f.ended, Limits: f.limits, Hasher: hasher{},
		Adopt: func(h string) (string, error) { return "imported:" + h, nil }, Audit: f.log, Clock: f.clock, Random: rand.Reader})
	f.route(api, &access.Gate{Catalog: holder, Clock: f.clock})
	return f
}

var parameter = regexp.MustCompile(`\{(\w+)\}`)

// route does what the API's router does: every operation behind the gate.
func (f *fixture) route(api *API, gate *access.Gate) {
	f.echo = echo.New()
	f.echo.HTTPErrorHandler = func(err error, c echo.Context) { httpserver.WriteProblem(c, err) }
	operations, err := openapi.Operations()
	if err != nil {
		f.t.Fatal(err)
	}
	handlers := api.Handlers()
	for _, op := range operations {
		if h, ok := handlers[op.ID]; ok {
			path := parameter.ReplaceAllString(strings.ReplaceAll(op.Path, ":", `\:`), ":$1")
			f.echo.Add(op.Method, path, h, gate.Authenticate, gate.Authorize(op), request.Described(op))
			delete(handlers, op.ID)
		}
	}
	for name := range handlers {
		f.t.Errorf("%s is not in the OpenAPI document", name)
	}
}

// answered is an answer.
type answered struct {
	*httptest.ResponseRecorder
	t testing.TB
}

func (a answered) json() map[string]any {
	a.t.Helper()
	out := map[string]any{}
	if err := json.Unmarshal(a.Body.Bytes(), &out); err != nil {
		a.t.Fatalf("%s: %v", a.Body, err)
	}
	return out
}

// contract holds every exchange of these tests to the OpenAPI document.
var contract = sync.OnceValues(openapitest.New)

// do sends a request as a person with a role; headers are "Name: value".
func (f *fixture) do(role, method, path, body string, headers ...string) answered {
	f.t.Helper()
	payload, err := json.Marshal(map[string]any{"iss": "http://localhost:8080/t/system", "sub": "someone", "aud": "central", "client_id": "console",
		"tenant": "system", "roles": []string{role}, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": "j", "sid": "s"})
	if err != nil {
		f.t.Fatal(err)
	}
	token, err := f.signer.Sign("at+jwt", payload)
	if err != nil {
		f.t.Fatal(err)
	}
	var in io.Reader
	if body != "" {
		in = strings.NewReader(body)
	}
	r := httptest.NewRequest(method, path, in)
	r.Header.Set("Authorization", "Bearer "+token)
	switch {
	case strings.HasSuffix(path, ":import"):
		r.Header.Set("Content-Type", "application/x-ndjson")
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	case body != "":
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.echo.ServeHTTP(w, r)
	document, err := contract()
	if err != nil {
		f.t.Fatal(err)
	}
	document.Check(f.t, r, []byte(body), w.Code, w.Header(), w.Body.Bytes())
	return answered{w, f.t}
}

// create makes a person and returns their path.
func (f *fixture) create(directory, body string) string {
	f.t.Helper()
	w := f.do("admin", http.MethodPost, "/v1/directories/"+directory+"/users", body)
	if w.Code != http.StatusCreated || w.Header().Get("Location") == "" || w.Header().Get("ETag") != `"1"` {
		f.t.Fatalf("create: %d %s", w.Code, w.Body)
	}
	return w.Header().Get("Location")
}

// pointers returns the pointers of a problem document.
func (a answered) pointers() []string {
	a.t.Helper()
	out := []string{}
	list, _ := a.json()["errors"].([]any)
	for _, e := range list {
		p, _ := e.(map[string]any)["pointer"].(string)
		out = append(out, p)
	}
	return out
}

func TestUsers_LifeOfAPerson(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.create("one", `{"phone":"+7 700 000-00-01","email":"ann@example.com","claims":{"name":"Ann","age":7},"roles":{"one":["reader"]},"password":"correct horse"}`)
	w := f.do("admin", http.MethodGet, at, "")
	got := w.json()
	if got["phone"] != "+77000000001" || got["status"] != "active" || strings.Contains(w.Body.String(), "horse") || strings.Contains(w.Body.String(), "hash") {
		t.Errorf("%s", w.Body)
	}
	if w := f.do("admin", http.MethodGet, at, "", `If-None-Match: "1"`); w.Code != http.StatusNotModified {
		t.Errorf("unchanged: %d", w.Code)
	}
	// What was read is written back unchanged.
	if w := f.do("admin", http.MethodPut, at, w.Body.String(), `If-Match: "1"`); w.Code != http.StatusOK || w.Header().Get("ETag") != `"1"` {
		t.Errorf("the same again: %d %s", w.Code, w.Body)
	}
	w = f.do("admin", http.MethodPatch, at, `{"phone":null,"claims":{"name":"Anna","locale":"kk"},"roles":{"one":null}}`, `If-Match: "1"`)
	got = w.json()
	if w.Code != http.StatusOK || got["phone"] != nil || w.Header().Get("ETag") != `"2"` {
		t.Errorf("patch: %d %s", w.Code, w.Body)
	}
	if diff := cmp.Diff(map[string]any{"name": "Anna", "age": 7., "locale": "kk"}, got["claims"]); diff != "" {
		t.Error(diff)
	}
	if len(f.ended.all) != 0 {
		t.Error("a change of claims ended sessions")
	}
	if w = f.do("admin", http.MethodPatch, at, `{"status":"disabled"}`, `If-Match: "2"`); w.Code != http.StatusOK || len(f.ended.all) != 1 {
		t.Errorf("disable: %d %s, ended %v", w.Code, w.Body, f.ended.all)
	}
	if w = f.do("admin", http.MethodDelete, at, "", "If-Match: *"); w.Code != http.StatusNoContent || len(f.ended.all) != 2 {
		t.Errorf("delete: %d %s, ended %v", w.Code, w.Body, f.ended.all)
	}
	if w = f.do("admin", http.MethodGet, at, ""); w.Code != http.StatusNotFound {
		t.Errorf("deleted: %d", w.Code)
	}
	page, err := f.log.Page(t.Context(), audit.Filter{User: at[strings.LastIndex(at, "/")+1:]}, 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, e := range page {
		var entry audit.Entry
		if err := json.Unmarshal(e.Body, &entry); err != nil {
			t.Fatal(err)
		}
		actions = append(actions, entry.Action)
		if text := string(e.Body); strings.Contains(text, "+77000000001") || strings.Contains(text, "ann@") || strings.Contains(text, "Ann") ||
			entry.Tenant != "one" || entry.Actor.ID != "someone" {
			t.Errorf("entry %s", text)
		}
	}
	if diff := cmp.Diff([]string{"user.deleted", "user.disabled", "user.updated", "user.created"}, actions); diff != "" {
		t.Error(diff)
	}
}

func TestUsers_ChangesNeedTheVersionThatTheyChange(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.create("one", `{"username":"ann"}`)
	for _, k := range []struct {
		method, body string
	}{{http.MethodPut, `{"username":"ann"}`}, {http.MethodPatch, `{}`}, {http.MethodDelete, ""}} {
		for header, want := range map[string]int{"": 428, `If-Match: "2"`: 412, `If-Match: W/"1"`: 412, `If-Match: "x"`: 412, `If-Match: 1`: 400, `If-Match: W/*`: 400, `If-Match: *, "9"`: 400, `If-Match: "01"`: 412,
			`If-Match: "3", "2"`: 412, `If-Match: ""`: 412} {
			var headers []string
			if header != "" {
				headers = []string{header}
			}
			if w := f.do("admin", k.method, at, k.body, headers...); w.Code != want {
				t.Errorf("%s with %q: %d, want %d", k.method, header, w.Code, want)
			}
		}
	}
}

func TestUsers_RefusesBadDocumentsByPointer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.create("one", `{"username":"ann","email":"ann@example.com"}`)
	f.create("one", `{"username":"ben","phone":"+77000000002","external_id":"x"}`)
	const path = "/v1/directories/one/users"
	for name, k := range map[string]struct {
		body     string
		status   int
		pointers []string
	}{
		"not JSON":        {`{`, 400, []string{}},
		"empty":           {``, 400, []string{}},
		"two documents":   {`{"username":"a"}{}`, 400, []string{}},
		"a list":          {`[]`, 422, []string{""}},
		"no identifier":   {`{}`, 422, []string{""}},
		"unknown members": {`{"username":"a","admin":true,"Phone":"x"}`, 422, []string{"/Phone", "/admin"}},
		"wrong types":     {`{"username":7,"roles":{"one":"reader"},"claims":[]}`, 422, []string{"/claims", "/roles/one", "/username"}},
		"twice":           {`{"username":"a","username":"b"}`, 422, []string{"/username"}},
		"everything at once": {`{"phone":"8700","email":"x","username":"a b","status":"gone","external_id":"a\nb","claims":{"sub":"x","name":7},"created_at":"2999-01-01T00:00:00Z","password":"short"}`, 422,
			[]string{"/phone", "/email", "/username", "/external_id", "/created_at", "/claims/name", "/claims/sub", "/status", "/password"}},
		"taken":                       {`{"username":"BEN","phone":"+77000000002","external_id":"x","email":"new@example.com"}`, 409, []string{"/external_id", "/phone", "/username"}},
		"another directory":           {`{"username":"a","directory":"two"}`, 422, []string{"/directory"}},
		"another directory's roles":   {`{"username":"a","roles":{"two":["reader"],"none":["x"],"one":["boss"]}}`, 422, []string{"/roles/none/0", "/roles/one/0", "/roles/two/0"}},
		"the same role twice":         {`{"username":"a","roles":{"one":["reader","reader"]}}`, 422, []string{"/roles/one/1"}},
		"protocol claims":             {`{"username":"a","claims":{"iss":"x","a b":1,"deep":{"a":{"b":{"c":{"d":1}}}}}}`, 422, []string{"/claims/a b", "/claims/deep", "/claims/iss"}},
		"a NUL":                       {`{"username":"a","claims":{"x":"\u0000"}}`, 422, []string{"/claims/x"}},
		"numbers that are not kept":   {`{"username":"a","claims":{"a":1e400,"b":9007199254740993,"c":1e-400,"d":[1e999]}}`, 422, []string{"/claims/a", "/claims/b", "/claims/c", "/claims/d"}},
		"half a character":            {`{"username":"a","claims":{"x":"\ud800"}}`, 422, []string{"/claims/x"}},
		"an id that is none":          {`{"id":"7","username":"a"}`, 422, []string{"/id"}},
		"an over-long document":       {`{"username":"` + strings.Repeat("a", 140000) + `"}`, 413, []string{}},
		"nested a hundred thousand":   {strings.Repeat("[", 100000), 400, []string{}},
		"both a password and a hash":  {`{"username":"a","password":"correct horse","password_hash":"h"}`, 422, []string{"/password"}},
		"a password in astral planes": {`{"username":"a","password":"` + strings.Repeat("\U0001F600", 257) + `"}`, 422, []string{"/password"}},
	} {
		w := f.do("admin", http.MethodPost, path, k.body, "Content-Type: application/json")
		if w.Code != k.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		if diff := cmp.Diff(k.pointers, w.pointers()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	for name, k := range map[string]struct {
		body     string
		status   int
		pointers []string
	}{
		"another id":  {`{"id":"01234567-89ab-7fff-bfff-ffffffffffff"}`, 422, []string{"/id"}},
		"a hash":      {`{"password_hash":"h"}`, 422, []string{"/password_hash"}},
		"taken":       {`{"username":"ben"}`, 409, []string{"/username"}},
		"no object":   {`7`, 422, []string{""}},
		"a password":  {`{"password":"correct horse"}`, 422, []string{"/password"}},
		"created":     {`{"created_at":"2020-01-01T00:00:00Z"}`, 422, []string{"/created_at"}},
		"nobody left": {`{"username":null,"email":null}`, 422, []string{""}},
	} {
		w := f.do("admin", http.MethodPatch, at, k.body, "If-Match: *")
		if w.Code != k.status {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
			continue
		}
		if diff := cmp.Diff(k.pointers, w.pointers()); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if w := f.do("admin", http.MethodPost, path, `{"username":"a"}`, "Content-Type: text/plain"); w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("text: %d", w.Code)
	}
}

func TestUsers_NobodyGrantsMoreThanTheyHold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	boss := f.create("system", `{"username":"boss","roles":{"system":["admin"]}}`)
	helper := f.create("system", `{"username":"helper","roles":{"system":["support"]}}`)
	for name, k := range map[string]struct {
		method, path, body string
		want               int
	}{
		"a role that reaches more":   {http.MethodPatch, helper, `{"roles":{"system":["admin"]}}`, 403},
		"create with it":             {http.MethodPost, "/v1/directories/system/users", `{"username":"x","roles":{"system":["admin"]}}`, 403},
		"take it away":               {http.MethodPatch, boss, `{"roles":{"system":[]}}`, 403},
		"disable who has it":         {http.MethodPatch, boss, `{"status":"disabled"}`, 403},
		"reset their password":       {http.MethodPost, boss + "/password", "", 403},
		"delete them":                {http.MethodDelete, boss, "", 403},
		"end their sessions":         {http.MethodDelete, boss + "/sessions", "", 403},
		"remove their password":      {http.MethodDelete, boss + "/factors/password", "", 403},
		"look at them":               {http.MethodGet, boss, "", 200},
		"give what one holds":        {http.MethodPatch, helper, `{"roles":{"system":["support","viewer"]}}`, 200},
		"give it within one tenant":  {http.MethodPatch, helper, `{"roles":{"system":["support","one-admin"]}}`, 200},
		"reset an equal's password":  {http.MethodPost, helper + "/password", "", 200},
		"a role that does not exist": {http.MethodPatch, helper, `{"roles":{"system":["root"]}}`, 422},
	} {
		if w := f.do("support", k.method, k.path, k.body, "If-Match: *"); w.Code != k.want {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	w := f.do("support", http.MethodPost, "/v1/directories/system/users:import", `{"username":"i1","roles":{"system":["admin"]}}`+"\n"+`{"username":"i2","roles":{"system":["viewer"]}}`)
	if got := w.json(); w.Code != 200 || got["created"] != 1. || got["failed"] != 1. {
		t.Errorf("import: %d %s", w.Code, w.Body)
	}
}

func TestUsers_ATenantsAdministratorTouchesThatTenantAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const body = `{"id":"%s","username":"ann","roles":{"%s":["reader"]}}`
	mine := f.create("one", fmt.Sprintf(body, "01234567-89ab-7fff-bfff-000000000001", "one"))
	theirs := f.create("two", fmt.Sprintf(body, "01234567-89ab-7fff-bfff-000000000002", "two"))
	f.create("shared", `{"username":"ann"}`)
	for _, p := range []struct {
		method, path, body string
	}{
		{http.MethodGet, "/v1/directories/two/users", ""}, {http.MethodPost, "/v1/directories/two/users", `{"username":"x"}`},
		{http.MethodPost, "/v1/directories/two/users:import", `{"username":"x"}`}, {http.MethodGet, theirs, ""}, {http.MethodPut, theirs, `{"username":"x"}`},
		{http.MethodPatch, theirs, `{}`}, {http.MethodDelete, theirs, ""}, {http.MethodPost, theirs + "/password", ""}, {http.MethodGet, theirs + "/sessions", ""},
		{http.MethodDelete, theirs + "/sessions", ""}, {http.MethodDelete, theirs + "/sessions/01234567-89ab-7fff-bfff-000000000002", ""},
		{http.MethodGet, theirs + "/factors", ""}, {http.MethodDelete, theirs + "/factors/password", ""}, {http.MethodDelete, theirs + "/limits", ""},
		{http.MethodGet, theirs + "/events", ""}, {http.MethodGet, "/v1/directories/system/users", ""}, {http.MethodGet, "/v1/directories/none/users", ""},
		{http.MethodGet, "/v1/directories/shared/users", ""},
	} {
		if w := f.do("one-admin", p.method, p.path, p.body, "If-Match: *"); w.Code != http.StatusForbidden {
			t.Errorf("%s %s: %d %s", p.method, p.path, w.Code, w.Body)
		}
		// The same person by the other directory is nobody.
		if path := strings.Replace(p.path, "/two/", "/one/", 1); path != p.path && strings.HasPrefix(p.path, theirs) {
			if w := f.do("one-admin", p.method, path, p.body, "If-Match: *"); w.Code != http.StatusNotFound {
				t.Errorf("%s %s: %d %s", p.method, path, w.Code, w.Body)
			}
		}
	}
	if w := f.do("a-admin", http.MethodGet, "/v1/directories/shared/users", ""); w.Code != http.StatusForbidden {
		t.Errorf("a directory that another tenant shares: %d", w.Code)
	}
	w := f.do("one-admin", http.MethodGet, "/v1/directories/one/users", "")
	if items, _ := w.json()["items"].([]any); w.Code != 200 || len(items) != 1 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do("one-admin", http.MethodPatch, mine, `{"roles":{"one":[]}}`, "If-Match: *"); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do("one-admin", http.MethodPatch, mine, `{"roles":{"system":["one-admin"]}}`, "If-Match: *"); w.Code != 422 {
		t.Errorf("a role of the system tenant: %d %s", w.Code, w.Body)
	}
	if len(f.ended.all) != 0 {
		t.Errorf("ended %v", f.ended.all)
	}
}

func TestUsers_ListTakesKnownParametersOnce(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for i := range 5 {
		f.create("one", fmt.Sprintf(`{"username":"u%d","email":"u%d@example.com"}`, i, i))
		f.clock.Advance(time.Second)
	}
	const path = "/v1/directories/one/users"
	first := f.do("viewer", http.MethodGet, path+"?limit=2&q=u", "").json()
	if next, _ := first["next"].(string); next == "" || first["total"] != 5. {
		t.Errorf("%v", first)
	} else if second := f.do("viewer", http.MethodGet, path+"?limit=2&q=u&after="+next, "").json(); len(second["items"].([]any)) != 2 {
		t.Errorf("%v", second)
	}
	for _, q := range []string{"limit=0", "limit=501", "limit=x", "limit=1&limit=2", "offset=1", "status=gone", "status=", "role=reader", "role=:", "created_from=yesterday",
		"created_from=0001-01-01T00:00:00Z", "after=zzz", "q=%00", "q=%ff", "q=" + strings.Repeat("x", 400), "q=a;status=disabled", "role=a:%00", "status=%zz", "q=u&status=disabled%"} {
		if w := f.do("viewer", http.MethodGet, path+"?"+q, ""); w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", q, w.Code, w.Body)
		}
	}
	if w := f.do("viewer", http.MethodPost, path, `{"username":"x"}`); w.Code != http.StatusForbidden {
		t.Errorf("a viewer creates: %d", w.Code)
	}
}

func TestUsers_PasswordSessionsFactorsAndLimits(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	at := f.create("one", `{"username":"ann","phone":"+77000000001","password":"correct horse"}`)
	w := f.do("admin", http.MethodPost, at+"/password", "")
	plain, _ := w.json()["temporary_password"].(string)
	if w.Code != 200 || !regexp.MustCompile(`^[0-9a-z]{5}(-[0-9a-z]{5}){3}$`).MatchString(plain) || w.json()["expires_at"] != "2026-12-03T12:00:00Z" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if len(f.ended.all) != 1 {
		t.Error("the sessions live on")
	}
	if w := f.do("admin", http.MethodGet, at+"/factors", ""); strings.TrimSpace(w.Body.String()) !=
		`{"items":[{"id":"temporary_password","changed_at":"2026-11-30T12:00:00Z","expires_at":"2026-12-03T12:00:00Z"}]}` {
		t.Errorf("%s", w.Body)
	}
	if w := f.do("admin", http.MethodPost, at+"/password", `{"keep_sessions":true,"expires_in":"1h"}`); w.Code != 200 || len(f.ended.all) != 1 {
		t.Errorf("%d %s, ended %v", w.Code, w.Body, f.ended.all)
	}
	for _, body := range []string{`{"expires_in":"1s"}`, `{"expires_in":"9000h"}`, `{"expires_in":7}`, `{"password":"mine"}`} {
		if w := f.do("admin", http.MethodPost, at+"/password", body); w.Code != 422 {
			t.Errorf("%s: %d", body, w.Code)
		}
	}
	for path, want := range map[string]int{"/factors/temporary_password": 204, "/factors/password": 404, "/factors/otp": 404} {
		if w := f.do("admin", http.MethodDelete, at+path, ""); w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	s := id.UUID{1}
	f.ended.living = []user.Session{{ID: s, AuthTime: now, AMR: []string{"pwd"}, CreatedAt: now, SeenAt: now, ExpiresAt: now, Clients: []string{"one/web"}}}
	if w := f.do("admin", http.MethodGet, at+"/sessions", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `"clients":["one/web"]`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for path, want := range map[string]int{"/sessions/" + s.String(): 204, "/sessions/" + id.UUID{2}.String(): 404, "/sessions/x": 404} {
		if w := f.do("admin", http.MethodDelete, at+path, ""); w.Code != want {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := f.do("admin", http.MethodDelete, at+"/sessions", ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != `{"ended":2}` {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do("admin", http.MethodDelete, at+"/limits", ""); w.Code != 200 || len(f.limits.reset) != 2 {
		t.Errorf("%d %s, %v", w.Code, w.Body, f.limits.reset)
	}
	events := f.do("admin", http.MethodGet, at+"/events?limit=3", "")
	items, _ := events.json()["items"].([]any)
	if next, _ := events.json()["next"].(string); events.Code != 200 || len(items) != 3 || next == "" || strings.Contains(events.Body.String(), plain) {
		t.Errorf("%d %s", events.Code, events.Body)
	}
	if w := f.do("admin", http.MethodGet, at+"/events?after=x", ""); w.Code != 400 {
		t.Errorf("%d", w.Code)
	}
}

func TestUsers_ImportTellsOfEveryLine(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	body := `{"external_id":"1","phone":"+77000000001","password_hash":"$2b$x","roles":{"one":["reader"]}}` + "\n" + `{"phone":"x"}` + "\n" +
		`{"external_id":"2","username":"b","roles":{"one":["boss"]}}` + "\n"
	const path = "/v1/directories/one/users:import"
	w := f.do("admin", http.MethodPost, path, body)
	want := `{"lines":3,"created":1,"skipped":0,"failed":2,"reports":[{"line":2,"outcome":"failed","errors":[{"pointer":"/phone","detail":"` + user.ErrPhone.Error() +
		`"}]},{"line":3,"outcome":"failed","errors":[{"pointer":"/roles/one/0","detail":"there is no such role in the tenant"}]}]}`
	got := w.Body.String()
	if w.Code != 200 || strings.TrimSpace(got) != want {
		t.Errorf("%d %s\nwant %s", w.Code, got, want)
	}
	if again := f.do("admin", http.MethodPost, path, body).json(); again["created"] != 0. || again["skipped"] != 1. {
		t.Errorf("%v", again)
	}
	if w := f.do("admin", http.MethodPost, path, body, "Content-Type: application/json"); w.Code != 415 {
		t.Errorf("%d", w.Code)
	}
	if w := f.do("admin", http.MethodPost, path, ""); w.Code != 200 {
		t.Errorf("nothing: %d %s", w.Code, w.Body)
	}
}

func TestDocument_HasTheMembersOfANewPerson(t *testing.T) {
	t.Parallel()
	openapitest.Struct(t, "NewUser", reflect.TypeFor[creation]())
}
