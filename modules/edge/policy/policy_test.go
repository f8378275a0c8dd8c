package policy

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"versola/modules/central/catalog"
)

func TestCanonical_OneSpelling(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Target{
		"/":               {Escaped: "/"},
		"/a":              {Escaped: "/a", Segments: []string{"a"}},
		"/a/":             {Escaped: "/a/", Segments: []string{"a", ""}},
		"/a/b?c=/../d":    {Escaped: "/a/b", Segments: []string{"a", "b"}, Query: "c=/../d", HasQuery: true},
		"/a?":             {Escaped: "/a", Segments: []string{"a"}, HasQuery: true},
		"/%61/%7e%41":     {Escaped: "/a/~A", Segments: []string{"a", "~A"}},
		"/a%c3%a9/b":      {Escaped: "/a%C3%A9/b", Segments: []string{"aé", "b"}},
		"/x/{y}/[z]|":     {Escaped: "/x/%7By%7D/%5Bz%5D%7C", Segments: []string{"x", "{y}", "[z]|"}},
		"/a%20b/c%25":     {Escaped: "/a%20b/c%25", Segments: []string{"a b", "c%"}},
		"/.../.a/a..b/b.": {Escaped: "/.../.a/a..b/b.", Segments: []string{"...", ".a", "a..b", "b."}},
	} {
		got, reason := Canonical(in)
		if reason != Allowed {
			t.Errorf("%q is refused: %s", in, reason)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

func TestCanonical_RefusesWhatCanBeReadInTwoWays(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Reason{
		"": TargetForm, "*": TargetForm, "a": TargetForm, "http://x/y": TargetForm, "?": TargetForm,
		"/a//b": TargetSegment, "//": TargetSegment, "//a": TargetSegment, "/a//": TargetSegment,
		"/.": TargetSegment, "/..": TargetSegment, "/a/./b": TargetSegment, "/a/../b": TargetSegment, "/%2e": TargetSegment,
		"/%2E%2e": TargetSegment, "/.%2e/x": TargetSegment, "/x/%2e": TargetSegment,
		"/a\\b": TargetCharacter, "/a;b": TargetCharacter, "/a b": TargetCharacter, "/a\x00": TargetCharacter, "/é": TargetCharacter,
		"/a#b": TargetCharacter, "/a\x7f": TargetCharacter, "/%00": TargetCharacter, "/%0A": TargetCharacter, "/%7f": TargetCharacter,
		"/a?b c": TargetCharacter, "/a?b\\": TargetCharacter, "/a?#": TargetCharacter, "/a?é": TargetCharacter,
		"/%": TargetEscape, "/%4": TargetEscape, "/%4g": TargetEscape, "/%2f": TargetEscape, "/%2F": TargetEscape, "/%5c": TargetEscape,
		"/%3b": TargetEscape, "/%252f": TargetEscape, "/%2541": TargetEscape, "/%c0%ae": TargetEscape, "/%ff": TargetEscape, "/%e0%80%af": TargetEscape,
		"/" + strings.Repeat("a", maxTarget): TargetLength,
	} {
		if got, reason := Canonical(in); reason != want {
			t.Errorf("%.40q: %s (%+v), want %s", in, reason, got, want)
		}
	}
}

func TestTarget_Below(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]Target{
		"/resources/bank":        {Escaped: "/"},
		"/resources/bank/":       {Escaped: "/"},
		"/resources/bank/a":      {Escaped: "/a", Segments: []string{"a"}},
		"/resources/bank/a/?q=1": {Escaped: "/a/", Segments: []string{"a", ""}, Query: "q=1", HasQuery: true},
	} {
		whole, _ := Canonical(in)
		if diff := cmp.Diff(want, whole.Below(2)); diff != "" {
			t.Errorf("%q (-want +got):\n%s", in, diff)
		}
	}
}

// FuzzCanonical states what the rest relies on: the result is a fixed point,
// net/url reads it as we do and would send it as it is, and no segment of it
// can be taken for a separator or a step.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{"/", "/a/b?c", "/%2e%2e/x", "/a%c3%a9", "/%25", "/a;b", "/..%2f", "/a/{b}/[c]", "//x", "/%2541", "*", "/a%", "/\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, reason := Canonical(in)
		if reason != Allowed {
			return
		}
		whole := got.Escaped
		if got.HasQuery {
			whole += "?" + got.Query
		}
		again, reason := Canonical(whole)
		if reason != Allowed || !cmp.Equal(got, again) {
			t.Fatalf("%q is no fixed point: %q, %s, %+v", in, whole, reason, again)
		}
		u, err := url.ParseRequestURI(whole)
		if err != nil || u.EscapedPath() != got.Escaped || u.Path != got.Decoded() || u.RawQuery != got.Query || u.Host != "" {
			t.Fatalf("net/url reads %q as %+v, %v", whole, u, err)
		}
		for i, s := range got.Segments {
			if s == "." || s == ".." || s == "" && i < len(got.Segments)-1 || strings.ContainsAny(s, "/\\;\x00\r\n") {
				t.Fatalf("%q has segment %q", in, s)
			}
		}
	})
}

func compiled(t *testing.T, endpoints ...catalog.EndpointSpec) (*Table, *catalog.Resource, []string) {
	t.Helper()
	compiler := catalog.Compiler{}
	c, err := compiler.Compile(&catalog.Snapshot{Issuer: "http://auth.test", RootTenant: "t", Tenants: []catalog.TenantSpec{{ID: "t"}},
		Resources:   []catalog.ResourceSpec{{Tenant: "t", ID: "r", Audience: "aud", URI: "https://api.test/r", Upstream: catalog.UpstreamSpec{URL: "http://up.test"}, Endpoints: endpoints}},
		Permissions: []catalog.PermissionSpec{{Tenant: "t", ID: "p", Endpoints: []string{"r:" + endpoints[0].ID}}},
		Roles:       []catalog.RoleSpec{{Tenant: "t", ID: "role", Permissions: []string{"p"}}}})
	if err != nil {
		t.Fatal(err)
	}
	table, refused := Compile(c)
	tenant, _ := c.Tenant("t")
	r, _ := tenant.Resource("r")
	return table, r, refused
}

func endpoint(method, path string) catalog.EndpointSpec {
	return catalog.EndpointSpec{ID: method + " " + path, Method: method, Path: path}
}

func TestMatch_MostSpecificEndpoint(t *testing.T) {
	t.Parallel()
	table, r, refused := compiled(t,
		endpoint("GET", "/"), endpoint("GET", "/a"), endpoint("POST", "/a"), endpoint("HEAD", "/h"), endpoint("GET", "/h"),
		endpoint("GET", "/a/{id}"), endpoint("GET", "/a/special"), endpoint("POST", "/a/{id}/x"), endpoint("GET", "/a/{id}/{rest...}"),
		endpoint("GET", "/a/special/y"), endpoint("GET", "/f/{rest...}"), endpoint("GET", "/f/b/{id}"), endpoint("get", "/lower"),
		endpoint("GET", "/slash/"), endpoint("GET", "/caf%C3%A9"), endpoint("GET", "/a/{other}"))
	if len(refused) != 0 {
		t.Fatalf("refused: %q", refused)
	}
	for _, c := range []struct{ method, path, want string }{
		{"GET", "/", "GET /"},
		{"GET", "/a", "GET /a"},
		{"POST", "/a", "POST /a"},
		{"PUT", "/a", ""},
		{"HEAD", "/a", "GET /a"},
		{"HEAD", "/h", "HEAD /h"},
		{"GET", "/a/", ""},
		{"GET", "/a/1", "GET /a/{id}"},
		{"GET", "/a/special", "GET /a/special"},
		{"POST", "/a/special/x", "POST /a/{id}/x"}, // a literal without the way on does not hide the parameter
		{"GET", "/a/special/y", "GET /a/special/y"},
		{"GET", "/a/special/z", "GET /a/{id}/{rest...}"},
		{"GET", "/a/1/x", "GET /a/{id}/{rest...}"},
		{"GET", "/f", ""},
		{"GET", "/f/", "GET /f/{rest...}"},
		{"GET", "/f/b", "GET /f/{rest...}"},
		{"GET", "/f/b/", "GET /f/{rest...}"},
		{"GET", "/f/b/c", "GET /f/b/{id}"},
		{"GET", "/f/b/c/d", "GET /f/{rest...}"},
		{"POST", "/f/b", ""},
		{"GET", "/lower", "get /lower"},
		{"GET", "/slash", ""},
		{"GET", "/slash/", "GET /slash/"},
		{"GET", "/caf%c3%a9", "GET /caf%C3%A9"},
		{"GET", "/%7Bid%7D", ""},
		{"GET", "/a/%7Bid%7D", "GET /a/{id}"},
		{"OPTIONS", "/a", ""},
	} {
		target, reason := Canonical(c.path)
		if reason != Allowed {
			t.Fatalf("%s: %s", c.path, reason)
		}
		got := ""
		if e := table.Match(r, c.method, target); e != nil {
			got = e.ID
		}
		if got != c.want {
			t.Errorf("%s %s is %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestCompile_UnusableTemplatesStayClosed(t *testing.T) {
	t.Parallel()
	bad := []catalog.EndpointSpec{}
	for _, path := range []string{"", "a", "/{id}.json", "/x{id}", "/{}", "/{a...}/b", "/{a", "/a}", "/a//b", "/../a", "/a/..", "/%2f", "/a;b", "/{...}", "/{a.b}", "/a b"} {
		bad = append(bad, endpoint("GET", path))
	}
	bad = append(bad, endpoint("", "/nomethod"))
	_, _, refused := compiled(t, bad...)
	if len(refused) != len(bad) {
		t.Errorf("%d of %d are refused: %q", len(refused), len(bad), refused)
	}
}

func TestMay_DeniesByDefault(t *testing.T) {
	t.Parallel()
	_, r, _ := compiled(t, endpoint("GET", "/a"), endpoint("GET", "/b"))
	open, closed := &r.Endpoints[0], &r.Endpoints[1]
	public := catalog.EndpointSpec{ID: "public", Public: true}
	service := func(permissions ...string) *catalog.Client {
		return &catalog.Client{ClientSpec: catalog.ClientSpec{Permissions: permissions}}
	}
	aud, tenant := []string{"x", "aud"}, r.Owner
	other := &catalog.Tenant{TenantSpec: catalog.TenantSpec{ID: "other"}}
	for name, c := range map[string]struct {
		caller   *Caller
		endpoint *catalog.EndpointSpec
		want     Reason
	}{
		"nobody":                  {nil, open, NoCredentials},
		"nobody, public":          {nil, &public, Public},
		"nothing":                 {&Caller{Tenant: tenant, Audience: aud, Roles: []string{"role"}}, nil, EndpointUnknown},
		"role":                    {&Caller{Tenant: tenant, Audience: aud, Roles: []string{"x", "role"}}, open, Allowed},
		"role, closed endpoint":   {&Caller{Tenant: tenant, Audience: aud, Roles: []string{"role"}}, closed, NotPermitted},
		"no role":                 {&Caller{Tenant: tenant, Audience: aud}, open, NotPermitted},
		"a permission's name":     {&Caller{Tenant: tenant, Audience: aud, Roles: []string{"p"}}, open, NotPermitted},
		"other audience":          {&Caller{Tenant: tenant, Audience: []string{"r"}, Roles: []string{"role"}}, open, WrongAudience},
		"no audience":             {&Caller{Tenant: tenant, Roles: []string{"role"}}, open, WrongAudience},
		"other tenant":            {&Caller{Tenant: other, Audience: aud, Roles: []string{"role"}}, open, WrongTenant},
		"no tenant":               {&Caller{Audience: aud, Roles: []string{"role"}}, open, WrongTenant},
		"resource indicator":      {&Caller{Tenant: tenant, Audience: []string{"https://api.test/r"}, Roles: []string{"role"}}, open, Allowed},
		"another indicator":       {&Caller{Tenant: tenant, Audience: []string{"https://api.test/r/"}, Roles: []string{"role"}}, open, WrongAudience},
		"an empty audience":       {&Caller{Tenant: tenant, Audience: []string{""}, Roles: []string{"role"}}, open, WrongAudience},
		"service":                 {&Caller{Tenant: tenant, Audience: aud, Service: service("p")}, open, Allowed},
		"service, closed":         {&Caller{Tenant: tenant, Audience: aud, Service: service("p")}, closed, NotPermitted},
		"service without":         {&Caller{Tenant: tenant, Audience: aud, Service: service()}, open, NotPermitted},
		"a service has no roles":  {&Caller{Tenant: tenant, Audience: aud, Service: service("role"), Roles: []string{"role"}}, open, NotPermitted},
		"service, another's aud":  {&Caller{Tenant: tenant, Audience: []string{"z"}, Service: service("p")}, open, WrongAudience},
		"service of other tenant": {&Caller{Tenant: other, Audience: aud, Service: service("p")}, open, WrongTenant},
	} {
		if got := May(c.caller, r, c.endpoint); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestReason_EveryOneHasAStatus(t *testing.T) {
	t.Parallel()
	for _, r := range Reasons() {
		if r.Status() == 500 {
			t.Errorf("%s has no status", r)
		}
	}
	if !slices.Contains(Reasons(), CSRF) || Reason("new").Status() != 500 || Allowed.Status() != 200 {
		t.Error("the set is not what it should be")
	}
}

func BenchmarkCanonicalAndMatch(b *testing.B) {
	target, _ := Canonical("/accounts/7/transactions?limit=10")
	_ = target
	compiler := catalog.Compiler{}
	c, err := compiler.Compile(&catalog.Snapshot{Issuer: "http://auth.test", RootTenant: "t", Tenants: []catalog.TenantSpec{{ID: "t"}},
		Resources: []catalog.ResourceSpec{{Tenant: "t", ID: "r", Upstream: catalog.UpstreamSpec{URL: "http://up.test"}, Endpoints: []catalog.EndpointSpec{
			endpoint("GET", "/accounts"), endpoint("GET", "/accounts/{id}"), endpoint("GET", "/accounts/{id}/transactions")}}}})
	if err != nil {
		b.Fatal(err)
	}
	table, _ := Compile(c)
	tenant, _ := c.Tenant("t")
	r, _ := tenant.Resource("r")
	b.ReportAllocs()
	for b.Loop() {
		target, _ := Canonical("/resources/r/accounts/7/transactions?limit=10")
		if table.Match(r, "GET", target.Below(2)) == nil {
			b.Fatal("no match")
		}
	}
}
