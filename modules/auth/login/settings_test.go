package login_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// policyURI would end its attribute if it were not escaped.
const policyURI = `https://bank.example/policy?a="><script>alert(1)</script>&b=1`

// strict is a tenant with settings of its own, and the people of the tenant
// demo.
var strict = catalog.TenantSpec{ID: "strict", Directory: "demo", Settings: catalog.TenantSettings{
	OTP:            &catalog.OTPSettings{TTL: catalog.Duration(2 * time.Minute), Attempts: 2, Resend: catalog.Duration(100 * time.Second)},
	PasswordPolicy: &catalog.PasswordPolicy{MinLength: 12, Pattern: "[0-9]"},
}}

// identifyStrict goes to the factor's page of the tenant strict.
func (b *browser) identifyStrict(identifier string) response {
	b.w.t.Helper()
	return b.follow(b.submit(b.follow(b.get("/t/strict/authorize")), "identifier", "identifier", identifier))
}

func TestOTP_TriesAreTheTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, k := range []struct {
		name     string
		page     func(*browser) response
		accepted bool
	}{
		{"strict", func(b *browser) response { return b.identifyStrict(phone) }, false},
		{"demo", func(b *browser) response { return b.identify("", phone) }, true},
	} {
		b := w.browser()
		page := k.page(b)
		for range 2 {
			page = b.follow(b.submit(page, "code", "code", "000000"))
		}
		last := b.submit(page, "code", "code", code)
		if k.accepted {
			w.codeOf(last)
		} else if got := errorOf(b.follow(last)); !strings.Contains(got, "no longer") {
			t.Errorf("%s: the right code after two wrong ones: %q", k.name, got)
		}
		w.clock.Advance(3 * time.Hour) // past every limit
	}
}

func TestOTP_LifeAndResendAreTheTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.identifyStrict(phone)
	if !strings.Contains(page.body, `data-wait="100"`) {
		t.Errorf("the page does not say when a new code may be asked for:\n%s", page.body)
	}
	w.clock.Advance(70 * time.Second)
	if r := b.submit(page, "resend"); r.status != http.StatusTooManyRequests || r.header.Get("Retry-After") != "30" {
		t.Errorf("too early: %d, Retry-After %q", r.status, r.header.Get("Retry-After"))
	}
	w.clock.Advance(50 * time.Second)
	if got := errorOf(b.follow(b.submit(page, "code", "code", code))); !strings.Contains(got, "no longer") {
		t.Errorf("a code two minutes old: %q", got)
	}
	page = b.follow(b.submit(b.follow(b.get(page.url)), "resend"))
	w.codeOf(b.submit(page, "code", "code", code))
}

func TestPassword_ChosenByTheTenantsPolicy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := w.browser()
	page := b.follow(b.submit(b.identifyStrict(temporary), "password", "password", tempPass))
	if !strings.Contains(page.body, `minlength="12"`) || !strings.Contains(page.body, "At least 12 characters") {
		t.Errorf("the page does not say the policy:\n%s", page.body)
	}
	for _, k := range []struct{ chosen, says string }{
		{"elevenchar1", "12 to"},
		{"only letters here", "rules"},
		{strings.Repeat("\u00e9", 11), "12 to"}, // characters count, not bytes
		{tempPass, "different"},
	} {
		page = b.follow(b.submit(page, "new-password", "new_password", k.chosen))
		if got := errorOf(page); !strings.Contains(got, k.says) {
			t.Errorf("%q: %q, want something with %q", k.chosen, got, k.says)
		}
	}
	w.codeOf(b.submit(page, "new-password", "new_password", "twelve letters and 1 digit"))
}

func TestPages_LinkWhatTheClientRegistered(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	body := w.browser().follow(w.browser().get("/authorize")).body
	if strings.Contains(body, `id="policy"`) || strings.Contains(body, `id="terms"`) {
		t.Errorf("a client without a policy has a link to one:\n%s", body)
	}
	b := w.browser()
	for _, page := range []response{b.follow(b.get("/t/strict/authorize")), b.identifyStrict(email)} {
		for _, want := range []string{`<a id="policy" href="https://bank.example/policy?`, `<a id="terms" href="https://bank.example/terms" target="_blank" rel="noopener noreferrer">Terms of use</a>`} {
			if !strings.Contains(page.body, want) {
				t.Errorf("%s lacks %s:\n%s", page.url, want, page.body)
			}
		}
		if strings.Contains(page.body, "<script>alert") {
			t.Errorf("%s: the address escapes its attribute", page.url)
		}
	}
}
