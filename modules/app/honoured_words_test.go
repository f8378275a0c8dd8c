package app_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"versola/modules/app/apptest"
)

func wordExercises() map[string]exercise {
	return map[string]exercise{
		"languages": {[]string{"tenant.settings.languages"}, tenantLanguages},
		"texts":     {[]string{"texts.texts"}, tenantTexts},
		"themes":    {[]string{"theme.tokens", "theme.css", "theme.logo_uri", "tenant.settings.theme", "client.theme", "client.logo_uri"}, tenantThemes},
		"templates": {[]string{"template.message", "template.channel", "template.subject", "template.body"}, tenantTemplates},
	}
}

// becomes waits until a page, opened anew, has what an entity changed.
func (h *house) becomes(t *testing.T, what string, open func(*apptest.Browser) *apptest.Page, want string) {
	t.Helper()
	apptest.Eventually(t, 2*time.Second, what, func() bool { return strings.Contains(open(apptest.NewBrowser(t)).Body, want) })
}

// create makes an entity of the demo tenant.
func (h *house) create(t *testing.T, many string, d document) {
	t.Helper()
	if page := h.send(t, http.MethodPost, "/v1/tenants/demo/"+many, d); page.Status != http.StatusCreated {
		t.Fatalf("POST %s: %d %s", many, page.Status, page.Body)
	}
}

// patch changes the demo tenant.
func (h *house) patch(t *testing.T, d document) {
	t.Helper()
	page := administer(t, h.System, h.admin, http.MethodPatch, "/v1/tenants/demo", "application/merge-patch+json", encode(t, d))
	if page.Status != http.StatusOK {
		t.Fatalf("PATCH the tenant: %d %s", page.Status, page.Body)
	}
}

func tenantLanguages(t *testing.T, _ *house) {
	h := newHouse(t) // whose tenant it changes
	h.client(t, h.web("words"))
	open := func(b *apptest.Browser) *apptest.Page { return h.authorize(t, b, "words", nil) }
	h.patch(t, document{"settings": document{"languages": []string{"kk", "ru"}}})
	h.becomes(t, "pages in the default language", open, `<html lang="kk"`)
	h.becomes(t, "a language that was asked for", func(b *apptest.Browser) *apptest.Page {
		return h.authorize(t, b, "words", map[string]string{"ui_locales": "ru"})
	}, `<html lang="ru"`)
	h.becomes(t, "not one that the tenant does not speak", func(b *apptest.Browser) *apptest.Page {
		return h.authorize(t, b, "words", map[string]string{"ui_locales": "en"})
	}, `<html lang="kk"`)
	if page := apptest.NewBrowser(t).Open(h.Issuer + "/.well-known/openid-configuration"); !strings.Contains(page.Body, `"ui_locales_supported":["kk","ru"]`) {
		t.Errorf("discovery: %s", page.Body)
	}
	for _, wrong := range []any{[]string{"english"}, []string{"EN"}, []string{"de"}, []string{"en", "en"}} {
		page := administer(t, h.System, h.admin, http.MethodPatch, "/v1/tenants/demo", "application/merge-patch+json", encode(t, document{"settings": document{"languages": wrong}}))
		if page.Status != http.StatusUnprocessableEntity || !strings.Contains(page.Body, `"/settings/languages/`) {
			t.Errorf("languages %v: %d %s", wrong, page.Status, page.Body)
		}
	}
}

func tenantTexts(t *testing.T, h *house) {
	h.client(t, h.web("texts"))
	open := func(language string) func(*apptest.Browser) *apptest.Page {
		return func(b *apptest.Browser) *apptest.Page {
			return h.authorize(t, b, "texts", map[string]string{"ui_locales": language})
		}
	}
	h.create(t, "texts", document{"id": "de", "texts": document{"identifier.title": "Anmelden <b>jetzt</b>", "identifier.lead": "bei {client}"}})
	h.becomes(t, "the tenant's words, escaped", open("de"), "Anmelden &lt;b&gt;jetzt&lt;/b&gt;")
	h.becomes(t, "what it does not say in English", open("de"), "Protected sign-in")
	h.create(t, "texts", document{"id": "ru", "texts": document{"footer": "Вход с удовольствием"}})
	h.becomes(t, "the tenant's words", open("ru"), "Вход с удовольствием")
	if page := apptest.NewBrowser(t).Open(h.Edge + "/login/admin?return_to=/&ui_locales=ru"); strings.Contains(page.Body, "удовольствием") {
		t.Error("another tenant says what this one says")
	}
	for key, text := range map[string]string{"no.such": "x", "footer": "", "identifier.lead": "with {name}", "identifier.title": "a\nb", "message.otp.text": "no code"} {
		h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/texts", document{"id": "fr", "texts": document{key: text}}, "/texts/"+key)
	}
	h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/texts", document{"id": "Klingon", "texts": document{}}, "/id")
}

func tenantTemplates(t *testing.T, h *house) {
	h.create(t, "templates", document{"id": "otp-mail", "message": "otp", "channel": "email",
		"subject": document{"en": "{code} opens {client}"}, "body": document{"en": "Dear guest,\nyour code is {code}."}})
	// The client is live later than the template.
	h.client(t, h.web("templates").with(document{"name": "Corner {code} Shop", "login": document{"identifiers": []string{"email"}, "factors": []string{"otp"}}}))
	b := apptest.NewBrowser(t)
	h.authorize(t, b, "templates", nil)
	b.Submit(map[string]string{"identifier": "alice@example.com"})
	apptest.Eventually(t, 5*time.Second, "a message in the tenant's words", func() bool { return strings.Contains(h.Logged(), "your code is ") })
	if !strings.Contains(h.Logged(), "opens Corner {code} Shop") {
		t.Error("the subject is not the template's, or the client's name was taken for a placeholder")
	}
	refuse := func(d document, pointer string) {
		t.Helper()
		usual := document{"id": "other", "message": "otp", "channel": "sms", "body": "{code}"}
		h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/templates", usual.with(d), pointer)
	}
	refuse(document{"message": "greeting"}, "/message")
	refuse(document{"channel": "pigeon"}, "/channel")
	refuse(document{"body": "no code"}, "/body")
	refuse(document{"body": document{"ru": "{code} {secret}"}}, "/body/ru")
	refuse(document{"subject": "for a text message"}, "/subject")
	refuse(document{"channel": "email"}, "")
}

var themeSheet = regexp.MustCompile(`<link rel="stylesheet" href="(/[^"]*/themes/[^"]*)">`)

func tenantThemes(t *testing.T, _ *house) {
	h := newHouse(t) // whose tenant it changes
	h.create(t, "themes", document{"id": "sun", "tokens": document{"accent": "#ffd400", "radius": "2px"}, "css": "h1 { letter-spacing: .1em }", "logo_uri": "https://cdn.example/sun.svg"})
	h.create(t, "themes", document{"id": "sea", "tokens": document{"accent": "#0b4f9e"}})
	h.patch(t, document{"settings": document{"theme": "sun"}})
	h.client(t, h.web("plain"))
	h.client(t, h.web("dressed").with(document{"theme": "sea", "logo_uri": "https://img.example/boat.png"}))
	for id, want := range map[string]struct{ css, logo, origin string }{
		"plain":   {"--accent: #ffd400;", "https://cdn.example/sun.svg", "https://cdn.example"},
		"dressed": {"--accent: #0b4f9e;", "https://img.example/boat.png", "https://img.example"},
	} {
		page := h.authorize(t, apptest.NewBrowser(t), id, nil)
		address := themeSheet.FindStringSubmatch(page.Body)
		if address == nil || !strings.Contains(page.Body, `src="`+want.logo+`"`) {
			t.Fatalf("%s: no theme or no logo:\n%s", id, page.Body)
		}
		if csp := page.Header.Get("Content-Security-Policy"); !strings.Contains(csp, "img-src 'self' data: "+want.origin+";") {
			t.Errorf("%s: %s", id, csp)
		}
		sheet := apptest.NewBrowser(t).Open(h.Issuer + address[1])
		if sheet.Status != http.StatusOK || !strings.Contains(sheet.Body, want.css) || !strings.Contains(sheet.Header.Get("Cache-Control"), "immutable") ||
			!strings.HasPrefix(sheet.Header.Get("Content-Type"), "text/css") {
			t.Errorf("%s: %d %v\n%s", id, sheet.Status, sheet.Header, sheet.Body)
		}
		if (id == "plain") != strings.Contains(sheet.Body, "h1 { letter-spacing: .1em }") {
			t.Errorf("%s: the style is another theme's:\n%s", id, sheet.Body)
		}
		old := apptest.NewBrowser(t).Open(h.Issuer + regexp.MustCompile(`\.[0-9a-f]+\.css`).ReplaceAllString(address[1], ".0000.css"))
		if old.Status != http.StatusOK || old.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("%s: an older version: %d %v", id, old.Status, old.Header)
		}
	}
	for _, path := range []string{"/assets/themes/none.0.css", "/assets/themes/sun", "/assets/themes/.css", "/t/system/assets/themes/sun.0.css"} {
		if page := apptest.NewBrowser(t).Open(h.Issuer + path); page.Status != http.StatusNotFound {
			t.Errorf("%s: %d", path, page.Status)
		}
	}
	refuse := func(d document, pointer string) {
		t.Helper()
		h.refusesAt(t, http.MethodPost, "/v1/tenants/demo/themes", document{"id": "other"}.with(d), pointer)
	}
	refuse(document{"tokens": document{"accent": "url(https://evil.example)"}}, "/tokens/accent")
	refuse(document{"tokens": document{"text": "#ffffff"}}, "/tokens/text")
	refuse(document{"tokens": document{"colour": "#ffffff"}}, "/tokens/colour")
	refuse(document{"css": "a { background: url(https://evil.example) }"}, "/css")
	refuse(document{"css": "</style><script>alert(1)</script>"}, "/css")
	refuse(document{"logo_uri": "javascript:alert(1)"}, "/logo_uri")
	h.refuses(t, h.web("other").with(document{"theme": "none"}), "/theme")
	h.refuses(t, h.web("other").with(document{"logo_uri": "logo.png"}), "/logo_uri")
	if page := h.send(t, http.MethodDelete, "/v1/tenants/demo/themes/sea", nil); page.Status != http.StatusConflict || !strings.Contains(page.Body, "dressed") {
		t.Errorf("deleting a theme in use: %d %s", page.Status, page.Body)
	}
}
