package app_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"golang.org/x/oauth2"

	"versola/modules/app/apptest"
)

// screenshotDir, when set, is where the browser tests leave pictures of every
// page, at phone and desktop width, light and dark.
const screenshotDir = "TEST_SCREENSHOTS"

func do(t *testing.T, tab context.Context, steps ...chromedp.Action[chromedp.Void]) { //nolint:revive // the helper comes first
	t.Helper()
	if err := chromedp.Do(tab, steps...); err != nil {
		where, _ := chromedp.Run(tab, chromedp.Location())
		body, _ := chromedp.Run(tab, chromedp.Evaluate[string](`document.body ? document.body.innerText : ""`))
		t.Fatalf("at %s: %v\n%s", where, err, body)
	}
}

func css(s string) chromedp.CSS { return chromedp.CSS(s) }

// picture takes screenshots of the current page for people to look at.
func picture(t *testing.T, tab context.Context, name string) { //nolint:revive // the helper comes first
	t.Helper()
	dir := os.Getenv(screenshotDir)
	if dir == "" {
		return
	}
	for _, scheme := range []string{"light", "dark"} {
		media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}
		if _, err := chromedp.Call(tab, emulation.SetEmulatedMedia, media); err != nil {
			t.Fatal(err)
		}
		for size, width := range map[string]int64{"phone": 360, "desktop": 1280} {
			do(t, tab, chromedp.EmulateViewport(width, 844))
			png, err := chromedp.Run(tab, chromedp.FullScreenshot(100))
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, name+"-"+size+"-"+scheme+".png"), png, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	do(t, tab, chromedp.EmulateViewport(1280, 844))
}

func waitForText(t *testing.T, tab context.Context, text string) { //nolint:revive // the helper comes first
	t.Helper()
	if _, err := chromedp.Run(tab, chromedp.Poll[bool](`document.body && document.body.innerText.includes(`+quote(text)+`)`)); err != nil {
		body, _ := chromedp.Run(tab, chromedp.Evaluate[string](`document.body.innerText`))
		t.Fatalf("waiting for %q: %v; the page says:\n%s", text, err, body)
	}
}

func quote(s string) string { return `"` + strings.ReplaceAll(s, `"`, `\"`) + `"` }

func TestBrowser_PhoneAndCodeBankPaymentSignOut(t *testing.T) {
	s := apptest.Start(t, nil)
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(s.Edge+"/login/demo"), chromedp.WaitVisible(css("#identifier")))
	picture(t, tab, "identifier")
	do(t, tab, chromedp.SendKeys(css("#identifier"), "+77000000001"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#code")))
	picture(t, tab, "otp")
	// The page sends itself when the sixth digit is there.
	do(t, tab, chromedp.SendKeys(css("#code"), "000000"), chromedp.WaitVisible(css("#error")))
	picture(t, tab, "otp-wrong")
	do(t, tab, chromedp.SendKeys(css("#code"), "123456"), chromedp.WaitVisible(css("#accounts")))
	picture(t, tab, "bank")
	do(t, tab, chromedp.SendKeys(css("#amount"), "1200"), chromedp.SendKeys(css("#to"), "KZ00DEMO0000000000"), chromedp.Click(css("#pay")),
		chromedp.WaitVisible(css("#payment-ok")))
	picture(t, tab, "bank-paid")
	do(t, tab, chromedp.Click(css("#sign-out")), chromedp.WaitVisible(css("#sign-in")))
	picture(t, tab, "bank-signed-out")
	status, err := chromedp.Run(tab, chromedp.Evaluate[int](`fetch("/resources/bank/accounts").then(r => r.status)`, chromedp.EvalAwaitPromise))
	if err != nil || status != 401 {
		t.Errorf("after sign-out: %d, %v", status, err)
	}
}

func TestBrowser_PasswordAndTheReadersRefusal(t *testing.T) {
	s := apptest.Start(t, nil)
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(s.Edge+"/login/demo"), chromedp.WaitVisible(css("#identifier")),
		chromedp.SendKeys(css("#identifier"), "bob@example.com"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#password")))
	picture(t, tab, "password")
	do(t, tab, chromedp.SendKeys(css("#password"), "wrong-password"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#error")))
	picture(t, tab, "password-wrong")
	do(t, tab, chromedp.SendKeys(css("#password"), "builder-demo-1"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#accounts")),
		chromedp.SendKeys(css("#amount"), "1200"), chromedp.SendKeys(css("#to"), "KZ00DEMO0000000000"), chromedp.Click(css("#pay")),
		chromedp.WaitVisible(css("#payment-refused")))
	picture(t, tab, "bank-refused")
}

func TestBrowser_UnknownClientGetsAPageThatSaysSo(t *testing.T) {
	s := apptest.Start(t, nil)
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(s.Issuer+"/authorize?client_id=nobody"))
	waitForText(t, tab, "client_id")
	picture(t, tab, "error")
}

// Browsers hold the redirects behind a form to the page's form-action, also
// those of the client's own server.
func TestBrowser_ClientMaySendTheBrowserOnToAnotherOrigin(t *testing.T) {
	s := apptest.Start(t, nil)
	landing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><p id="landed">landed</p>`)
	}))
	defer landing.Close()
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, strings.Replace(landing.URL, "127.0.0.1", "localhost", 1), http.StatusSeeOther)
	}))
	defer client.Close()
	rp := newParty(t, s, "demo-native", "", client.URL+"/callback")
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(rp.config.AuthCodeURL("st", oauth2.S256ChallengeOption(oauth2.GenerateVerifier()))),
		chromedp.WaitVisible(css("#identifier")), chromedp.SendKeys(css("#identifier"), "alice@example.com"), chromedp.Click(css("#submit")),
		chromedp.WaitVisible(css("#password")), chromedp.SendKeys(css("#password"), "wonderland-demo-1"), chromedp.Click(css("#submit")),
		chromedp.WaitVisible(css("#landed")))
}

func TestBrowser_SignOutAskedByAnotherSiteIsConfirmed(t *testing.T) {
	s := apptest.Start(t, nil)
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, `<!doctype html><a id="lure" href="`+s.Edge+`/logout/demo">win a prize</a>`)
	}))
	defer foreign.Close()
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(s.Edge+"/login/demo"), chromedp.WaitVisible(css("#identifier")), chromedp.SendKeys(css("#identifier"), "alice@example.com"),
		chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#password")), chromedp.SendKeys(css("#password"), "wonderland-demo-1"),
		chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#accounts")),
		chromedp.Navigate(foreign.URL), chromedp.Click(css("#lure")), chromedp.WaitVisible(css("form button")))
	picture(t, tab, "edge-sign-out")
	do(t, tab, chromedp.Navigate(s.Edge+demoPage), chromedp.WaitVisible(css("#accounts")),
		chromedp.Navigate(foreign.URL), chromedp.Click(css("#lure")), chromedp.WaitVisible(css("form button")), chromedp.Click(css("form button")),
		chromedp.WaitVisible(css("#sign-in")))
}
