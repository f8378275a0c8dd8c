package catalog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/jose"
)

func TestRedirect_Corpus(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/redirects.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	n := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		f := strings.Fields(lines.Text())
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		n++
		c := &Client{ClientSpec: ClientSpec{RedirectURIs: []string{"https://else.example/", f[0]}}}
		if got := c.Redirect(f[1]); got != (f[2] == "ok") {
			t.Errorf("%s: %v", lines.Text(), got)
		}
	}
	if n == 0 {
		t.Error("the corpus is empty")
	}
	if (&Client{}).Redirect("") {
		t.Error("an empty URI is registered")
	}
}

func FuzzRedirect_OnlyThePortMayDiffer(f *testing.F) {
	f.Add("http://127.0.0.1:1/cb")
	f.Add("http://[::1]:65535/cb")
	f.Fuzz(func(t *testing.T, uri string) {
		if !matchesRedirect([]string{"http://127.0.0.1/cb"}, uri) {
			return
		}
		rest, ok := strings.CutPrefix(uri, "http://127.0.0.1")
		port, ok2 := strings.CutSuffix(rest, "/cb")
		if !ok || !ok2 || strings.Trim(port, ":0123456789") != "" {
			t.Errorf("%q", uri)
		}
	})
}

func snapshot() *Snapshot {
	s := &Snapshot{Revision: 3, Issuer: "https://id.example.com", RootTenant: "a"}
	for _, tenant := range []string{"a", "b"} {
		s.Tenants = append(s.Tenants, TenantSpec{ID: tenant, Profile: ProfileStandard})
		s.Resources = append(s.Resources, ResourceSpec{Tenant: tenant, ID: "api", Upstream: UpstreamSpec{URL: "http://" + tenant},
			Endpoints: []EndpointSpec{{ID: "read", Method: "GET", Path: "/"}, {ID: "write", Method: "POST", Path: "/"}}})
		s.Permissions = append(s.Permissions, PermissionSpec{Tenant: tenant, ID: "p", Endpoints: []string{"api:read"}})
		s.Roles = append(s.Roles, RoleSpec{Tenant: tenant, ID: "r", Permissions: []string{"p"}})
		s.Clients = append(s.Clients, ClientSpec{Tenant: tenant, ID: "web", Name: Plain("of " + tenant)})
	}
	s.Permissions[1].Endpoints = []string{"api:read", "api:write"}
	return s
}

func TestCompile_TenantsWithEqualIDsStayApart(t *testing.T) {
	t.Parallel()
	c, err := (&Compiler{}).Compile(snapshot())
	if err != nil {
		t.Fatal(err)
	}
	a, _ := c.Tenant("a")
	b, _ := c.Tenant("b")
	if a.Issuer != "https://id.example.com" || b.Issuer != "https://id.example.com/t/b" || a.PathPrefix != "" || b.PathPrefix != "/t/b" {
		t.Errorf("issuers %s %s", a.Issuer, b.Issuer)
	}
	if found, ok := c.TenantByIssuer(b.Issuer); !ok || found != b {
		t.Error("tenant by issuer")
	}
	if _, ok := c.TenantByIssuer(b.Issuer + "/"); ok {
		t.Error("issuers are compared byte for byte")
	}
	if a.RolesAllow([]string{"r"}, "api", "write") || !b.RolesAllow([]string{"r"}, "api", "write") || !a.RolesAllow([]string{"none", "r"}, "api", "read") {
		t.Error("roles of one tenant count in the other")
	}
	if a.RolesAllow(nil, "api", "read") || a.RolesAllow([]string{"p"}, "api", "read") || !a.PermissionsAllow([]string{"p"}, "api", "read") {
		t.Error("roles and permissions are not the same")
	}
	for _, tenant := range []*Tenant{a, b} {
		if cl, ok := tenant.Client("web"); !ok || cl.Name.Default() != "of "+tenant.ID || cl.Owner != tenant {
			t.Errorf("client of %s", tenant.ID)
		}
	}
	if got := c.ResourcesNamed("api"); len(got) != 2 || got[0].Owner != a || got[1].Owner != b || got[0].Audience != "api" {
		t.Errorf("resources named api: %v", got)
	}
}

func TestCompile_ReportsEveryDanglingReference(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Roles[0].Permissions = []string{"gone"}
	s.Permissions[0].Endpoints = []string{"api:gone"}
	s.Clients[0].Tenant = "gone"
	s.Presets = []PresetSpec{{Tenant: "a", ID: "login", Client: "gone"}}
	s.Scopes = []ScopeSpec{{Tenant: "gone", ID: "openid"}}
	s.Edges = []EdgeSpec{{ID: "e", JWKS: json.RawMessage(`{`)}}
	s.Keys = []KeySpec{{ID: "k", Alg: "ES256", State: KeyActive, Public: json.RawMessage(`{}`)}}
	_, err := (&Compiler{}).Compile(s)
	if err == nil {
		t.Fatal("it compiled")
	}
	for _, want := range []string{
		`role a/r: no permission "gone"`, `permission a/p: no endpoint "api:gone"`, "client gone/web: no such tenant",
		`preset a/login: no client "gone"`, "scope gone/openid: no such tenant", "edge e: jwks", "signing key k: public key",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in\n%v", want, err)
		}
	}
}

func TestCompile_ASecretThatDoesNotOpenIsAnErrorButNotForAnEdge(t *testing.T) {
	t.Parallel()
	s := snapshot()
	s.Clients[0].Secrets = []SealedSecret{{ID: id.UUID{1}, Sealed: []byte("bad")}, {ID: id.UUID{2}, Sealed: []byte("good")}}
	contexts := []string{}
	open := func(sealed []byte, context string) ([]byte, error) {
		contexts = append(contexts, context)
		if string(sealed) == "bad" {
			return nil, errors.New("no key")
		}
		return sealed, nil
	}
	if _, err := (&Compiler{Open: open}).Compile(s); err == nil || !strings.Contains(err.Error(), "client a/web") {
		t.Errorf("central: %v", err)
	}
	c, err := (&Compiler{Open: open, SecretsOptional: true}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	a, _ := c.Tenant("a")
	cl, _ := a.Client("web")
	if len(cl.Secrets) != 1 || cl.Secrets[0].Reveal() != "good" {
		t.Errorf("edge: %d secrets", len(cl.Secrets))
	}
	if contexts[0] != "client_secret/a/web/01000000-0000-0000-0000-000000000000" {
		t.Errorf("context %q", contexts[0])
	}
	if text := fmt.Sprintf("%v %+v %#v", cl.Secrets, cl, cl.Secrets); strings.Contains(text, "good") {
		t.Errorf("a secret prints itself: %s", text)
	}
}

func TestCompile_OneActiveKeySignsAndAllArePublished(t *testing.T) {
	t.Parallel()
	s := snapshot()
	for _, state := range []string{KeyRetiring, KeyActive, KeyNext} {
		key, err := jose.Generate(jose.ES256)
		if err != nil {
			t.Fatal(err)
		}
		der, err := jose.MarshalPrivate(key)
		if err != nil {
			t.Fatal(err)
		}
		p, err := jose.NewPublicKey("", jose.ES256, key.Public())
		if err != nil {
			t.Fatal(err)
		}
		raw, err := p.JWK()
		if err != nil {
			t.Fatal(err)
		}
		s.Keys = append(s.Keys, KeySpec{ID: p.ID, Alg: "ES256", State: state, Public: raw, Sealed: der})
	}
	compiler := &Compiler{Open: func(sealed []byte, _ string) ([]byte, error) { return sealed, nil }}
	c, err := compiler.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := c.Signer(jose.ES256)
	if !ok || signer.Public().ID != s.Keys[1].ID || len(c.Keys().Keys()) != 3 {
		t.Errorf("signer %v, %d keys", ok, len(c.Keys().Keys()))
	}
	again, err := compiler.Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if s2, _ := again.Signer(jose.ES256); s2 != signer {
		t.Error("the signer was parsed again")
	}
	for i := range s.Keys {
		s.Keys[i].Sealed = nil // as an edge gets them
	}
	edge, err := (&Compiler{}).Compile(s)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := edge.Signer(jose.ES256); ok || len(edge.Keys().Keys()) != 3 {
		t.Error("an edge signs")
	}
}

func TestTenant_LifetimesHaveDefaultsAndAProfilesFloor(t *testing.T) {
	t.Parallel()
	standard := &Tenant{TenantSpec: TenantSpec{Profile: ProfileStandard, Settings: TenantSettings{CodeTTL: Duration(30 * time.Second)}}}
	fapi := &Tenant{TenantSpec: TenantSpec{Profile: ProfileFAPI2, Settings: TenantSettings{RefreshGrace: Duration(time.Second)}}}
	if standard.CodeTTL() != 30*time.Second || fapi.CodeTTL() != time.Minute || standard.RefreshGrace() != 10*time.Second || fapi.RefreshGrace() != time.Minute {
		t.Error("code and grace")
	}
	web := &Client{ClientSpec: ClientSpec{ID: "web", AuthMethod: AuthBasic}, Owner: standard}
	if !web.PKCERequired() || web.TokenAlg() != jose.ES256 || web.IDAlg() != jose.RS256 || web.TokenAudience()[0] != "web" || web.TokenTTL() != 5*time.Minute {
		t.Error("defaults of a client")
	}
	off := false
	web.RequirePKCE = &off
	public := &Client{ClientSpec: ClientSpec{AuthMethod: AuthNone, RequirePKCE: &off}, Owner: standard}
	strict := &Client{ClientSpec: ClientSpec{AuthMethod: AuthBasic, RequirePKCE: &off}, Owner: fapi}
	if web.PKCERequired() || !public.PKCERequired() || !strict.PKCERequired() || strict.IDAlg() != jose.ES256 {
		t.Error("PKCE can be turned off for confidential clients of the standard profile alone")
	}
}

func TestHolder_NoChangeIsMissed(t *testing.T) {
	t.Parallel()
	h, c := NewHolder(), clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	if h.Current() != nil || h.Age(c) >= 0 {
		t.Error("an empty holder has something")
	}
	const last = 100
	go func() {
		for i := range last {
			h.Set(&Catalog{Revision: int64(i + 1)})
		}
	}()
	for {
		changed := h.Changed()
		if current := h.Current(); current != nil && current.Revision == last {
			break
		}
		<-changed
	}
	h.Synced(c.Now())
	c.Advance(time.Minute)
	if h.Age(c) != time.Minute {
		t.Errorf("age %s", h.Age(c))
	}
}
