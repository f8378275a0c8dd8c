package discovery

import (
	"encoding/json"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/authorization"
	"versola/modules/auth/par"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

// Metadata is the document.
type Metadata struct {
	Issuer                            string   `json:"issuer"`
	AuthorizationEndpoint             string   `json:"authorization_endpoint"`
	TokenEndpoint                     string   `json:"token_endpoint"`
	PAREndpoint                       string   `json:"pushed_authorization_request_endpoint"`
	RequirePAR                        bool     `json:"require_pushed_authorization_requests"`
	UserinfoEndpoint                  string   `json:"userinfo_endpoint"`
	JWKSURI                           string   `json:"jwks_uri"`
	RevocationEndpoint                string   `json:"revocation_endpoint"`
	EndSessionEndpoint                string   `json:"end_session_endpoint"`
	ScopesSupported                   []string `json:"scopes_supported"`
	ResponseTypesSupported            []string `json:"response_types_supported"`
	ResponseModesSupported            []string `json:"response_modes_supported"`
	GrantTypesSupported               []string `json:"grant_types_supported"`
	SubjectTypesSupported             []string `json:"subject_types_supported"`
	AuthorizationSigningAlgs          []string `json:"authorization_signing_alg_values_supported"`
	IDTokenSigningAlgs                []string `json:"id_token_signing_alg_values_supported"`
	TokenAuthMethods                  []string `json:"token_endpoint_auth_methods_supported"`
	TokenAuthAlgs                     []string `json:"token_endpoint_auth_signing_alg_values_supported,omitempty"`
	RevocationAuthMethods             []string `json:"revocation_endpoint_auth_methods_supported"`
	RevocationAuthAlgs                []string `json:"revocation_endpoint_auth_signing_alg_values_supported,omitempty"`
	DPoPSigningAlgs                   []string `json:"dpop_signing_alg_values_supported"`
	CodeChallengeMethods              []string `json:"code_challenge_methods_supported"`
	ClaimTypesSupported               []string `json:"claim_types_supported"`
	ClaimsSupported                   []string `json:"claims_supported"`
	PromptValuesSupported             []string `json:"prompt_values_supported"`
	UILocalesSupported                []string `json:"ui_locales_supported,omitempty"`
	ClaimsParameterSupported          bool     `json:"claims_parameter_supported"`
	RequestParameterSupported         bool     `json:"request_parameter_supported"`
	RequestObjectSigningAlgs          []string `json:"request_object_signing_alg_values_supported"`
	RequestURIParameterSupported      bool     `json:"request_uri_parameter_supported"` // left out it would mean true
	AuthorizationResponseIssSupported bool     `json:"authorization_response_iss_parameter_supported"`
	BackchannelLogoutSupported        bool     `json:"backchannel_logout_supported"`
	BackchannelLogoutSessionSupported bool     `json:"backchannel_logout_session_supported"`
	FrontchannelLogoutSupported       bool     `json:"frontchannel_logout_supported"`
	FrontchannelLogoutSessionSupport  bool     `json:"frontchannel_logout_session_supported"`
}

// Capabilities are what the endpoints themselves know of what they do.
type Capabilities struct {
	GrantTypes  []string
	Prompts     []string
	AuthMethods []catalog.AuthMethod // of clients
}

// Endpoint serves the document.
type Endpoint struct {
	documents *tenant.Derived[map[string][]byte]
}

// New makes the endpoint.
func New(k Capabilities) *Endpoint {
	return &Endpoint{tenant.NewDerived(func(c *catalog.Catalog) map[string][]byte {
		out := map[string][]byte{}
		if len(signingAlgs(c)) == 0 {
			return out
		}
		for _, t := range c.Tenants() {
			if body, err := json.Marshal(describe(tenant.At{Tenant: t, Catalog: c}, k)); err == nil {
				out[t.ID] = body
			}
		}
		return out
	})}
}

// maxAge is how long the document may be kept.
const maxAge = "public, max-age=300"

// Handle answers both well-known addresses.
func (e *Endpoint) Handle(c echo.Context) error {
	t := tenant.Of(c)
	body, ok := e.documents.Of(t.Catalog)[t.ID]
	if !ok {
		// Before the first keys exist no token can be made, and caches would
		// keep a document that says so.
		return &httpserver.Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
			Detail: "there is no signing key yet", Reason: "no_keys"}
	}
	c.Response().Header().Set("Cache-Control", maxAge)
	return c.Blob(http.StatusOK, echo.MIMEApplicationJSON, body)
}

func describe(t tenant.At, k Capabilities) *Metadata {
	methods, algs := authentication(t, k.AuthMethods)
	return &Metadata{
		Issuer:                            t.Issuer,
		AuthorizationEndpoint:             t.Issuer + "/authorize",
		TokenEndpoint:                     t.Issuer + "/token",
		PAREndpoint:                       t.Issuer + par.Path,
		RequirePAR:                        t.RequiresPAR(),
		UserinfoEndpoint:                  t.Issuer + "/userinfo",
		JWKSURI:                           t.Issuer + "/.well-known/jwks.json",
		RevocationEndpoint:                t.Issuer + "/revoke",
		EndSessionEndpoint:                t.Issuer + "/logout",
		ScopesSupported:                   t.ScopeIDs(),
		ResponseTypesSupported:            []string{"code"},
		ResponseModesSupported:            authorization.Modes(),
		GrantTypesSupported:               k.GrantTypes,
		SubjectTypesSupported:             []string{"public"},
		AuthorizationSigningAlgs:          responseAlgs(t),
		IDTokenSigningAlgs:                signingAlgs(t.Catalog),
		TokenAuthMethods:                  methods,
		TokenAuthAlgs:                     algs,
		RevocationAuthMethods:             methods,
		RevocationAuthAlgs:                algs,
		DPoPSigningAlgs:                   names(t.ProofAlgs()),
		CodeChallengeMethods:              []string{"S256"},
		ClaimTypesSupported:               []string{"normal"},
		ClaimsSupported:                   claims(t),
		PromptValuesSupported:             k.Prompts,
		UILocalesSupported:                t.Texts.Locales(),
		RequestParameterSupported:         true,
		RequestObjectSigningAlgs:          names(t.MessageAlgs()),
		AuthorizationResponseIssSupported: true,
		BackchannelLogoutSupported:        true,
		BackchannelLogoutSessionSupported: true,
		FrontchannelLogoutSupported:       true,
		FrontchannelLogoutSessionSupport:  true,
	}
}

// signingAlgs are the algorithms that there is an active key for.
func signingAlgs(c *catalog.Catalog) []string {
	out := []string{}
	for _, alg := range jose.Algorithms() {
		if _, ok := c.Signer(alg); ok {
			out = append(out, string(alg))
		}
	}
	return out
}

// responseAlgs are those that authorization responses may be signed with: the
// profile's, where there is an active key.
func responseAlgs(t tenant.At) []string {
	return slices.DeleteFunc(names(t.MessageAlgs()), func(alg string) bool { return !slices.Contains(signingAlgs(t.Catalog), alg) })
}

// authentication returns how clients of a tenant may authenticate, and what
// their assertions may be signed with.
func authentication(t tenant.At, supported []catalog.AuthMethod) (methods, algs []string) {
	for _, m := range supported {
		methods = append(methods, string(m))
		algs = append(algs, names((&catalog.ClientSpec{AuthMethod: m}).AssertionAlgs(t.Profile))...)
	}
	return methods, algs
}

func names(algs []jose.Algorithm) []string {
	out := make([]string, len(algs))
	for i, a := range algs {
		out[i] = string(a)
	}
	return out
}

// claims are those of ID tokens, and what the tenant's scopes release.
func claims(t tenant.At) []string {
	out := []string{"iss", "sub", "aud", "exp", "iat", "auth_time", "nonce", "acr", "amr", "sid", "at_hash"}
	for _, id := range t.ScopeIDs() {
		scope, _ := t.Scope(id)
		out = append(out, scope.Claims...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}
