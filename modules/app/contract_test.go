package app_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/modules/central/openapi/openapitest"
)

// caller calls the administration API of a running system directly, and holds
// every exchange to the OpenAPI document.
type caller struct {
	*apptest.System
	contract *openapitest.Contract
	token    string
}

// newCaller makes a service client that reaches everything, and gets a token.
func newCaller(t *testing.T, s *apptest.System) *caller {
	t.Helper()
	document, err := openapitest.New()
	if err != nil {
		t.Fatal(err)
	}
	h := &house{System: s, admin: signInAdmin(t, s)}
	page := h.send(t, http.MethodPost, "/v1/tenants/system/clients", h.everything("walker"))
	var made struct {
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal([]byte(page.Body), &made); err != nil || page.Status != http.StatusCreated {
		t.Fatalf("register: %d %s", page.Status, page.Body)
	}
	c := &caller{System: s, contract: document}
	apptest.Eventually(t, 5*time.Second, "a token of the service client", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.Issuer+"/t/system/token", strings.NewReader(url.Values{"grant_type": {"client_credentials"}}.Encode()))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.SetBasicAuth("walker", made.Secret)
		var answer struct {
			Token string `json:"access_token"`
		}
		page := apptest.NewBrowser(t).Do(r)
		_ = json.Unmarshal([]byte(page.Body), &answer)
		c.token = answer.Token
		return c.token != ""
	})
	return c
}

// everything declares a service client with the permissions of the role admin.
func (h *house) everything(id string) document {
	return document{"id": id, "client_kind": "service", "auth_method": "client_secret_basic", "grant_types": []string{"client_credentials"}, "audiences": []string{"central"},
		"permissions": []string{"use-api", "view-configuration", "view-users", "view-audit", "support-users", "secure", "manage-tenant", "manage-deployment"}}
}

// do sends a request and returns its answer; want is its status. Headers are
// name, value, name, value.
func (c *caller) do(t *testing.T, want int, method, path string, body any, headers ...string) (map[string]any, http.Header) {
	t.Helper()
	var sent []byte
	switch b := body.(type) {
	case nil:
	case string:
		sent = []byte(b)
	default:
		var err error
		if sent, err = json.Marshal(b); err != nil {
			t.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), method, c.Internal+path, bytes.NewReader(sent))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+c.token)
	switch {
	case body == nil:
	case method == http.MethodPatch:
		r.Header.Set("Content-Type", "application/merge-patch+json")
	default:
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	received, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != want {
		t.Errorf("%s %s: %d, want %d: %.1000s", method, path, resp.StatusCode, want, received)
	}
	c.contract.Check(t, r, sent, resp.StatusCode, resp.Header, received)
	answer := map[string]any{}
	_ = json.Unmarshal(received, &answer) // lines and pages have no members
	return answer, resp.Header
}

const whatever = "*"

// entity walks through the life of one of a kind.
func (c *caller) entity(t *testing.T, many, id string, d, patch document) {
	t.Helper()
	one := many + "/" + url.PathEscape(id)
	d = d.with(document{"id": id})
	_, h := c.do(t, 201, http.MethodPost, many, d, "Idempotency-Key", many)
	if h.Get("ETag") == "" || !strings.HasSuffix(h.Get("Location"), one) {
		t.Errorf("POST %s: ETag %q, Location %q", many, h.Get("ETag"), h.Get("Location"))
	}
	c.do(t, 201, http.MethodPost, many, d, "Idempotency-Key", many)
	c.do(t, 409, http.MethodPost, many, d)
	c.do(t, 422, http.MethodPost, many, d.with(document{"id": "x", "nobody_knows": 1}))
	c.do(t, 415, http.MethodPost, many, d, "Content-Type", "text/plain")
	c.do(t, 400, http.MethodPost, many, "{")
	c.do(t, 200, http.MethodGet, many+"?limit=1&q="+url.QueryEscape(id), nil)
	c.do(t, 400, http.MethodGet, many+"?limit=0", nil)
	c.do(t, 404, http.MethodGet, many+"/nobody", nil)
	_, h = c.do(t, 200, http.MethodGet, one, nil)
	c.do(t, 304, http.MethodGet, one, nil, "If-None-Match", h.Get("ETag"))
	c.do(t, 428, http.MethodPut, one, d)
	_, h = c.do(t, 200, http.MethodPut, one, d.with(patch), "If-Match", h.Get("ETag"))
	c.do(t, 412, http.MethodPatch, one, patch, "If-Match", `"1"`)
	c.do(t, 422, http.MethodPatch, one, "[]", "If-Match", h.Get("ETag"))
	c.do(t, 200, http.MethodPatch, one, patch, "If-Match", h.Get("ETag"))
	c.do(t, 400, http.MethodDelete, one+"?dry_run=true", nil, "If-Match", whatever)
	c.do(t, 204, http.MethodDelete, one, nil, "If-Match", whatever)
	c.do(t, 404, http.MethodDelete, one, nil, "If-Match", whatever)
}

func TestContract_EveryOperationOfARunningSystemIsAsDescribed(t *testing.T) {
	s := apptest.Start(t, nil)
	c := newCaller(t, s)
	c.do(t, 200, http.MethodGet, "/", nil)
	c.do(t, 200, http.MethodGet, "/v1/me", nil)
	c.do(t, 200, http.MethodGet, "/v1/openapi.yaml", nil)
	c.do(t, 401, http.MethodGet, "/v1/tenants", nil, "Authorization", "Bearer x")
	c.configuration(t)
	c.people(t)
	c.keysAndLog(t)
	missing := slices.DeleteFunc(c.contract.NeverCalled(), func(id string) bool {
		// Registration refuses this kind as not supported by this version.
		return id != "list-authorization-detail-types" && strings.HasSuffix(id, "-authorization-detail-type")
	})
	if len(missing) > 0 {
		t.Errorf("no call has shown these operations to work: %v", missing)
	}
}

// configuration walks through every kind of entity.
func (c *caller) configuration(t *testing.T) {
	t.Helper()
	edge, _ := c.do(t, 200, http.MethodGet, "/v1/edges/local", nil)
	c.entity(t, "/v1/edges", "second", document{"jwks": edge["jwks"]}, document{})
	c.entity(t, "/v1/directories", "staff", document{"name": "Staff"}, document{"name": document{"en": "Staff", "ru": "Сотрудники"}})
	c.entity(t, "/v1/tenants", "shop", document{"name": "Shop", "security_profile": "standard"}, document{"settings": document{"access_token_ttl": "5m"}})
	in := "/v1/tenants/demo/"
	c.entity(t, in+"scopes", "orders:read", document{"description": "Orders"}, document{"claims": []string{"name"}})
	c.entity(t, in+"claims", "loyalty", document{"name": "Loyalty"}, document{"description": "Points"})
	c.entity(t, in+"permissions", "see", document{"endpoints": []string{}}, document{"endpoints": []string{"bank:list-accounts"}})
	c.entity(t, in+"roles", "auditor", document{"permissions": []string{}}, document{"permissions": []string{}})
	c.entity(t, in+"resources", "orders", document{"name": "Orders", "upstream": document{"url": "http://127.0.0.1:9"}, "endpoints": []document{}},
		document{"endpoints": []document{{"id": "list", "method": "GET", "path": "/orders"}}})
	c.entity(t, in+"clients", "app", document{"client_kind": "native", "auth_method": "none", "grant_types": []string{"authorization_code"}, "redirect_uris": []string{"com.example.app:/cb"}},
		document{"name": "App"})
	c.entity(t, in+"themes", "dark", document{}, document{"tokens": document{}})
	c.entity(t, in+"texts", "de", document{"texts": document{}}, document{})
	c.entity(t, in+"templates", "code", document{"message": "otp", "channel": "sms", "body": "{code}"}, document{"body": "Code: {code}"})
	preset, _ := c.do(t, 200, http.MethodGet, "/v1/tenants/demo/presets/demo", nil)
	again := document{}
	for _, member := range []string{"edge", "client", "redirect_uri", "scopes", "after_login", "after_logout"} {
		again[member] = preset[member]
	}
	c.entity(t, in+"presets", "again", again, document{"session_ttl": "1h"})
	c.do(t, 200, http.MethodGet, in+"authorization-detail-types", nil)
	c.do(t, 422, http.MethodPost, in+"authorization-detail-types", document{"id": "x"})
	c.webhooks(t, in+"webhooks")
	c.do(t, 409, http.MethodDelete, in+"clients/demo-web", nil, "If-Match", whatever)

	secrets := in + "clients/demo-app/secrets"
	made, _ := c.do(t, 201, http.MethodPost, secrets, nil)
	c.do(t, 200, http.MethodGet, secrets, nil)
	c.do(t, 204, http.MethodDelete, secrets+"/"+fmt.Sprint(made["id"]), nil)
	c.do(t, 404, http.MethodDelete, secrets+"/"+fmt.Sprint(made["id"]), nil)
}

// webhooks walks through the life of a webhook, its secrets and a delivery.
func (c *caller) webhooks(t *testing.T, all string) {
	t.Helper()
	d := document{"url": c.Issuer + "/nothing-is-here", "events": []string{"*"}}
	c.entity(t, all, "crm", d, document{"disabled": true})
	c.do(t, 201, http.MethodPost, all, d.with(document{"id": "told"}))
	one := all + "/told"
	made, _ := c.do(t, 201, http.MethodPost, one+"/secrets", nil)
	c.do(t, 200, http.MethodGet, one+"/secrets", nil)
	c.do(t, 204, http.MethodDelete, one+"/secrets/"+fmt.Sprint(made["id"]), nil)
	c.do(t, 404, http.MethodDelete, one+"/secrets/"+fmt.Sprint(made["id"]), nil)
	c.do(t, 404, http.MethodPost, all+"/nobody/secrets", nil)
	ping, _ := c.do(t, 202, http.MethodPost, one+"/ping", nil)
	delivery := one + "/deliveries/" + fmt.Sprint(ping["id"])
	apptest.Eventually(t, 10*time.Second, "an attempt", func() bool {
		got, _ := c.do(t, 200, http.MethodGet, delivery, nil)
		return got["error"] != nil
	})
	c.do(t, 200, http.MethodGet, one+"/deliveries?state=pending&limit=1", nil)
	c.do(t, 400, http.MethodGet, one+"/deliveries?state=lost", nil)
	c.do(t, 400, http.MethodGet, one+"/deliveries?after=x", nil)
	c.do(t, 200, http.MethodPost, delivery+"/retry", nil)
	c.do(t, 204, http.MethodDelete, delivery, nil)
	c.do(t, 404, http.MethodDelete, delivery, nil)
}

// people walks through the life of a person.
func (c *caller) people(t *testing.T) {
	t.Helper()
	all := "/v1/directories/demo/users"
	c.do(t, 200, http.MethodPost, all+":import", `{"email":"dora@example.com"}`+"\n{\n", "Content-Type", "application/x-ndjson")
	made, h := c.do(t, 201, http.MethodPost, all, document{"email": "carol@example.com", "password": "carol-first-password", "roles": document{"demo": []string{"customer"}}})
	one := all + "/" + fmt.Sprint(made["id"])
	c.do(t, 409, http.MethodPost, all, document{"email": "carol@example.com"})
	c.do(t, 422, http.MethodPost, all, document{"email": "no address"})
	c.do(t, 200, http.MethodGet, all+"?q=carol&status=active&role=demo:customer", nil)
	c.do(t, 200, http.MethodGet, one, nil)
	c.do(t, 304, http.MethodGet, one, nil, "If-None-Match", h.Get("ETag"))
	c.do(t, 404, http.MethodGet, all+"/0198a000-0000-7000-8000-000000000001", nil)
	signInByPassword(t, c.System, apptest.NewBrowser(t), "carol@example.com", "carol-first-password")
	sessions, _ := c.do(t, 200, http.MethodGet, one+"/sessions", nil)
	if list, _ := sessions["items"].([]any); len(list) == 1 {
		first, _ := list[0].(map[string]any)
		c.do(t, 204, http.MethodDelete, one+"/sessions/"+fmt.Sprint(first["id"]), nil)
	} else {
		t.Errorf("sessions: %v", sessions)
	}
	c.do(t, 200, http.MethodDelete, one+"/sessions", nil)
	c.do(t, 200, http.MethodGet, one+"/factors", nil)
	c.do(t, 200, http.MethodPost, one+"/password", document{"expires_in": "1h", "keep_password": true})
	c.do(t, 422, http.MethodPost, one+"/password", document{"expires_in": "1s"})
	c.do(t, 200, http.MethodPost, one+"/password-reset", nil)
	c.do(t, 202, http.MethodPost, one+"/password-reset:send", nil)
	c.do(t, 204, http.MethodDelete, one+"/factors/password", nil)
	c.do(t, 200, http.MethodDelete, one+"/limits", nil)
	c.do(t, 200, http.MethodGet, one+"/events?limit=2", nil)
	_, h = c.do(t, 200, http.MethodPut, one, document{"email": "carol@example.com", "status": "active"}, "If-Match", h.Get("ETag"))
	c.do(t, 412, http.MethodPatch, one, document{"status": "disabled"}, "If-Match", `"1"`)
	c.do(t, 200, http.MethodPatch, one, document{"status": "disabled"}, "If-Match", h.Get("ETag"))
	c.do(t, 428, http.MethodDelete, one, nil)
	c.do(t, 204, http.MethodDelete, one, nil, "If-Match", whatever)
}

// keysAndLog walks through signing keys and the audit log.
func (c *caller) keysAndLog(t *testing.T) {
	t.Helper()
	c.do(t, 200, http.MethodGet, "/v1/keys", nil)
	c.do(t, 422, http.MethodPost, "/v1/keys:rotate", document{"algorithms": []string{"none"}})
	list, _ := c.do(t, 200, http.MethodPost, "/v1/keys:rotate", document{"algorithms": []string{"PS256"}})
	keys, _ := list["items"].([]any)
	for _, k := range keys {
		if key, _ := k.(map[string]any); key["alg"] == "PS256" && key["state"] == "next" {
			c.do(t, 200, http.MethodDelete, "/v1/keys/"+fmt.Sprint(key["id"]), nil)
		}
	}
	c.do(t, 404, http.MethodDelete, "/v1/keys/nobody", nil)
	c.do(t, 200, http.MethodGet, "/v1/audit?limit=500", nil)
	c.do(t, 200, http.MethodGet, "/v1/audit/1", nil)
	c.do(t, 404, http.MethodGet, "/v1/audit/999999", nil)
	c.do(t, 200, http.MethodGet, "/v1/audit:export", nil)
}
