package app_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"versola/modules/app/apptest"
	"versola/modules/central/webhook"
)

func webhookExercises() map[string]exercise {
	return map[string]exercise{"webhooks": {[]string{"webhook.url", "webhook.events", "webhook.disabled"}, tenantWebhooks}}
}

// crm is another system, which verifies what it is told.
type crm struct {
	*httptest.Server
	mu     sync.Mutex
	key    []byte
	status int
	heard  map[string]int
}

func newCRM(t *testing.T) *crm {
	t.Helper()
	r := &crm{heard: map[string]int{}, status: http.StatusInternalServerError}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		body, _ := io.ReadAll(q.Body)
		mac := hmac.New(sha256.New, r.key)
		mac.Write([]byte(q.Header.Get("Webhook-Id") + "." + q.Header.Get("Webhook-Timestamp") + "." + string(body)))
		if got := q.Header.Get("Webhook-Signature"); got != "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)) {
			t.Errorf("a request with signature %q", got)
		}
		var e webhook.Event
		if err := json.Unmarshal(body, &e); err != nil {
			t.Errorf("%v in %s", err, body)
		}
		r.heard[e.Type]++
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// with changes what the system knows or answers.
func (r *crm) with(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
}

func (r *crm) hears(t *testing.T, event string, times int) {
	t.Helper()
	apptest.Eventually(t, 10*time.Second, event+" to be told", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.heard[event] >= times
	})
}

// tenantWebhooks: another system hears of a change and of a sign-in; what it
// does not take can be looked at and retried.
func tenantWebhooks(t *testing.T, h *house) {
	const hooks = "/v1/tenants/demo/webhooks"
	r := newCRM(t)
	page := h.send(t, http.MethodPost, hooks, document{"id": "crm", "url": r.URL + "/hook", "events": []string{"client.*", "sign_in.succeeded"}})
	var made struct {
		Secret string `json:"signing_secret"`
	}
	if err := json.Unmarshal([]byte(page.Body), &made); err != nil || page.Status != http.StatusCreated {
		t.Fatalf("create: %d %s", page.Status, page.Body)
	}
	key, err := webhook.ParseSecret(made.Secret)
	if err != nil {
		t.Fatal(err)
	}
	r.with(func() { r.key = key })
	if page := h.send(t, http.MethodGet, hooks+"/crm", nil); strings.Contains(page.Body, made.Secret) || page.Status != http.StatusOK {
		t.Errorf("the secret is shown again: %s", page.Body)
	}
	secret := h.client(t, h.web("told"))
	r.hears(t, "client.created", 1)
	failed := h.failedDelivery(t, hooks+"/crm")
	r.with(func() { r.status = http.StatusAccepted })
	if page := h.send(t, http.MethodPost, failed+"/retry", nil); page.Status != http.StatusOK {
		t.Errorf("retry: %d %s", page.Status, page.Body)
	}
	r.hears(t, "client.created", 2)
	apptest.Eventually(t, 5*time.Second, "its success to be seen", func() bool {
		return strings.Contains(h.send(t, http.MethodGet, failed, nil).Body, `"state":"delivered"`)
	})
	h.signIn(t, apptest.NewBrowser(t), "told", secret, nil)
	r.hears(t, "sign_in.succeeded", 1)
	if page := h.send(t, http.MethodPost, hooks+"/crm/ping", nil); page.Status != http.StatusAccepted {
		t.Errorf("ping: %d %s", page.Status, page.Body)
	}
	r.hears(t, "ping", 1)
	if page := h.send(t, http.MethodDelete, failed, nil); page.Status != http.StatusNoContent {
		t.Errorf("discard: %d %s", page.Status, page.Body)
	}

	page = administer(t, h.System, h.admin, http.MethodPatch, hooks+"/crm", "application/merge-patch+json", `{"disabled":true}`)
	if page.Status != http.StatusOK {
		t.Fatalf("disable: %d %s", page.Status, page.Body)
	}
	h.client(t, h.web("untold"))
	if page := h.send(t, http.MethodGet, hooks+"/crm/deliveries?state=pending", nil); !strings.Contains(page.Body, `"items":[]`) {
		t.Errorf("a disabled webhook has deliveries: %s", page.Body)
	}
	refuse := func(d document, pointer string) {
		t.Helper()
		h.refusesAt(t, http.MethodPost, hooks, document{"id": "other", "url": "https://crm.example/hook", "events": []string{"*"}}.with(d), pointer)
	}
	refuse(document{"url": "ftp://crm.example"}, "/url")
	refuse(document{"url": "https://user:secret@crm.example"}, "/url")
	refuse(document{"events": []string{}}, "/events")
	refuse(document{"events": []string{"us*r"}}, "/events/0")
	if page := h.send(t, http.MethodGet, hooks+"/none/deliveries", nil); page.Status != http.StatusNotFound {
		t.Errorf("deliveries of no webhook: %d %s", page.Status, page.Body)
	}
}

// failedDelivery waits for the first failed delivery of a webhook and returns
// its path.
func (h *house) failedDelivery(t *testing.T, hook string) string {
	t.Helper()
	path := ""
	apptest.Eventually(t, 5*time.Second, "the failure to be seen", func() bool {
		var list struct {
			Items []webhook.Delivery `json:"items"`
		}
		page := h.send(t, http.MethodGet, hook+"/deliveries?state=pending", nil)
		if err := json.Unmarshal([]byte(page.Body), &list); err != nil {
			t.Fatalf("%d %s", page.Status, page.Body)
		}
		for _, d := range list.Items {
			if d.Error != nil && d.Status != nil && *d.Status == http.StatusInternalServerError {
				path = hook + "/deliveries/" + d.ID.String()
			}
		}
		return path != ""
	})
	return path
}
