package admin_test

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

func service(id string) map[string]any {
	return map[string]any{"id": id, "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"}}
}

const clients = "/v1/tenants/other/clients"

func TestRetry_GivesTheAnswerAgainWithItsSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	first := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k")
	again := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k")
	if first.Code != http.StatusCreated || first.text("client_secret") == "" || first.Header().Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %s", first.Code, first.Body)
	}
	if again.Code != first.Code || again.Body.String() != first.Body.String() || again.Header().Get("Idempotent-Replayed") != "true" {
		t.Errorf("%d %s", again.Code, again.Body)
	}
	for _, name := range []string{"ETag", "Location", "Content-Type"} {
		if got, want := again.Header().Get(name), first.Header().Get(name); got != want || want == "" {
			t.Errorf("%s: %q, first %q", name, got, want)
		}
	}
	var kept []byte
	must(t, f.db.QueryRow(t.Context(), `SELECT answer FROM central.idempotency`).Scan(&kept))
	if strings.Contains(string(kept), first.text("client_secret")) {
		t.Error("the answer is kept with its secret in the clear")
	}
	f.clock.Advance(25 * time.Hour)
	late := f.token(t, "at+jwt", map[string]any{"iat": f.clock.Now().Unix(), "exp": f.clock.Now().Unix() + 300})
	if a := f.call(t, late, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusConflict || a.text("reason") != "exists" {
		t.Errorf("after a day: %d %s", a.Code, a.Body)
	}
}

func TestRetry_AKeyIsOfOneRequestOfOneCaller(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusCreated {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	for name, path := range map[string]string{"another body": clients, "another path": "/v1/tenants/demo/clients"} {
		id := "a"
		if path == clients {
			id = "b"
		}
		if a := f.call(t, token, http.MethodPost, path, service(id), "Idempotency-Key", "k"); a.Code != http.StatusUnprocessableEntity || a.text("reason") != "idempotency_key_reused" {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	other := f.token(t, "at+jwt", map[string]any{"sub": "0198a000-0000-7000-8000-000000000002"})
	if a := f.call(t, other, http.MethodPost, clients, service("b"), "Idempotency-Key", "k"); a.Code != http.StatusCreated || a.Header().Get("Idempotent-Replayed") != "" {
		t.Errorf("another caller: %d %s", a.Code, a.Body)
	}
	if a := f.call(t, f.as(t, "viewer"), http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusForbidden || strings.Contains(a.Body.String(), "secret") {
		t.Errorf("a caller who lost the right: %d %s", a.Code, a.Body)
	}
}

func TestRetry_WhatFailedMayBeCorrectedUnderItsKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	for name, body := range map[string]any{"invalid": map[string]any{"id": "A"}, "no JSON": "{"} {
		if a := f.call(t, token, http.MethodPost, clients, body, "Idempotency-Key", "k"); a.Code < 400 || a.Code >= 500 {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusCreated {
		t.Errorf("%d %s", a.Code, a.Body)
	}
}

func TestRetry_RefusesKeysThatAreNone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	for name, key := range map[string]string{"empty": "", "long": strings.Repeat("k", 256), "binary": "a\x01b", "not ASCII": "ключ", "a tab": "a\tb", "NUL": "a\x00"} {
		if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", key); a.Code != http.StatusBadRequest || a.text("reason") != "idempotency_key_invalid" {
			t.Errorf("%s: %d %s", name, a.Code, a.Body)
		}
	}
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", strings.Repeat("k", 255)); a.Code != http.StatusCreated {
		t.Errorf("the longest: %d %s", a.Code, a.Body)
	}
}

func TestRetry_OfManyAtOnceOneCreates(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	answers := make([]answer, 8)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			answers[i] = f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k")
		})
	}
	all.Wait()
	made := 0
	secrets := map[string]bool{}
	for _, a := range answers {
		switch {
		case a.Code == http.StatusCreated:
			secrets[a.text("client_secret")] = true
			if a.Header().Get("Idempotent-Replayed") == "" {
				made++
			}
		case a.Code != http.StatusConflict || a.text("reason") != "in_progress" || a.Header().Get("Retry-After") == "":
			t.Errorf("%d %s", a.Code, a.Body)
		}
	}
	if made != 1 || len(secrets) != 1 {
		t.Errorf("%d creations, %d secrets", made, len(secrets))
	}
}

func TestRetry_AClaimOfAProcessThatDiedIsTakenOver(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	token := f.as(t, "admin")
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusCreated {
		t.Fatalf("%d %s", a.Code, a.Body)
	}
	// As it is left between the change and the keeping of its answer.
	_, err := f.db.Exec(t.Context(), `UPDATE central.idempotency SET answer = NULL`)
	must(t, err)
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusConflict || a.text("reason") != "in_progress" {
		t.Errorf("at once: %d %s", a.Code, a.Body)
	}
	f.clock.Advance(61 * time.Second)
	if a := f.call(t, token, http.MethodPost, clients, service("a"), "Idempotency-Key", "k"); a.Code != http.StatusConflict || a.text("reason") != "exists" {
		t.Errorf("after a minute: %d %s", a.Code, a.Body)
	}
}
