package auth

import (
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// objects are clients that send request objects: "jar" of ES256 with registered
// keys, "jar-remote" with keys behind an address, "jar-<alg>" of each algorithm,
// and "jar-only", whose requests must be signed.
type objects struct{ *signers }

func newObjects(t testing.TB) objects {
	t.Helper()
	o := objects{newSigners(t)}
	add := func(id string, alg jose.Algorithm, change func(*catalog.ClientSpec)) {
		c := o.spec.Clients[0]
		c.ID, c.RequestObjectAlg, c.JWKS = id, string(alg), o.declared("signer").JWKS
		if change != nil {
			change(&c)
		}
		o.spec.Clients = append(o.spec.Clients, c)
	}
	add("jar", jose.ES256, nil)
	add("jar-only", jose.ES256, func(c *catalog.ClientSpec) { c.RequireSignedRequest = true })
	add("jar-remote", jose.ES256, func(c *catalog.ClientSpec) { c.JWKS, c.JWKSURI = nil, o.declared("remote").JWKSURI })
	for _, alg := range jose.Algorithms() {
		add("jar-"+string(alg), alg, nil)
	}
	o.spec.Tenants = append(o.spec.Tenants, catalog.TenantSpec{ID: "strict", Profile: catalog.ProfileFAPI2, Directory: "demo"})
	add("jar", jose.ES256, func(c *catalog.ClientSpec) { c.Tenant = "strict" })
	for _, name := range []string{"openid", "profile", "email"} {
		o.spec.Scopes = append(o.spec.Scopes, catalog.ScopeSpec{Tenant: "strict", ID: name})
	}
	o.compile()
	return o
}

// claimsOf are those of a right object of a client, with changes; nil takes one
// away.
func (o objects) claimsOf(client string, changes map[string]any) map[string]any {
	now := o.clock.Now()
	c := map[string]any{"iss": client, "aud": issuer, "iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix()}
	for name, v := range with(authRequest(), "client_id", client) {
		c[name] = v[0]
	}
	maps.Copy(c, changes)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	return c
}

// object signs an object of client jar.
func (o objects) object(changes map[string]any) string {
	o.Helper()
	return o.assertion(jose.ES256, map[string]any{"typ": "oauth-authz-req+jwt"}, o.claimsOf("jar", changes))
}

// sending is a request of a client with an object.
func sending(client, object string) url.Values { return form("client_id", client, "request", object) }

// invalid checks that an object is refused, at the endpoint and when it is
// pushed.
func (o objects) invalid(name, client, object string) {
	o.Helper()
	for where, a := range map[string]answer{
		"authorize": o.get("/authorize", sending(client, object)), "POST authorize": o.post("/authorize", sending(client, object)),
	} {
		if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" || a.page(o).Code != "invalid_request_object" {
			o.Errorf("%s at %s: %d %q %s", name, where, a.StatusCode, a.Header.Get("Location"), a.body)
		}
	}
	if a := o.post("/par", sending(client, object), basic(client)); a.StatusCode != http.StatusBadRequest || a.json(o)["error"] != "invalid_request_object" {
		o.Errorf("%s at par: %d %s", name, a.StatusCode, a.body)
	}
}

func TestRequestObject_ItsParametersAreTheRequest(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	cookie, _ := o.signIn()
	object := o.object(map[string]any{"state": "of the object", "scope": "openid", "nonce": "n-2"})
	// What is beside the object does not count, however wrong it is.
	v := with(sending("jar", object), "state", "evil", "redirect_uri", "https://evil.test/", "scope", "admin", "response_type", "token", "response_mode", "form_post", "nonce", "\x00")
	v.Add("prompt", "none")
	v.Add("prompt", "none")
	for where, a := range map[string]answer{
		"GET":    o.get("/authorize", v, cookied(cookie)),
		"POST":   o.post("/authorize", v, cookied(cookie)),
		"pushed": o.get("/authorize", pushed("jar", o.push(v)), cookied(cookie)),
	} {
		to, q := a.location(t)
		if to != callback || q.Get("state") != "of the object" || q.Get("code") == "" {
			t.Fatalf("%s: to %s with %v", where, to, q)
		}
		if got := o.tokensOf(o.post("/token", exchange(q.Get("code")), basic("jar"))); got.scope != "openid" || claims(t, got.id)["nonce"] != "n-2" {
			t.Errorf("%s: %+v", where, got)
		}
	}
	if a := o.post("/par", form("request", object), basic("jar")); a.StatusCode != http.StatusCreated {
		t.Errorf("pushed without client_id beside: %d %s", a.StatusCode, a.body)
	}
	object = o.object(map[string]any{"max_age": 7, "prompt": "login", "claims": map[string]any{"id_token": map[string]any{}}, "x": []any{nil, true}, "acr_values": "a"})
	o.get("/authorize", sending("jar", object), cookied(cookie)).location(t)
	if r := o.login.started; len(r) != 1 || *r[0].MaxAge != 7 || r[0].ACRValues[0] != "a" || r[0].CodeChallenge != challenge {
		t.Errorf("started: %+v", r)
	}
}

func TestRequestObject_EachAlgorithmAndForm(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	for _, alg := range jose.Algorithms() {
		id := "jar-" + string(alg)
		for _, header := range []map[string]any{nil, {"typ": "JWT"}, {"typ": "oauth-authz-req+jwt", "kid": string(alg)}, {"typ": "application/OAUTH-AUTHZ-REQ+JWT"}} {
			o.push(sending(id, o.assertion(alg, header, o.claimsOf(id, nil))))
		}
		for _, other := range jose.Algorithms() {
			if other != alg {
				o.invalid(id+" with "+string(other), id, o.assertion(other, nil, o.claimsOf(id, nil)))
			}
		}
	}
	o.push(sending("jar-remote", o.assertion(jose.ES256, nil, o.claimsOf("jar-remote", nil))))
	if o.asked.Load() != 1 {
		t.Errorf("the key set was fetched %d times", o.asked.Load())
	}
	o.invalid("another key than behind the address", "jar-remote", dpoptest.NewKey(t, jose.ES256).Sign(`{"alg":"ES256"}`, string(encoded(t, o.claimsOf("jar-remote", nil)))))
	now := o.clock.Now()
	for name, change := range map[string]map[string]any{
		"aud is a list": {"aud": []string{"https://other.example", issuer}}, "an hour": {"exp": now.Add(time.Hour).Unix()}, "no iat": {"iat": nil}, "no nbf": {"nbf": nil},
		"nbf 9 s ahead": {"nbf": now.Add(9 * time.Second).Unix()}, "exp 9 s ago": {"exp": now.Add(-9 * time.Second).Unix()}, "max_age is text": {"max_age": "60"},
		"another sub": {"sub": "alice"}, "a jti": {"jti": "1"}, "a time with a fraction": {"exp": float64(now.Unix()) + 30.5},
	} {
		if a := o.post("/par", sending("jar", o.object(change)), basic("jar")); a.StatusCode != http.StatusCreated {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	raw, err := json.Marshal(v)
	must(t, err)
	return raw
}

func TestRequestObject_RefusalsOfClaims(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	now := o.clock.Now()
	for name, change := range map[string]map[string]any{
		"no iss": {"iss": nil}, "another iss": {"iss": "app"}, "no client_id": {"client_id": nil}, "another client_id": {"client_id": "app"}, "client_id is a number": {"client_id": 1},
		"the client as sub": {"sub": "jar"}, "no aud": {"aud": nil}, "another aud": {"aud": "https://other.example"}, "the endpoint as aud": {"aud": issuer + "/authorize"},
		"the issuer with a slash": {"aud": issuer + "/"}, "another tenant": {"aud": issuer + "/t/other"}, "aud is a number": {"aud": 1}, "aud is empty": {"aud": []string{}},
		"no exp": {"exp": nil}, "exp is text": {"exp": "9999999999"}, "expired": {"exp": now.Add(-time.Minute).Unix()}, "expired 10 s ago": {"exp": now.Add(-10 * time.Second).Unix()},
		"exp out of range": {"exp": json.RawMessage("1e300")}, "good for longer than an hour": {"exp": now.Add(61 * time.Minute).Unix()},
		"good for longer, by nbf": {"nbf": now.Add(-time.Hour).Unix()}, "good for longer, by iat": {"iat": now.Add(-time.Hour).Unix()},
		"nbf a minute ahead": {"nbf": now.Add(time.Minute).Unix()}, "nbf is text": {"nbf": "1"}, "iat a minute ahead": {"iat": now.Add(time.Minute).Unix()}, "iat is null": {"iat": json.RawMessage("null")},
		"request inside": {"request": "a.b.c"}, "an empty request inside": {"request": ""}, "request_uri inside": {"request_uri": "urn:x"},
		"scope is a list": {"scope": []string{"openid"}}, "state is a number": {"state": 1}, "nonce is null": {"nonce": json.RawMessage("null")}, "redirect_uri is an object": {"redirect_uri": map[string]any{}},
		"prompt is true": {"prompt": true}, "max_age is true": {"max_age": true},
	} {
		o.invalid(name, "jar", o.object(change))
	}
	if n := o.count("SELECT count(*) FROM auth.pushed_request"); n != 0 {
		t.Errorf("%d requests were kept", n)
	}
}

func TestRequestObject_RefusalsOfForm(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	raw := string(encoded(t, o.claimsOf("jar", nil)))
	good := o.object(nil)
	own, key := dpoptest.NewKey(t, jose.ES256), o.keys[jose.ES256]
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	for name, object := range map[string]string{
		"garbage": "garbage", "two parts": "a.b", "four parts": good + ".x", "encrypted": "a.b.c.d.e", "padded": good + "=", "line break": good + "\n", "space": " " + good, "NUL": "\x00" + good,
		"no signature": good[:strings.LastIndex(good, ".")+1], "alg none": part(`{"alg":"none"}`) + "." + part(raw) + ".", "alg NONE": part(`{"alg":"NONE"}`) + "." + part(raw) + ".",
		"HMAC with the public key": mac(t, key.JWK, `{"alg":"HS256"}`, o.claimsOf("jar", nil)), "HMAC with the secret": mac(t, []byte("jar-secret"), `{"alg":"HS256"}`, o.claimsOf("jar", nil)),
		"the key inside": own.Sign(`{"alg":"ES256","jwk":`+string(own.JWK)+`}`, raw), "jku": own.Sign(`{"alg":"ES256","jku":"https://evil.example/jwks"}`, raw), "x5u": own.Sign(`{"alg":"ES256","x5u":"https://evil.example/c"}`, raw),
		"somebody's key under our kid": own.Sign(`{"alg":"ES256","kid":"ES256"}`, raw), "unknown kid": key.Sign(`{"alg":"ES256","kid":"zzz"}`, raw),
		"crit": key.Sign(`{"alg":"ES256","crit":["exp"],"exp":1}`, raw), "b64": key.Sign(`{"alg":"ES256","b64":false}`, raw),
		"typ of an access token": key.Sign(`{"alg":"ES256","typ":"at+jwt"}`, raw), "typ of a proof": key.Sign(`{"alg":"ES256","typ":"dpop+jwt"}`, raw), "typ of an assertion": key.Sign(`{"alg":"ES256","typ":"client-authentication+jwt"}`, raw),
		"typ is a number": key.Sign(`{"alg":"ES256","typ":1}`, raw), "nested": key.Sign(`{"alg":"ES256","cty":"JWT"}`, good),
		"doubled header": key.Sign(`{"alg":"ES256","alg":"ES256"}`, raw), "doubled claim": key.Sign(`{"alg":"ES256"}`, `{"client_id":"jar",`+raw[1:]), "doubled by an escape": key.Sign(`{"alg":"ES256"}`, `{"client\u005fid":"jar",`+raw[1:]),
		"claims are a list": key.Sign(`{"alg":"ES256"}`, `[]`), "claims are text": key.Sign(`{"alg":"ES256"}`, `"x"`), "empty": key.Sign(`{"alg":"ES256"}`, ``), "not UTF-8": key.Sign(`{"alg":"ES256"}`, "{\"iss\":\"jar\xff\"}"),
		"deep claims": key.Sign(`{"alg":"ES256"}`, `{"x":`+strings.Repeat("[", 9000)+strings.Repeat("]", 9000)+`}`), "long": key.Sign(`{"alg":"ES256"}`, raw[:len(raw)-1]+`,"x":"`+strings.Repeat("x", 20<<10)+`"}`),
		"an assertion": o.assertion(jose.ES256, nil, o.claims("jar", nil)),
	} {
		o.invalid(name, "jar", object)
	}
	twice := sending("jar", good)
	twice.Add("request", good)
	for name, v := range map[string]url.Values{"twice": twice, "with request_uri": with(sending("jar", good), "request_uri", "https://client.test/r.jwt")} {
		if a := o.get("/authorize", v); a.StatusCode != http.StatusBadRequest || a.page(t).Code != "invalid_request" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
		o.refused(o.post("/par", v, basic("jar")), http.StatusBadRequest, "invalid_request")
	}
}

func TestRequestObject_WhatItHoldsIsValidatedAsAnyRequest(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	cookie, _ := o.signIn()
	for name, x := range map[string]struct {
		change map[string]any
		code   string
	}{
		"scope beyond the client": {map[string]any{"scope": "admin"}, "invalid_scope"}, "plain": {map[string]any{"code_challenge_method": "plain"}, "invalid_request"},
		"no PKCE": {map[string]any{"code_challenge": nil, "code_challenge_method": nil}, "invalid_request"}, "token": {map[string]any{"response_type": "token"}, "unsupported_response_type"},
		"no response_type": {map[string]any{"response_type": nil}, "invalid_request"}, "negative max_age": {map[string]any{"max_age": -1}, "invalid_request"}, "max_age with a fraction": {map[string]any{"max_age": 1.5}, "invalid_request"},
		"NUL in nonce": {map[string]any{"nonce": "\x00"}, "invalid_request"},
	} {
		object := o.object(x.change)
		// The outer parameters would be right; they are not looked at.
		v := with(authRequest(), "client_id", "jar", "request", object, "state", "outer")
		if to, q := o.get("/authorize", v, cookied(cookie)).location(t); to != callback || q.Get("error") != x.code || q.Get("state") != "s t" {
			t.Errorf("%s: to %s with %v", name, to, q)
		}
		o.refused(o.post("/par", sending("jar", object), basic("jar")), http.StatusBadRequest, x.code)
	}
	for name, change := range map[string]map[string]any{"no redirect_uri": {"redirect_uri": nil}, "foreign redirect_uri": {"redirect_uri": "https://evil.test/"}} {
		v := with(authRequest(), "client_id", "jar", "request", o.object(change))
		if a := o.get("/authorize", v, cookied(cookie)); a.StatusCode != http.StatusBadRequest || a.page(t).Code != "invalid_request" || a.Header.Get("Location") != "" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestRequestObject_ARefusedOneIsToldWhereARequestWithoutOneWouldBe(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	cookie, _ := o.signIn()
	for name, x := range map[string]struct {
		client, object, code string
	}{
		"not registered": {"app", o.object(nil), "request_not_supported"}, "garbage": {"jar", "garbage", "invalid_request_object"},
		"unsigned": {"jar", "eyJhbGciOiJub25lIn0.e30.", "invalid_request_object"},
	} {
		v := with(authRequest(), "client_id", x.client, "request", x.object)
		to, q := o.get("/authorize", v, cookied(cookie)).location(t)
		if to != callback || q.Get("error") != x.code || q.Get("state") != "s t" || q.Get("iss") != issuer || q.Has("code") {
			t.Errorf("%s: to %s with %v", name, to, q)
		}
		for where, evil := range map[string]string{"foreign": "https://evil.test/", "no": ""} {
			if a := o.get("/authorize", with(v, "redirect_uri", evil), cookied(cookie)); a.StatusCode != http.StatusBadRequest || a.page(t).Code != x.code {
				t.Errorf("%s, %s redirect_uri: %d %s", name, where, a.StatusCode, a.body)
			}
		}
	}
	o.refused(o.post("/par", sending("app", o.object(nil)), basic("app")), http.StatusBadRequest, "request_not_supported")
	o.down.Store(true)
	o.invalid("no key set to be had", "jar-remote", o.assertion(jose.ES256, nil, o.claimsOf("jar-remote", nil)))
}

func TestRequestObject_WhereItIsRequiredNothingElseIsAnswered(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	cookie, _ := o.signIn()
	v := with(authRequest(), "client_id", "jar-only")
	if _, q := o.get("/authorize", v, cookied(cookie)).location(t); q.Get("error") != "invalid_request" || !strings.Contains(q.Get("error_description"), "request") || q.Get("state") != "s t" {
		t.Errorf("an unsigned request: %v", q)
	}
	o.refused(o.post("/par", v, basic("jar-only")), http.StatusBadRequest, "invalid_request")
	object := o.assertion(jose.ES256, nil, o.claimsOf("jar-only", nil))
	if _, q := o.get("/authorize", sending("jar-only", object), cookied(cookie)).location(t); q.Get("code") == "" {
		t.Errorf("a signed request: %v", q)
	}
	if _, q := o.get("/authorize", pushed("jar-only", o.push(sending("jar-only", object))), cookied(cookie)).location(t); q.Get("code") == "" {
		t.Errorf("a signed request, pushed: %v", q)
	}
}

func TestRequestObject_UnderFAPI2(t *testing.T) {
	t.Parallel()
	o := newObjects(t)
	now := o.clock.Now()
	push := func(change map[string]any) answer {
		all := map[string]any{"aud": issuer + "/t/strict"}
		maps.Copy(all, change)
		return o.post("/t/strict/par", sending("jar", o.object(all)), basic("jar"))
	}
	for name, change := range map[string]map[string]any{"usual": nil, "nbf 8 s ahead": {"nbf": now.Add(8 * time.Second).Unix()}, "a list": {"aud": []string{issuer + "/t/strict"}}} {
		if a := push(change); a.StatusCode != http.StatusCreated {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	for _, change := range []map[string]any{{"nbf": nil}, {"exp": nil}, {"nbf": now.Add(-61 * time.Minute).Unix()}, {"exp": now.Add(61 * time.Minute).Unix()}, {"aud": issuer}} {
		o.refused(push(change), http.StatusBadRequest, "invalid_request_object")
	}
	if _, q := o.get("/t/strict/authorize", sending("jar", o.object(map[string]any{"aud": issuer + "/t/strict"}))).location(t); q.Get("error") != "invalid_request" {
		t.Errorf("not pushed: %v", q)
	}
	for path, want := range map[string]int{"": 4, "/t/strict": 3} {
		m := o.get(path+"/.well-known/openid-configuration", nil).json(t)
		algs, _ := m["request_object_signing_alg_values_supported"].([]any)
		if len(algs) != want || m["request_parameter_supported"] != true || m["request_uri_parameter_supported"] != false {
			t.Errorf("%s: %v, %v, %v", path, algs, m["request_parameter_supported"], m["request_uri_parameter_supported"])
		}
	}
}
