package pages_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/pages"
	"versola/platform/httpserver"
)

func server(t *testing.T, publicURL string, handler func(*pages.Renderer) echo.HandlerFunc) *httptest.Server {
	t.Helper()
	r, err := pages.New(publicURL)
	if err != nil {
		t.Fatal(err)
	}
	s := httpserver.New(httpserver.Options{Name: "test", Log: slog.New(slog.DiscardHandler)})
	g := s.Echo.Group("")
	r.Mount(g)
	g.GET("/page", handler(r))
	ts := httptest.NewServer(s.Echo)
	t.Cleanup(ts.Close)
	return ts
}

func get(t *testing.T, url, language string) (*http.Response, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept-Language", language)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if err := res.Write(&b); err != nil {
		t.Fatal(err)
	}
	return res, b.String()
}

func TestError_EscapesAndShowsTheRequestID(t *testing.T) {
	t.Parallel()
	ts := server(t, "https://id.example", func(r *pages.Renderer) echo.HandlerFunc {
		return func(c echo.Context) error {
			return r.Error(c, http.StatusBadRequest, "invalid_request", `<script>alert(1)</script>`)
		}
	})
	res, body := get(t, ts.URL+"/page", "")
	if res.StatusCode != http.StatusBadRequest || strings.Contains(body, "<script>alert") || !strings.Contains(body, "invalid_request") {
		t.Errorf("status %d, body %s", res.StatusCode, body)
	}
	if rid := res.Header.Get("X-Request-Id"); rid == "" || !strings.Contains(body, `id="request-id">`+rid) {
		t.Errorf("the page does not show the request id %q", rid)
	}
	for name, want := range map[string]string{
		"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		"Strict-Transport-Security": "max-age=63072000; includeSubDomains",
	} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	csp := res.Header.Get("Content-Security-Policy")
	for _, want := range []string{"default-src 'none'", "frame-ancestors 'none'", "base-uri 'none'", "form-action 'self'"} {
		if !strings.Contains(csp, want) {
			t.Errorf("policy %q lacks %q", csp, want)
		}
	}
	if strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q is not strict", csp)
	}
}

func TestRender_PicksTheLanguage(t *testing.T) {
	t.Parallel()
	ts := server(t, "http://localhost", func(r *pages.Renderer) echo.HandlerFunc {
		return func(c echo.Context) error { return r.SignedOut(c) }
	})
	for _, k := range []struct{ query, accept, want string }{
		{"", "", "en"}, {"", "ru-RU,ru;q=0.9,en;q=0.8", "ru"}, {"", "kk", "kk"}, {"", "fr,de", "en"}, {"", "fr,kk;q=0.5", "kk"},
		{"?ui_locales=kk", "ru", "kk"}, {"?ui_locales=fr+ru", "kk", "ru"}, {"?ui_locales=xx+%00", "ru", "ru"}, {"", strings.Repeat("a,", 2000), "en"},
		{"", "\xff\xfe;q=x", "en"},
	} {
		res, body := get(t, ts.URL+"/page"+k.query, k.accept)
		if res.StatusCode != http.StatusOK || !strings.Contains(body, `<html lang="`+k.want+`">`) {
			t.Errorf("%q %.20q: status %d, not %s", k.query, k.accept, res.StatusCode, k.want)
		}
	}
}

func TestFormAction_NamesTheSchemeOfTheTarget(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"https://app.example/cb?x=1":                 "form-action 'self' https:",
		"http://127.0.0.1:53211/callback":            "form-action 'self' http: https:",
		"http://[::1]:53211/callback":                "form-action 'self' http: https:",
		"com.example.app:/cb":                        "form-action 'self' com.example.app:",
		"https://a.example;script-src%20*/x":         "form-action 'self'",
		"https://a.example; script-src 'unsafe'/cb":  "form-action 'self'",
		"https://ok.example/; script-src 'unsafe'/x": "form-action 'self' https:",
	} {
		ts := server(t, "http://localhost", func(r *pages.Renderer) echo.HandlerFunc {
			return func(c echo.Context) error {
				return r.ConfirmLogout(c, "token", url.Values{"post_logout_redirect_uri": {target}})
			}
		})
		res, body := get(t, ts.URL+"/page", "")
		csp := res.Header.Get("Content-Security-Policy")
		if got := csp[strings.Index(csp, "form-action"):]; got != want && got != "form-action 'self' https:" {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
		if strings.Contains(csp, "unsafe") || strings.Contains(csp, "script-src *") {
			t.Errorf("%s: injected into %q", target, csp)
		}
		if !strings.Contains(body, `name="csrf" value="token"`) {
			t.Errorf("no csrf token in %s", body)
		}
	}
}

func TestAssets_AreImmutableAndNamedByContent(t *testing.T) {
	t.Parallel()
	ts := server(t, "http://localhost", func(r *pages.Renderer) echo.HandlerFunc {
		return func(c echo.Context) error { return r.SignedOut(c) }
	})
	_, body := get(t, ts.URL+"/page", "")
	found := regexp.MustCompile(`/assets/page\.[0-9a-f]{12}\.(css|js)`).FindAllString(body, -1)
	if len(found) != 2 {
		t.Fatalf("assets: %v", found)
	}
	for _, a := range found {
		res, _ := get(t, ts.URL+a, "")
		if res.StatusCode != http.StatusOK || !strings.Contains(res.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d %s", a, res.StatusCode, res.Header.Get("Cache-Control"))
		}
	}
	if res, _ := get(t, ts.URL+"/assets/..%2f..%2fpages.go", ""); res.StatusCode != http.StatusNotFound {
		t.Errorf("a path out of the assets: %d", res.StatusCode)
	}
	if regexp.MustCompile(`(?i)<style|style=|onclick|<script>`).MatchString(body) {
		t.Errorf("inline style or script in %s", body)
	}
}

func TestSigningOut_ShowsFramesOfTheirOriginsAloneAndGoesOn(t *testing.T) {
	t.Parallel()
	frames := []string{`https://a.example/out?x="><script>alert(1)</script>&iss=i`, "https://a.example/other", "http://localhost:9000/", "https://x.example;script-src */"}
	for onward, want := range map[string]string{
		"https://app.example/bye?state=%22": `id="onward" class="primary" href="https://app.example/bye?state=%22" data-onward`,
		"com.example.app:/bye":              `href="com.example.app:/bye"`,
		"":                                  "You can close this page",
	} {
		ts := server(t, "https://id.example", func(r *pages.Renderer) echo.HandlerFunc {
			return func(c echo.Context) error { return r.SigningOut(c, frames, onward) }
		})
		res, body := get(t, ts.URL+"/page", "")
		if res.StatusCode != http.StatusOK || !strings.Contains(body, want) || strings.Contains(body, "<script>alert") || strings.Count(body, "<iframe ") != len(frames) {
			t.Errorf("onward to %q: status %d, body %s", onward, res.StatusCode, body)
		}
		if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "frame-src https://a.example http://localhost:9000; ") || strings.Contains(csp, "*") {
			t.Errorf("policy %q", csp)
		}
	}
}

func TestForward_PostsEveryFieldToTheClientAlone(t *testing.T) {
	t.Parallel()
	const action = "https://app.example/cb?x=1&y=%22"
	ts := server(t, "https://id.example", func(r *pages.Renderer) echo.HandlerFunc {
		return func(c echo.Context) error {
			return r.Forward(c, action, url.Values{"code": {"c"}, "state": {`"><script>alert(1)</script>`}}, []string{"ru"})
		}
	})
	res, body := get(t, ts.URL+"/page", "")
	if res.StatusCode != http.StatusOK || strings.Contains(body, "<script>alert") || !strings.Contains(body, `<html lang="ru">`) {
		t.Errorf("status %d, body %s", res.StatusCode, body)
	}
	for _, want := range []string{`method="post" action="https://app.example/cb?x=1&amp;y=%22"`, "data-send", `name="code" value="c"`,
		`name="state" value="&#34;&gt;&lt;script&gt;alert(1)&lt;/script&gt;"`, `id="submit"`} {
		if !strings.Contains(body, want) {
			t.Errorf("the page lacks %q: %s", want, body)
		}
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.HasSuffix(csp, "form-action 'self' https:") || strings.Contains(csp, "unsafe") {
		t.Errorf("policy %q", csp)
	}
	if res.Header.Get("Cache-Control") != "no-store" || res.Header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("headers %v", res.Header)
	}
}
