package app_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"versola/modules/app/apptest"
)

// A real browser runs the page's script under its content security policy.
func TestFormPost_TheBrowserPostsTheAnswerByItself(t *testing.T) {
	tab := apptest.Chromium(t)
	h := newHouse(t)
	posted := make(chan url.Values, 2)
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.ParseForm() == nil {
			posted <- r.PostForm
		}
		_, _ = w.Write([]byte(`<p id="back">back</p>`))
	}))
	defer there.Close()
	h.callback = there.URL + "/callback"
	h.client(t, h.web("posting"))
	for _, mode := range []string{"form_post", "form_post.jwt"} {
		address := h.Issuer + "/authorize?" + h.request("posting", map[string]string{"response_mode": mode}).Encode()
		if mode == "form_post" {
			do(t, tab, chromedp.Navigate(address), chromedp.WaitVisible(css("#identifier")), chromedp.SendKeys(css("#identifier"), "alice@example.com"),
				chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#password")), chromedp.SendKeys(css("#password"), "wonderland-demo-1"),
				chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#back")))
		} else {
			do(t, tab, chromedp.Navigate(address), chromedp.WaitVisible(css("#back"))) // silently
		}
		select {
		case v := <-posted:
			if mode == "form_post" && (v.Get("code") == "" || v.Get("state") != "s" || v.Get("iss") != h.Issuer) {
				t.Errorf("posted %v", v)
			}
			if mode == "form_post.jwt" && (len(v) != 1 || h.signedAnswer(t, "posting", "RS256", v.Get("response"))["code"] == nil) {
				t.Errorf("posted %v", v)
			}
		case <-time.After(10 * time.Second):
			t.Fatalf("%s: nothing was posted", mode)
		}
	}
	// Without a script the person presses the button.
	b := apptest.NewBrowser(t)
	h.authorize(t, b, "posting", map[string]string{"response_mode": "form_post"})
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	b.Submit(map[string]string{"password": "wonderland-demo-1"})
	if page := b.Submit(nil); page.URL.Path != "/callback" || (<-posted).Get("code") == "" {
		t.Errorf("without a script: %d at %s", page.Status, page.URL)
	}
}
