package auth

import (
	"net/http"
	"net/url"
	"slices"
	"testing"

	"versola/modules/central/catalog"
)

// frame is the address of a client's frame.
func frame(address, iss, sid string) string {
	separator := "?"
	if u, _ := url.Parse(address); u.RawQuery != "" {
		separator = "&"
	}
	return address + separator + url.Values{"iss": {iss}, "sid": {sid}}.Encode()
}

// framed gives clients an address for the browser.
func framed(addresses map[string]string) func(*catalog.Snapshot) {
	return func(s *catalog.Snapshot) {
		for i := range s.Clients {
			if s.Clients[i].Tenant == "demo" {
				s.Clients[i].FrontchannelLogoutURI = addresses[s.Clients[i].ID]
			}
		}
	}
}

func TestFrontChannel_TellsTheClientsThatTookPartInTheBrowser(t *testing.T) {
	t.Parallel()
	const app, post, loose = "http://localhost:9999/front?theme=dark", "http://localhost:9999/post", "http://localhost:9999/loose"
	g := newRig(t, framed(map[string]string{"app": app, "post": post, "loose": loose, "native": "http://127.0.0.1/front"}))
	got, cookie, sid := g.signInAndExchange("openid")
	_, elsewhere, _ := g.signInAndExchange("openid") // another browser's session
	redeem := func(client string, v url.Values, change ...func(*http.Request)) {
		code := g.code(cookie, with(authRequest(), "client_id", client, "scope", "openid"))
		g.tokensOf(g.post("/token", with(v, "code", code), change...))
	}
	redeem("post", with(exchange(""), "client_id", "post", "client_secret", "post-secret"))
	redeem("loose", exchange(""), basic("loose"))
	g.code(cookie, with(authRequest(), "client_id", "native", "redirect_uri", "http://127.0.0.1:1/callback")) // never redeemed
	var a answer
	g.statements(2, func() {
		a = g.get("/logout", form("id_token_hint", got.id, "post_logout_redirect_uri", bye, "state", "a b"), cookied(cookie))
	})
	p := a.page(t)
	want := []string{frame(app, issuer, sid.String()), frame(loose, issuer, sid.String()), frame(post, issuer, sid.String())}
	if a.StatusCode != 200 || p.Page != "signing-out" || p.Action != bye+"?state=a+b" || !slices.Equal(p.Frames, want) || !cleared(a) {
		t.Errorf("%d %+v, wanted frames %v", a.StatusCode, p, want)
	}
	if to, _ := g.get("/logout", form("id_token_hint", got.id, "post_logout_redirect_uri", bye), cookied(cookie)).location(t); to != bye {
		t.Errorf("the second time: %s", to)
	}
	if _, q := g.get("/authorize", with(authRequest(), "prompt", "none"), cookied(elsewhere)).location(t); q.Get("code") == "" {
		t.Errorf("another session ended: %v", q)
	}
}

func TestFrontChannel_AfterConfirmationAndWithoutCookie(t *testing.T) {
	t.Parallel()
	const app = "http://localhost:9999/front"
	g := newRig(t, framed(map[string]string{"app": app, "gone": app}))
	_, cookie, sid := g.signInAndExchange("openid")
	page := g.get("/logout", nil, cookied(cookie)).page(t)
	if p := g.post("/logout", with(page.Hidden, "csrf", page.CSRF), cookied(cookie)).page(t); p.Page != "signing-out" || p.Action != "" ||
		!slices.Equal(p.Frames, []string{frame(app, issuer, sid.String())}) {
		t.Errorf("confirmed: %+v", p)
	}
	got, _, sid := g.signInAndExchange("openid")
	if p := g.post("/logout", form("id_token_hint", got.id)).page(t); p.Page != "signing-out" || !slices.Equal(p.Frames, []string{frame(app, issuer, sid.String())}) {
		t.Errorf("by the hint alone: %+v", p)
	}
	// A client that is off is told nothing, and neither is one that has no address.
	declared := &g.spec.Clients[slices.IndexFunc(g.spec.Clients, func(c catalog.ClientSpec) bool { return c.ID == "app" })]
	before := *declared
	for name, change := range map[string]func(){"off": func() { declared.Disabled = true }, "no address": func() { declared.FrontchannelLogoutURI = "" }} {
		_, cookie, _ = g.signInAndExchange("openid")
		change()
		g.compile()
		page = g.get("/logout", nil, cookied(cookie)).page(t)
		if p := g.post("/logout", with(page.Hidden, "csrf", page.CSRF), cookied(cookie)).page(t); p.Page != "signed-out" {
			t.Errorf("%s: %+v", name, p)
		}
		*declared = before
		g.compile()
	}
}

// A client without refresh tokens takes part for as long as the session lives.
func TestLogout_TellsAClientWhoseTokensAreLongGone(t *testing.T) {
	t.Parallel()
	g := newRig(t, framed(map[string]string{"loose": "http://localhost:9999/front"}))
	cookie, sid := g.signIn()
	g.tokensOf(g.post("/token", exchange(g.code(cookie, with(authRequest(), "client_id", "loose", "scope", "openid"))), basic("loose")))
	n := g.count(`SELECT count(*) FROM auth.grants g JOIN auth.session s ON s.user_id = g.user_id AND s.id = g.session_id
		WHERE g.client_id = 'loose' AND g.expires_at >= s.expires_at AND s.id = $1`, sid)
	if n != 1 {
		t.Error("the grant is forgotten before the session ends")
	}
}
