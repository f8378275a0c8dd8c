package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/jose"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type fixture struct {
	echo   *echo.Echo
	signer *jose.Signer
}

const secretText = "a-very-secret-secret"

func newFixture(t *testing.T) *fixture {
	t.Helper()
	key, err := jose.Generate(jose.ES256)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner("", jose.ES256, key)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.Public().JWK()
	if err != nil {
		t.Fatal(err)
	}
	s := &catalog.Snapshot{Revision: 42, Issuer: "http://localhost:8080", RootTenant: "demo",
		Tenants: []catalog.TenantSpec{{ID: "demo", Name: "Demo <b>Bank</b>"}, {ID: "system", Name: "System"}},
		Clients: []catalog.ClientSpec{{Tenant: "demo", ID: "web", Name: catalog.Plain("Web"), Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic, GrantTypes: []string{"authorization_code"},
			Secrets: []catalog.SealedSecret{{ID: id.UUID{1}, Sealed: []byte(secretText)}}}},
		Keys: []catalog.KeySpec{{ID: signer.Public().ID, Alg: "ES256", State: catalog.KeyActive, Public: public}},
	}
	c, err := (&catalog.Compiler{Open: func(b []byte, _ string) ([]byte, error) { return b, nil }}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	holder := catalog.NewHolder()
	holder.Set(c)
	e := echo.New()
	e.HTTPErrorHandler = func(err error, c echo.Context) { httpserver.WriteProblem(c, err) }
	New(holder, clock.NewFake(now)).Mount(e.Group(""))
	return &fixture{e, signer}
}

// token makes an administrator's token with some claims changed; nil removes.
func (f *fixture) token(t *testing.T, typ string, change map[string]any) string {
	t.Helper()
	claims := map[string]any{"iss": "http://localhost:8080/t/system", "sub": "someone", "aud": "central", "client_id": "console", "tenant": "system",
		"roles": []string{"admin"}, "iat": now.Unix(), "exp": now.Unix() + 300, "jti": "j"}
	for k, v := range change {
		if v == nil {
			delete(claims, k)
		} else {
			claims[k] = v
		}
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := f.signer.Sign(typ, payload)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + token
}

func (f *fixture) get(path, authorization string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	w := httptest.NewRecorder()
	f.echo.ServeHTTP(w, r)
	return w
}

var paths = []string{"/", "/v1/me", "/v1/tenants", "/v1/tenants/demo/clients"}

func TestAPI_AnswersAnAdministratorAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, path := range paths {
		for _, aud := range []any{"central", []string{"other", "central"}} {
			w := f.get(path, f.token(t, "at+jwt", map[string]any{"aud": aud}))
			if w.Code != http.StatusOK {
				t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), secretText) || strings.Contains(w.Body.String(), "sealed") {
				t.Errorf("GET %s shows a secret: %s", path, w.Body)
			}
		}
	}
	if w := f.get("/v1/tenants/none/clients", f.token(t, "at+jwt", nil)); w.Code != http.StatusNotFound {
		t.Errorf("an unknown tenant: %d", w.Code)
	}
	if w := f.get("/v1/me", f.token(t, "at+jwt", nil)); strings.TrimSpace(w.Body.String()) != `{"sub":"someone","client_id":"console","tenant":"system","roles":["admin"]}` {
		t.Errorf("me: %s", w.Body)
	}
}

func TestAPI_RefusesEveryoneElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	stranger := newFixture(t)
	for name, c := range map[string]struct {
		authorization string
		status        int
	}{
		"nobody":                     {"", 401},
		"another scheme":             {"Basic YTpi", 401},
		"not a token":                {"Bearer x", 401},
		"an ID token":                {f.token(t, "JWT", nil), 401},
		"no type":                    {f.token(t, "", nil), 401},
		"another's signature":        {stranger.token(t, "at+jwt", nil), 401},
		"another audience":           {f.token(t, "at+jwt", map[string]any{"aud": "bank"}), 401},
		"no audience":                {f.token(t, "at+jwt", map[string]any{"aud": nil}), 401},
		"another tenant's issuer":    {f.token(t, "at+jwt", map[string]any{"iss": "http://localhost:8080"}), 401},
		"unknown issuer":             {f.token(t, "at+jwt", map[string]any{"iss": "http://localhost:8080/t/system/"}), 401},
		"another tenant":             {f.token(t, "at+jwt", map[string]any{"tenant": "demo"}), 401},
		"expired":                    {f.token(t, "at+jwt", map[string]any{"exp": now.Unix()}), 401},
		"no expiry":                  {f.token(t, "at+jwt", map[string]any{"exp": nil}), 401},
		"from the future":            {f.token(t, "at+jwt", map[string]any{"iat": now.Unix() + 60}), 401},
		"no subject":                 {f.token(t, "at+jwt", map[string]any{"sub": ""}), 401},
		"no roles":                   {f.token(t, "at+jwt", map[string]any{"roles": nil}), 403},
		"another role":               {f.token(t, "at+jwt", map[string]any{"roles": []string{"administrator", "Admin"}}), 403},
		"roles that are not a list":  {f.token(t, "at+jwt", map[string]any{"roles": "admin"}), 401},
		"a second Authorization was": {f.token(t, "at+jwt", nil) + ", Bearer x", 401},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, path := range paths {
				w := f.get(path, c.authorization)
				if w.Code != c.status || w.Header().Get("WWW-Authenticate") == "" || strings.Contains(w.Body.String(), "Demo") {
					t.Errorf("GET %s: %d %s", path, w.Code, w.Body)
				}
			}
		})
	}
}

func TestOverview_EscapesAndAllowsOnlyItsOwnStyle(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.get("/", f.token(t, "at+jwt", nil))
	body, policy := w.Body.String(), w.Header().Get("Content-Security-Policy")
	if !strings.Contains(body, "Demo &lt;b&gt;Bank") || !strings.Contains(body, "<strong>42</strong>") {
		t.Errorf("body: %s", body)
	}
	if !strings.Contains(body, "<style>"+style+"</style>") || !strings.Contains(policy, "default-src 'none'") || !strings.Contains(policy, styleHash) ||
		!strings.Contains(policy, "form-action 'self' http://localhost:8080;") {
		t.Errorf("policy %s", policy)
	}
}
