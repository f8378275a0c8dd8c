package admin_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"testing"
)

// values are members that registration refuses, each with the pointer that the
// refusal names. The document around them is valid.
func values() map[string]struct {
	many  string
	base  map[string]any
	wrong map[string][]any // pointer -> values of its first member
} {
	type d = map[string]any
	type refused = map[string][]any
	long := strings.Repeat("a", 65)
	web := d{"id": "app", "client_kind": "web", "auth_method": "client_secret_basic", "grant_types": []string{"authorization_code"}, "redirect_uris": []string{"https://app.example/cb"}}
	uris := []any{"javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "https://app.example/cb#fragment", "https://app.example/cb#", "https://user@app.example/",
		"https://user:secret@app.example/", "https://*.example/", "https://app.example/%2e%2e/x", "https://app.example/../x", `https://app.example\@evil.example/`, "https:app.example",
		"https:///cb", "//app.example/cb", "/cb", "cb", "", "https://[fe80::1%25eth0]/", "https://[::1", "https://приложение.example/", "https://app.example/\u0000", "https://app.example/\n",
		"https://app.example/ x", "https://app.example:0/", "https://app.example:65536/", "https://app.example:/", "https://app..example/", "https://.example/", "HTTPS://app.example/cb",
		"http://app.example/cb", "http://localhost.evil.example/cb", "http://127.0.0.1.evil.example/", "com.example.app:/cb", "app:/cb", "https://app.example/?code=x", "https://app.example/?state=",
		"https://app.example/" + strings.Repeat("a", 2000), 7, nil, d{}}
	rsa := func(members string) d {
		var set d
		if err := json.Unmarshal([]byte(`{"keys":[`+members+`]}`), &set); err != nil {
			panic(err)
		}
		return set
	}
	return map[string]struct {
		many  string
		base  map[string]any
		wrong map[string][]any
	}{
		"client": {"tenants/other/clients", web, refused{
			"/id":                        {"", "A", "a b", "a/b", "../a", "-a", ".a", "_a", long, "а", "a\u0000", "a\u202e", 1, []string{"a"}},
			"/name":                      {strings.Repeat("я", 201), "a\u0007", d{"xx-nobody-knows-this-one": "x"}, d{"EN": "x"}, d{"": "x", "en": "y"}, 1, []string{"x"}},
			"/redirect_uris":             {uris, []string{"https://app.example/cb", "https://app.example/cb"}, []string{}, "https://app.example/cb"},
			"/post_logout_redirect_uris": {[]string{"javascript:alert(1)"}, []string{"https://app.example/#"}},
			"/cors_origins":              {[]string{"*"}, []string{"null"}, []string{"https://app.example/"}, []string{"https://App.example"}, []string{"https://app.example:443"}, []string{"https://*.example"}},
			"/backchannel_logout_uri":    {"javascript:alert(1)", "https://user@app.example/", "https://app.example/#x", "ftp://app.example/"},
			"/policy_uri":                {"javascript:alert(1)", "data:text/html,x"},
			"/auth_method":               {"", "none", "CLIENT_SECRET_BASIC", "basic"},
			"/grant_types":               {[]string{}, []string{"password"}, []string{"implicit"}, []string{"authorization_code", "authorization_code"}},
			"/access_token_ttl":          {"1s", "-5m", "25h", "forever", "1e9h", "", 300, "9223372036854775807h"},
			"/access_token_alg":          {"none", "HS256", "es256"},
			"/scopes":                    {[]string{"nobody"}},
			"/jwks": {rsa(`{"kty":"oct","k":"AAAA"}`), rsa(`{"kty":"RSA","n":"AQAB","e":"AQAB"}`),
				rsa(`{"kty":"EC","crv":"P-256","x":"gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0","y":"SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps","d":"0_NxaRPUMQoAJt50Gz8YiTr8gRTwyEaCumd-MToTmIo"}`), "x", []string{}},
			"/jwks_uri": {"http://app.example/keys", "file:///etc/passwd", "https://user@app.example/"},
		}},
		"tenant": {"tenants", d{"id": "fresh", "security_profile": "standard"}, refused{
			"/id":                               {"", "A", long, "a/b"},
			"/security_profile":                 {"", "fapi2", "none"},
			"/edge":                             {"nobody"},
			"/settings/password_policy/pattern": {d{"password_policy": d{"pattern": "("}}, d{"password_policy": d{"pattern": "(a{1000}){1000}"}}, d{"password_policy": d{"pattern": strings.Repeat("a", 1001)}}, d{"password_policy": d{"pattern": `(?=a)`}}},
			"/settings/otp/length":              {d{"otp": d{"length": 3}}, d{"otp": d{"length": 11}}, d{"otp": d{"length": -1}}, d{"otp": d{"length": 1.5}}, d{"otp": d{"length": "6"}}, d{"otp": d{"length": json.Number("9223372036854775808")}}},
			"/settings/access_token_ttl":        {d{"access_token_ttl": "1000h"}},
			"/settings/phone_prefixes/0":        {d{"phone_prefixes": []string{"7"}}, d{"phone_prefixes": []string{"+0"}}, d{"phone_prefixes": []string{"+7a"}}},
		}},
		"resource": {"tenants/other/resources", d{"id": "fresh", "upstream": d{"url": "http://127.0.0.1:9"}}, refused{
			"/upstream/url":       {d{"url": "ftp://a.example"}, d{"url": "http://a.example/?x"}, d{"url": "http://a.example/#x"}, d{"url": "http://user@a.example"}, d{"url": ""}, d{"url": "http://a.example/../x"}, d{"url": "unix:/run/x"}},
			"/endpoints/0/path":   {[]d{{"id": "a", "method": "GET", "path": "a"}}, []d{{"id": "a", "method": "GET", "path": "/{a}/{a}"}}, []d{{"id": "a", "method": "GET", "path": "/../x"}}, []d{{"id": "a", "method": "GET", "path": "/{a...}/b"}}, []d{{"id": "a", "method": "GET", "path": "/a?b"}}},
			"/endpoints/0/method": {[]d{{"id": "a", "method": "get", "path": "/a"}}, []d{{"id": "a", "method": "TRACE", "path": "/a"}}, []d{{"id": "a", "path": "/a"}}},
			"/endpoints/0/allow": {[]d{{"id": "a", "method": "GET", "path": "/a", "allow": "1 +"}}, []d{{"id": "a", "method": "GET", "path": "/a", "allow": "'text'"}}, []d{{"id": "a", "method": "GET", "path": "/a", "allow": "nobody.knows"}},
				[]d{{"id": "a", "method": "GET", "path": "/a", "allow": strings.Repeat("(", 60) + "true" + strings.Repeat(")", 60)}}, []d{{"id": "a", "method": "GET", "path": "/a", "allow": strings.Repeat("true||", 1000) + "true"}}},
			"/audience": {"a b", strings.Repeat("a", 2001), "\u0000"},
		}},
		"role": {"tenants/other/roles", d{"id": "fresh"}, refused{"/permissions/0": {[]string{"nobody"}}, "/within": {"demo", "nobody"}}},
		"scope": {"tenants/other/scopes", d{"id": "fresh"}, refused{
			"/id":       {"", "a b", `a"b`, `a\b`, strings.Repeat("a", 129), "имя"},
			"/claims/0": {[]string{"sub"}, []string{"iss"}, []string{"roles"}, []string{"a b"}},
		}},
	}
}

func TestValues_EachIsRefusedByItsPointer(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token, tried := f.as(t, "admin"), 0
	refuse := func(name, path, pointer string, document map[string]any) {
		tried++
		a := f.call(t, token, http.MethodPost, "/v1/"+path, document)
		named := false
		list, _ := a.doc["errors"].([]any)
		for _, one := range list {
			members, _ := one.(map[string]any)
			got, _ := members["pointer"].(string)
			named = named || got == pointer || strings.HasPrefix(got, pointer+"/")
		}
		if a.Code != http.StatusUnprocessableEntity || !named {
			t.Errorf("%s, %s: %.200v: %d %.500s", name, pointer, document[member(pointer)], a.Code, a.Body)
		}
	}
	for name, kind := range values() {
		for pointer, list := range kind.wrong {
			for _, value := range list {
				document := maps.Clone(kind.base)
				if entries, ok := value.([]any); ok { // each of them alone
					for _, one := range entries {
						document[member(pointer)] = []any{one}
						refuse(name, kind.many, pointer, document)
					}
					continue
				}
				document[member(pointer)] = value
				refuse(name, kind.many, pointer, document)
			}
		}
		if a := f.call(t, token, http.MethodPost, "/v1/"+kind.many, kind.base); a.Code != http.StatusCreated {
			t.Errorf("%s: what is right: %d %s", name, a.Code, a.Body)
		}
	}
	if tried < 100 {
		t.Errorf("only %d values", tried)
	}
}

// member returns the first member of a pointer.
func member(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return name
}
