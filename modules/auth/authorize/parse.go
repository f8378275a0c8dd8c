package authorize

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"versola/modules/auth/authorization"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/dpop"
)

// Bounds of parameters. They travel through rows, cookies' company and URLs.
const (
	maxState     = 2 << 10 // some clients keep a signed return address in it
	maxNonce     = 1 << 10 // ends up in every ID token
	maxLoginHint = 320     // the longest e-mail address (RFC 5321)
	maxList      = 10      // acr_values, ui_locales
	maxListItem  = 128
	// challengeLength is that of a SHA-256 in base64url (RFC 7636 section 4.2).
	challengeLength = 43
)

// known are the parameters that may be sent once only. Others are ignored (RFC
// 6749 section 3.1).
var known = []string{
	"response_type", "response_mode", "scope", "state", "nonce", "display", "prompt", "max_age", "ui_locales", "claims_locales",
	"id_token_hint", "login_hint", "acr_values", "claims", "registration", "request", "request_uri",
	"code_challenge", "code_challenge_method", "dpop_jkt",
}

// Error codes of OpenID Connect Core that package oauth does not need.
const registrationNotSupported = "registration_not_supported"

// clientOf finds the client. Errors are for the person's eyes only.
func clientOf(t tenant.At, p oauth.Params) (*catalog.Client, error) {
	if _, twice := p.Duplicate("client_id"); twice {
		return nil, oauth.Refuse(oauth.InvalidRequest, "client_id was sent more than once")
	}
	if !p.Has("client_id") {
		return nil, oauth.Refuse(oauth.InvalidRequest, "client_id is missing")
	}
	cl, ok := t.Client(p.Get("client_id"))
	if !ok || cl.Disabled {
		// Not invalid_client: that is the token endpoint's, with status 401.
		return nil, oauth.Refuse(oauth.InvalidRequest, "client_id names no client")
	}
	return cl, nil
}

// recipient finds where a client's answers go. Errors are for the person's eyes
// only: there is nobody to redirect to.
func recipient(cl *catalog.Client, p oauth.Params) (string, error) {
	if _, twice := p.Duplicate("redirect_uri"); twice {
		return "", oauth.Refuse(oauth.InvalidRequest, "redirect_uri was sent more than once")
	}
	if !p.Has("redirect_uri") {
		return "", oauth.Refuse(oauth.InvalidRequest, "redirect_uri is missing")
	}
	uri := p.Get("redirect_uri")
	if !cl.Redirect(uri) {
		return "", oauth.Refuse(oauth.InvalidRequest, "redirect_uri is not registered with the client")
	}
	return uri, nil
}

// begin starts a request with what every answer needs: the mode that it goes by,
// and state. On an error the returned request carries it back.
func begin(t tenant.At, cl *catalog.Client, redirectURI string, p oauth.Params) (*authorization.Request, error) {
	r := &authorization.Request{Tenant: t.ID, ClientID: cl.ID, RedirectURI: redirectURI, ResponseMode: authorization.Query}
	ofMode := once(r, p, "response_mode", parseMode)
	ofState := once(r, p, "state", parseState)
	return r, cmp.Or(ofMode, ofState)
}

// once reads a parameter that was not sent twice; what was is refused with all
// others.
func once(r *authorization.Request, p oauth.Params, name string, parse func(*authorization.Request, oauth.Params) error) error {
	if _, twice := p.Duplicate(name); twice {
		return nil
	}
	return parse(r, p)
}

// parse validates everything else. On an error the returned request is complete
// enough to carry it back.
func parse(t tenant.At, cl *catalog.Client, redirectURI string, p oauth.Params) (*authorization.Request, error) {
	r, err := begin(t, cl, redirectURI, p)
	if err != nil {
		return r, err
	}
	if twice, isTwice := p.Duplicate(known...); isTwice {
		return r, oauth.Refuse(oauth.InvalidRequest, "%s was sent more than once", twice)
	}
	for _, step := range []func(*authorization.Request, tenant.At, *catalog.Client, oauth.Params) error{
		parseUnsupported, parseResponse, parseScope, parsePKCE, parseKey, parseNonce, parsePrompt, parseMaxAge, parseHints,
	} {
		if err := step(r, t, cl, p); err != nil {
			return r, err
		}
	}
	return r, nil
}

func parseMode(r *authorization.Request, p oauth.Params) error {
	mode, ok := authorization.ModeOf(p.Get("response_mode"))
	if !ok {
		return oauth.Refuse(oauth.InvalidRequest, "response_mode must be one of %s", strings.Join(authorization.Modes(), ", "))
	}
	if mode.Form() && !strings.HasPrefix(r.RedirectURI, "http://") && !strings.HasPrefix(r.RedirectURI, "https://") {
		return oauth.Refuse(oauth.InvalidRequest, "response_mode needs a redirect_uri that takes a POST")
	}
	r.ResponseMode = mode
	return nil
}

func parseState(r *authorization.Request, p oauth.Params) error {
	state := p.Get("state")
	if len(state) > maxState {
		return oauth.Refuse(oauth.InvalidRequest, "state is longer than 2048 bytes")
	}
	if !clean(state) {
		return oauth.Refuse(oauth.InvalidRequest, "state contains a control character or is not UTF-8")
	}
	r.State = state
	return nil
}

func parseUnsupported(_ *authorization.Request, _ tenant.At, _ *catalog.Client, p oauth.Params) error {
	for _, x := range []struct{ name, code string }{
		{"request_uri", oauth.RequestURINotSupported}, {"registration", registrationNotSupported},
	} {
		if p.Has(x.name) {
			return oauth.Refuse(x.code, "%s is not supported", x.name)
		}
	}
	return nil
}

func parseResponse(_ *authorization.Request, _ tenant.At, cl *catalog.Client, p oauth.Params) error {
	if !p.Has("response_type") {
		return oauth.Refuse(oauth.InvalidRequest, "response_type is missing")
	}
	if p.Get("response_type") != "code" {
		return oauth.Refuse(oauth.UnsupportedResponseType, "response_type must be code")
	}
	if !cl.HasGrant(catalog.GrantCode) {
		return oauth.Refuse(oauth.UnauthorizedClient, "the client is not registered for response_type code")
	}
	return nil
}

func parseScope(r *authorization.Request, _ tenant.At, cl *catalog.Client, p oauth.Params) error {
	scopes, err := oauth.ParseScope(p.Get("scope"))
	if err != nil {
		return err
	}
	if len(scopes) == 0 {
		return oauth.Refuse(oauth.InvalidScope, "scope is missing")
	}
	for _, s := range scopes {
		if !cl.HasScope(s) {
			return oauth.Refuse(oauth.InvalidScope, "scope contains a name that the client may not ask for")
		}
	}
	r.Scopes = scopes
	return nil
}

func parsePKCE(r *authorization.Request, _ tenant.At, cl *catalog.Client, p oauth.Params) error {
	challenge, method := p.Get("code_challenge"), p.Get("code_challenge_method")
	switch {
	case challenge == "" && cl.PKCERequired():
		return oauth.Refuse(oauth.InvalidRequest, "code_challenge is missing")
	case challenge == "" && method != "":
		return oauth.Refuse(oauth.InvalidRequest, "code_challenge_method was sent without code_challenge")
	case challenge == "":
		return nil
	case method != "S256":
		// Without a method it would be plain (RFC 7636 section 4.3).
		return oauth.Refuse(oauth.InvalidRequest, "code_challenge_method must be S256")
	case len(challenge) != challengeLength || strings.ContainsFunc(challenge, notBase64URL):
		return oauth.Refuse(oauth.InvalidRequest, "code_challenge must be 43 characters of base64url")
	}
	r.CodeChallenge = challenge
	return nil
}

// parseKey reads the key that the code is bound to (RFC 9449 section 10).
func parseKey(r *authorization.Request, _ tenant.At, _ *catalog.Client, p oauth.Params) error {
	if p.Has("dpop_jkt") && !dpop.IsThumbprint(p.Get("dpop_jkt")) {
		return oauth.Refuse(oauth.InvalidRequest, "dpop_jkt must be the SHA-256 thumbprint of a key in base64url")
	}
	r.DPoPKey = p.Get("dpop_jkt")
	return nil
}

func parseNonce(r *authorization.Request, _ tenant.At, _ *catalog.Client, p oauth.Params) error {
	nonce := p.Get("nonce")
	if len(nonce) > maxNonce {
		return oauth.Refuse(oauth.InvalidRequest, "nonce is longer than 1024 bytes")
	}
	if !clean(nonce) {
		return oauth.Refuse(oauth.InvalidRequest, "nonce contains a control character or is not UTF-8")
	}
	r.Nonce = nonce
	return nil
}

// Prompts that this version answers. "consent" and "select_account" both show
// the sign-in page: clients are of the tenant's own, and consent to them is the
// sign-in. "create" is not among them, and refused (Initiating User
// Registration 1.0 section 4.1).
var prompts = []string{"none", "login", "consent", "select_account"}

// Prompts returns the supported values of prompt.
func Prompts() []string { return slices.Clone(prompts) }

func parsePrompt(r *authorization.Request, _ tenant.At, _ *catalog.Client, p oauth.Params) error {
	if !p.Has("prompt") {
		return nil
	}
	for value := range strings.SplitSeq(p.Get("prompt"), " ") {
		if !slices.Contains(prompts, value) {
			return oauth.Refuse(oauth.InvalidRequest, "prompt contains a value that is not supported")
		}
		if !slices.Contains(r.Prompt, value) {
			r.Prompt = append(r.Prompt, value)
		}
	}
	if len(r.Prompt) > 1 && slices.Contains(r.Prompt, "none") {
		return oauth.Refuse(oauth.InvalidRequest, "prompt none cannot be combined with another value")
	}
	return nil
}

// parseMaxAge takes the client's default_max_age where the request has no
// max_age (OpenID Connect Registration section 2).
func parseMaxAge(r *authorization.Request, _ tenant.At, cl *catalog.Client, p oauth.Params) error {
	if !p.Has("max_age") {
		if usual := cl.DefaultMaxAge.D(0); usual > 0 {
			age := int(usual / time.Second)
			r.MaxAge = &age
		}
		return nil
	}
	seconds, err := strconv.ParseUint(p.Get("max_age"), 10, 31)
	if err != nil {
		return oauth.Refuse(oauth.InvalidRequest, "max_age must be a number of seconds, zero or more, below 2147483648")
	}
	age := int(seconds) //nolint:gosec // 31 bits
	r.MaxAge = &age
	return nil
}

func parseHints(r *authorization.Request, t tenant.At, cl *catalog.Client, p oauth.Params) error {
	r.ACRValues = list(p.Get("acr_values"))
	r.UILocales = list(p.Get("ui_locales"))
	if hint := p.Get("login_hint"); len(hint) <= maxLoginHint && clean(hint) {
		r.LoginHint = hint // a hint that cannot be one is no reason to fail
	}
	if !p.Has("id_token_hint") {
		return nil
	}
	hint, err := token.ReadHint(t, p.Get("id_token_hint"))
	if err != nil {
		return oauth.Refuse(oauth.InvalidRequest, "id_token_hint is not an ID token of this issuer").Because(err)
	}
	if hint.ClientID != cl.ID {
		return oauth.Refuse(oauth.InvalidRequest, "id_token_hint was issued to another client")
	}
	r.Subject = hint.Subject
	return nil
}

// list reads a voluntary space-separated list, and passes over what cannot be
// meant.
func list(text string) []string {
	var out []string
	for _, item := range strings.Fields(text) {
		if len(out) < maxList && len(item) <= maxListItem && printable(item) {
			out = append(out, item)
		}
	}
	return out
}

func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e })
}

// clean tells whether s is text that a row can hold: UTF-8 without controls.
func clean(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}

func notBase64URL(r rune) bool {
	return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_'
}
