package edge_test

import (
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"versola/modules/edge/preset"
)

func lines(t testing.TB, file string) []string {
	t.Helper()
	raw, err := os.ReadFile(file)
	must(t, err)
	var out []string
	for line := range strings.Lines(string(raw)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, "##") {
			out = append(out, line)
		}
	}
	return out
}

func TestLogin_AsksAuthAsTheClientMust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	asked := b.start(e, "?acr_values=phr&max_age=60&prompt=login&login_hint=a%40b.c&ui_locales=kk+ru&scope=admin&client_id=evil&state=mine")
	for name, want := range map[string]string{"response_type": "code", "client_id": "web", "redirect_uri": publicURL + "/complete", "scope": "openid bank",
		"code_challenge_method": "S256", "acr_values": "phr", "max_age": "60", "prompt": "login", "login_hint": "a@b.c", "ui_locales": "kk ru"} {
		if got := asked[name]; len(got) != 1 || got[0] != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for _, name := range []string{"state", "nonce", "code_challenge"} {
		if len(asked.Get(name)) != 43 {
			t.Errorf("%s is %q", name, asked.Get(name))
		}
	}
	if other := b.start(e, ""); other.Get("state") == asked.Get("state") || other.Get("nonce") == asked.Get("nonce") || other.Get("code_challenge") == asked.Get("code_challenge") {
		t.Error("two logins share a secret")
	}
}

func TestLogin_StartingCostsOneStatement(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	before := e.db.Statements()
	b.start(e, "")
	if n := e.db.Statements() - before; n != 1 {
		t.Errorf("%d statements", n)
	}
}

func TestLogin_UnknownPresetIs404(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for _, path := range []string{"/login/nobody", "/logout/nobody"} {
		if res := newBrowser(t).get(e.URL + path); res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}

func TestLogin_DoubledAndUnusableParametersAreRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for _, q := range []string{"return_to=/a&return_to=/b", "prompt=login&prompt=none", "max_age=x", "max_age=-1", "login_hint=a%0d%0ab", "login_hint=" + strings.Repeat("a", 2000)} {
		if res := newBrowser(t).get(e.URL + "/login/demo?" + q); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%.60s: %d", q, res.StatusCode)
		}
	}
}

func TestReturnPath_NeverLeavesTheOrigin(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for _, line := range lines(t, "testdata/return_to_refused.txt") {
		value := line
		if raw, marked := strings.CutPrefix(line, "%raw:"); marked {
			unquoted, err := url.PathUnescape(raw)
			must(t, err)
			value = unquoted
		}
		if got, ok := preset.ReturnPath(value); ok {
			t.Errorf("%q is let through as %q", value, got)
		}
		if res := newBrowser(t).get(e.URL + "/login/demo?return_to=" + url.QueryEscape(value)); value != "" && res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d to %q", value, res.StatusCode, res.Header.Get("Location"))
		}
	}
	for _, value := range []string{"/", "/app", "/app/?x=1&y=/z", "/app#part", "/a%20b", "/caf%C3%A9", "/a/b/c?redirect=https://x.test/"} {
		if got, ok := preset.ReturnPath(value); !ok || got != value {
			t.Errorf("%q became %q, %t", value, got, ok)
		}
	}
}

func TestComplete_ReturnsToWhereTheLoginCameFrom(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	asked := b.start(e, "?return_to="+url.QueryEscape("/orders?page=2#top"))
	res := b.get(e.URL + "/complete?" + w.auth.answer(asked).Encode())
	if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != "/orders?page=2#top" {
		t.Errorf("%d to %q", res.StatusCode, got)
	}
}

func TestComplete_WorksInSeveralTabsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	one, two := b.start(e, "?return_to=/one"), b.start(e, "?return_to=/two")
	for asked, want := range map[*url.Values]string{&two: "/two", &one: "/one"} {
		res := b.get(e.URL + "/complete?" + w.auth.answer(*asked).Encode())
		if got := res.Header.Get("Location"); got != want {
			t.Errorf("%d to %q, want %q", res.StatusCode, got, want)
		}
	}
}

func TestComplete_OnceAndOnlyInTheBrowserThatStarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b, other := w.edge(), newBrowser(t), newBrowser(t)
	callback := e.URL + "/complete?" + w.auth.answer(b.start(e, "")).Encode()
	other.start(e, "")
	for name, stranger := range map[string]*browser{"without cookie": newBrowser(t), "with a cookie of its own": other} {
		res := stranger.get(callback)
		if _, signedIn := stranger.cookies[sessionCookie]; res.StatusCode != http.StatusBadRequest || signedIn {
			t.Errorf("%s: %d, signed in: %t", name, res.StatusCode, signedIn)
		}
	}
	// Strangers did not spend it.
	if res := b.get(callback); res.StatusCode != http.StatusSeeOther || res.Header.Get("Location") != "/app" {
		t.Fatalf("%d to %q", res.StatusCode, res.Header.Get("Location"))
	}
	if res := b.get(callback); res.StatusCode != http.StatusBadRequest || !strings.Contains(res.body, "sign-in is over") {
		t.Errorf("replay: %d %s", res.StatusCode, res.body)
	}
	b.get(e.URL + accounts).reached(t)
}

func TestComplete_ExpiredLoginIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	answer := w.auth.answer(b.start(e, ""))
	w.clock.Advance(17 * time.Minute)
	if res := b.get(e.URL + "/complete?" + answer.Encode()); res.StatusCode != http.StatusBadRequest {
		t.Errorf("%d", res.StatusCode)
	}
}

func TestComplete_RefusedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for name, c := range map[string]struct {
		answer func(url.Values)
		claims func(id, access map[string]any)
		error  string
	}{
		"other issuer":                 {answer: func(v url.Values) { v.Set("iss", "http://evil.test") }, error: "invalid_issuer"},
		"issuer with slash":            {answer: func(v url.Values) { v.Set("iss", issuer+"/") }, error: "invalid_issuer"},
		"no issuer":                    {answer: func(v url.Values) { v.Del("iss") }, error: "invalid_issuer"},
		"no code":                      {answer: func(v url.Values) { v.Del("code") }, error: "invalid_response"},
		"wrong code":                   {answer: func(v url.Values) { v.Set("code", "x") }, error: "invalid_grant"},
		"error":                        {answer: func(v url.Values) { v.Set("error", "access_denied") }, error: "access_denied"},
		"error of another issuer":      {answer: func(v url.Values) { v.Set("error", "x"); v.Set("iss", "http://evil.test") }, error: "invalid_issuer"},
		"strange error":                {answer: func(v url.Values) { v.Set("error", "<script>") }, error: "server_error"},
		"wrong nonce":                  {claims: func(id, _ map[string]any) { id["nonce"] = "x" }, error: "invalid_response"},
		"no nonce":                     {claims: func(id, _ map[string]any) { delete(id, "nonce") }, error: "invalid_response"},
		"ID token of other issuer":     {claims: func(id, _ map[string]any) { id["iss"] = "http://evil.test" }, error: "invalid_response"},
		"ID token for another":         {claims: func(id, _ map[string]any) { id["aud"] = "other" }, error: "invalid_response"},
		"ID token for two without azp": {claims: func(id, _ map[string]any) { id["aud"] = []string{"web", "other"} }, error: "invalid_response"},
		"ID token with other azp":      {claims: func(id, _ map[string]any) { id["azp"] = "other" }, error: "invalid_response"},
		"expired ID token":             {claims: func(id, _ map[string]any) { id["exp"] = w.clock.Now().Unix() }, error: "invalid_response"},
		"ID token from the future":     {claims: func(id, _ map[string]any) { id["iat"] = w.clock.Now().Unix() + 60 }, error: "invalid_response"},
		"ID token without sub":         {claims: func(id, _ map[string]any) { delete(id, "sub") }, error: "invalid_response"},
		"wrong at_hash":                {claims: func(id, _ map[string]any) { id["at_hash"] = "x" }, error: "invalid_response"},
		"access token of another":      {claims: func(_, a map[string]any) { a["sub"] = "someone" }, error: "invalid_response"},
		"access token of other client": {claims: func(_, a map[string]any) { a["client_id"] = "robot" }, error: "invalid_response"},
		"access token of other tenant": {claims: func(_, a map[string]any) { a["iss"] = issuer + "/t/other"; a["tenant"] = "other" }, error: "invalid_response"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBrowser(t)
			asked := b.start(e, "")
			answer := w.auth.answer(asked)
			if c.answer != nil {
				c.answer(answer)
			}
			w.auth.set(func() { w.auth.change = c.claims })
			res := b.get(e.URL + "/complete?" + answer.Encode())
			if got := res.Header.Get("Location"); res.StatusCode != http.StatusSeeOther || got != "/app?error="+c.error {
				t.Errorf("%d to %q, want error %s: %s", res.StatusCode, got, c.error, res.body)
			}
			if _, ok := b.cookies[sessionCookie]; ok {
				t.Error("signed in all the same")
			}
		})
	}
}

func TestComplete_MaxAgeIsChecked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	w.auth.set(func() {
		w.auth.change = func(id, _ map[string]any) { id["auth_time"] = w.clock.Now().Unix() - 600 }
	})
	res := b.get(e.URL + "/complete?" + w.auth.answer(b.start(e, "?max_age=60")).Encode())
	if got := res.Header.Get("Location"); got != "/app?error=invalid_response" {
		t.Errorf("to %q", got)
	}
	b.signIn(w, e)
}

func TestComplete_MalformedAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e := w.edge()
	for _, q := range []string{"", "code=x", "state=", "state=a&state=b&code=c", "state=a&code=b&code=c", "state=a&iss=b&iss=c", "state=unknown&code=x"} {
		b := newBrowser(t)
		b.start(e, "")
		if res := b.get(e.URL + "/complete?" + q); res.StatusCode != http.StatusBadRequest {
			t.Errorf("%q: %d", q, res.StatusCode)
		}
	}
}

func TestComplete_AuthDownOffersToTryAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	e, b := w.edge(), newBrowser(t)
	w.auth.set(func() { w.auth.fail = 502 })
	res := b.get(e.URL + "/complete?" + w.auth.answer(b.start(e, "?return_to=/orders")).Encode())
	if res.StatusCode != http.StatusServiceUnavailable || !strings.Contains(res.body, "/login/demo?return_to=%2forders") && !strings.Contains(res.body, "/login/demo?return_to=%2Forders") {
		t.Errorf("%d %s", res.StatusCode, res.body)
	}
	for name, want := range map[string]string{"Cache-Control": "no-store", "Retry-After": "2"} {
		if got := res.Header.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if csp := res.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") {
		t.Errorf("Content-Security-Policy is %q", csp)
	}
}
