package demobank

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"versola/platform/clock"
)

func newBank() *Bank {
	return New(clock.NewFake(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)), "http://localhost:8080")
}

func do(b *Bank, subject, method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	if subject != "" {
		r.Header.Set(subjectHeader, subject)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func TestBank_EachSubjectHasItsOwnAccounts(t *testing.T) {
	t.Parallel()
	b := newBank()
	alice, bob := do(b, "alice", "GET", "/accounts", ""), do(b, "bob", "GET", "/accounts", "")
	if alice.Code != 200 || bob.Code != 200 || alice.Body.String() == bob.Body.String() {
		t.Errorf("alice %d %s\nbob %d %s", alice.Code, alice.Body, bob.Code, bob.Body)
	}
	again := do(newBank(), "alice", "GET", "/accounts", "")
	if again.Body.String() != alice.Body.String() {
		t.Error("the same subject has other accounts after a restart")
	}
}

func TestBank_WithoutTheEdgesHeaderNothingIsAnswered(t *testing.T) {
	t.Parallel()
	b := newBank()
	for _, path := range []string{"/accounts", "/accounts/everyday/transactions", "/cards", "/profile"} {
		if w := do(b, "", "GET", path, ""); w.Code != http.StatusUnauthorized {
			t.Errorf("GET %s: %d", path, w.Code)
		}
	}
	if w := do(b, "", "POST", "/payments", `{}`); w.Code != http.StatusUnauthorized {
		t.Errorf("POST /payments: %d", w.Code)
	}
}

func TestPay_MovesMoneyAndShowsIt(t *testing.T) {
	t.Parallel()
	b := newBank()
	before := b.customer("alice").accounts[0].Balance
	for _, amount := range []string{`1200`, `"1200.00"`, `0.5`, `"0.50"`} {
		w := do(b, "alice", "POST", "/payments", `{"from":"everyday","to":"KZ00DEMO","amount":`+amount+`,"currency":"KZT","note":"lunch"}`)
		if w.Code != http.StatusCreated {
			t.Fatalf("amount %s: %d %s", amount, w.Code, w.Body)
		}
	}
	if got := b.customer("alice").accounts[0].Balance; got != before-2*1200_00-2*50 {
		t.Errorf("balance went from %s to %s", before, got)
	}
	var list struct {
		Transactions []struct{ Description, Amount string }
	}
	w := do(b, "alice", "GET", "/accounts/everyday/transactions", "")
	if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil || list.Transactions[0].Amount != "-0.50" || list.Transactions[0].Description != "KZ00DEMO" {
		t.Errorf("%v %s", err, w.Body)
	}
}

func TestPay_RefusesWithAClearProblem(t *testing.T) {
	t.Parallel()
	b := newBank()
	for name, c := range map[string]struct {
		body   string
		status int
		field  string
	}{
		"not json":          {`{`, 400, ""},
		"unknown member":    {`{"from":"everyday","to":"x","amount":1,"admin":true}`, 400, ""},
		"two documents":     {`{"from":"everyday","to":"x","amount":1}{}`, 400, ""},
		"amount is a list":  {`{"from":"everyday","to":"x","amount":[1]}`, 400, ""},
		"foreign account":   {`{"from":"nobody","to":"x","amount":1}`, 422, "from"},
		"nobody is paid":    {`{"from":"everyday","to":"  ","amount":1}`, 422, "to"},
		"control signs":     {`{"from":"everyday","to":"a\u0000b","amount":1}`, 422, "to"},
		"too long":          {`{"from":"everyday","to":"` + strings.Repeat("x", 141) + `","amount":1}`, 422, "to"},
		"nothing":           {`{"from":"everyday","to":"x","amount":0}`, 422, "amount"},
		"negative":          {`{"from":"everyday","to":"x","amount":-5}`, 422, "amount"},
		"a third of a cent": {`{"from":"everyday","to":"x","amount":0.333}`, 422, "amount"},
		"exponent":          {`{"from":"everyday","to":"x","amount":1e3}`, 422, "amount"},
		"overflow":          {`{"from":"everyday","to":"x","amount":99999999999999999999999}`, 422, "amount"},
		"no amount":         {`{"from":"everyday","to":"x"}`, 422, "amount"},
		"null amount":       {`{"from":"everyday","to":"x","amount":null}`, 422, "amount"},
		"not enough money":  {`{"from":"everyday","to":"x","amount":9999999}`, 422, "amount"},
		"other currency":    {`{"from":"everyday","to":"x","amount":1,"currency":"EUR"}`, 422, "currency"},
		"too large":         {`{"from":"` + strings.Repeat("x", maxBody) + `"}`, 413, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := do(b, "alice", "POST", "/payments", c.body)
			var p problem
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || w.Code != c.status || p.Status != c.status ||
				w.Header().Get("Content-Type") != "application/problem+json" {
				t.Fatalf("%d %s (%v)", w.Code, w.Body, err)
			}
			if c.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != c.field) {
				t.Errorf("errors %v, want one of %s", p.Errors, c.field)
			}
		})
	}
	r := httptest.NewRequest("POST", "/payments", strings.NewReader(`{}`))
	r.Header.Set(subjectHeader, "alice")
	r.Header.Set("Content-Type", "text/plain")
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	if w.Code != http.StatusUnsupportedMediaType {
		t.Errorf("a plain text payment: %d", w.Code)
	}
}

func TestBank_RemembersABoundedNumberOfCustomers(t *testing.T) {
	t.Parallel()
	b := newBank()
	for i := range maxCustomers + 10 {
		b.customer(fmt.Sprint(i))
		b.customer("regular")
	}
	if len(b.customers) > maxCustomers || b.customers["regular"] == nil {
		t.Errorf("%d customers", len(b.customers))
	}
}

func TestPage_AllowsNothingInline(t *testing.T) {
	t.Parallel()
	b := newBank()
	for path, contentType := range map[string]string{"/app/": "text/html", "/app/app.js": "text/javascript", "/app/app.css": "text/css"} {
		w := do(b, "", "GET", path, "")
		policy := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || !strings.HasPrefix(w.Header().Get("Content-Type"), contentType) ||
			!strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "unsafe") {
			t.Errorf("GET %s: %d, %s, policy %s", path, w.Code, w.Header().Get("Content-Type"), policy)
		}
		if strings.Contains(w.Body.String(), " style=\"") || strings.Contains(w.Body.String(), " onclick=") {
			t.Errorf("GET %s has inline style or script", path)
		}
	}
}
