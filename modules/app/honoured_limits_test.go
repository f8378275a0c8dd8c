package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

func limitExercises() map[string]exercise {
	return map[string]exercise{
		"limits of a caller": {[]string{"resource.limits.requests", "resource.limits.per", "resource.limits.burst", "resource.endpoints.limits.requests",
			"resource.endpoints.limits.per", "resource.endpoints.limits.burst"}, resourceLimits},
		"calls at once":        {[]string{"resource.limits.concurrent", "resource.endpoints.limits.concurrent"}, resourceAtOnce},
		"a resource indicator": {[]string{"resource.uri"}, resourceIndicator},
	}
}

func resourceLimits(t *testing.T, h *house) {
	up := upstream(t)
	limited := endpoints("a")[0].with(document{"limits": document{"requests": 2, "per": "1h", "burst": 2}})
	for id, d := range map[string]document{
		"res-limits":     {"limits": document{"requests": 60, "per": "1h", "burst": 2}, "endpoints": endpoints("a", "b")},
		"res-limits-own": {"endpoints": []document{limited, endpoints("b")[0]}},
	} {
		token := h.resource(t, d.with(document{"id": id, "upstream": document{"url": up.URL}}))
		at := "/resources/" + id + "/"
		h.call(t, http.MethodGet, at+"a", "", token).wants(t, id, http.StatusOK, "")
		h.call(t, http.MethodGet, at+"a", "", token).wants(t, id, http.StatusOK, "")
		over := h.call(t, http.MethodGet, at+"a", "", token)
		over.wants(t, id+": the third call", http.StatusTooManyRequests, "rate_limited")
		if over.Header.Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", id)
		}
		other := h.call(t, http.MethodGet, at+"b", "", token)
		if (other.Status == http.StatusOK) != (id == "res-limits-own") {
			t.Errorf("%s: the other endpoint answers %d", id, other.Status)
		}
	}
	for pointer, limits := range map[string]document{
		"/limits":            {},
		"/limits/per":        {"requests": 5},
		"/limits/requests":   {"requests": -5, "per": "1m"},
		"/limits/burst":      {"requests": 5, "per": "1m", "burst": -1},
		"/limits/concurrent": {"concurrent": -1},
	} {
		h.refusesResource(t, document{"limits": limits}, pointer)
		h.refusesResource(t, document{"endpoints": []document{endpoints("a")[0].with(document{"limits": limits})}}, "/endpoints/0"+pointer)
	}
}

// resourceAtOnce: while one call waits for a slow upstream, another is refused.
func resourceAtOnce(t *testing.T, h *house) {
	arrived, release := make(chan struct{}), make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			arrived <- struct{}{}
			<-release
		}
	}))
	t.Cleanup(up.Close)
	slow := endpoints("slow")[0]
	for second, d := range map[string]document{
		"a":    {"limits": document{"concurrent": 1}, "endpoints": append(endpoints("a"), slow)},
		"slow": {"endpoints": append(endpoints("a"), slow.with(document{"limits": document{"concurrent": 1}}))},
	} {
		id := "res-busy-" + second
		token := h.resource(t, d.with(document{"id": id, "upstream": document{"url": up.URL}}))
		at := "/resources/" + id + "/"
		first := make(chan result)
		go func() { first <- h.call(t, http.MethodGet, at+"slow", "", token) }()
		<-arrived
		h.call(t, http.MethodGet, at+second, "", token).wants(t, id+": a second call", http.StatusTooManyRequests, "too_many_at_once")
		release <- struct{}{}
		(<-first).wants(t, id+": the first call", http.StatusOK, "")
		apptest.Eventually(t, 2*time.Second, id+": a call afterwards to pass", func() bool {
			return h.call(t, http.MethodGet, at+"a", "", token).Status == http.StatusOK
		})
	}
}

// resourceIndicator: a token whose audience is the indicator is as good as one
// whose audience is the resource's name.
func resourceIndicator(t *testing.T, h *house) {
	const uri = "https://api.example/indicated"
	byName := h.resource(t, document{"id": "res-uri", "uri": uri, "upstream": document{"url": upstream(t).URL}, "endpoints": endpoints("a")})
	for id, audience := range map[string]string{"by-uri": uri, "by-other": uri + "/"} {
		secret := h.client(t, document{"id": id, "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"},
			"audiences": []string{audience}, "permissions": []string{"res-uri"}})
		_, a := h.token(t, id, secret, url.Values{"grant_type": {"client_credentials"}})
		token, _ := a["access_token"].(string)
		want := http.StatusOK
		if audience != uri {
			want = http.StatusForbidden
		}
		apptest.Eventually(t, 2*time.Second, "the edge to know "+id, func() bool {
			return h.call(t, http.MethodGet, "/resources/res-uri/a", "", token).Status == want
		})
	}
	h.call(t, http.MethodGet, "/resources/res-uri/a", "", byName).wants(t, "by the resource's name", http.StatusOK, "")
	for _, wrong := range []string{"res", "https://a.example/#f", "https://a.example/a b", "https://a.example/../b"} {
		h.refusesResource(t, document{"uri": wrong}, "/uri")
	}
}
