package app_test

import (
	"testing"
	"time"

	"versola/modules/app/apptest"
)

func lifetimeExercises() map[string]exercise {
	return map[string]exercise{
		"lifetimes": {[]string{"client.id_token_ttl", "client.refresh_idle_ttl", "client.refresh_absolute_ttl"}, clientLifetimes},
		"max_age":   {[]string{"client.default_max_age"}, clientMaxAge},
	}
}

// clientLifetimes lets time pass: an unused family ends, a used one lives on
// until its absolute end.
func clientLifetimes(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	secret := h.client(t, h.web("lifetimes").with(document{"id_token_ttl": "7m0s", "refresh_idle_ttl": "20m0s", "refresh_absolute_ttl": "50m0s"}))
	tokens := h.signIn(t, apptest.NewBrowser(t), "lifetimes", secret, nil)
	idToken, _ := tokens["id_token"].(string)
	claims := payload(t, idToken)
	exp, _ := claims["exp"].(float64)
	iat, _ := claims["iat"].(float64)
	if exp-iat != 420 {
		t.Errorf("the ID token lives %v s", exp-iat)
	}
	h.familiesEnd(t, "lifetimes", secret)
	for _, field := range []string{"id_token_ttl", "refresh_idle_ttl", "refresh_absolute_ttl"} {
		for _, wrong := range []any{"1ms", "-1m", "90000h", "soon", 60} {
			h.refuses(t, h.web("other").with(document{field: wrong}), "/"+field)
		}
	}
}

// clientMaxAge: a session that is older than the client wants does not answer
// silently, unless the request says otherwise.
func clientMaxAge(t *testing.T, _ *house) {
	h := newHouse(t) // whose time it moves
	h.client(t, h.web("strict").with(document{"default_max_age": "10m0s"}))
	secret := h.client(t, h.web("lenient"))
	b := apptest.NewBrowser(t)
	h.signIn(t, b, "lenient", secret, nil)
	silent := func(changes map[string]string) string {
		all := map[string]string{"prompt": "none"}
		for k, v := range changes {
			all[k] = v
		}
		return answer(t, h, h.authorize(t, b, "strict", all)).Get("error")
	}
	if got := silent(nil); got != "" {
		t.Errorf("a fresh session: %s", got)
	}
	h.Clock.Advance(11 * time.Minute)
	if got := silent(nil); got != "login_required" {
		t.Errorf("a session of 11 minutes of 10: %q", got)
	}
	if got := silent(map[string]string{"max_age": "3600"}); got != "" {
		t.Errorf("a request with its own max_age: %s", got)
	}
	h.refuses(t, h.web("other").with(document{"default_max_age": "1ms"}), "/default_max_age")
}
