package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

// demoPage is where a sign-in through the demo preset lands.
const demoPage = "/resources/bank-app/"

// signInByCode walks the demo preset with a phone number and the fake code.
func signInByCode(t *testing.T, s *apptest.System, b *apptest.Browser, phone string) {
	t.Helper()
	page := b.Open(s.Edge + "/login/demo")
	if page.Status != http.StatusOK || !strings.HasPrefix(page.URL.String(), s.Issuer+"/login/") {
		t.Fatalf("expected the sign-in page of auth, got %d at %s", page.Status, page.URL)
	}
	b.Submit(map[string]string{"identifier": phone})
	page = b.Submit(map[string]string{"code": "123456"})
	if page.Status != http.StatusOK || page.URL.String() != s.Edge+demoPage {
		t.Fatalf("expected the demo page, got %d at %s\n%s", page.Status, page.URL, page.Body)
	}
}

// signInByPassword walks the demo preset with an e-mail address and a password.
func signInByPassword(t *testing.T, s *apptest.System, b *apptest.Browser, email, password string) {
	t.Helper()
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": email})
	page := b.Submit(map[string]string{"password": password})
	if page.Status != http.StatusOK || page.URL.String() != s.Edge+demoPage {
		t.Fatalf("expected the demo page, got %d at %s\n%s", page.Status, page.URL, page.Body)
	}
}

// call sends a script's request through the edge.
func call(t *testing.T, s *apptest.System, b *apptest.Browser, method, path, body string) *apptest.Page {
	t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, s.Edge+path, reader)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/json")
	r.Header.Set("Sec-Fetch-Mode", "cors")
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if method != http.MethodGet {
		r.Header.Set("Origin", s.Edge)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return b.Do(r)
}

// firstAccount returns the id of the caller's first account.
func firstAccount(t *testing.T, page *apptest.Page) string {
	t.Helper()
	var list struct {
		Accounts []struct {
			ID string `json:"id"`
		} `json:"accounts"`
	}
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil || len(list.Accounts) == 0 {
		t.Fatalf("accounts are %s (%v)", page.Body, err)
	}
	return list.Accounts[0].ID
}

const payment = `{"from":%q,"to":"KZ00DEMO0000000000","amount":1200,"currency":"KZT","note":"lunch"}`

func paymentFrom(account string) string { return strings.Replace(payment, "%q", `"`+account+`"`, 1) }

func TestJourney_PhoneAndCodeThenBankThenSignOut(t *testing.T) {
	s := apptest.Start(t, nil)
	b := apptest.NewBrowser(t)
	if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusUnauthorized {
		t.Fatalf("before sign-in: %d %s", p.Status, p.Body)
	}
	signInByCode(t, s, b, "+77000000001")
	accounts := call(t, s, b, http.MethodGet, "/resources/bank/accounts", "")
	if accounts.Status != http.StatusOK {
		t.Fatalf("accounts: %d %s", accounts.Status, accounts.Body)
	}
	account := firstAccount(t, accounts)
	for _, path := range []string{"/resources/bank/accounts/" + account + "/transactions", "/resources/bank/cards", "/resources/bank/profile"} {
		if p := call(t, s, b, http.MethodGet, path, ""); p.Status != http.StatusOK {
			t.Errorf("%s: %d %s", path, p.Status, p.Body)
		}
	}
	if p := call(t, s, b, http.MethodPost, "/resources/bank/payments", paymentFrom(account)); p.Status != http.StatusCreated {
		t.Errorf("payment: %d %s", p.Status, p.Body)
	}
	b.Open(s.Edge + demoPage)
	if p := b.Submit(map[string]string{}); p.Status != http.StatusOK {
		t.Errorf("sign out: %d at %s", p.Status, p.URL)
	}
	if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusUnauthorized {
		t.Errorf("after sign-out: %d %s", p.Status, p.Body)
	}
	// Single sign-on ended too: the next sign-in asks again.
	if p := b.Open(s.Edge + "/login/demo"); !strings.HasPrefix(p.URL.String(), s.Issuer+"/login/") {
		t.Errorf("after sign-out a new login went straight to %s", p.URL)
	}
}

func TestJourney_ReaderReadsButMayNotPay(t *testing.T) {
	s := apptest.Start(t, nil)
	b := apptest.NewBrowser(t)
	signInByPassword(t, s, b, "bob@example.com", "builder-demo-1")
	accounts := call(t, s, b, http.MethodGet, "/resources/bank/accounts", "")
	if accounts.Status != http.StatusOK {
		t.Fatalf("accounts: %d %s", accounts.Status, accounts.Body)
	}
	if p := call(t, s, b, http.MethodPost, "/resources/bank/payments", paymentFrom(firstAccount(t, accounts))); p.Status != http.StatusForbidden {
		t.Errorf("payment by a reader: %d %s", p.Status, p.Body)
	}
}

func TestJourney_SingleSignOnNeedsNoSecondPassword(t *testing.T) {
	s := apptest.Start(t, nil)
	b := apptest.NewBrowser(t)
	signInByPassword(t, s, b, "alice@example.com", "wonderland-demo-1")
	if p := b.Open(s.Edge + "/login/demo"); p.URL.String() != s.Edge+demoPage {
		t.Errorf("a second login with a live session ended at %s", p.URL)
	}
}

func TestJourney_ExpiredAccessTokenIsRefreshedUnseen(t *testing.T) {
	s := apptest.Start(t, nil)
	b := apptest.NewBrowser(t)
	signInByCode(t, s, b, "+77000000001")
	for range 3 {
		s.Clock.Advance(6 * time.Minute)
		if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
			t.Fatalf("after the access token expired: %d %s", p.Status, p.Body)
		}
	}
}

func TestJourney_SurvivesARestart(t *testing.T) {
	s := apptest.Start(t, nil)
	b := apptest.NewBrowser(t)
	signInByCode(t, s, b, "+77000000001")
	s.Restart(t)
	if p := call(t, s, b, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
		t.Errorf("after a restart: %d %s", p.Status, p.Body)
	}
}

func TestJourney_SignOutInOneBrowserLeavesAnother(t *testing.T) {
	s := apptest.Start(t, nil)
	one, two := apptest.NewBrowser(t), apptest.NewBrowser(t)
	signInByCode(t, s, one, "+77000000001")
	signInByCode(t, s, two, "+77000000001")
	one.Open(s.Edge + demoPage)
	one.Submit(map[string]string{})
	if p := call(t, s, one, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusUnauthorized {
		t.Errorf("the browser that signed out: %d", p.Status)
	}
	if p := call(t, s, two, http.MethodGet, "/resources/bank/accounts", ""); p.Status != http.StatusOK {
		t.Errorf("the other browser: %d", p.Status)
	}
}
