package auth

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/central/catalog"
	"versola/platform/jose"
)

// modal returns what an answer carries to the client in a mode.
func (g *rig) modal(mode string, a answer) (to string, v url.Values) {
	g.Helper()
	if strings.HasPrefix(mode, "form_post") {
		p := a.page(g)
		if a.StatusCode != http.StatusOK || p.Page != "forward" || a.Header.Get("Location") != "" {
			g.Fatalf("%s: %d %s", mode, a.StatusCode, a.body)
		}
		return p.Action, p.Hidden
	}
	at := a.Header.Get("Location")
	if a.StatusCode != http.StatusSeeOther {
		g.Fatalf("%s: %d %s", mode, a.StatusCode, a.body)
	}
	separator := "?"
	if strings.HasPrefix(mode, "fragment") {
		separator = "#"
	}
	to, encoded, _ := strings.Cut(at, separator)
	v, err := url.ParseQuery(encoded)
	must(g, err)
	return to, v
}

// opened returns the parameters of a signed answer to a client.
func (g *rig) opened(client string, alg jose.Algorithm, v url.Values) url.Values {
	g.Helper()
	if len(v) != 1 {
		g.Errorf("beside the signed answer: %v", v)
	}
	header, payload, err := g.holder.Current().Keys().Verify(v.Get("response"), "JWT")
	must(g, err)
	var c map[string]any
	must(g, json.Unmarshal(payload, &c))
	if header.Alg != alg || c["iss"] != issuer || c["aud"] != client || c["exp"] != float64(g.clock.Now().Add(5*time.Minute).Unix()) {
		g.Errorf("signed by %s: %s", header.Alg, payload)
	}
	out := url.Values{}
	for name, value := range c {
		if text, ok := value.(string); ok && name != "aud" {
			out.Set(name, text)
		}
	}
	return out
}

func TestResponseMode_CarriesCodesAndErrors(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	for _, mode := range append(authorization.Modes(), "") {
		for name, x := range map[string]struct {
			v     url.Values
			error string
		}{
			"code":          {authRequest(), ""},
			"prompt=none":   {with(authRequest(), "prompt", "none", "max_age", "0"), "login_required"},
			"bad scope":     {with(authRequest(), "scope", "admin"), "invalid_scope"},
			"not supported": {with(authRequest(), "registration", "{}"), "registration_not_supported"},
			"bad PKCE":      {with(authRequest(), "code_challenge", "x"), "invalid_request"},
			"bad response":  {with(authRequest(), "response_type", "token"), "unsupported_response_type"},
		} {
			for _, state := range []string{"", "s \"<&\u4f60", strings.Repeat("s", 2048)} {
				v := with(x.v, "response_mode", mode, "state", state)
				a := g.get("/authorize", v, cookied(cookie))
				to, got := g.modal(mode, a)
				if strings.HasSuffix(mode, "jwt") {
					got = g.opened("app", jose.RS256, got)
				}
				if to != callback || got.Get("state") != state || got.Has("state") != (state != "") || got.Get("iss") != issuer ||
					got.Get("error") != x.error || got.Has("code") != (x.error == "") || a.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s, %s: to %s with %v", mode, name, to, got)
				}
				if x.error == "" {
					g.tokensOf(g.post("/token", exchange(got.Get("code")), basic("app")))
				}
			}
		}
	}
	if _, got := g.modal("fragment", g.get("/authorize", with(authRequest(), "redirect_uri", callback+"?x=1", "response_mode", "fragment"), cookied(cookie))); got.Get("code") == "" {
		t.Errorf("fragment behind a query: %v", got)
	}
}

func TestResponseMode_TheClientsAlgorithmSigns(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Tenants = append(s.Tenants, catalog.TenantSpec{ID: "strict", Directory: "demo", Profile: catalog.ProfileFAPI2})
		for _, alg := range jose.Algorithms() {
			c := s.Clients[0]
			c.ID, c.AuthorizationAlg = "signed-"+string(alg), string(alg)
			s.Clients = append(s.Clients, c)
		}
		strict := s.Clients[0]
		strict.Tenant = "strict"
		s.Clients = append(s.Clients, strict)
	})
	cookie, _ := g.signIn()
	for _, alg := range jose.Algorithms() {
		id := "signed-" + string(alg)
		_, got := g.modal("jwt", g.get("/authorize", with(authRequest(), "client_id", id, "response_mode", "jwt"), cookied(cookie)))
		if got := g.opened(id, alg, got); got.Get("code") == "" {
			t.Errorf("%s: %v", alg, got)
		}
	}
	_, got := g.modal("query.jwt", g.get("/t/strict/authorize", with(authRequest(), "response_mode", "query.jwt")))
	if header, _, err := g.holder.Current().Keys().Verify(got.Get("response"), ""); err != nil || header.Alg != jose.ES256 {
		t.Errorf("under fapi2: %v %v", header, err)
	}
	for path, want := range map[string][]string{"": {"ES256", "RS256", "PS256", "EdDSA"}, "/t/strict": {"ES256", "PS256", "EdDSA"}} {
		m := g.get(path+"/.well-known/openid-configuration", nil).json(t)
		for member, want := range map[string][]string{"authorization_signing_alg_values_supported": want, "response_modes_supported": authorization.Modes()} {
			list, _ := m[member].([]any)
			if !slices.EqualFunc(list, want, func(a any, b string) bool { return a == b }) {
				t.Errorf("%s%s is %v", path, member, list)
			}
		}
	}
}

func TestResponseMode_ASignedAnswerIsNoTokenOfOurs(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	cookie, _ := g.signIn()
	_, got := g.modal("jwt", g.get("/authorize", with(authRequest(), "response_mode", "jwt"), cookied(cookie)))
	signed := got.Get("response")
	g.refused(g.post("/userinfo", form("access_token", signed)), http.StatusUnauthorized, "invalid_token")
	if _, q := g.get("/authorize", with(authRequest(), "id_token_hint", signed), cookied(cookie)).location(t); q.Get("error") != "invalid_request" {
		t.Errorf("as a hint: %v", q)
	}
}

func TestResponseMode_AFormNeedsAnAddressThatTakesIt(t *testing.T) {
	t.Parallel()
	g := newRig(t, func(s *catalog.Snapshot) {
		s.Clients[2].RedirectURIs = []string{"com.example.app:/cb", "http://127.0.0.1/cb"}
	})
	cookie, _ := g.signIn()
	native := with(authRequest(), "client_id", "native", "redirect_uri", "com.example.app:/cb")
	for _, mode := range []string{"form_post", "form_post.jwt"} {
		to, q := g.get("/authorize", with(native, "response_mode", mode), cookied(cookie)).location(t)
		if to != "com.example.app:/cb" || q.Get("error") != "invalid_request" || q.Get("state") != "s t" {
			t.Errorf("%s: to %s with %v", mode, to, q)
		}
	}
	for _, mode := range []string{"query", "fragment", "query.jwt", "fragment.jwt"} {
		if _, got := g.modal(mode, g.get("/authorize", with(native, "response_mode", mode), cookied(cookie))); got.Get("code")+got.Get("response") == "" {
			t.Errorf("%s: %v", mode, got)
		}
	}
	pushedModes := maps.Clone(native)
	pushedModes.Set("response_mode", "fragment.jwt")
	a := g.post("/par", pushedModes)
	uri, _ := a.json(t)["request_uri"].(string)
	if _, got := g.modal("fragment.jwt", g.get("/authorize", pushed("native", uri), cookied(cookie))); g.opened("native", jose.RS256, got).Get("code") == "" {
		t.Errorf("pushed: %v", got)
	}
}
