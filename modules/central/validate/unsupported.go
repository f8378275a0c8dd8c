package validate

import (
	"fmt"
	"slices"

	"versola/modules/central/catalog"
)

// What the model has and this version does not honour at run time yet. It is
// refused, so that nobody believes in a protection that is not there. Who
// implements one removes its line.

func clientUnsupported(s *catalog.ClientSpec, refuse func(field string, is bool)) {
	refuse("auth_method", slices.Contains([]catalog.AuthMethod{catalog.AuthTLS, catalog.AuthSelfSignedTLS}, s.AuthMethod))
	for i, g := range s.GrantTypes {
		refuse(fmt.Sprintf("grant_types[%d]", i), g == catalog.GrantDevice || g == catalog.GrantTokenExchange)
	}
	for i, r := range s.ResponseTypes {
		refuse(fmt.Sprintf("response_types[%d]", i), r == catalog.ResponseCodeIDToken)
	}
	refuse("tls", s.TLS != nil)
	refuse("userinfo_signed_response_alg", s.UserinfoAlg != "")
	refuse("introspection_signed_response_alg", s.IntrospectionAlg != "")
	refuse("access_token_format", s.AccessTokenFormat == "opaque")
	refuse("subject_type", s.SubjectType == "pairwise")
	refuse("sector_identifier_uri", s.SectorIdentifierURI != "")
	refuse("tls_client_certificate_bound_access_tokens", s.CertificateBound)
	refuse("default_acr_values", len(s.DefaultACR) > 0)
	refuse("authorization_details_types", len(s.AuthorizationDetails) > 0)
	refuse("consent", s.Consent == "once" || s.Consent == "always")
	refuse("registration", s.Registration)
}

func tenantUnsupported(s *catalog.TenantSpec, refuse func(field string, is bool)) {
	t := &s.Settings
	refuse("security_profile", s.Profile == catalog.ProfileFAPI2)
	if o := t.OTP; o != nil {
		refuse("settings.otp.per_day", o.PerDay != 0)
		refuse("settings.otp.channels", len(o.Channels) > 0)
	}
	refuse("settings.limits", t.Limits != nil)
	if w := t.PasswordPolicy; w != nil {
		refuse("settings.password_policy.history", w.History != 0)
		refuse("settings.password_policy.max_age", w.MaxAge != 0)
	}
	refuse("settings.passkeys", t.Passkeys != nil)
	refuse("settings.acr", len(t.ACR) > 0)
	refuse("settings.certificate_header", t.CertificateHeader != nil)
}

func resourceUnsupported(s *catalog.ResourceSpec, refuse func(field string, is bool)) {
	refuse("upstream.authentication", s.Upstream.Authentication != nil)
	for i := range s.Endpoints {
		e, at := &s.Endpoints[i], fmt.Sprintf("endpoints[%d].", i)
		refuse(at+"step_up.acr_values", e.StepUp != nil && len(e.StepUp.ACR) > 0)
	}
}

// unsupportedKinds are refused whole.
var unsupportedKinds = []string{KindDetailType}

// unsupported refuses what of an entity run time does not honour.
func (c *check) unsupported(p problems, e catalog.Entity) {
	if c.everything {
		return
	}
	refuse := func(field string, is bool) {
		if is {
			p.add(field, "is not supported by this version")
		}
	}
	switch s := e.(type) {
	case *catalog.ClientSpec:
		clientUnsupported(s, refuse)
	case *catalog.TenantSpec:
		tenantUnsupported(s, refuse)
	case *catalog.ResourceSpec:
		resourceUnsupported(s, refuse)
	}
	refuse("", slices.Contains(unsupportedKinds, e.Ref().Kind))
}
