package auth

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/keys"
	"versola/modules/central/catalog"
	"versola/platform/jose"
)

func TestAuthorize_ErrorPageWhereThereIsNobodyToRedirectTo(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for name, x := range map[string]struct {
		v     url.Values
		names string // what the description names
	}{
		"no client_id":               {with(authRequest(), "client_id", ""), "client_id"},
		"unknown client":             {with(authRequest(), "client_id", "nobody"), "client_id"},
		"disabled client":            {with(authRequest(), "client_id", "gone"), "client_id"},
		"doubled client_id":          {url.Values{"client_id": {"app", "app"}, "redirect_uri": {callback}}, "client_id"},
		"no redirect_uri":            {with(authRequest(), "redirect_uri", ""), "redirect_uri"},
		"doubled redirect_uri":       {url.Values{"client_id": {"app"}, "redirect_uri": {callback, callback}}, "redirect_uri"},
		"foreign redirect_uri":       {with(authRequest(), "redirect_uri", "https://evil.test/"), "redirect_uri"},
		"longer redirect_uri":        {with(authRequest(), "redirect_uri", callback+"/"), "redirect_uri"},
		"redirect_uri of other case": {with(authRequest(), "redirect_uri", strings.ToUpper(callback)), "redirect_uri"},
		"redirect_uri with query":    {with(authRequest(), "redirect_uri", callback+"?y=2"), "redirect_uri"},
		"redirect_uri with fragment": {with(authRequest(), "redirect_uri", callback+"#x"), "redirect_uri"},
		"user info":                  {with(authRequest(), "redirect_uri", "http://localhost:9999@evil.test/callback"), "redirect_uri"},
		"dot segments":               {with(authRequest(), "redirect_uri", "http://localhost:9999/x/../callback"), "redirect_uri"},
		"another port of localhost":  {with(authRequest(), "redirect_uri", "http://localhost:9998/callback"), "redirect_uri"},
		"loopback, other path":       {with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:1/other"), "redirect_uri"},
		"loopback, other host":       {with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:1@evil.test/callback"), "redirect_uri"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, a := range []answer{g.get("/authorize", x.v), g.post("/authorize", x.v)} {
				if a.StatusCode != http.StatusBadRequest || a.Header.Get("Location") != "" {
					t.Fatalf("status %d, Location %q", a.StatusCode, a.Header.Get("Location"))
				}
				if p := a.page(t); p.Code != "invalid_request" || !strings.Contains(p.Description, x.names) {
					t.Errorf("page: %+v", p)
				}
			}
		})
	}
	if a := g.do(http.MethodGet, "/authorize?client_id=%zz", nil); a.StatusCode != http.StatusBadRequest {
		t.Errorf("malformed query: %d", a.StatusCode)
	}
	if a := g.do(http.MethodPut, "/authorize", nil); a.StatusCode != http.StatusMethodNotAllowed || a.Header.Get("Allow") != "GET, POST" {
		t.Errorf("PUT: %d", a.StatusCode)
	}
}

func TestAuthorize_RefusalsGoBackToTheClient(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid")
	doubled := func(name string) url.Values {
		v := with(authRequest(), name, "x")
		v.Add(name, "x")
		return v
	}
	native := with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:5000/callback")
	for name, x := range map[string]struct {
		v     url.Values
		code  string
		names string
	}{
		"no response_type":          {with(authRequest(), "response_type", ""), "invalid_request", "response_type"},
		"token":                     {with(authRequest(), "response_type", "token"), "unsupported_response_type", "response_type"},
		"hybrid":                    {with(authRequest(), "response_type", "code id_token"), "unsupported_response_type", "response_type"},
		"unknown mode":              {with(authRequest(), "response_mode", "web_message"), "invalid_request", "response_mode"},
		"mode in capitals":          {with(authRequest(), "response_mode", "QUERY.JWT"), "invalid_request", "response_mode"},
		"unknown signed mode":       {with(authRequest(), "response_mode", "web_message.jwt"), "invalid_request", "response_mode"},
		"doubled response_mode":     {doubled("response_mode"), "invalid_request", "response_mode"},
		"no code grant":             {with(authRequest(), "client_id", "svc"), "unauthorized_client", "client"},
		"no scope":                  {with(authRequest(), "scope", ""), "invalid_scope", "scope"},
		"scope beyond the client's": {with(authRequest(), "scope", "openid admin"), "invalid_scope", "scope"},
		"scope with two spaces":     {with(authRequest(), "scope", "openid  email"), "invalid_scope", "scope"},
		"scope with a quote":        {with(authRequest(), "scope", `openid"`), "invalid_scope", "scope"},
		"no PKCE":                   {with(authRequest(), "code_challenge", "", "code_challenge_method", ""), "invalid_request", "code_challenge"},
		"no PKCE of a public one":   {with(native, "code_challenge", "", "code_challenge_method", ""), "invalid_request", "code_challenge"},
		"plain":                     {with(authRequest(), "code_challenge_method", "plain"), "invalid_request", "code_challenge_method"},
		"plain by default":          {with(authRequest(), "code_challenge_method", ""), "invalid_request", "code_challenge_method"},
		"method alone":              {with(authRequest(), "client_id", "loose", "scope", "openid", "code_challenge", ""), "invalid_request", "code_challenge"},
		"short challenge":           {with(authRequest(), "code_challenge", challenge[:42]), "invalid_request", "code_challenge"},
		"challenge of other text":   {with(authRequest(), "code_challenge", challenge[:42]+"="), "invalid_request", "code_challenge"},
		"request":                   {with(authRequest(), "request", "x.y.z"), "request_not_supported", "request"},
		"request_uri":               {with(authRequest(), "request_uri", "urn:x"), "request_uri_not_supported", "request_uri"},
		"registration":              {with(authRequest(), "registration", "{}"), "registration_not_supported", "registration"},
		"unknown prompt":            {with(authRequest(), "prompt", "magic"), "invalid_request", "prompt"},
		"prompt=create":             {with(authRequest(), "prompt", "create"), "invalid_request", "prompt"},
		"none with login":           {with(authRequest(), "prompt", "none login"), "invalid_request", "prompt"},
		"negative max_age":          {with(authRequest(), "max_age", "-1"), "invalid_request", "max_age"},
		"garbage max_age":           {with(authRequest(), "max_age", "1h"), "invalid_request", "max_age"},
		"overflowing max_age":       {with(authRequest(), "max_age", "99999999999999999999"), "invalid_request", "max_age"},
		"signed max_age":            {with(authRequest(), "max_age", "+1"), "invalid_request", "max_age"},
		"long nonce":                {with(authRequest(), "nonce", strings.Repeat("n", 1025)), "invalid_request", "nonce"},
		"NUL in nonce":              {with(authRequest(), "nonce", "a\x00b"), "invalid_request", "nonce"},
		"nonce that is not UTF-8":   {with(authRequest(), "nonce", "\xff"), "invalid_request", "nonce"},
		"hint that is no token":     {with(authRequest(), "id_token_hint", "x"), "invalid_request", "id_token_hint"},
		"access token as hint":      {with(authRequest(), "id_token_hint", got.access), "invalid_request", "id_token_hint"},
		"another client's hint":     {with(native, "id_token_hint", got.id), "invalid_request", "id_token_hint"},
		"doubled scope":             {doubled("scope"), "invalid_request", "scope"},
		"doubled nonce":             {doubled("nonce"), "invalid_request", "nonce"},
		"doubled response_type":     {doubled("response_type"), "invalid_request", "response_type"},
		"doubled code_challenge":    {doubled("code_challenge"), "invalid_request", "code_challenge"},
	} {
		t.Run(name, func(t *testing.T) {
			if name == "no code grant" {
				g := newRig(t, func(s *catalog.Snapshot) {
					s.Clients = append(s.Clients, catalog.ClientSpec{Tenant: "demo", ID: "svc", AuthMethod: catalog.AuthBasic, RedirectURIs: []string{callback}})
				})
				_, q := g.get("/authorize", x.v).location(t)
				if q.Get("error") != x.code {
					t.Errorf("answer: %v", q)
				}
				return
			}
			for _, a := range []answer{g.get("/authorize", x.v, cookied(cookie)), g.post("/authorize", x.v, cookied(cookie))} {
				to, q := a.location(t)
				if to != x.v.Get("redirect_uri") {
					t.Errorf("went to %s", to)
				}
				if q.Get("error") != x.code || !strings.Contains(q.Get("error_description"), x.names) || q.Get("state") != "s t" || q.Get("iss") != issuer || q.Has("code") {
					t.Errorf("answer: %v", q)
				}
			}
		})
	}
	for name, v := range map[string]url.Values{
		"doubled state":  doubled("state"),
		"long state":     with(authRequest(), "state", strings.Repeat("s", 2049)),
		"control":        with(authRequest(), "state", "a\x00b"),
		"state not text": with(authRequest(), "state", "\xff"),
	} {
		_, q := g.get("/authorize", v, cookied(cookie)).location(t)
		if q.Get("error") != "invalid_request" || q.Has("state") {
			t.Errorf("%s: %v", name, q)
		}
	}
	for _, state := range []string{"\u4f60\u597d &=+%#", strings.Repeat("s", 2048), `"<script>`} {
		if _, q := g.get("/authorize", with(authRequest(), "state", state), cookied(cookie)).location(t); q.Get("state") != state || !q.Has("code") {
			t.Errorf("state %q came back as %q", state, q.Get("state"))
		}
	}
	if len(g.login.started) != 0 {
		t.Error("a refused request started a login")
	}
}

func TestAuthorize_WithoutSessionStartsALogin(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	v := with(authRequest(), "max_age", "60", "login_hint", "alice@example.com", "ui_locales", "ru kk", "acr_values", "a b", "claims", "{}", "unknown", "x")
	var a answer
	g.statements(0, func() { a = g.get("/authorize", v) })
	if to, _ := a.location(t); to != "/login/handle/start" || len(g.login.started) != 1 {
		t.Fatalf("went to %s", to)
	}
	r := g.login.started[0]
	if r.ClientID != "app" || r.RedirectURI != callback || r.State != "s t" || r.Nonce != "n-1" || r.CodeChallenge != challenge || *r.MaxAge != 60 ||
		r.LoginHint != "alice@example.com" || len(r.UILocales) != 2 || len(r.ACRValues) != 2 || strings.Join(r.Scopes, " ") != "openid profile email" {
		t.Errorf("request: %+v", r)
	}
	g.post("/authorize", v).location(t)
	if len(g.login.started) != 2 {
		t.Error("a POST does not work like a GET")
	}
}

func TestAuthorize_SilentWithALivingSession(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, sid := g.signInAndExchange("openid")
	g.clock.Advance(100 * time.Second)
	foreign := g.addUser("demo", "bob@example.com")
	signer, _ := g.holder.Current().Signer(jose.RS256)
	hint := func(sub string) string {
		raw, err := signer.Sign("JWT", []byte(`{"iss":"`+issuer+`","sub":"`+sub+`","aud":"app","exp":1,"iat":1}`))
		must(t, err)
		return raw
	}
	for name, x := range map[string]struct {
		v       url.Values
		outcome string // code, login or an error
	}{
		"plain":                         {authRequest(), "code"},
		"prompt=none":                   {with(authRequest(), "prompt", "none"), "code"},
		"without openid":                {with(authRequest(), "scope", "email"), "code"},
		"young enough":                  {with(authRequest(), "max_age", "100"), "code"},
		"too old":                       {with(authRequest(), "max_age", "99"), "login"},
		"too old, prompt=none":          {with(authRequest(), "max_age", "99", "prompt", "none"), "login_required"},
		"max_age=0":                     {with(authRequest(), "max_age", "0"), "login"},
		"largest max_age":               {with(authRequest(), "max_age", "2147483647"), "code"},
		"prompt=login":                  {with(authRequest(), "prompt", "login"), "login"},
		"prompt=consent":                {with(authRequest(), "prompt", "consent"), "login"},
		"prompt=select_account":         {with(authRequest(), "prompt", "select_account"), "login"},
		"prompt=login consent":          {with(authRequest(), "prompt", "login consent"), "login"},
		"own hint":                      {with(authRequest(), "id_token_hint", got.id, "prompt", "none"), "code"},
		"own hint, expired":             {with(authRequest(), "id_token_hint", hint(g.user.String())), "code"},
		"another's hint":                {with(authRequest(), "id_token_hint", hint(foreign.String())), "login"},
		"another's hint, prompt=none":   {with(authRequest(), "id_token_hint", hint(foreign.String()), "prompt", "none"), "login_required"},
		"voluntary acr, prompt=none":    {with(authRequest(), "acr_values", "gold", "prompt", "none"), "code"},
		"redirect URI with query":       {with(authRequest(), "redirect_uri", callback+"?x=1"), "code"},
		"loopback with a port, native":  {with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:40000/callback"), "code"},
		"empty parameters are not sent": {with(authRequest(), "unknown", "x"), "code"},
	} {
		t.Run(name, func(t *testing.T) {
			started := len(g.login.started)
			to, q := g.get("/authorize", x.v, cookied(cookie)).location(t)
			switch x.outcome {
			case "code":
				if q.Get("code") == "" || q.Get("iss") != issuer || q.Get("state") != "s t" {
					t.Errorf("answer: %s %v", to, q)
				}
				if strings.Contains(x.v.Get("redirect_uri"), "?x=1") && q.Get("x") != "1" {
					t.Errorf("the redirect URI's own query was lost: %v", q)
				}
			case "login":
				if len(g.login.started) != started+1 {
					t.Errorf("no login: %v", q)
				}
			default:
				if q.Get("error") != x.outcome {
					t.Errorf("answer: %v", q)
				}
			}
		})
	}
	g.exec("UPDATE auth.session SET ended_at = $1 WHERE id = $2", g.clock.Now(), sid)
	if _, q := g.get("/authorize", with(authRequest(), "prompt", "none"), cookied(cookie)).location(t); q.Get("error") != "login_required" {
		t.Errorf("an ended session answered: %v", q)
	}
	if _, q := g.get("/authorize", with(authRequest(), "prompt", "none"), cookied("garbage")).location(t); q.Get("error") != "login_required" {
		t.Errorf("a garbage cookie answered: %v", q)
	}
}

func TestDiscovery_SaysWhatWorks(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for path, iss := range map[string]string{
		"/.well-known/openid-configuration":               issuer,
		"/.well-known/oauth-authorization-server":         issuer,
		"/t/other/.well-known/openid-configuration":       issuer + "/t/other",
		"/t/other/.well-known/oauth-authorization-server": issuer + "/t/other",
		"/.well-known/oauth-authorization-server/t/other": issuer + "/t/other",
	} {
		a := g.do(http.MethodGet, path, nil, func(r *http.Request) { r.Host = "evil.test"; r.Header.Set("X-Forwarded-Host", "evil.test") })
		if a.StatusCode != http.StatusOK || a.Header.Get("Access-Control-Allow-Origin") != "*" || !strings.Contains(a.Header.Get("Cache-Control"), "max-age") {
			t.Fatalf("%s: %d %v", path, a.StatusCode, a.Header)
		}
		m := a.json(t)
		if m["issuer"] != iss || strings.Contains(string(a.body), "evil") {
			t.Errorf("%s: issuer %v", path, m["issuer"])
		}
		if m["frontchannel_logout_supported"] != true || m["frontchannel_logout_session_supported"] != true {
			t.Errorf("%s: front-channel logout is not advertised", path)
		}
		for _, name := range []string{"token_endpoint", "userinfo_endpoint", "authorization_endpoint", "jwks_uri", "revocation_endpoint", "end_session_endpoint"} {
			at, _ := m[name].(string)
			rest, ok := strings.CutPrefix(at, issuer)
			if !ok {
				t.Errorf("%s: %s is %q", path, name, at)
				continue
			}
			if b := g.do(http.MethodGet, rest, nil); b.StatusCode == http.StatusNotFound {
				t.Errorf("%s: %s is advertised and not there", path, at)
			}
		}
	}
	if a := g.do(http.MethodGet, "/t/demo/.well-known/openid-configuration", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("the root tenant has a second address: %d", a.StatusCode)
	}
	for _, path := range []string{"/.well-known/openid-configuration", "/.well-known/jwks.json", "/authorize", "/logout", "/userinfo"} {
		for _, prefix := range []string{"/t/", "/t/demo", "/t/%64emo", "/t/..", "/t/ "} {
			if a := g.do(http.MethodGet, "http://auth.test"+strings.ReplaceAll(prefix, " ", "%20")+path, nil); a.StatusCode != http.StatusNotFound {
				t.Errorf("%s%s: %d", prefix, path, a.StatusCode)
			}
		}
	}
	if a := g.do(http.MethodGet, "/t/nobody/token", nil); a.StatusCode == http.StatusOK {
		t.Errorf("unknown tenant: %d", a.StatusCode)
	}
	if a := g.do(http.MethodGet, "/nothing", nil); a.StatusCode != http.StatusNotFound {
		t.Errorf("unknown route: %d", a.StatusCode)
	}
	jwks := g.do(http.MethodGet, "/.well-known/jwks.json", nil)
	if set, _ := jwks.json(t)["keys"].([]any); len(set) != len(keys.Algorithms()) || strings.Contains(string(jwks.body), `"d"`) || jwks.Header.Get("Cache-Control") == "" {
		t.Errorf("key set: %s", jwks.body)
	}
}

func TestCORS_OnlyRegisteredOrigins(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	origin := func(o string) func(*http.Request) { return func(r *http.Request) { r.Header.Set("Origin", o) } }
	for _, path := range []string{"/token", "/userinfo", "/revoke"} {
		for o, want := range map[string]string{"https://spa.test": "https://spa.test", "https://evil.test": "", "null": "", "": ""} {
			a := g.do(http.MethodOptions, path, nil, origin(o))
			if a.StatusCode != http.StatusNoContent || a.Header.Get("Access-Control-Allow-Origin") != want || a.Header.Get("Access-Control-Allow-Credentials") != "" {
				t.Errorf("%s from %q: %d %v", path, o, a.StatusCode, a.Header)
			}
			if a = g.post(path, form(), origin(o)); a.Header.Get("Access-Control-Allow-Origin") != want {
				t.Errorf("%s from %q: an error answer has %v", path, o, a.Header)
			}
		}
		if a := g.do(http.MethodOptions, "/t/other"+path, nil, origin("https://spa.test")); a.Header.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("another tenant's origin was let in at %s", path)
		}
	}
}
