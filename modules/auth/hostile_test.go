package auth

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
)

// Every parameter of every endpoint is given every hostile value, alone and
// twice: whatever it is, it is refused or ignored, and never a fault of ours.
func TestEndpoints_NoInputIsAFault(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, cookie, _ := g.signInAndExchange("openid email offline_access")
	values := []string{
		"", " ", "\x00", "a\x00b", "\xff\xfe", "\u202e", "%", "%00", "'", "' OR 1=1 --", `"`, `\`, "\r\nSet-Cookie: a=b", "<script>", "{}", "[]", "null", "-1",
		"99999999999999999999", "NaN", "00000000-0000-0000-0000-000000000000", "openid openid", "none none", "a.b.c", "..", "....", "eyJhbGciOiJub25lIn0.e30.",
		strings.Repeat("A", 43), strings.Repeat("A", 91), strings.Repeat("9", 5000), strings.Repeat("\u00e9", 3000), got.access, got.refresh, got.id,
		"javascript:alert(1)", "//evil.test", "http://127.0.0.1:99999999/callback", "http://[::1]:/callback", callback,
	}
	endpoints := []struct {
		path   string
		method string
		base   url.Values
		change []func(*http.Request)
	}{
		{"/authorize", http.MethodGet, with(authRequest(), "prompt", "none", "max_age", "1", "id_token_hint", got.id, "login_hint", "x", "ui_locales", "en",
			"acr_values", "x", "response_mode", "query", "claims", "{}", "display", "page", "request", "x", "request_uri", "x", "registration", "x"),
			[]func(*http.Request){cookied(cookie)}},
		{"/authorize", http.MethodPost, authRequest(), []func(*http.Request){cookied(cookie)}},
		{"/token", http.MethodPost, exchange("x"), []func(*http.Request){basic("app")}},
		{"/token", http.MethodPost, with(refreshing(got.refresh), "scope", "openid", "client_id", "app"), []func(*http.Request){basic("app")}},
		{"/token", http.MethodPost, form("grant_type", "client_credentials", "scope", "read", "client_id", "post", "client_secret", "post-secret"), nil},
		{"/userinfo", http.MethodPost, form("access_token", got.access), nil},
		{"/revoke", http.MethodPost, form("token", "x", "token_type_hint", "x", "client_id", "native"), nil},
		{"/logout", http.MethodGet, form("id_token_hint", "x", "client_id", "app", "post_logout_redirect_uri", bye, "state", "s", "csrf", "x", "ui_locales", "en",
			"logout_hint", "x"), []func(*http.Request){cookied(cookie)}},
		{"/logout", http.MethodPost, form("csrf", "x"), []func(*http.Request){cookied(cookie)}},
	}
	for _, e := range endpoints {
		for name := range e.base {
			for _, value := range values {
				v := with(e.base)
				v[name] = []string{value}
				g.sound(e.method, e.path, v, e.change...)
				v[name] = []string{value, value}
				g.sound(e.method, e.path, v, e.change...)
			}
		}
		for _, value := range values {
			g.sound(e.method, e.path, e.base, cookied(strings.Map(printableOnly, value)))
			g.sound(e.method, e.path, e.base, func(r *http.Request) { r.Header.Set("Authorization", value) })
			g.sound(e.method, e.path, e.base, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+value) })
			g.sound(e.method, e.path, e.base, func(r *http.Request) { r.Header.Set("Authorization", "Basic "+value) })
			g.sound(e.method, e.path, e.base, func(r *http.Request) { r.Header.Set("Content-Type", value) })
			g.sound(e.method, "/t/"+url.PathEscape(value)+e.path, e.base)
		}
	}
}

func TestEndpoints_ParametersAreFew(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	many, repeated := url.Values{}, url.Values{}
	for i := range 101 {
		many.Set("x"+strings.Repeat("y", i), "z")
		repeated.Add("x", "z")
	}
	for name, v := range map[string]url.Values{"many": many, "repeated": repeated} {
		for _, a := range []answer{
			g.get("/authorize", v), g.post("/authorize", v), g.get("/logout", v), g.post("/logout", v),
			g.post("/token", v, basic("app")), g.post("/revoke", v, basic("app")), g.post("/userinfo", v),
		} {
			if a.StatusCode != http.StatusBadRequest || !strings.Contains(string(a.body), "more than 100 parameters") {
				t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
			}
		}
		if v.Del(slices.Sorted(maps.Keys(v))[0]); len(v) > 0 { // a hundred are not too many
			if a := g.get("/logout", v); a.StatusCode != http.StatusOK {
				t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
			}
		}
	}
}

// sound makes a request and checks what holds for every answer.
func (g *rig) sound(method, path string, v url.Values, change ...func(*http.Request)) {
	g.Helper()
	var a answer
	if method == http.MethodGet {
		a = g.get(path, v, change...)
	} else {
		a = g.post(path, v, change...)
	}
	if a.StatusCode >= http.StatusInternalServerError {
		g.Errorf("%s %s %q: %d %s", method, path, v, a.StatusCode, a.body)
	}
	if a.Header.Get("Set-Cookie") == "a=b" {
		g.Errorf("%s %s %q: a header was injected", method, path, v)
	}
	to := a.Header.Get("Location")
	for _, ours := range []string{callback, bye, "http://127.0.0.1", "http://[::1]", "/login/handle/start", "/logout?", "/t/"} {
		if to == "" || strings.HasPrefix(to, ours) {
			return
		}
	}
	g.Errorf("%s %s %q: sent to %q", method, path, v, to)
}

func printableOnly(r rune) rune {
	if r < 0x21 || r > 0x7e || strings.ContainsRune(`";\,`, r) {
		return -1
	}
	return r
}
