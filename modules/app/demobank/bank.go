package demobank

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"

	"versola/platform/clock"
)

const (
	// subjectHeader is how the edge names the caller.
	subjectHeader = "X-Versola-Subject"
	// maxCustomers bounds the memory of a bank that everybody may try: a
	// customer is some 10 KiB.
	maxCustomers = 5000
	// maxSubject is longer than any subject (OpenID Connect Core section 2
	// says 255 characters at the most).
	maxSubject = 255
	// maxHistory bounds what one customer can pile up.
	maxHistory = 200
)

// Bank is the demo's upstream.
type Bank struct {
	clock clock.Clock
	mux   *http.ServeMux

	mu        sync.Mutex
	customers map[string]*customer
	calls     uint64
}

// New makes the bank. issuer is auth's public URL: the page's sign-out form is
// redirected there, which its Content-Security-Policy has to allow.
func New(c clock.Clock, issuer string) *Bank {
	b := &Bank{clock: c, mux: http.NewServeMux(), customers: map[string]*customer{}}
	b.mux.HandleFunc("GET /accounts", b.as(b.accounts))
	b.mux.HandleFunc("GET /accounts/{id}/transactions", b.as(b.transactions))
	b.mux.HandleFunc("GET /cards", b.as(func(w http.ResponseWriter, _ *http.Request, c *customer) {
		answer(w, http.StatusOK, map[string]any{"cards": c.cards})
	}))
	b.mux.HandleFunc("GET /profile", b.as(func(w http.ResponseWriter, _ *http.Request, c *customer) {
		answer(w, http.StatusOK, c.profile)
	}))
	b.mux.HandleFunc("POST /payments", b.as(b.pay))
	mountPage(b.mux, issuer)
	return b
}

// ServeHTTP implements http.Handler.
func (b *Bank) ServeHTTP(w http.ResponseWriter, r *http.Request) { b.mux.ServeHTTP(w, r) }

// as finds the customer of a request. Calls are short, so that one lock around
// each is enough.
func (b *Bank) as(next func(http.ResponseWriter, *http.Request, *customer)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		subjects := r.Header.Values(subjectHeader)
		if len(subjects) != 1 || subjects[0] == "" || len(subjects[0]) > maxSubject {
			fail(w, problem{Status: http.StatusUnauthorized, Detail: "call the bank through the edge, which says who you are"})
			return
		}
		// A slow body must not hold the lock.
		if r.Method == http.MethodPost && !readBody(w, r) {
			return
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		next(w, r, b.customer(subjects[0]))
	}
}

func (b *Bank) customer(subject string) *customer {
	c, ok := b.customers[subject]
	if !ok {
		if len(b.customers) >= maxCustomers {
			b.forget()
		}
		c = open(subject, b.clock.Now())
		b.customers[subject] = c
	}
	b.calls++
	c.seen = b.calls
	return c
}

// forget drops the customer who was not seen for longest.
func (b *Bank) forget() {
	oldest := ""
	for subject, c := range b.customers {
		if oldest == "" || c.seen < b.customers[oldest].seen {
			oldest = subject
		}
	}
	delete(b.customers, oldest)
}

func (b *Bank) accounts(w http.ResponseWriter, _ *http.Request, c *customer) {
	answer(w, http.StatusOK, map[string]any{"accounts": c.accounts})
}

func (b *Bank) transactions(w http.ResponseWriter, r *http.Request, c *customer) {
	a := c.account(r.PathValue("id"))
	if a == nil {
		fail(w, problem{Status: http.StatusNotFound, Detail: "you have no such account"})
		return
	}
	answer(w, http.StatusOK, map[string]any{"transactions": a.history})
}

func (c *customer) account(id string) *account {
	i := slices.IndexFunc(c.accounts, func(a *account) bool { return a.ID == id })
	if i < 0 {
		return nil
	}
	return c.accounts[i]
}

// problem is a problem document (RFC 9457); Errors names the fields.
type problem struct {
	Title  string       `json:"title"`
	Status int          `json:"status"`
	Detail string       `json:"detail,omitempty"`
	Errors []fieldError `json:"errors,omitempty"`
}

type fieldError struct {
	Field  string `json:"field"`
	Detail string `json:"detail"`
}

func fail(w http.ResponseWriter, p problem) {
	p.Title = http.StatusText(p.Status)
	write(w, p.Status, "application/problem+json", p)
}

func answer(w http.ResponseWriter, status int, v any) { write(w, status, "application/json", v) }

func write(w http.ResponseWriter, status int, contentType string, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"title":"Internal Server Error","status":500}`)
	}
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}
