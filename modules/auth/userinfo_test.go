package auth

import (
	"context"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"versola/platform/jose"
)

func TestUserinfo_ReleasesClaimsByScopeInOneStatement(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for scope, want := range map[string]map[string]any{
		"openid":       {"sub": g.user.String()},
		"openid email": {"sub": g.user.String(), "email": "alice@example.com", "email_verified": true},
		"openid phone": {"sub": g.user.String()},
		"openid profile": {
			"sub": g.user.String(), "name": "Alice", "updated_at": float64(g.clock.Now().Unix()),
		},
	} {
		got, _, _ := g.signInAndExchange(scope)
		var a answer
		g.statements(1, func() { a = g.get("/userinfo", nil, bearer(got.access)) })
		if a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
			t.Fatalf("%s: %d %s", scope, a.StatusCode, a.body)
		}
		if diff := cmp.Diff(want, a.json(t)); diff != "" {
			t.Errorf("%s: %s", scope, diff)
		}
		if a = g.post("/userinfo", form(), bearer(got.access)); a.StatusCode != http.StatusOK {
			t.Errorf("POST with header: %d", a.StatusCode)
		}
		if a = g.post("/userinfo", form("access_token", got.access)); a.StatusCode != http.StatusOK {
			t.Errorf("POST with body: %d", a.StatusCode)
		}
	}
}

func TestUserinfo_BearerRefusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	noOpenID, _, _ := g.signInAndExchange("email")
	for name, x := range map[string]struct {
		a      answer
		status int
		code   string // in the challenge
	}{
		"nothing":            {g.get("/userinfo", nil), 401, ""},
		"another scheme":     {g.get("/userinfo", nil, basic("app")), 401, ""},
		"in the query":       {g.get("/userinfo", form("access_token", got.access)), 401, ""},
		"garbage":            {g.get("/userinfo", nil, bearer("garbage")), 401, "invalid_token"},
		"empty":              {g.get("/userinfo", nil, bearer("")), 400, "invalid_request"},
		"ID token":           {g.get("/userinfo", nil, bearer(got.id)), 401, "invalid_token"},
		"refresh token":      {g.get("/userinfo", nil, bearer(got.refresh)), 401, "invalid_token"},
		"without openid":     {g.get("/userinfo", nil, bearer(noOpenID.access)), 403, "insufficient_scope"},
		"two ways":           {g.post("/userinfo", form("access_token", got.access), bearer(got.access)), 400, "invalid_request"},
		"doubled in body":    {g.post("/userinfo", form("access_token", got.access, "access_token", got.access)), 400, "invalid_request"},
		"two headers":        {g.get("/userinfo", nil, bearer(got.access), func(r *http.Request) { r.Header.Add("Authorization", "Bearer x") }), 400, "invalid_request"},
		"of another tenant":  {g.get("/t/other/userinfo", nil, bearer(got.access)), 401, "invalid_token"},
		"client credentials": {g.get("/userinfo", nil, bearer(g.tokensOf(g.post("/token", form("grant_type", "client_credentials"), basic("service"))).access)), 401, "invalid_token"},
	} {
		challenge := x.a.Header.Get("WWW-Authenticate")
		if x.a.StatusCode != x.status || !strings.HasPrefix(challenge, "Bearer ") || strings.Contains(challenge, "error=") != (x.code != "") ||
			!strings.Contains(challenge, x.code) {
			t.Errorf("%s: %d %q", name, x.a.StatusCode, challenge)
		}
	}
	g.clock.Advance(5 * time.Minute)
	if a := g.get("/userinfo", nil, bearer(got.access)); a.StatusCode != 401 || !strings.Contains(string(a.body), "expired") {
		t.Errorf("expired: %d %s", a.StatusCode, a.body)
	}
}

func TestUserinfo_HostileTokens(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	parsed, err := jose.Parse(got.access)
	must(t, err)
	payload := string(parsed.Payload)
	part := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	es, _ := g.holder.Current().Signer(jose.ES256)
	rs, _ := g.holder.Current().Signer(jose.RS256)
	signed := func(s *jose.Signer, typ, payload string) string {
		raw, err := s.Sign(typ, []byte(payload))
		must(t, err)
		return raw
	}
	foreignKey, err := jose.Generate(jose.ES256)
	must(t, err)
	foreign, err := jose.NewSigner("", jose.ES256, foreignKey)
	must(t, err)
	sameKid, err := jose.NewSigner(es.Public().ID, jose.ES256, foreignKey)
	must(t, err)
	der, err := x509.MarshalPKIXPublicKey(rs.Public().Key.(*rsa.PublicKey))
	must(t, err)
	hs := func(header string) string {
		input := part(header) + "." + part(payload)
		m := hmac.New(sha256.New, der)
		m.Write([]byte(input))
		return input + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
	}
	resign := func(header string) string { // the real signature over another header does not verify; this one has ours
		return part(header) + "." + part(payload) + "." + strings.Split(got.access, ".")[2]
	}
	kid := es.Public().ID
	change := func(f func(map[string]any)) string {
		var m map[string]any
		must(t, json.Unmarshal(parsed.Payload, &m))
		f(m)
		raw, err := json.Marshal(m)
		must(t, err)
		return string(raw)
	}
	hostile := map[string]string{
		"alg none":                  part(`{"alg":"none","typ":"at+jwt"}`) + "." + part(payload) + ".",
		"alg None":                  part(`{"alg":"None","typ":"at+jwt"}`) + "." + part(payload) + ".",
		"HS256 with public key":     hs(`{"alg":"HS256","typ":"at+jwt"}`),
		"HS256 with our kid":        hs(`{"alg":"HS256","typ":"at+jwt","kid":"` + rs.Public().ID + `"}`),
		"jku":                       resign(`{"alg":"ES256","typ":"at+jwt","kid":"` + kid + `","jku":"https://evil.test/"}`),
		"crit":                      resign(`{"alg":"ES256","typ":"at+jwt","kid":"` + kid + `","crit":["exp"]}`),
		"doubled header member":     resign(`{"alg":"ES256","alg":"ES256","typ":"at+jwt","kid":"` + kid + `"}`),
		"another alg for the kid":   resign(`{"alg":"RS256","typ":"at+jwt","kid":"` + kid + `"}`),
		"foreign key":               signed(foreign, "at+jwt", payload),
		"foreign key, our kid":      signed(sameKid, "at+jwt", payload),
		"typ JWT":                   signed(es, "JWT", payload),
		"no typ":                    signed(es, "", payload),
		"logout token's typ":        signed(es, "logout+jwt", payload),
		"doubled claim":             signed(es, "at+jwt", strings.Replace(payload, `"sub":`, `"sub":"x","sub":`, 1)),
		"another issuer":            signed(es, "at+jwt", change(func(m map[string]any) { m["iss"] = "https://evil.test" })),
		"no exp":                    signed(es, "at+jwt", change(func(m map[string]any) { delete(m, "exp") })),
		"exp as text":               signed(es, "at+jwt", change(func(m map[string]any) { m["exp"] = "9999999999" })),
		"iat in the future":         signed(es, "at+jwt", change(func(m map[string]any) { m["iat"] = g.clock.Now().Unix() + 60 })),
		"sub that is no user":       signed(es, "at+jwt", change(func(m map[string]any) { m["sub"] = "1 OR 1=1" })),
		"grant of nobody":           signed(es, "at+jwt", change(func(m map[string]any) { m["gid"] = "00000000-0000-7000-8000-000000000000" })),
		"payload that is no object": signed(es, "at+jwt", `[]`),
		"signature cut":             got.access[:len(got.access)-2],
		"four parts":                got.access + ".x",
		"line break":                got.access[:30] + "\n" + got.access[30:],
	}
	for name, token := range hostile {
		a := g.post("/userinfo", form("access_token", token))
		if a.StatusCode != 401 || a.json(t)["error"] != "invalid_token" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
	if a := g.post("/userinfo", form("access_token", signed(rs, "at+jwt", payload))); a.StatusCode != 200 {
		t.Errorf("our own RS256 key: %d %s", a.StatusCode, a.body)
	}
}

func TestUserinfo_EndsWithUserSessionAndGrant(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	for name, end := range map[string]string{
		"user disabled":   "UPDATE auth.users SET status = 'disabled'",
		"session ended":   "UPDATE auth.session SET ended_at = now()",
		"session expired": "UPDATE auth.session SET expires_at = created_at",
		"grant revoked":   "UPDATE auth.grants SET revoked_at = now()",
		"session gone":    "DELETE FROM auth.session",
	} {
		g.exec("UPDATE auth.users SET status = 'active'")
		got, _, _ := g.signInAndExchange("openid")
		g.exec(end)
		a := g.get("/userinfo", nil, bearer(got.access))
		if a.StatusCode != 401 || a.json(t)["error"] != "invalid_token" {
			t.Errorf("%s: %d %s", name, a.StatusCode, a.body)
		}
	}
}

func TestUserinfo_RevokedUsersTokensOfBefore(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	before, _, _ := g.signInAndExchange("openid")
	g.clock.Advance(2 * time.Second)
	g.exec("INSERT INTO auth.revocation (kind, subject, at, expires_at) VALUES ('user', $1, $2, $3)",
		g.user.String(), g.clock.Now(), g.clock.Now().Add(time.Hour))
	must(t, g.module.follower.Pull(context.Background()))
	g.clock.Advance(time.Second)
	after, _, _ := g.signInAndExchange("openid")
	g.refused(g.get("/userinfo", nil, bearer(before.access)), 401, "invalid_token")
	if a := g.get("/userinfo", nil, bearer(after.access)); a.StatusCode != 200 {
		t.Errorf("a later token: %d %s", a.StatusCode, a.body)
	}
}

func TestRevoke_RefreshTokenEndsTheFamilyAndAccessTokenEndsAlone(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	app := basic("app")
	revoked := func(pairs ...string) {
		t.Helper()
		if a := g.post("/revoke", form(pairs...), app); a.StatusCode != 200 || len(a.body) != 0 || a.Header.Get("Cache-Control") != "no-store" {
			t.Errorf("revocation: %d %s", a.StatusCode, a.body)
		}
	}
	one, _, _ := g.signInAndExchange("openid")
	two := g.refresh(one.refresh)
	g.statements(1, func() { revoked("token", two.access, "token_type_hint", "refresh_token") })
	g.refused(g.get("/userinfo", nil, bearer(two.access)), 401, "invalid_token")
	if a := g.get("/userinfo", nil, bearer(one.access)); a.StatusCode != 200 {
		t.Errorf("another access token of the grant: %d", a.StatusCode)
	}
	three := g.refresh(two.refresh)
	// An old generation revokes the family like the current one.
	g.statements(1, func() { revoked("token", one.refresh, "token_type_hint", "nonsense") })
	g.refreshRefused(three.refresh)
	g.refused(g.get("/userinfo", nil, bearer(three.access)), 401, "invalid_token")
	revoked("token", one.refresh)
	if n := g.count("SELECT count(*) FROM auth.revocation"); n != 2 {
		t.Errorf("%d entries in the log", n)
	}
	g.statements(0, func() { revoked("token", "unknown") })
	g.clock.Advance(time.Hour)
	g.statements(0, func() { revoked("token", one.access) })
}

func TestRevoke_Refusals(t *testing.T) {
	t.Parallel()
	g := newRig(t)
	got, _, _ := g.signInAndExchange("openid")
	g.refused(g.post("/revoke", form(), basic("app")), 400, "invalid_request")
	g.refused(g.post("/revoke", form("token", "a", "token", "b"), basic("app")), 400, "invalid_request")
	g.refused(g.post("/revoke", form("token", got.refresh)), 401, "invalid_client")
	for _, token := range []string{got.refresh, got.access} {
		g.refused(g.post("/revoke", form("token", token, "client_id", "native")), 400, "invalid_grant")
	}
	if a := g.do(http.MethodGet, "/revoke", nil); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", a.StatusCode)
	}
	if a := g.get("/userinfo", nil, bearer(got.access)); a.StatusCode != 200 {
		t.Errorf("a foreign client revoked: %d", a.StatusCode)
	}
	g.refresh(got.refresh)
}
