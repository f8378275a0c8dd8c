package app_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"versola/modules/app"
	"versola/modules/app/apptest"
	"versola/modules/central/catalog"
	"versola/modules/central/validate"
)

// What registration accepts, run time honours: each exercise registers settings
// through the administration API of a running system and shows them at work.

// exercise shows settings at work; each is named as in a document, after its
// kind: "client.redirect_uris".
type exercise struct {
	settings []string
	run      func(t *testing.T, h *house)
}

// exercises by what they are about.
func exercises() map[string]exercise {
	all := map[string]exercise{}
	for _, area := range []map[string]exercise{
		clientExercises(),
		senderExercises(),
		requestExercises(),
		lifetimeExercises(),
		assertionExercises(),
		wordExercises(),
		webhookExercises(),
		tenantExercises(),
		rightExercises(),
		resourceExercises(),
		limitExercises(),
	} {
		maps.Copy(all, area)
	}
	return all
}

// exercised are the kinds whose settings all have an exercise or are refused.
func exercised() []string {
	return []string{
		catalog.KindNameClient,
		catalog.KindNameTexts, catalog.KindNameTemplate, catalog.KindNameTheme, catalog.KindNameWebhook, catalog.KindNameResource,
		catalog.KindNameTenant, catalog.KindNameDirectory, catalog.KindNameScope, catalog.KindNameClaim, catalog.KindNameDetailType,
		catalog.KindNamePermission, catalog.KindNameRole, catalog.KindNamePreset, catalog.KindNameEdge,
	}
}

// house is a running system, its first administrator and a relying party's
// callback.
type house struct {
	*apptest.System
	admin    *apptest.Browser
	callback string
}

func newHouse(t *testing.T) *house {
	t.Helper()
	s := apptest.Start(t, func(c *app.Config) { c.Log.Level = "info" }) // messages are in the log
	there := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(there.Close)
	return &house{System: s, admin: signInAdmin(t, s), callback: there.URL + "/callback"}
}

type document map[string]any

// with returns a copy that has the changes.
func (d document) with(changes document) document {
	out := document{}
	for _, from := range []document{d, changes} {
		for k, v := range from {
			out[k] = v
		}
	}
	return out
}

func (h *house) send(t *testing.T, method, path string, d document) *apptest.Page {
	t.Helper()
	return administer(t, h.System, h.admin, method, path, "application/json", encode(t, d))
}

func encode(t *testing.T, d document) string {
	t.Helper()
	body, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// client registers a client of the demo tenant and returns its secret, if it
// has one.
func (h *house) client(t *testing.T, d document) (secret string) {
	t.Helper()
	page := h.send(t, http.MethodPost, "/v1/tenants/demo/clients", d)
	if page.Status != http.StatusCreated {
		t.Fatalf("register %v: %d %s", d["id"], page.Status, page.Body)
	}
	var made struct {
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(page.Body), &made); err != nil {
		t.Fatal(err)
	}
	if d["disabled"] != true {
		apptest.Eventually(t, time.Second, "the change to be live", func() bool {
			p := h.authorize(t, apptest.NewBrowser(t), d["id"].(string), nil) //nolint:errcheck,forcetypeassert // a test
			return !strings.Contains(p.Body, "names no client")
		})
	}
	return made.Secret
}

// refuses checks that a client is refused for the field that a JSON pointer
// names.
func (h *house) refuses(t *testing.T, d document, pointer string) {
	t.Helper()
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/clients", d, pointer)
}

// refusesAt checks that a document is refused for the field that a JSON
// pointer names.
func (h *house) refusesAt(t *testing.T, method, path string, d document, pointer string) {
	t.Helper()
	page := h.send(t, method, path, d)
	var problem struct {
		Errors []struct{ Pointer, Detail string }
	}
	if err := json.Unmarshal([]byte(page.Body), &problem); err != nil {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	for _, e := range problem.Errors {
		if strings.HasPrefix(e.Pointer, pointer) && page.Status == http.StatusUnprocessableEntity {
			return
		}
	}
	t.Errorf("%s %v: want 422 that names %s, got %d %s", path, d, pointer, page.Status, page.Body)
}

// token posts to the token endpoint; a secret goes into the header.
func (h *house) token(t *testing.T, id, secret string, form url.Values) (int, map[string]any) {
	t.Helper()
	if secret == "" {
		form.Set("client_id", id)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Issuer+"/token", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if secret != "" {
		r.SetBasicAuth(id, secret)
	}
	page := apptest.NewBrowser(t).Do(r)
	answer := map[string]any{}
	if err := json.Unmarshal([]byte(page.Body), &answer); err != nil {
		t.Fatalf("%d %s", page.Status, page.Body)
	}
	return page.Status, answer
}

// challenge and verifier are the example of RFC 7636 appendix B.
const (
	verifier  = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
	challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
)

// authorize opens an authorization request of a client, with changes to the
// usual parameters; an empty one is left out.
func (h *house) authorize(t *testing.T, b *apptest.Browser, id string, changes map[string]string) *apptest.Page {
	t.Helper()
	return b.Open(h.Issuer + "/authorize?" + h.request(id, changes).Encode())
}

// request returns the usual parameters of a client's request, with changes.
func (h *house) request(id string, changes map[string]string) url.Values {
	q := url.Values{"client_id": {id}, "response_type": {"code"}, "redirect_uri": {h.callback}, "scope": {"openid"}, "state": {"s"},
		"code_challenge": {challenge}, "code_challenge_method": {"S256"}}
	for k, v := range changes {
		if q.Set(k, v); v == "" {
			q.Del(k)
		}
	}
	return q
}

// answer returns what came back to the client.
func answer(t *testing.T, h *house, page *apptest.Page) url.Values {
	t.Helper()
	if !strings.HasPrefix(page.URL.String(), h.callback) {
		t.Fatalf("not back at the client: %d at %s\n%s", page.Status, page.URL, page.Body)
	}
	return page.URL.Query()
}

// signIn signs alice in for a client and returns the token response.
func (h *house) signIn(t *testing.T, b *apptest.Browser, id, secret string, changes map[string]string) map[string]any {
	t.Helper()
	page := h.authorize(t, b, id, changes)
	if page.URL.Path != "/callback" {
		b.Submit(map[string]string{"identifier": "alice@example.com"})
		page = b.Submit(map[string]string{"password": "wonderland-demo-1"})
	}
	code := answer(t, h, page).Get("code")
	status, tokens := h.token(t, id, secret, url.Values{"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {h.callback}, "code_verifier": {verifier}})
	if status != http.StatusOK {
		t.Fatalf("exchange: %d %v", status, tokens)
	}
	return tokens
}

func TestSettings_WhatRegistrationAcceptsRunTimeHonours(t *testing.T) {
	h := newHouse(t)
	for name, e := range exercises() {
		t.Run(name, func(t *testing.T) { e.run(t, h) })
	}
}

func TestSettings_EachIsExercisedOrRefused(t *testing.T) {
	done := map[string]bool{}
	for _, e := range exercises() {
		for _, s := range e.settings {
			done[s] = true
		}
	}
	for _, name := range exercised() {
		kind, _ := catalog.KindOf(name)
		known := settings(reflect.TypeOf(kind.New()).Elem(), "")
		for _, s := range known {
			if !done[name+"."+s] && !refused(kind, s) {
				t.Errorf("%s.%s is accepted, and no exercise shows it at work", name, s)
			}
		}
		for s := range done {
			if rest, of := strings.CutPrefix(s, name+"."); of && !slices.Contains(known, rest) {
				t.Errorf("an exercise names %s, which is no setting", s)
			}
		}
	}
}

// settings lists the settings that a document of a type may have.
func settings(of reflect.Type, prefix string) (out []string) {
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		for inner.Kind() == reflect.Pointer || inner.Kind() == reflect.Slice && inner.Elem().Kind() == reflect.Struct {
			inner = inner.Elem()
		}
		switch {
		case f.Tag.Get("yaml") == "-" || prefix == "" && (name == "tenant" || name == "id"):
		case inner.Kind() == reflect.Struct && inner.NumField() > 0 && inner.Field(0).Tag.Get("json") != "":
			out = append(out, settings(inner, prefix+name+".")...)
		default:
			out = append(out, prefix+name)
		}
	}
	return out
}

var index = regexp.MustCompile(`\[\d+\]`)

// refused tells whether registration refuses a setting as not supported.
func refused(kind *catalog.Kind, setting string) bool {
	return slices.ContainsFunc([]string{"x", "opaque", "pairwise", "always"}, func(value string) bool {
		e := kind.New()
		fill(reflect.ValueOf(e).Elem(), strings.Split(setting, "."), value)
		s := &catalog.Snapshot{}
		kind.Put(s, e)
		return slices.ContainsFunc(validate.Rules{}.Snapshot(s), func(p validate.Problem) bool {
			field := index.ReplaceAllString(p.Field, "")
			return strings.Contains(p.Message, "not supported") && (field == "" || field == setting || strings.HasPrefix(setting, field+"."))
		})
	})
}

// fill gives the setting at a path a value, that of texts.
func fill(v reflect.Value, path []string, text string) {
	switch v.Kind() { //nolint:exhaustive // what declarations are made of
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), path, text)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), path, text)
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
	case reflect.String:
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int64, reflect.Int:
		v.SetInt(1)
	case reflect.Uint8:
		v.SetUint('0')
	case reflect.Struct:
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if len(path) > 0 && name == path[0] {
				fill(v.Field(i), path[1:], text)
			}
		}
	}
}
