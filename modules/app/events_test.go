package app_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"

	"versola/modules/app/apptest"
	"versola/modules/central/audit"
	"versola/platform/postgres"
	"versola/platform/secret"
)

// history returns a person's events, newest first, read in pages of two.
func history(t *testing.T, s *apptest.System, admin *apptest.Browser, person string) []audit.Entry {
	t.Helper()
	var out []audit.Entry
	for after := ""; ; {
		page := administer(t, s, admin, http.MethodGet, person+"/events?limit=2"+after, "", "")
		var list struct {
			Items []audit.Entry `json:"items"`
			Next  string        `json:"next"`
		}
		if err := json.Unmarshal([]byte(page.Body), &list); page.Status != http.StatusOK || err != nil || len(list.Items) > 2 {
			t.Fatalf("events: %d %s (%v)", page.Status, page.Body, err)
		}
		out = append(out, list.Items...)
		if list.Next == "" {
			return out
		}
		after = "&after=" + list.Next
	}
}

// expect waits for the newest events of a person to be these, newest first.
func expect(t *testing.T, s *apptest.System, admin *apptest.Browser, person string, actions ...string) []audit.Entry {
	t.Helper()
	var got []audit.Entry
	apptest.Eventually(t, 5*time.Second, strings.Join(actions, ", "), func() bool {
		got = history(t, s, admin, person)
		names := make([]string, len(got))
		for i := range got {
			names[i] = got[i].Action
		}
		return len(names) >= len(actions) && slices.Equal(names[:len(actions)], actions)
	})
	return got[:len(actions)]
}

func TestEvents_WhatHappensToAPersonIsInTheirHistory(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	alice := find(t, s, admin, "alice@")
	expect(t, s, admin, adminPath(t, s, admin), "password.changed", "sign_in.succeeded")

	rp := newParty(t, s, "demo-app", "demo-app-secret", callback, "offline_access")
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	b.Submit(map[string]string{"password": "not her password"})
	failed := expect(t, s, admin, alice, "sign_in.failed")[0]
	if failed.Detail["reason"] != "wrong_proof" || failed.Detail["factor"] != "password" || failed.Actor.Kind != audit.ActorUnknown ||
		failed.Tenant != "demo" || failed.Address == "" || failed.RequestID == "" {
		t.Errorf("a sign-in that failed is %+v", failed)
	}

	code, verifier := rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	rp.exchange(t, code, verifier)
	in := expect(t, s, admin, alice, "sign_in.succeeded")[0]
	if in.Detail["session"] == "" || in.Detail["amr"] != "pwd" || in.Actor.Client != "demo-app" || !strings.HasSuffix(alice, "/"+in.Actor.ID) {
		t.Errorf("a sign-in is %+v", in)
	}
	for range 2 { // one event, however often
		if _, err := rp.config.Exchange(t.Context(), code, oauth2.VerifierOption(verifier)); err == nil {
			t.Fatal("the second use of a code was answered")
		}
	}
	if again := expect(t, s, admin, alice, "code.reused", "sign_in.succeeded")[0]; again.Detail["grant"] == "" || again.Detail["session"] != in.Detail["session"] || again.Address == "" {
		t.Errorf("a code's second use is %+v", again)
	}

	code, verifier = rp.authorize(t, apptest.NewBrowser(t), "alice@example.com", "wonderland-demo-1")
	tok := rp.exchange(t, code, verifier)
	second := refresh(t, rp, tok.RefreshToken)
	s.Clock.Advance(5 * time.Minute)
	refresh(t, rp, second.RefreshToken)
	for range 2 {
		if _, err := rp.config.TokenSource(t.Context(), &oauth2.Token{RefreshToken: tok.RefreshToken}).Token(); err == nil {
			t.Fatal("a superseded refresh token was answered")
		}
	}
	raw, _ := tok.Extra("id_token").(string)
	logout(t, rp, raw)
	ended := expect(t, s, admin, alice, "session.ended", "refresh_token.reused", "sign_in.succeeded", "code.reused")[0]
	if ended.Detail["reason"] != "signed_out" || ended.Actor.Client != "demo-app" {
		t.Errorf("a sign-out is %+v", ended)
	}
	verifyAudit(t, s)
}

func TestEvents_AnUnknownIdentifierIsNotWrittenDown(t *testing.T) {
	s := apptest.Start(t, nil)
	admin := signInAdmin(t, s)
	b := apptest.NewBrowser(t)
	b.Open(s.Edge + "/login/demo")
	b.Submit(map[string]string{"identifier": "somebody.private@example.com"})
	b.Submit(map[string]string{"password": "her secret password"})
	var page *apptest.Page
	apptest.Eventually(t, 5*time.Second, "the failure in the log", func() bool {
		page = administer(t, s, admin, http.MethodGet, "/v1/audit?"+url.Values{"action": {"sign_in.failed"}}.Encode(), "", "")
		return strings.Contains(page.Body, `"unknown_user"`)
	})
	for _, private := range []string{"somebody", "her secret password"} {
		if strings.Contains(page.Body, private) {
			t.Errorf("the log says %q: %s", private, page.Body)
		}
	}
}

// adminPath is the path of the first administrator.
func adminPath(t *testing.T, s *apptest.System, admin *apptest.Browser) string {
	t.Helper()
	page := administer(t, s, admin, http.MethodGet, "/v1/directories/system/users?q=admin@", "", "")
	var list struct {
		Items []struct {
			ID string `json:"id"`
		} `json:"items"`
	}
	if err := json.Unmarshal([]byte(page.Body), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("search for the administrator: %d %s", page.Status, page.Body)
	}
	return "/v1/directories/system/users/" + list.Items[0].ID
}

// verifyAudit proves the chain of the log.
func verifyAudit(t *testing.T, s *apptest.System) {
	t.Helper()
	db, err := postgres.Open(t.Context(), postgres.Options{URL: s.Config.Database.URL.Reveal()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	encryption, err := secret.ParseKeys(s.Config.Keys.Encryption)
	if err != nil {
		t.Fatal(err)
	}
	log, err := audit.New(audit.Deps{DB: db, Clock: s.Clock, Encryption: encryption})
	if err != nil {
		t.Fatal(err)
	}
	r, err := log.Verify(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if r.Broken != nil || r.Head.Seq == 0 {
		t.Errorf("the audit log ends at %d and is broken at %v", r.Head.Seq, r.Broken)
	}
}
