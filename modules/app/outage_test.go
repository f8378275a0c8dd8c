package app_test

import (
	"net/http"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/platform/pgtest"
)

func TestOutage_DatabaseAwayIs503AndHealsByItself(t *testing.T) {
	s := apptest.Start(t, nil)
	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "offline_access")
	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tok := rp.exchange(t, code, verifier)
	b := apptest.NewBrowser(t)
	signInByCode(t, s, b, "+77000000001")

	pgtest.Stop(t)
	for _, address := range []string{s.Issuer + "/authorize?client_id=demo-native&redirect_uri=http://127.0.0.1/callback&response_type=code&scope=openid&code_challenge=E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM&code_challenge_method=S256", s.Edge + "/login/demo"} {
		p := apptest.NewBrowser(t).Open(address)
		if p.Status != http.StatusServiceUnavailable || p.Header.Get("Retry-After") == "" {
			t.Errorf("%s without a database: %d, Retry-After %q", address, p.Status, p.Header.Get("Retry-After"))
		}
	}
	if status := bearer(t, s.Issuer+"/userinfo", tok.AccessToken); status != http.StatusServiceUnavailable {
		t.Errorf("userinfo without a database: %d", status)
	}
	// What needs no database goes on: a session and a token already verified.
	if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
		t.Errorf("a proxied call of a known session: %d %s", p.Status, p.Body)
	}
	if status := bearer(t, s.Edge+"/resources/bank/accounts", tok.AccessToken); status != http.StatusOK {
		t.Errorf("a proxied call with a token: %d", status)
	}
	pgtest.Start(t)
	apptest.Eventually(t, 10*time.Second, "userinfo to work again", func() bool {
		return bearer(t, s.Issuer+"/userinfo", tok.AccessToken) == http.StatusOK
	})
	refresh(t, rp, tok.RefreshToken)
	apptest.WaitReady(t, s.Diagnostics)
}
