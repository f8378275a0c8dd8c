package login_test

import (
	"net/http"
	"strings"
	"testing"

	"versola/platform/pgtest"
)

// Not parallel: the database of the whole binary goes away.
func TestLogin_WhileTheDatabaseIsAwayAnswers503AndThenGoesOn(t *testing.T) {
	w := newWorld(t)
	b := w.browser()
	page := b.identify("", email)
	pgtest.Stop(t)
	for name, r := range map[string]response{
		"GET": b.get(page.url), "POST": b.submit(page, "password", "password", pass), "choose": b.submit(page, "use-code"), "cancel": b.submit(page, "cancel"),
	} {
		if r.status != http.StatusServiceUnavailable || r.header.Get("Retry-After") == "" || !strings.Contains(r.body, `id="request-id"`) {
			t.Errorf("%s: %d, Retry-After %q", name, r.status, r.header.Get("Retry-After"))
		}
	}
	if r := b.get("/authorize"); r.status != http.StatusServiceUnavailable {
		t.Errorf("start: %d", r.status)
	}
	pgtest.Start(t)
	// It crashed, so conversations are gone, and say so kindly. The pool
	// notices its dead connections one by one.
	r := b.get(page.url)
	for range 20 {
		if r.status == http.StatusNotFound {
			break
		}
		r = b.get(page.url)
	}
	if r.status != http.StatusNotFound || !strings.Contains(r.body, "This sign-in is over") {
		t.Errorf("after a crash: %d", r.status)
	}
	// People and sessions are where they were.
	w.codeOf(b.signIn(email, pass))
}
