package validate

import (
	"bufio"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// corpus reads the lines of a file in testdata as fields.
func corpus(t *testing.T, name string, fields int, each func(t *testing.T, f []string)) {
	t.Helper()
	file, err := os.Open("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		line := scanner.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		var f []string
		for rest := line; len(f) < fields; {
			if len(f) == fields-1 {
				f = append(f, rest)
				break
			}
			i := strings.IndexByte(rest, ' ')
			if i < 0 {
				t.Fatalf("line %q", line)
			}
			f = append(f, rest[:i])
			rest = strings.TrimLeft(rest[i:], " ")
		}
		t.Run(line, func(t *testing.T) { each(t, f) })
	}
}

func TestRedirectURI_Corpus(t *testing.T) {
	t.Parallel()
	corpus(t, "redirect_uris.txt", 3, func(t *testing.T, f []string) {
		kind, verdict, uri := catalog.ClientKind(f[0]), f[1], f[2]
		for _, development := range []bool{false, true} {
			err := Rules{Development: development}.RedirectURI(uri, kind)
			if want := verdict == "ok" || verdict == "dev" && development; (err == nil) != want {
				t.Errorf("development %v: %v, want %s", development, err, verdict)
			}
		}
	})
	for _, uri := range []string{"", "https://a.example/\n", "https://a.example/\t", " https://a.example/", "https://a.example/\x00", "https://a.example/" + strings.Repeat("x", maxURI)} {
		if err := (Rules{Development: true}).RedirectURI(uri, catalog.KindWeb); err == nil {
			t.Errorf("%.40q is accepted", uri)
		}
	}
}

func TestPathTemplate_Corpus(t *testing.T) {
	t.Parallel()
	corpus(t, "paths.txt", 2, func(t *testing.T, f []string) {
		if err := PathTemplate(f[1]); (err == nil) != (f[0] == "ok") {
			t.Errorf("%v, want %s", err, f[0])
		}
	})
}

func TestID_IsAPathSegmentThatNothingEscapes(t *testing.T) {
	t.Parallel()
	for id, ok := range map[string]bool{"a": true, "demo-web": true, "0.a_b": true, strings.Repeat("a", 64): true,
		"": false, "A": false, "-a": false, ".": false, "..": false, "_a": false, "a/b": false, "a b": false, "ä": false, "a\x00": false, strings.Repeat("a", 65): false} {
		if err := ID(id); (err == nil) != ok {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestPhonePrefix_IsE164(t *testing.T) {
	t.Parallel()
	for prefix, ok := range map[string]bool{"+7": true, "+7701": true, "+1": true, "7": false, "+": false, "+0": false, "+7a": false, "": false, "+7 701": false, "+1234567890123456": false} {
		if err := PhonePrefix(prefix); (err == nil) != ok {
			t.Errorf("%q: %v", prefix, err)
		}
	}
}

func TestPageURL_StaysOnTheEdgeOrIsAnHTTPURL(t *testing.T) {
	t.Parallel()
	for u, ok := range map[string]bool{"/": true, "/resources/bank-app/": true, "/a?b=c": true, "https://www.example.com/": true,
		"": false, "//evil.example/": false, "/\\evil.example/": false, "javascript:alert(1)": false, "http://www.example.com/": false, "/a/../b": false, "/\t/evil.example": false, "https://u@www.example.com/": false} {
		if err := (Rules{}).PageURL(u); (err == nil) != ok {
			t.Errorf("%q: %v", u, err)
		}
	}
}

func TestOrigin_IsWhatBrowsersSend(t *testing.T) {
	t.Parallel()
	for o, ok := range map[string]bool{"https://app.example.com": true, "https://app.example.com:8443": true, "http://127.0.0.1:3000": true,
		"*": false, "null": false, "https://app.example.com/": false, "https://APP.example.com": false, "https://app.example.com:443": false, "http://app.example.com": false, "https://*.example.com": false, "https://app.example.com?x": false, "chrome-extension://x": false} {
		if err := (Rules{}).Origin(o); (err == nil) != ok {
			t.Errorf("%q: %v", o, err)
		}
	}
}

func yes() *bool { v := true; return &v }
func no() *bool  { v := false; return &v }

// base is a configuration without a fault.
func base() *catalog.Snapshot {
	return &catalog.Snapshot{
		Edges:   []catalog.EdgeSpec{{ID: "local", JWKS: json.RawMessage(edgeKeys)}},
		Tenants: []catalog.TenantSpec{{ID: "demo", Profile: catalog.ProfileStandard, Edge: "local"}, {ID: "bank", Profile: catalog.ProfileStandard}},
		Scopes:  []catalog.ScopeSpec{{Tenant: "demo", ID: "openid"}, {Tenant: "demo", ID: "offline_access"}, {Tenant: "bank", ID: "openid"}},
		Resources: []catalog.ResourceSpec{{Tenant: "demo", ID: "api", Upstream: catalog.UpstreamSpec{URL: "http://127.0.0.1:8100/base"},
			Endpoints: []catalog.EndpointSpec{{ID: "list", Method: "GET", Path: "/things"}, {ID: "one", Method: "GET", Path: "/things/{id}"}}}},
		Permissions: []catalog.PermissionSpec{{Tenant: "demo", ID: "read", Endpoints: []string{"api:list", "api:one"}}},
		Roles:       []catalog.RoleSpec{{Tenant: "demo", ID: "reader", Permissions: []string{"read"}}},
		Clients: []catalog.ClientSpec{
			{Tenant: "demo", ID: "web", Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic, GrantTypes: []string{"authorization_code", "refresh_token"},
				RedirectURIs: []string{"https://e.example/complete"}, PostLogoutRedirectURIs: []string{"https://e.example/bye"}, Scopes: []string{"openid"}, Secrets: make([]catalog.SealedSecret, 1)},
			{Tenant: "demo", ID: "service", Kind: catalog.KindService, AuthMethod: catalog.AuthPost, GrantTypes: []string{"client_credentials"}, Permissions: []string{"read"}, Secrets: make([]catalog.SealedSecret, 1)},
			{Tenant: "demo", ID: "native", Kind: catalog.KindNative, AuthMethod: catalog.AuthNone, GrantTypes: []string{"authorization_code"}, RedirectURIs: []string{"http://127.0.0.1/cb"}},
			{Tenant: "bank", ID: "web", Kind: catalog.KindWeb, AuthMethod: catalog.AuthBasic, GrantTypes: []string{"authorization_code"}, RedirectURIs: []string{"https://b.example/cb"}, Secrets: make([]catalog.SealedSecret, 1)},
		},
		Presets: []catalog.PresetSpec{{Tenant: "demo", ID: "login", Edge: "local", Client: "web", RedirectURI: "https://e.example/complete", Scopes: []string{"openid"},
			AfterLogin: "/", AfterLogout: "https://e.example/bye"}},
	}
}

const edgeKeys = `{"keys":[
{"kty":"EC","crv":"P-256","use":"sig","kid":"s","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"},
{"kty":"EC","crv":"P-256","use":"enc","kid":"e","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`

func TestSnapshot_TheBaseOfTheseTestsHasNoFault(t *testing.T) {
	t.Parallel()
	if found := (Rules{}).Snapshot(base()); len(found) > 0 {
		t.Errorf("%v", found)
	}
}

func TestSnapshot_NamesTheFieldOfEachFault(t *testing.T) {
	t.Parallel()
	minute := catalog.Duration(time.Minute)
	for name, c := range map[string]struct {
		change func(*catalog.Snapshot)
		want   string // beginning of the one problem
	}{
		"id":                     {func(s *catalog.Snapshot) { s.Roles[0].ID = "Reader" }, "role demo/Reader: id: "},
		"unknown tenant":         {func(s *catalog.Snapshot) { s.Roles[0].Tenant = "none"; s.Roles[0].Permissions = nil }, "role none/reader: tenant: there is no tenant"},
		"no tenant":              {func(s *catalog.Snapshot) { s.Roles[0].Tenant = ""; s.Roles[0].Permissions = nil }, "role reader: tenant: is missing"},
		"another tenant's":       {func(s *catalog.Snapshot) { s.Roles[0].Tenant = "bank" }, "role bank/reader: permissions[0]: there is no permission"},
		"unknown profile":        {func(s *catalog.Snapshot) { s.Tenants[0].Profile = "lax" }, "tenant demo: security_profile: "},
		"unknown edge":           {func(s *catalog.Snapshot) { s.Tenants[1].Edge = "far" }, "tenant bank: edge: there is no edge"},
		"code too long":          {func(s *catalog.Snapshot) { s.Tenants[0].Settings.CodeTTL = 2 * minute }, "tenant demo: settings.code_ttl: "},
		"negative lifetime":      {func(s *catalog.Snapshot) { s.Tenants[0].Settings.SessionIdle = -minute }, "tenant demo: settings.session_idle_ttl: "},
		"phone prefix":           {func(s *catalog.Snapshot) { s.Tenants[0].Settings.PhonePrefixes = []string{"+7", "8"} }, "tenant demo: settings.phone_prefixes[1]: "},
		"listed twice":           {func(s *catalog.Snapshot) { s.Tenants[0].Settings.PhonePrefixes = []string{"+7", "+7"} }, "tenant demo: settings.phone_prefixes[1]: "},
		"reserved claim":         {func(s *catalog.Snapshot) { s.Scopes[0].Claims = []string{"sub"} }, "scope demo/openid: claims[0]: "},
		"scope with a space":     {func(s *catalog.Snapshot) { s.Scopes[1].ID = "a b" }, "scope demo/a b: id: "},
		"upstream is a file":     {func(s *catalog.Snapshot) { s.Resources[0].Upstream.URL = "file:///etc" }, "resource demo/api: upstream.url: "},
		"upstream with password": {func(s *catalog.Snapshot) { s.Resources[0].Upstream.URL = "http://u:p@h/" }, "resource demo/api: upstream.url: "},
		"same shape":             {func(s *catalog.Snapshot) { s.Resources[0].Endpoints[0].Path = "/things/{other}" }, "resource demo/api: endpoints[1].path: "},
		"same endpoint id":       {func(s *catalog.Snapshot) { s.Resources[0].Endpoints[1].ID = "list"; s.Permissions[0].Endpoints = nil }, "resource demo/api: endpoints[1].id: "},
		"unknown method":         {func(s *catalog.Snapshot) { s.Resources[0].Endpoints[0].Method = "get" }, "resource demo/api: endpoints[0].method: "},
		"dangling endpoint":      {func(s *catalog.Snapshot) { s.Permissions[0].Endpoints[1] = "api:none" }, "permission demo/read: endpoints[1]: "},
		"endpoint form":          {func(s *catalog.Snapshot) { s.Permissions[0].Endpoints[1] = "api" }, "permission demo/read: endpoints[1]: "},
		"unknown grant":          {func(s *catalog.Snapshot) { s.Clients[0].GrantTypes[1] = "password" }, "client demo/web: grant_types[1]: "},
		"no grant":               {func(s *catalog.Snapshot) { s.Clients[1].GrantTypes = nil; s.Clients[1].Permissions = nil }, "client demo/service: grant_types: is missing"},
		"code without redirect":  {func(s *catalog.Snapshot) { s.Clients[2].RedirectURIs = nil }, "client demo/native: redirect_uris: "},
		"refresh without code": {func(s *catalog.Snapshot) {
			s.Clients[1].Kind = catalog.KindWeb
			s.Clients[1].GrantTypes = []string{"client_credentials", "refresh_token"}
		}, "client demo/service: grant_types: "},
		"service with code": {func(s *catalog.Snapshot) {
			s.Clients[1].GrantTypes = []string{"client_credentials", "authorization_code"}
			s.Clients[1].RedirectURIs = []string{"https://a.example/"}
		}, "client demo/service: grant_types: a service"},
		"public with secret":   {func(s *catalog.Snapshot) { s.Clients[2].Secrets = make([]catalog.SealedSecret, 1) }, "client demo/native: secret: "},
		"confidential without": {func(s *catalog.Snapshot) { s.Clients[0].Secrets = nil }, "client demo/web: secret: is missing"},
		"public web client":    {func(s *catalog.Snapshot) { s.Clients[0].AuthMethod = catalog.AuthNone; s.Clients[0].Secrets = nil }, "client demo/web: auth_method: "},
		"native with secret": {func(s *catalog.Snapshot) {
			s.Clients[2].AuthMethod = catalog.AuthBasic
			s.Clients[2].Secrets = make([]catalog.SealedSecret, 1)
		}, "client demo/native: auth_method: "},
		"public credentials": {func(s *catalog.Snapshot) {
			s.Clients[2].GrantTypes = append(s.Clients[2].GrantTypes, "client_credentials")
		}, "client demo/native: grant_types: "},
		"public without PKCE":      {func(s *catalog.Snapshot) { s.Clients[2].RequirePKCE = no() }, "client demo/native: require_pkce: "},
		"fapi2":                    {func(s *catalog.Snapshot) { s.Tenants[1].Profile = catalog.ProfileFAPI2 }, "tenant bank: security_profile: is not supported"},
		"alg none":                 {func(s *catalog.Snapshot) { s.Clients[0].AccessTokenAlg = "none" }, "client demo/web: access_token_alg: "},
		"alg HS256":                {func(s *catalog.Snapshot) { s.Clients[0].IDTokenAlg = "HS256" }, "client demo/web: id_token_alg: "},
		"unknown scope":            {func(s *catalog.Snapshot) { s.Clients[0].Scopes = append(s.Clients[0].Scopes, "email") }, "client demo/web: scopes[1]: "},
		"offline without refresh":  {func(s *catalog.Snapshot) { s.Clients[2].Scopes = []string{"offline_access"} }, "client demo/native: scopes: "},
		"people's permissions":     {func(s *catalog.Snapshot) { s.Clients[0].Permissions = []string{"read"} }, "client demo/web: permissions: "},
		"redirect":                 {func(s *catalog.Snapshot) { s.Clients[2].RedirectURIs[0] = "javascript:x" }, "client demo/native: redirect_uris[0]: "},
		"http logout":              {func(s *catalog.Snapshot) { s.Clients[0].BackchannelLogoutURI = "http://e.example/" }, "client demo/web: backchannel_logout_uri: "},
		"login factor":             {func(s *catalog.Snapshot) { s.Clients[0].Login.Factors = []string{"magic"} }, "client demo/web: login.factors[0]: "},
		"foreign redirect":         {func(s *catalog.Snapshot) { s.Presets[0].RedirectURI = "https://e.example/other" }, "preset demo/login: redirect_uri: "},
		"preset of unknown client": {func(s *catalog.Snapshot) { s.Presets[0].Client = "none" }, "preset demo/login: client: "},
		"preset scope":             {func(s *catalog.Snapshot) { s.Presets[0].Scopes = append(s.Presets[0].Scopes, "offline_access") }, "preset demo/login: scopes[1]: "},
		"preset without openid":    {func(s *catalog.Snapshot) { s.Presets[0].Scopes = nil }, "preset demo/login: scopes: openid"},
		"preset on a foreign edge": {func(s *catalog.Snapshot) { s.Tenants[0].Edge = "" }, "preset demo/login: edge: "},
		"preset after logout":      {func(s *catalog.Snapshot) { s.Presets[0].AfterLogout = "https://e.example/else" }, "preset demo/login: after_logout: "},
		"open redirect":            {func(s *catalog.Snapshot) { s.Presets[0].AfterLogin = "//evil.example" }, "preset demo/login: after_login: "},
		"cookie name":              {func(s *catalog.Snapshot) { s.Presets[0].CookieName = "__Host-x" }, "preset demo/login: cookie_name: "},
		"edge without keys":        {func(s *catalog.Snapshot) { s.Edges[0].JWKS = json.RawMessage(`{"keys":[]}`) }, "edge local: jwks: "},
		"edge without enc": {func(s *catalog.Snapshot) {
			s.Edges[0].JWKS = json.RawMessage(strings.Replace(edgeKeys, `"enc"`, `"sig"`, 1))
		}, "edge local: jwks: has no encryption key"},
		"edge with private key": {func(s *catalog.Snapshot) {
			s.Edges[0].JWKS = json.RawMessage(strings.Replace(edgeKeys, `"kid":"e"`, `"kid":"e","d":"870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE"`, 1))
		}, "edge local: jwks: key 2 is private"},
		"edge with shared key": {func(s *catalog.Snapshot) { s.Edges[0].JWKS = json.RawMessage(`{"keys":[{"kty":"oct","k":"AAAA"}]}`) }, "edge local: jwks: key 1 is private"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := base()
			c.change(s)
			found := (Rules{}).Snapshot(s)
			if len(found) != 1 || !strings.HasPrefix(found[0].String(), c.want) {
				t.Errorf("got %v\nwant one that begins %q", found, c.want)
			}
		})
	}
}

func TestSnapshot_HoldsClientsToTheProfileOfTheirTenant(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*catalog.ClientSpec){
		"require_pkce": func(s *catalog.ClientSpec) { s.RequirePKCE = no() },
		"id_token_alg": func(s *catalog.ClientSpec) { s.IDTokenAlg = "RS256" },
	} {
		s := base()
		change(&s.Clients[3])
		if found := (Rules{everything: true}).Snapshot(s); len(found) != 0 {
			t.Errorf("%s, standard: %v", field, found)
		}
		s.Tenants[1].Profile = catalog.ProfileFAPI2
		if found := (Rules{everything: true}).Snapshot(s); len(found) != 1 || found[0].Field != field {
			t.Errorf("%s, fapi2: %v", field, found)
		}
	}
}

func TestSnapshot_PresetsOfOneEdgeHaveNamesOfTheirOwn(t *testing.T) {
	t.Parallel()
	s := base()
	s.Tenants[1].Edge = "local"
	s.Clients[3].RedirectURIs = []string{"https://e.example/complete"}
	s.Clients[3].Scopes = []string{"openid"}
	s.Presets = append(s.Presets, catalog.PresetSpec{Tenant: "bank", ID: "login", Edge: "local", Client: "web",
		RedirectURI: "https://e.example/complete", Scopes: []string{"openid"}, AfterLogin: "/", AfterLogout: "/"})
	s.Clients[0].RequirePKCE = yes()
	if found := (Rules{}).Snapshot(s); len(found) != 1 || found[0].Field != "id" {
		t.Errorf("%v", found)
	}
}
