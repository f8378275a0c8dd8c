package validate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// ecKey is a public key on P-256; its private part is in privateKey.
const (
	ecKey      = `{"kty":"EC","kid":"a","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`
	privateKey = `{"kty":"EC","kid":"a","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0","d":"jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}`
)

func keySet(keys ...string) json.RawMessage {
	return json.RawMessage(`{"keys":[` + strings.Join(keys, ",") + `]}`)
}

func TestClientKeys_ArePublicKnownAndBounded(t *testing.T) {
	t.Parallel()
	weak := `{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("z", 171) + `"}` // 1024 bits
	huge := `{"kty":"RSA","e":"AQAB","n":"` + strings.Repeat("z", 2800) + `"}`
	for name, c := range map[string]struct {
		keys json.RawMessage
		want string // of the error; empty: accepted
	}{
		"one":               {keySet(ecKey), ""},
		"two":               {keySet(ecKey, strings.Replace(ecKey, `"a"`, `"b"`, 1)), ""},
		"OKP":               {keySet(`{"kty":"OKP","crv":"Ed25519","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}`), ""},
		"equal kids":        {keySet(ecKey, ecKey), "key 2 has the kid"},
		"private":           {keySet(privateKey), "key 1 is private"},
		"symmetric":         {keySet(`{"kty":"oct","k":"AAAA"}`), "key 1 is private"},
		"weak RSA":          {keySet(weak), "bits"},
		"huge RSA":          {keySet(huge), "bits"},
		"unknown use":       {keySet(strings.Replace(ecKey, `"kid"`, `"use":"all","kid"`, 1)), `use "all"`},
		"secp256k1":         {keySet(strings.Replace(ecKey, "P-256", "secp256k1", 1)), "key 1"},
		"point off curve":   {keySet(strings.Replace(ecKey, "f83O", "AAAA", 1)), "key 1"},
		"none":              {keySet(), "0 keys"},
		"too many":          {keySet(strings.Split(strings.Repeat(ecKey+"|", maxKeys), "|")[:maxKeys]...), "kid"},
		"no set":            {json.RawMessage(ecKey), "not a JSON Web Key Set"},
		"a text":            {json.RawMessage(`"keys"`), "not a JSON Web Key Set"},
		"not a key":         {keySet(`5`), "key 1"},
		"too large":         {keySet(`{"kty":"EC","x":"` + strings.Repeat("a", maxKeySet) + `"}`), "bytes, more than"},
		"deep":              {keySet(strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000)), "key 1"},
		"null keys":         {json.RawMessage(`{"keys":null}`), "not a JSON Web Key Set"},
		"NUL in the kid":    {keySet(strings.Replace(ecKey, `"a"`, `"\u0000"`, 1)), ""},
		"certificate of it": {keySet(strings.Replace(ecKey, `"kid"`, `"x5c":["AA=="],"kid"`, 1)), ""},
	} {
		if err := ClientKeys(c.keys); (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestRule_IsCompiledAndTypeChecked(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`token.sub == request.parameters.id`:                "",
		`"admin" in token.roles && request.method == "GET"`: "",
		`user.id == "alice" || token.acr == "high"`:         "",
		`user.claims.department == "sales"`:                 "is not an expression",
		`token.amr.exists(a, a == "otp")`:                   "",
		``:                                                  "is empty",
		`  `:                                                "is empty",
		`token.sub`:                                         "is of type string",
		`request.body.paid`:                                 "", // any: checked at run time
		`"text"`:                                            "is of type string",
		`1 + 1`:                                             "is of type int",
		`token.sub ==`:                                      "is not an expression",
		`os.exit()`:                                         "is not an expression",
		`env.PASSWORD == "x"`:                               "is not an expression",
		`token + 1 == 2`:                                    "is not an expression",
		`size(token.roles) > "1"`:                           "is not an expression",
		strings.Repeat("true || ", 1000) + "true":                    "characters, more than",
		strings.Repeat("(", 400) + "true" + strings.Repeat(")", 400): "is not an expression",
		"true\x00":                        "is not an expression",
		"\xff":                            "is not an expression",
		strings.Repeat("!", 300) + "true": "",
		`[1,2,3].map(a, [1,2,3].map(b, [1].map(c, a*b*c))) == request.body.x`: "",
	} {
		if err := Rule(s); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", s, err, want)
		}
	}
	if err := Value(`token.sub + ":" + request.method`); err != nil {
		t.Error(err)
	}
	if err := Value(`true`); err == nil {
		t.Error("a header's value is a bool")
	}
}

func TestRegexp_IsBounded(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`^[A-Za-z0-9]{8,64}$`: "", ``: "", `(a|b)+c`: "", `(a+)+$`: "", // linear in RE2
		`(`: "is not a regular expression", `a**`: "is not a regular expression", `(?=a)`: "is not a regular expression", `\1`: "is not a regular expression",
		`(a{1000}){1000}`: "is not a regular expression", `((a{100}){10}){10}`: "is not a regular expression", `[a-z]{900}[a-z]{900}[a-z]{900}`: "unfolds",
		strings.Repeat("a", 1001): "characters, more than", "\xff": "is not a regular expression",
	} {
		if err := Regexp(s); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %v, want %q", s, err, want)
		}
	}
}

func TestSchema_IsDraft2020AndRefersToNothingElsewhere(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		`{"type":"object","properties":{"amount":{"type":"number"}},"required":["amount"]}`:                             "",
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`: "",
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}`:                                         "another version",
		`{"$schema":"https://evil.example/schema"}`:                                                                     "another version",
		`{"$ref":"https://evil.example/schema.json"}`:                                                                   "is elsewhere",
		`{"$ref":"file:///etc/passwd"}`:                                                                                 "is elsewhere",
		`{"$ref":"other.json"}`:                                                                                         "is elsewhere",
		`{"properties":{"a":{"items":[{"$dynamicRef":"http://127.0.0.1/"}]}}}`:                                          "is elsewhere",
		`{"$defs":{"a":{"$id":"http://evil.example/","$ref":"#/x"}}}`:                                                   "$id",
		`{"$ref":"#/$defs/none"}`:                                                                                       "is not a JSON Schema",
		`{"type":"strange"}`:                                                                                            "is not a JSON Schema",
		`{"minimum":"1"}`:                                                                                               "is not a JSON Schema",
		`{"pattern":"("}`:                                                                                               "is not a JSON Schema",
		`true`:                                                                                                          "is not an object",
		`[]`:                                                                                                            "is not an object",
		``:                                                                                                              "is missing",
		`{`:                                                                                                             "is not JSON",
		strings.Repeat(`{"not":`, 40) + `{}` + strings.Repeat(`}`, 40):                            "nested deeper",
		`{"description":"` + strings.Repeat("a", maxSchema) + `"}`:                                "bytes, more than",
		`{"description":"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"{{{{{{{{{{{{{{{"}`: "",
	} {
		if err := Schema(json.RawMessage(s)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.70q: %v, want %q", s, err, want)
		}
	}
}

func TestLanguage_IsACanonicalTag(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{"en": true, "pt-BR": true, "zh-Hant": true, "kk": true, "EN": false, "en_US": false, "": false, "und": false, "english": false,
		"x": false, "en\x00": false, "../en": false, strings.Repeat("a-", 50): false} {
		if err := Language(s); (err == nil) != ok {
			t.Errorf("%q: %v", s, err)
		}
	}
}

func TestStyle_FetchesNothingAndStaysInItsElement(t *testing.T) {
	t.Parallel()
	for s, ok := range map[string]bool{
		"": true, ".page { color: #333; border-radius: 4px }": true, "@media (min-width: 40em) { main { margin: 1rem } }": true,
		"a{background:url(https://evil.example/)}": false, "@import 'x';": false, "</style><script>": false, `a{background:u\72l(x)}`: false,
		"a{background:URL (x)}": true, "a{background:image-set('x')}": false, "a{width:expression(1)}": false, "\x00": false, "\xff": false,
		strings.Repeat("a", maxCSS+1): false,
	} {
		if err := style(s); (err == nil) != ok {
			t.Errorf("%.40q: %v", s, err)
		}
	}
}

func client0(f func(*catalog.ClientSpec)) func(*catalog.Snapshot) {
	return func(s *catalog.Snapshot) { f(&s.Clients[0]) }
}

func tenant0(f func(*catalog.TenantSettings)) func(*catalog.Snapshot) {
	return func(s *catalog.Snapshot) { f(&s.Tenants[0].Settings) }
}

func endpoint0(f func(*catalog.EndpointSpec)) func(*catalog.Snapshot) {
	return func(s *catalog.Snapshot) { f(&s.Resources[0].Endpoints[0]) }
}

func TestUnsupported_EachSettingIsWellFormedAndRefusedByName(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*catalog.Snapshot){
		"auth_method": client0(func(c *catalog.ClientSpec) {
			c.AuthMethod, c.Secrets, c.JWKS = catalog.AuthSelfSignedTLS, nil, keySet(ecKey)
		}),
		"grant_types[2]": client0(func(c *catalog.ClientSpec) {
			c.GrantTypes = []string{catalog.GrantCode, catalog.GrantRefreshToken, catalog.GrantDevice}
		}),
		"response_types[0]":                          client0(func(c *catalog.ClientSpec) { c.ResponseTypes = []string{catalog.ResponseCodeIDToken} }),
		"userinfo_signed_response_alg":               client0(func(c *catalog.ClientSpec) { c.UserinfoAlg = "ES256" }),
		"introspection_signed_response_alg":          client0(func(c *catalog.ClientSpec) { c.IntrospectionAlg = "ES256" }),
		"access_token_format":                        client0(func(c *catalog.ClientSpec) { c.AccessTokenFormat = "opaque" }),
		"subject_type":                               client0(func(c *catalog.ClientSpec) { c.SubjectType = "pairwise" }),
		"sector_identifier_uri":                      client0(func(c *catalog.ClientSpec) { c.SectorIdentifierURI = "https://a.example/s" }),
		"tls_client_certificate_bound_access_tokens": client0(func(c *catalog.ClientSpec) { c.CertificateBound = true }),
		"default_acr_values":                         client0(func(c *catalog.ClientSpec) { c.DefaultACR = []string{"high"} }),
		"consent":                                    client0(func(c *catalog.ClientSpec) { c.Consent = "once" }),
		"registration":                               client0(func(c *catalog.ClientSpec) { c.Registration = true }),

		"settings.otp.channels": tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{Length: 6, Channels: []string{"sms"}} }),
		"settings.otp.per_day":  tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{PerDay: 10} }),
		"settings.limits":       tenant0(func(s *catalog.TenantSettings) { s.Limits = &catalog.SignInLimits{FailuresPerAccount: 10} }),
		"settings.password_policy.history": tenant0(func(s *catalog.TenantSettings) {
			s.PasswordPolicy = &catalog.PasswordPolicy{MinLength: 12, Pattern: "[0-9]", History: 5}
		}),
		"settings.password_policy.max_age": tenant0(func(s *catalog.TenantSettings) {
			s.PasswordPolicy = &catalog.PasswordPolicy{MaxAge: catalog.Duration(90 * 24 * time.Hour)}
		}),
		"settings.passkeys": tenant0(func(s *catalog.TenantSettings) {
			s.Passkeys = &catalog.RelyingParty{ID: "a.example", Origins: []string{"https://login.a.example"}}
		}),
		"settings.acr": tenant0(func(s *catalog.TenantSettings) {
			s.ACR = []catalog.ACRSpec{{Value: "high", Factors: []string{"otp", "password"}}}
		}),
		"settings.certificate_header": tenant0(func(s *catalog.TenantSettings) {
			s.CertificateHeader = &catalog.CertificateHeader{Name: "Client-Cert", Format: "rfc9440"}
		}),
		"endpoints[0].step_up.acr_values": endpoint0(func(e *catalog.EndpointSpec) { e.StepUp = &catalog.StepUp{ACR: []string{"high"}} }),
	} {
		s := base()
		change(s)
		if found := (Rules{everything: true}).Snapshot(s); len(found) != 0 {
			t.Errorf("%s: its syntax is refused: %v", field, found)
		}
		if found := (Rules{}).Snapshot(s); len(found) != 1 || found[0].Field != field || !strings.Contains(found[0].Message, "not supported by this version") {
			t.Errorf("%s: %v", field, found)
		}
	}
}

func TestUnsupported_WholeKinds(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]func(*catalog.Snapshot){
		KindDetailType: func(s *catalog.Snapshot) {
			s.DetailTypes = []catalog.AuthorizationDetailType{{Tenant: "demo", ID: "payment", Schema: json.RawMessage(`{"type":"object"}`)}}
		},
	} {
		s := base()
		change(s)
		if found := (Rules{everything: true}).Snapshot(s); len(found) != 0 {
			t.Errorf("%s: its syntax is refused: %v", kind, found)
		}
		if found := (Rules{}).Snapshot(s); len(found) != 1 || found[0].Of.Kind != kind || found[0].Message != "is not supported by this version" {
			t.Errorf("%s: %v", kind, found)
		}
	}
}

func TestModel_RefusesWhatRunTimeWouldRefuse(t *testing.T) {
	t.Parallel()
	many := make([]string, maxList+1)
	for i := range many {
		many[i] = fmt.Sprintf("https://a.example/%d", i)
	}
	for name, c := range map[string]struct {
		change func(*catalog.Snapshot)
		field  string
	}{
		"private key": {client0(func(c *catalog.ClientSpec) { c.RequestObjectAlg, c.JWKS = "ES256", keySet(privateKey) }), "jwks"},
		"both kinds of keys": {client0(func(c *catalog.ClientSpec) {
			c.RequestObjectAlg, c.JWKS, c.JWKSURI = "ES256", keySet(ecKey), "https://a.example/"
		}), "jwks_uri"},
		"keys by http":                           {client0(func(c *catalog.ClientSpec) { c.RequestObjectAlg, c.JWKSURI = "ES256", "http://a.example/" }), "jwks_uri"},
		"keys of no use":                         {client0(func(c *catalog.ClientSpec) { c.JWKS = keySet(ecKey) }), "jwks"},
		"an address of no use":                   {client0(func(c *catalog.ClientSpec) { c.JWKSURI = "https://a.example/jwks" }), "jwks_uri"},
		"request objects, no keys":               {client0(func(c *catalog.ClientSpec) { c.RequestObjectAlg = "ES256" }), "jwks"},
		"request objects, no key of the kind":    {client0(func(c *catalog.ClientSpec) { c.RequestObjectAlg, c.JWKS = "PS256", keySet(ecKey) }), "jwks"},
		"request objects by none":                {client0(func(c *catalog.ClientSpec) { c.RequestObjectAlg, c.JWKSURI = "none", "https://a.example/jwks" }), "request_object_signing_alg"},
		"signed requests, no algorithm":          {func(s *catalog.Snapshot) { s.Clients[1].RequireSignedRequest = true }, "require_signed_request_object"},
		"an edge's client that pushes":           {client0(func(c *catalog.ClientSpec) { c.RequirePAR = true }), "client"},
		"an edge's client of a tenant that does": {tenant0(func(s *catalog.TenantSettings) { s.RequirePAR = true }), "client"},
		"an edge's client that signs": {client0(func(c *catalog.ClientSpec) {
			c.RequireSignedRequest, c.RequestObjectAlg, c.JWKS = true, "ES256", keySet(ecKey)
		}), "client"},
		"pushed requests for too long": {tenant0(func(s *catalog.TenantSettings) { s.PushedRequestTTL = catalog.Duration(10 * time.Minute) }), "settings.pushed_request_ttl"},
		"pushed requests for a moment": {tenant0(func(s *catalog.TenantSettings) { s.PushedRequestTTL = catalog.Duration(time.Second) }), "settings.pushed_request_ttl"},
		"answers signed by nothing":    {client0(func(c *catalog.ClientSpec) { c.AuthorizationAlg = "none" }), "authorization_signed_response_alg"},
		"private_key_jwt, no keys":     {client0(func(c *catalog.ClientSpec) { c.AuthMethod, c.Secrets = catalog.AuthPrivateKeyJWT, nil }), "jwks"},
		"private_key_jwt, secret":      {client0(func(c *catalog.ClientSpec) { c.AuthMethod, c.JWKS = catalog.AuthPrivateKeyJWT, keySet(ecKey) }), "secret"},
		"assertion algorithm":          {client0(func(c *catalog.ClientSpec) { c.AuthMethod, c.AuthSigningAlg = catalog.AuthSecretJWT, "ES256" }), "token_endpoint_auth_signing_alg"},
		"algorithm none":               {client0(func(c *catalog.ClientSpec) { c.UserinfoAlg = "none" }), "userinfo_signed_response_alg"},
		"tls without subject":          {client0(func(c *catalog.ClientSpec) { c.AuthMethod, c.Secrets = catalog.AuthTLS, nil }), "tls"},
		"two subjects": {client0(func(c *catalog.ClientSpec) {
			c.AuthMethod, c.Secrets, c.TLS = catalog.AuthTLS, nil, &catalog.ClientCertificate{DNS: "a.example", IP: "192.0.2.1"}
		}), "tls"},
		"wildcard subject": {client0(func(c *catalog.ClientSpec) {
			c.AuthMethod, c.Secrets, c.TLS = catalog.AuthTLS, nil, &catalog.ClientCertificate{DNS: "*.example"}
		}), "tls.san_dns"},
		"bound twice":                        {func(s *catalog.Snapshot) { s.Clients[1].DPoPBound, s.Clients[1].CertificateBound = true, true }, "dpop_bound_access_tokens"},
		"an edge's client with bound tokens": {client0(func(c *catalog.ClientSpec) { c.DPoPBound = true }), "client"},
		"unknown response":                   {client0(func(c *catalog.ClientSpec) { c.ResponseTypes = []string{"token"} }), "response_types[0]"},
		"unknown theme":                      {client0(func(c *catalog.ClientSpec) { c.Theme = "none" }), "theme"},
		"logo":                               {client0(func(c *catalog.ClientSpec) { c.LogoURI = "javascript:x" }), "logo_uri"},
		"frame of nothing":                   {client0(func(c *catalog.ClientSpec) { c.FrontchannelLogoutURI = "javascript:x" }), "frontchannel_logout_uri"},
		"frame of another host":              {client0(func(c *catalog.ClientSpec) { c.FrontchannelLogoutURI = "https://evil.example/out" }), "frontchannel_logout_uri"},
		"frame of another port":              {client0(func(c *catalog.ClientSpec) { c.FrontchannelLogoutURI = "https://e.example:8443/out" }), "frontchannel_logout_uri"},
		"frame with a fragment":              {client0(func(c *catalog.ClientSpec) { c.FrontchannelLogoutURI = "https://e.example/out#x" }), "frontchannel_logout_uri"},
		"language":                           {client0(func(c *catalog.ClientSpec) { c.Name = catalog.Text{"en_US": "x"} }), "name.en_US"},
		"two defaults":                       {client0(func(c *catalog.ClientSpec) { c.Name = catalog.Text{"": "x", "en": "y"} }), "name"},
		"control characters":                 {client0(func(c *catalog.ClientSpec) { c.Name = catalog.Text{"en": "a\x00"} }), "name.en"},
		"huge list":                          {client0(func(c *catalog.ClientSpec) { c.RedirectURIs = append(many, "https://e.example/complete") }), "redirect_uris"},
		"too many secrets":                   {client0(func(c *catalog.ClientSpec) { c.Secrets = make([]catalog.SealedSecret, maxSecrets+1) }), "secrets"},

		"otp of two digits":    {tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{Length: 2} }), "settings.otp.length"},
		"otp of half a minute": {tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{TTL: catalog.Duration(30 * time.Second)} }), "settings.otp.ttl"},
		"otp of six tries":     {tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{Attempts: 6} }), "settings.otp.attempts"},
		"otp again at once": {tenant0(func(s *catalog.TenantSettings) {
			s.OTP = &catalog.OTPSettings{Resend: catalog.Duration(29 * time.Second)}
		}), "settings.otp.resend_after"},
		"otp gone before the next": {tenant0(func(s *catalog.TenantSettings) {
			s.OTP = &catalog.OTPSettings{Resend: catalog.Duration(6 * time.Minute)}
		}), "settings.otp.resend_after"},
		"otp channel":      {tenant0(func(s *catalog.TenantSettings) { s.OTP = &catalog.OTPSettings{Channels: []string{"fax"}} }), "settings.otp.channels[0]"},
		"short passwords":  {tenant0(func(s *catalog.TenantSettings) { s.PasswordPolicy = &catalog.PasswordPolicy{MinLength: 4} }), "settings.password_policy.min_length"},
		"password pattern": {tenant0(func(s *catalog.TenantSettings) { s.PasswordPolicy = &catalog.PasswordPolicy{Pattern: "("} }), "settings.password_policy.pattern"},
		"foreign passkeys": {tenant0(func(s *catalog.TenantSettings) {
			s.Passkeys = &catalog.RelyingParty{ID: "a.example", Origins: []string{"https://evil-a.example"}}
		}), "settings.passkeys.origins[0]"},
		"acr twice": {tenant0(func(s *catalog.TenantSettings) {
			s.ACR = []catalog.ACRSpec{{Value: "a", Factors: []string{"otp"}}, {Value: "a", Factors: []string{"otp"}}}
		}), "settings.acr[1].value"},
		"header": {tenant0(func(s *catalog.TenantSettings) {
			s.CertificateHeader = &catalog.CertificateHeader{Name: "a b", Format: "rfc9440"}
		}), "settings.certificate_header.name"},
		"rule":            {endpoint0(func(e *catalog.EndpointSpec) { e.Allow = "token.sub ==" }), "endpoints[0].allow"},
		"rule for nobody": {endpoint0(func(e *catalog.EndpointSpec) { e.Allow, e.Public = "true", true }), "endpoints[0].allow"},
		"forged header": {endpoint0(func(e *catalog.EndpointSpec) {
			e.Inject = []catalog.Injection{{Header: "x-forwarded-for", Value: "token.sub"}}
		}), "endpoints[0].inject[0].header"},
		"header of CRLF": {endpoint0(func(e *catalog.EndpointSpec) { e.Inject = []catalog.Injection{{Header: "a\r\nb", Value: "token.sub"}} }), "endpoints[0].inject[0].header"},
		"header of the edge": {endpoint0(func(e *catalog.EndpointSpec) {
			e.Inject = []catalog.Injection{{Header: "x-versola-subject", Value: "token.sub"}}
		}), "endpoints[0].inject[0].header"},
		"header of credentials": {endpoint0(func(e *catalog.EndpointSpec) {
			e.Inject = []catalog.Injection{{Header: "Authorization", Value: "token.sub"}}
		}), "endpoints[0].inject[0].header"},
		"header of framing": {endpoint0(func(e *catalog.EndpointSpec) {
			e.Inject = []catalog.Injection{{Header: "content-length", Value: "token.sub"}}
		}), "endpoints[0].inject[0].header"},
		"header twice": {endpoint0(func(e *catalog.EndpointSpec) {
			e.Inject = []catalog.Injection{{Header: "X-A", Value: "token.sub"}, {Header: "x-a", Value: "token.sub"}}
		}), "endpoints[0].inject[1].header"},
		"step-up of nothing":   {endpoint0(func(e *catalog.EndpointSpec) { e.StepUp = &catalog.StepUp{} }), "endpoints[0].step_up"},
		"limit of nothing":     {endpoint0(func(e *catalog.EndpointSpec) { e.Limits = &catalog.LimitSpec{} }), "endpoints[0].limits"},
		"limit without a time": {endpoint0(func(e *catalog.EndpointSpec) { e.Limits = &catalog.LimitSpec{Requests: 1} }), "endpoints[0].limits.per"},
		"any origin":           {func(s *catalog.Snapshot) { s.Resources[0].CORS = &catalog.CORSSpec{Origins: []string{"*"}} }, "cors.origins[0]"},
		"upstream's CA": {func(s *catalog.Snapshot) {
			s.Resources[0].Upstream.URL, s.Resources[0].Upstream.TLS = "https://a.example", &catalog.UpstreamTLS{CA: "-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"}
		}, "upstream.tls.ca"},
		"upstream's client": {func(s *catalog.Snapshot) {
			s.Resources[0].Upstream.Authentication = &catalog.UpstreamAuthentication{Client: "none"}
		}, "upstream.authentication.client"},
		"schema": {func(s *catalog.Snapshot) {
			s.DetailTypes = []catalog.AuthorizationDetailType{{Tenant: "demo", ID: "p", Schema: json.RawMessage(`{"$ref":"http://e/"}`)}}
		}, "schema"},
		"texts' language": {func(s *catalog.Snapshot) {
			s.Texts = []catalog.TextsSpec{{Tenant: "demo", ID: "English", Texts: map[string]string{"footer": "b"}}}
		}, "id"},
		"text's key": {func(s *catalog.Snapshot) {
			s.Texts = []catalog.TextsSpec{{Tenant: "demo", ID: "en", Texts: map[string]string{"A b": "b"}}}
		}, `texts["A b"]`},
		"key of no text": {func(s *catalog.Snapshot) {
			s.Texts = []catalog.TextsSpec{{Tenant: "demo", ID: "en", Texts: map[string]string{"a.b": "b"}}}
		}, `texts["a.b"]`},
		"text's placeholder": {func(s *catalog.Snapshot) {
			s.Texts = []catalog.TextsSpec{{Tenant: "demo", ID: "en", Texts: map[string]string{"footer": "{client}"}}}
		}, `texts["footer"]`},
		"language without texts": {tenant0(func(s *catalog.TenantSettings) { s.Languages = []string{"en", "de"} }), "settings.languages[1]"},
		"language's form":        {tenant0(func(s *catalog.TenantSettings) { s.Languages = []string{"EN"} }), "settings.languages[0]"},
		"theme's token": {func(s *catalog.Snapshot) {
			s.Themes = []catalog.ThemeSpec{{Tenant: "demo", ID: "t", Tokens: map[string]string{"accent": "red;}"}}}
		}, `tokens["accent"]`},
		"theme's unknown token": {func(s *catalog.Snapshot) {
			s.Themes = []catalog.ThemeSpec{{Tenant: "demo", ID: "t", Tokens: map[string]string{"A b": "red"}}}
		}, `tokens["A b"]`},
		"theme that cannot be read": {func(s *catalog.Snapshot) {
			s.Themes = []catalog.ThemeSpec{{Tenant: "demo", ID: "t", Tokens: map[string]string{"text-soft": "#aaa"}}}
		}, `tokens["text-soft"]`},
		"tenant's unknown theme": {tenant0(func(s *catalog.TenantSettings) { s.Theme = "none" }), "settings.theme"},
		"client's unknown theme": {client0(func(c *catalog.ClientSpec) { c.Theme = "none" }), "theme"},
		"webhook by http": {func(s *catalog.Snapshot) {
			s.Webhooks = []catalog.WebhookSpec{{Tenant: "demo", ID: "w", URL: "http://a.example/", Events: []string{"a"}}}
		}, "url"},
		"webhook's pattern": {func(s *catalog.Snapshot) {
			s.Webhooks = []catalog.WebhookSpec{{Tenant: "demo", ID: "w", URL: "https://a.example/", Events: []string{"*", "user.*", "user.created", "us*r"}}}
		}, "events[3]"},
		"webhook of nothing": {func(s *catalog.Snapshot) {
			s.Webhooks = []catalog.WebhookSpec{{Tenant: "demo", ID: "w", URL: "https://a.example/"}}
		}, "events"},
		"entity of no tenant": {func(s *catalog.Snapshot) { s.Claims = []catalog.ClaimSpec{{Tenant: "none", ID: "a"}} }, "tenant"},
		"directory's id":      {func(s *catalog.Snapshot) { s.Directories = []catalog.DirectorySpec{{ID: "../x"}} }, "id"},
		"claim of long name": {func(s *catalog.Snapshot) {
			s.Claims = []catalog.ClaimSpec{{Tenant: "demo", ID: strings.Repeat("a", 129)}}
		}, "id"},
		"template without text": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "otp", Channel: "sms"}}
		}, "body"},
		"template without the code": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "otp", Channel: "sms", Body: catalog.Text{"en": "{code}", "ru": "?"}}}
		}, "body.ru"},
		"template of no message": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "greeting", Channel: "sms", Body: catalog.Plain("{code}")}}
		}, "message"},
		"template of no channel": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "otp", Channel: "pigeon", Body: catalog.Plain("{code}")}}
		}, "channel"},
		"subject of a text message": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "otp", Channel: "sms", Subject: catalog.Plain("a"), Body: catalog.Plain("{code}")}}
		}, "subject"},
		"subject of two lines": {func(s *catalog.Snapshot) {
			s.Templates = []catalog.TemplateSpec{{Tenant: "demo", ID: "t", Message: "otp", Channel: "email", Subject: catalog.Plain("a\r\nBcc: b"), Body: catalog.Plain("{code}")}}
		}, "subject"},
		"two templates of one message": {func(s *catalog.Snapshot) {
			one := catalog.TemplateSpec{Tenant: "demo", ID: "t", Message: "otp", Channel: "sms", Body: catalog.Plain("{code}")}
			two := one
			two.ID = "u"
			s.Templates = []catalog.TemplateSpec{one, two}
		}, ""},
	} {
		s := base()
		c.change(s)
		found := (Rules{everything: true}).Snapshot(s)
		if len(found) != 1 || found[0].Field != c.field {
			t.Errorf("%s: %v, want one at %q", name, found, c.field)
		}
	}
}

func TestProblem_PointerIsAJSONPointer(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"": "", "id": "/id", "redirect_uris[1]": "/redirect_uris/1", "endpoints[3].inject[0].header": "/endpoints/3/inject/0/header",
		"login.factors[0]": "/login/factors/0", `texts["a.b/c~d"]`: "/texts/a.b~1c~0d", "name.pt-BR": "/name/pt-BR",
	} {
		if got := (Problem{Field: field}).Pointer(); got != want {
			t.Errorf("%q: %q, want %q", field, got, want)
		}
	}
}
