package login_test

import (
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"versola/modules/auth/authorization"
	"versola/modules/auth/par"
)

// push keeps a request as if a client had pushed it, for a minute, and lets the
// next sign-ins begin with it.
func (w *world) push() {
	w.t.Helper()
	store := &par.Store{DB: w.db}
	r := &authorization.Request{Tenant: "demo", ClientID: "web", RedirectURI: "http://app.test/cb", State: "st", Scopes: []string{"openid"}}
	uri, err := store.Push(w.t.Context(), rand.Reader, r, w.clock.Now().Add(time.Minute))
	if err != nil {
		w.t.Fatal(err)
	}
	if r, err = store.Find(w.t.Context(), "demo", "web", uri, w.clock.Now()); err != nil || r == nil {
		w.t.Fatal(r, err)
	}
	w.request = func(n *authorization.Request) { *n = *r }
}

// kept counts the pushed requests that can be answered.
func (w *world) kept() (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), "SELECT count(*) FROM auth.pushed_request WHERE expires_at > $1", w.clock.Now()).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func TestPushed_OfTwoSignInsOfOneRequestOneIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.push()
	one, two := w.browser(), w.browser()
	first, second := one.identify("", email), two.identify("", email)
	before := w.db.Statements()
	w.codeOf(one.submit(first, "password", "password", pass))
	if n := w.db.Statements() - before; n != 2 {
		t.Errorf("the answer took %d statements, want 2", n)
	}
	if w.kept() != 0 {
		t.Error("the answered request is left")
	}
	if r := two.submit(second, "password", "password", pass); r.status != http.StatusGone || r.location != "" {
		t.Errorf("the second sign-in: %d %q", r.status, r.location)
	}
	if two.sessionOf("demo") != nil {
		t.Error("the second sign-in has made a session")
	}
	third := w.browser()
	if r := third.get("/authorize"); r.status == http.StatusSeeOther {
		t.Errorf("a sign-in began with it: %q", r.location)
	}
	if r := two.get(strings.TrimSuffix(second.url, "/password")); r.status != http.StatusSeeOther {
		t.Errorf("the second conversation: %d", r.status)
	}
}

func TestPushed_CancellingAnswersItOnce(t *testing.T) {
	w := newWorld(t)
	w.push()
	one, two := w.browser(), w.browser()
	first, second := one.start(""), two.start("")
	cancel := func(b *browser, page response) response { return b.submit(page, "cancel") }
	if r := cancel(one, first); !strings.Contains(r.location, "error=access_denied") {
		t.Errorf("cancelled: %d %q", r.status, r.location)
	}
	if r := cancel(two, second); r.status != http.StatusGone {
		t.Errorf("cancelled after it was answered: %d %q", r.status, r.location)
	}
	if w.kept() != 0 {
		t.Error("the answered request is left")
	}
}

func TestPushed_ASignInMayTakeLongerThanTheRequestURIIsGoodFor(t *testing.T) {
	w := newWorld(t)
	w.push()
	b := w.browser()
	page := b.identify("", email)
	w.clock.Advance(14 * time.Minute)
	if w.kept() != 1 {
		t.Fatal("the request of a sign-in that goes on is swept")
	}
	w.codeOf(b.submit(page, "password", "password", pass))

	w.push()
	page = b.start("")
	w.clock.Advance(70 * time.Minute)
	page = b.follow(b.get(page.url)) // an expired conversation begins anew
	w.clock.Advance(10 * time.Minute)
	page = b.follow(b.submit(page, "identifier", "identifier", email))
	w.codeOf(b.submit(page, "password", "password", pass))

	w.push()
	page = b.start("")
	other := w.browser()
	w.codeOf(other.submit(other.identify("", email), "password", "password", pass))
	w.clock.Advance(20 * time.Minute)
	if r := b.follow(b.get(page.url)); r.status != http.StatusGone {
		t.Errorf("an expired conversation of an answered request: %d", r.status)
	}
}

func TestPushed_AWrongProofSpendsNothing(t *testing.T) {
	w := newWorld(t)
	w.push()
	b := w.browser()
	page := b.follow(b.submit(b.identify("", email), "password", "password", "wrong"))
	if w.kept() != 1 {
		t.Fatal("a wrong password has spent the request")
	}
	w.codeOf(b.submit(page, "password", "password", pass))
}

func TestPushed_OfParallelSignInsOneIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.push()
	const many = 4
	var pages [many]response
	var browsers [many]*browser
	for i := range many {
		browsers[i] = w.browser()
		pages[i] = browsers[i].identify("", email)
	}
	var answered, gone atomic.Int64
	var all sync.WaitGroup
	for i := range many {
		all.Go(func() {
			switch r := browsers[i].submit(pages[i], "password", "password", pass); {
			case strings.Contains(r.location, "code="):
				answered.Add(1)
			case r.status == http.StatusGone:
				gone.Add(1)
			}
		})
	}
	all.Wait()
	if answered.Load() != 1 || gone.Load() != many-1 {
		t.Errorf("%d answered, %d gone", answered.Load(), gone.Load())
	}
}
