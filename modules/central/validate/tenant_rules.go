package validate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/texts"
	"versola/modules/central/catalog/theme"
)

// Bounds of a tenant's sign-in settings.
const (
	minPasswordLength = 8   // NIST SP 800-63B section 3.1.1.2
	maxPasswordLength = 128 // a minimum beyond it keeps everybody out
	minOTP            = 4
	maxOTP            = 10
	maxOTPTTL         = 15 * time.Minute // NIST SP 800-63B section 3.1.3.2 allows ten; mail is slow
	// minOTPTTL: messages say the life of a code in minutes.
	minOTPTTL = time.Minute
	// maxOTPTries: an account has five guesses an hour anyway.
	maxOTPTries = 5
	// minResend: more often than twice a minute begins the rest of half an hour
	// that ends a flood of messages.
	minResend     = 30 * time.Second
	maxHistory    = 50
	maxAttempts   = 1000
	maxCSS        = 64 << 10
	maxTokens     = 200
	maxTexts      = 2000
	maxTextLength = 4000
	maxBodyLength = 64 << 10
	maxEvents     = 100
)

func (c *check) signIn(p problems, tenant string, t *catalog.TenantSettings) {
	p.each("settings.languages", t.Languages, func(l string) error {
		if err := Language(l); err != nil || texts.Product().Has(l) {
			return err
		}
		return c.known(KindTexts, tenant)(l)
	})
	if o := t.OTP; o != nil {
		p.between("settings.otp.length", o.Length, minOTP, maxOTP)
		p.within("settings.otp.ttl", o.TTL, minOTPTTL, maxOTPTTL)
		p.between("settings.otp.attempts", o.Attempts, 1, maxOTPTries)
		p.within("settings.otp.resend_after", o.Resend, minResend, time.Hour)
		if o.Resend.D(0) > o.TTL.D(catalog.DefaultOTPTTL) {
			p.add("settings.otp.resend_after", "is longer than a code works: people would have none")
		}
		p.between("settings.otp.per_day", o.PerDay, 1, maxAttempts)
		p.each("settings.otp.channels", o.Channels, channel)
	}
	if l := t.Limits; l != nil {
		p.between("settings.limits.failures_per_account", l.FailuresPerAccount, 1, 100) // NIST SP 800-63B section 3.2.2
		p.between("settings.limits.failures_per_address", l.FailuresPerAddress, 1, maxAttempts)
		p.within("settings.limits.window", l.Window, time.Minute, 24*time.Hour)
	}
	if w := t.PasswordPolicy; w != nil {
		p.between("settings.password_policy.min_length", w.MinLength, minPasswordLength, maxPasswordLength)
		p.between("settings.password_policy.history", w.History, 1, maxHistory)
		p.within("settings.password_policy.max_age", w.MaxAge, 24*time.Hour, maxLong)
		if w.Pattern != "" {
			p.err("settings.password_policy.pattern", Regexp(w.Pattern))
		}
	}
	if k := t.Passkeys; k != nil {
		c.relyingParty(p, k)
	}
	c.contextClasses(p, t.ACR)
	if h := t.CertificateHeader; h != nil {
		p.err("settings.certificate_header.name", headerName(h.Name))
		p.err("settings.certificate_header.format", oneOf(h.Format, "pem-urlencoded", "der-base64", "rfc9440"))
	}
	if t.Theme != "" {
		p.err("settings.theme", c.known(KindTheme, tenant)(t.Theme))
	}
}

func channel(v string) error { return oneOf(v, texts.SMS, texts.Email, "voice") }

// relyingParty: an origin's host is the relying party's id or below it
// (WebAuthn Level 2 section 5.1.3 step 7).
func (c *check) relyingParty(p problems, k *catalog.RelyingParty) {
	p.err("settings.passkeys.name", Name(k.Name))
	if k.ID != "localhost" || !c.Development {
		p.err("settings.passkeys.id", domain(k.ID))
	}
	if len(k.Origins) == 0 {
		p.add("settings.passkeys.origins", "is missing")
	}
	p.each("settings.passkeys.origins", k.Origins, func(v string) error {
		if err := c.Origin(v); err != nil {
			return err
		}
		_, host, _ := strings.Cut(v, "://")
		host, _, _ = strings.Cut(host, ":")
		if host != k.ID && !strings.HasSuffix(host, "."+k.ID) {
			return fmt.Errorf("%q is not at the relying party's id %q", v, k.ID)
		}
		return nil
	})
}

func (c *check) contextClasses(p problems, list []catalog.ACRSpec) {
	if len(list) > maxEvents {
		p.add("settings.acr", "has %d entries, more than %d", len(list), maxEvents)
		return
	}
	seen := map[string]bool{}
	for i, a := range list {
		at := fmt.Sprintf("settings.acr[%d].", i)
		p.err(at+"value", acrValue(a.Value))
		if seen[a.Value] {
			p.add(at+"value", "%q is there twice", a.Value)
		}
		seen[a.Value] = true
		if len(a.Factors) == 0 {
			p.add(at+"factors", "is missing")
		}
		p.each(at+"factors", a.Factors, func(v string) error { return oneOf(v, "otp", "password", "totp", "passkey") })
	}
}

// rest checks the kinds that nothing else refers into.
func (c *check) rest(s *catalog.Snapshot) {
	for i := range s.Directories {
		d := &s.Directories[i]
		p := c.of(KindDirectory, "", d.ID)
		p.err("id", ID(d.ID))
		p.text("name", d.Name)
		c.unsupported(p, d)
	}
	each(c, s.Claims, func(e *catalog.ClaimSpec) {
		p := c.of(KindClaim, e.Tenant, e.ID)
		p.err("id", ScopeID(e.ID))
		c.tenantExists(p, e.Tenant)
		p.text("name", e.Name)
		p.text("description", e.Description)
		c.unsupported(p, e)
	})
	each(c, s.DetailTypes, func(e *catalog.AuthorizationDetailType) {
		p := c.of(KindDetailType, e.Tenant, e.ID)
		p.err("id", ScopeID(e.ID))
		c.tenantExists(p, e.Tenant)
		p.text("name", e.Name)
		p.text("description", e.Description)
		p.err("schema", Schema(e.Schema))
		c.unsupported(p, e)
	})
	each(c, s.Themes, c.theme)
	each(c, s.Texts, c.overrides)
	each(c, s.Templates, c.template)
	each(c, s.Webhooks, c.webhook)
}

// theme: what a page's style may not do is to fetch or to leave its element.
func (c *check) theme(s *catalog.ThemeSpec) {
	p := c.of(KindTheme, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	if len(s.Tokens) > maxTokens {
		p.add("tokens", "has %d entries, more than %d", len(s.Tokens), maxTokens)
	} else {
		for _, name := range slices.Sorted(maps.Keys(s.Tokens)) {
			at := `tokens["` + name + `"]`
			p.err(at, ID(name))
		}
		for _, wrong := range theme.Check(s.Tokens) {
			if ID(wrong.Token) == nil {
				p.add(`tokens["`+wrong.Token+`"]`, "%s", wrong.Detail)
			}
		}
	}
	p.err("css", style(s.CSS))
	if s.Logo != "" {
		p.err("logo_uri", c.WebURL(s.Logo))
	}
	c.unsupported(p, s)
}

// style refuses what fetches something or ends the style element; nobody needs
// escapes there, and they hide both.
func style(s string) error {
	if len(s) > maxCSS {
		return fmt.Errorf("has %d bytes, more than %d", len(s), maxCSS)
	}
	if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		return errors.New("is not a text")
	}
	lower := strings.ToLower(s)
	for _, word := range []string{"<", "\\", "url(", "image-set(", "image(", "src(", "@import", "@charset", "@namespace", "expression(", "javascript:", "-moz-binding", "behavior:"} {
		if strings.Contains(lower, word) {
			return fmt.Errorf("has %q, which is not allowed", word)
		}
	}
	return nil
}

func (c *check) overrides(s *catalog.TextsSpec) {
	p := c.of(KindTexts, s.Tenant, s.ID)
	p.err("id", Language(s.ID))
	c.tenantExists(p, s.Tenant)
	if len(s.Texts) > maxTexts {
		p.add("texts", "has %d entries, more than %d", len(s.Texts), maxTexts)
	} else {
		for _, key := range slices.Sorted(maps.Keys(s.Texts)) {
			at := `texts["` + key + `"]`
			if err := ID(key); err != nil {
				p.err(at, err)
				continue
			}
			if p.err(at, longText(s.Texts[key], maxTextLength)); utf8.ValidString(s.Texts[key]) {
				p.err(at, texts.Check(key, s.Texts[key]))
			}
		}
	}
	c.unsupported(p, s)
}

func longText(s string, most int) error {
	if !utf8.ValidString(s) || strings.Contains(s, "\x00") {
		return errors.New("is not a text")
	}
	if n := utf8.RuneCountInString(s); n > most {
		return fmt.Errorf("has %d characters, more than %d", n, most)
	}
	return nil
}

func (c *check) template(s *catalog.TemplateSpec) {
	p := c.of(KindTemplate, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.err("message", oneOf(s.Message, texts.Messages()...))
	p.err("channel", oneOf(s.Channel, texts.Channels()...))
	if len(s.Body) == 0 {
		p.add("body", "is missing")
	}
	if s.Channel != texts.Email && len(s.Subject) > 0 {
		p.add("subject", "is for e-mail")
	}
	if !slices.Contains(texts.Messages(), s.Message) {
		return
	}
	p.texts("subject", s.Subject, func(v string) error { return errors.Join(Name(v), texts.CheckMessage(s.Message, "subject", v)) })
	p.texts("body", s.Body, func(v string) error {
		if err := longText(v, maxBodyLength); err != nil {
			return err
		}
		return texts.CheckMessage(s.Message, "text", v)
	})
	key := [3]string{s.Tenant, s.Message, s.Channel}
	if other := c.templates[key]; other != "" {
		p.add("", "the template %q is of the same message and channel", other)
	}
	c.templates[key] = s.ID
}

// eventPattern checks an action of the audit log, the beginning of several
// ("client.*") or all ("*").
func eventPattern(s string) error {
	if s == "*" {
		return nil
	}
	return ID(strings.TrimSuffix(s, ".*"))
}

func (c *check) webhook(s *catalog.WebhookSpec) {
	p := c.of(KindWebhook, s.Tenant, s.ID)
	p.err("id", ID(s.ID))
	c.tenantExists(p, s.Tenant)
	p.err("url", c.WebURL(s.URL))
	if len(s.Events) == 0 || len(s.Events) > maxEvents {
		p.add("events", "has %d entries: 1 to %d are needed", len(s.Events), maxEvents)
	} else {
		p.each("events", s.Events, eventPattern)
	}
	c.unsupported(p, s)
}
