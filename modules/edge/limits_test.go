package edge_test

import (
	"net/http"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// limits bounds the resource "bank".
func (w *world) limits(s catalog.LimitSpec) {
	w.t.Helper()
	w.snapshot.Resources[0].Limits = &s
	w.compile()
}

func TestLimits_EachCallerHasTheirOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits(catalog.LimitSpec{Requests: 2, Per: catalog.Duration(time.Minute)})
	e := w.edge(trusted("127.0.0.0/8"))
	person := w.auth.bearer(nil)
	again := w.auth.bearer(nil) // another token of the same person
	other := w.auth.bearer(func(c map[string]any) { c["sub"] = "somebody-else" })
	call := func(path, token, from string) *response {
		headers := []string{}
		if token != "" {
			headers = append(headers, "Authorization", "Bearer "+token)
		}
		if from != "" {
			headers = append(headers, "X-Forwarded-For", from)
		}
		return newBrowser(t).get(e.URL+"/resources/bank/"+path, headers...)
	}
	call("accounts", person, "").reached(t)
	call("files/a", again, "").reached(t) // the resource counts all endpoints
	for _, token := range []string{person, again} {
		res := call("accounts", token, "")
		if res.StatusCode != http.StatusTooManyRequests || res.reason() != "rate_limited" || res.Header.Get("Retry-After") != "30" {
			t.Errorf("over the limit: %d %s, Retry-After %q", res.StatusCode, res.body, res.Header.Get("Retry-After"))
		}
	}
	call("accounts", other, "").reached(t)
	call("accounts", w.robot(), "").reached(t)
	if res := call("closed", person, ""); res.reason() != "not_permitted" {
		t.Errorf("what is not permitted is not counted: %d %s", res.StatusCode, res.body)
	}
	// Nobody in particular: by address, of IPv6 by network.
	for _, c := range []struct {
		from  string
		limit bool
	}{
		{"192.0.2.1", false}, {"192.0.2.1", false}, {"192.0.2.1", true}, {"192.0.2.2", false},
		{"2001:db8::1", false}, {"2001:db8::2", false}, {"2001:db8::3", true}, {"2001:db8:0:1::3", false},
	} {
		if res := call("", "", c.from); (res.reason() == "rate_limited") != c.limit {
			t.Errorf("%s: %d %s", c.from, res.StatusCode, res.body)
		}
	}
	w.clock.Advance(30 * time.Second)
	call("accounts", again, "").reached(t)
	w.compile() // a change of the configuration forgets nothing
	if res := call("accounts", person, ""); res.reason() != "rate_limited" {
		t.Errorf("after the next catalog: %d %s", res.StatusCode, res.body)
	}
}

func TestLimits_EndpointCountsBesidesItsResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits(catalog.LimitSpec{Requests: 3, Per: catalog.Duration(time.Hour)})
	w.rule("list", func(e *catalog.EndpointSpec) {
		e.Limits = &catalog.LimitSpec{Requests: 60, Per: catalog.Duration(time.Minute), Burst: 1}
	})
	e, token := w.edge(), w.auth.bearer(nil)
	for i, c := range []struct{ path, reason string }{
		{"accounts", ""}, {"accounts", "rate_limited"}, {"accounts/7", ""}, {"accounts/7", ""}, {"accounts/7", "rate_limited"},
	} {
		if res := newBrowser(t).get(e.URL+"/resources/bank/"+c.path, "Authorization", "Bearer "+token); res.reason() != c.reason {
			t.Errorf("call %d to %s: %d %s", i+1, c.path, res.StatusCode, res.body)
		}
	}
}

func TestLimits_CallsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.limits(catalog.LimitSpec{Concurrent: 1})
	e, token := w.edge(), w.auth.bearer(nil)
	hold := func(token string) *response {
		return newBrowser(t).get(e.URL+accounts, "Authorization", "Bearer "+token)
	}
	for range 2 { // the second finds what the first gave back, also after it was broken off
		var stalled *http.Response
		eventually(t, "a call to be under way", func() bool {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.URL+"/resources/bank/files/stall", nil)
			must(t, err)
			r.Header.Set("Authorization", "Bearer "+token)
			stalled, err = noRedirects.Do(r)
			must(t, err)
			if stalled.StatusCode != http.StatusOK {
				_ = stalled.Body.Close()
			}
			return stalled.StatusCode == http.StatusOK
		})
		res := hold(token)
		if res.reason() != "too_many_at_once" || res.StatusCode != http.StatusTooManyRequests || res.Header.Get("Retry-After") != "1" {
			t.Errorf("a second call: %d %s", res.StatusCode, res.body)
		}
		eventually(t, "another caller to pass", func() bool { return hold(w.robot()).StatusCode == http.StatusOK })
		_ = stalled.Body.Close()
		<-w.upstream.gone
		eventually(t, "the call to have left", func() bool { return hold(token).StatusCode == http.StatusOK })
	}
}
