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

// A person signs out of one application: it clears its own state in a frame of
// the page, and the browser goes on, though another application never answers.
func TestFrontChannel_TheBrowserTellsApplicationsAndGoesOn(t *testing.T) {
	tab := apptest.Chromium(t)
	h := newHouse(t)
	codes, told := make(chan string, 2), make(chan url.Values, 2)
	never := make(chan struct{})
	there := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/clear":
			told <- r.URL.Query()
		case "/stuck":
			<-never
		case "/callback":
			codes <- r.URL.Query().Get("code")
			fallthrough
		default:
			_, _ = w.Write([]byte(`<p id="there">there</p>`))
		}
	}))
	defer there.Close()
	defer close(never)
	h.callback = there.URL + "/callback"
	after := there.URL + "/bye"

	var hint string
	for _, name := range []string{"stuck", "clear"} {
		secret := h.client(t, h.web(name).with(document{"post_logout_redirect_uris": []string{after}, "frontchannel_logout_uri": there.URL + "/" + name}))
		do(t, tab, chromedp.Navigate(h.Issuer+"/authorize?"+h.request(name, nil).Encode()))
		if name == "stuck" { // the other is signed in by the same session
			do(t, tab, chromedp.WaitVisible(css("#identifier")), chromedp.SendKeys(css("#identifier"), "alice@example.com"), chromedp.Click(css("#submit")),
				chromedp.WaitVisible(css("#password")), chromedp.SendKeys(css("#password"), "wonderland-demo-1"), chromedp.Click(css("#submit")))
		}
		do(t, tab, chromedp.WaitVisible(css("#there")))
		status, tokens := h.token(t, name, secret, url.Values{"grant_type": {"authorization_code"}, "code": {<-codes}, "redirect_uri": {h.callback}, "code_verifier": {verifier}})
		if status != http.StatusOK {
			t.Fatalf("%d %v", status, tokens)
		}
		hint, _ = tokens["id_token"].(string)
	}

	leave := h.Issuer + "/logout?" + url.Values{"id_token_hint": {hint}, "post_logout_redirect_uri": {after}, "state": {"z"}}.Encode()
	go func() { _ = chromedp.Do(tab, chromedp.Navigate(leave)) }() // its load waits for the frames
	select {
	case q := <-told:
		if q.Get("iss") != h.Issuer || q.Get("sid") != payload(t, hint)["sid"] {
			t.Errorf("the frame was opened with %v", q)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no frame was opened")
	}
	do(t, tab, chromedp.WaitVisible(css("#onward")))
	picture(t, tab, "signing-out")
	do(t, tab, chromedp.WaitVisible(css("#there")))
	if where, err := chromedp.Run(tab, chromedp.Location()); err != nil || where != after+"?state=z" {
		t.Errorf("the way ends at %s, %v", where, err)
	}
}
