package app_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/chromedp/chromedp"

	"versola/modules/app/apptest"
)

// A browser holds a theme and a logo to the page's content security policy.
func TestBrowser_ShowsTheTenantsThemeAndTheClientsLogo(t *testing.T) {
	h := newHouse(t)
	logo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Referer") != "" {
			t.Errorf("the logo's server was told where it is shown: %s", r.Header.Get("Referer"))
		}
		w.Header().Set("Content-Type", "image/svg+xml")
		_, _ = io.WriteString(w, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 160 48" width="160" height="48"><rect width="160" height="48" rx="6" fill="#d0021b"/><circle cx="26" cy="24" r="12" fill="#ffd400"/></svg>`)
	}))
	defer logo.Close()
	h.create(t, "themes", document{"id": "sun", "tokens": document{"accent": "#ffd400", "ground": "#fff8e1", "radius": "3px", "font": "DejaVu Serif, serif"}, "css": "h1 { letter-spacing: .04em }"})
	h.patch(t, document{"settings": document{"theme": "sun"}})
	h.client(t, h.web("dressed").with(document{"name": "Sunny Side", "logo_uri": logo.URL + "/logo.svg", "policy_uri": "https://shop.example/privacy", "tos_uri": "https://shop.example/terms"}))
	tab := apptest.Chromium(t)
	do(t, tab, chromedp.Navigate(h.Issuer+"/authorize?response_type=code&client_id=dressed&scope=openid&code_challenge_method=S256&code_challenge="+challenge+"&redirect_uri="+h.callback),
		chromedp.WaitVisible(css("#identifier")))
	for script, want := range map[string]string{
		`getComputedStyle(document.querySelector("#submit")).backgroundColor`:                                  "rgb(255, 212, 0)",
		`getComputedStyle(document.querySelector("#submit")).color`:                                            "rgb(0, 0, 0)",
		`getComputedStyle(document.querySelector("#submit")).borderTopLeftRadius`:                              "3px",
		`getComputedStyle(document.body).fontFamily`:                                                           `"DejaVu Serif", serif`,
		`document.querySelector("#logo").alt`:                                                                  "Sunny Side",
		`document.querySelector("#logo").decode().then(() => document.querySelector("#logo").naturalWidth+"")`: "160",
	} {
		got, err := chromedp.Run(tab, chromedp.Evaluate[string](script, chromedp.EvalAwaitPromise))
		if err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", script, got, want, err)
		}
	}
	picture(t, tab, "theme-identifier")
	do(t, tab, chromedp.SendKeys(css("#identifier"), "alice@example.com"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#password")),
		chromedp.SendKeys(css("#password"), "wrong"), chromedp.Click(css("#submit")), chromedp.WaitVisible(css("#error")))
	picture(t, tab, "theme-password")
}
