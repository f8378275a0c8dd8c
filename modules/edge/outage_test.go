package edge_test

import (
	"net/http"
	"testing"
	"time"

	"versola/platform/pgtest"
)

// Not parallel: it stops the database of every test.
func TestOutage_DatabaseAwayLosesNothing(t *testing.T) {
	w := newWorld(t)
	e, seen, unseen := w.edge(), newBrowser(t), newBrowser(t)
	seen.signIn(w, e)
	unseen.signIn(w, e)
	seen.get(e.URL + accounts).reached(t)
	pgtest.Stop(t)
	seen.get(e.URL + accounts).reached(t) // from memory
	if res := unseen.get(e.URL + accounts); res.StatusCode != http.StatusServiceUnavailable || res.reason() != "store_unavailable" || res.Header.Get("Retry-After") == "" {
		t.Errorf("a session not in memory: %d %s", res.StatusCode, res.body)
	}
	for _, path := range []string{"/login/demo", "/logout/demo", "/complete?state=x&code=y&iss=z"} {
		b := newBrowser(t)
		b.cookies[sessionCookie], b.cookies["versola_edge_login"] = unseen.cookies[sessionCookie], unseen.cookies["versola_edge_login"]
		if res := b.get(e.URL + path); res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("%s: %d %s", path, res.StatusCode, res.body)
		}
	}
	if err := e.module.Ready(); err == nil {
		t.Error("ready without a database")
	}
	// Bearer tokens and public endpoints need none.
	unseen.get(e.URL+accounts, "Authorization", "Bearer "+w.robot()).reached(t)
	unseen.get(e.URL + "/resources/bank/").reached(t)
	// For as long as the token lives, well above the time after which a row is
	// read again.
	w.clock.Advance(4 * time.Minute)
	seen.get(e.URL + accounts).reached(t)
	w.clock.Advance(2 * time.Minute)
	if res := seen.get(e.URL + accounts); res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a due refresh: %d %s", res.StatusCode, res.body)
	}
	pgtest.Start(t)
	for _, b := range []*browser{seen, unseen} {
		eventually(t, "the database's return", func() bool { return b.get(e.URL+accounts).StatusCode == http.StatusOK })
	}
	if err := e.module.Ready(); err != nil {
		t.Error(err)
	}
}
