package app_test

import (
	"net/http"
	"testing"

	"versola/modules/app/apptest"
)

// Ending everything of a person must not take the sign-in that follows at once
// with it, or the browser goes round between edge and auth.
func TestRevocation_SignInRightAfterEndingAllSessionsHolds(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	path := find(t, s, admin, "alice@")
	for range 3 {
		if p := administer(t, s, admin, http.MethodDelete, path+"/sessions", "", ""); p.Status != http.StatusOK {
			t.Fatalf("end all sessions: %d %s", p.Status, p.Body)
		}
		b := apptest.NewBrowser(t)
		signInByPassword(t, s, b, "alice@example.com", "wonderland-demo-1")
		if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
			t.Fatalf("a call right after the sign-in: %d %s", p.Status, p.Body)
		}
	}
}
