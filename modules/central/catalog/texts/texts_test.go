package texts

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestProduct_SaysEverythingInEveryLanguage(t *testing.T) {
	t.Parallel()
	p := Product()
	if got := p.Locales(); !slices.Equal(got, []string{"en", "kk", "ru"}) {
		t.Errorf("languages %v", got)
	}
	usual := p.byName[defaultLocale]
	for _, l := range p.Locales() {
		for key, text := range p.byName[l] {
			if _, ok := usual[key]; !ok {
				t.Errorf("%s has %q, which is not a key", l, key)
			}
			if err := Check(key, text); err != nil {
				t.Errorf("%s, %s: a tenant could not say the same: %v", l, key, err)
			}
			if !maps.Equal(placeholders(text), placeholders(usual[key])) {
				t.Errorf("%s, %s: other placeholders than in %s", l, key, defaultLocale)
			}
		}
		for key := range usual {
			if p.Get(l, key) == key {
				t.Errorf("%s lacks %q", l, key)
			}
		}
	}
	for _, m := range Messages() {
		if usual["message."+m+".text"] == "" || usual["message."+m+".subject"] == "" {
			t.Errorf("the message %q has no texts", m)
		}
	}
}

func TestWith_SaysWhatTheTenantSaysAndElseWhatTheProductSays(t *testing.T) {
	t.Parallel()
	mine := Product().With(nil, map[string]map[string]string{
		"en": {"identifier.title": "Hello"}, "de": {"identifier.title": "Anmelden"}, "pt-BR": {"footer": "Entrada protegida"},
	}, nil)
	for _, k := range []struct{ locale, key, want string }{
		{"en", "identifier.title", "Hello"}, {"en", "footer", Product().Get("en", "footer")},
		{"ru", "identifier.title", Product().Get("ru", "identifier.title")},
		{"de", "identifier.title", "Anmelden"}, {"de", "footer", Product().Get("en", "footer")}, {"pt-BR", "footer", "Entrada protegida"},
	} {
		if got := mine.Get(k.locale, k.key); got != k.want {
			t.Errorf("%s %s: %q, want %q", k.locale, k.key, got, k.want)
		}
	}
	if got := Product().Get("en", "identifier.title"); got == "Hello" {
		t.Error("the product's own texts were changed")
	}
	if got := mine.Locale(nil, "de-AT"); got != "de" {
		t.Errorf("de-AT is answered in %s", got)
	}
	kazakh := Product().With([]string{"kk", "ru"}, nil, nil)
	for accept, want := range map[string]string{"": "kk", "en": "kk", "ru-RU, en": "ru", "fr, de": "kk"} {
		if got := kazakh.Locale(nil, accept); got != want {
			t.Errorf("a tenant of kk and ru answers %q in %s, want %s", accept, got, want)
		}
	}
	if got := kazakh.Locale([]string{"en"}, "ru"); got != "ru" {
		t.Errorf("ui_locales=en, Accept-Language: ru: %s", got)
	}
	swiss := Product().With([]string{"ru-KZ"}, nil, nil)
	if got := swiss.Get("ru-KZ", "footer"); got != Product().Get("ru", "footer") {
		t.Errorf("ru-KZ falls back to %q", got)
	}
}

func TestMessage_TakesTheTemplateOfTheChannelThenTheText(t *testing.T) {
	t.Parallel()
	mine := Product().With(nil, map[string]map[string]string{"en": {"message.otp.text": "Text {code}"}}, []Template{
		{Message: "otp", Channel: Email, Subject: map[string]string{"en": "Subject"}, Body: map[string]string{"en": "Mail {code} {client}", "pt": "Correio {code}"}},
	})
	for _, k := range []struct{ locale, channel, subject, text string }{
		{"en", SMS, "", "Text 123"}, {"en", Email, "Subject", "Mail 123 {code}"}, {"pt-BR", Email, "message.otp.subject", "Correio 123"},
		{"ru", Email, "Ваш код: 123", Product().Get("ru", "message.otp.text", "code", "123", "client", "{code}", "minutes", "5")},
	} {
		// A client's name that looks like a placeholder stays a name.
		subject, text := mine.Message(k.locale, "otp", k.channel, "code", "123", "client", "{code}", "minutes", "5")
		if subject != k.subject || text != k.text {
			t.Errorf("%s by %s: %q, %q", k.locale, k.channel, subject, text)
		}
	}
	every := Product().With(nil, nil, []Template{{Message: "otp", Channel: SMS, Body: map[string]string{"": "{code}"}}})
	if _, text := every.Message("kk", "otp", SMS, "code", "7"); text != "7" {
		t.Errorf("a template of no language says %q", text)
	}
}

func TestCheck_RefusesWhatPeopleCouldNotRead(t *testing.T) {
	t.Parallel()
	for _, k := range []struct {
		key, text string
		ok        bool
	}{
		{"identifier.title", "Hello", true}, {"identifier.lead", "with {client}", true}, {"identifier.lead", "no placeholder is needed", true},
		{"identifier.title", "a } stays, and a { too", true}, {"identifier.title", "<b>bold</b>", true},
		{"message.otp.text", "{code}\nfor {client}", true}, {"message.otp.subject", "A code", true}, {"message.otp.subject", "{code} opens {client}", true}, {"message.otp.subject", "{link}", false},
		{"unknown.key", "Hello", false}, {"", "Hello", false}, {"identifier.title", "", false}, {"identifier.title", " \u200b\t", false},
		{"identifier.title", "two\nlines", false}, {"identifier.title", "\x00", false}, {"identifier.title", "\xff", false}, {"message.otp.subject", "a\nBcc: x", false},
		{"identifier.title", "{client}", false}, {"identifier.lead", "{Client}", false}, {"identifier.lead", "{}", false}, {"identifier.lead", "{{client}}", true},
		{"message.otp.text", "no code", false}, {"identifier.title", strings.Repeat("ж", maxPageText), true}, {"identifier.title", strings.Repeat("a", maxPageText+1), false},
	} {
		if err := Check(k.key, k.text); (err == nil) != k.ok {
			t.Errorf("%s %.40q: %v", k.key, k.text, err)
		}
	}
}
