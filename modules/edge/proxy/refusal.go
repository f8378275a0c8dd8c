package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
	"versola/platform/httpserver"
)

// Refusal is a call that was not carried out.
type Refusal struct {
	Reason    policy.Reason
	Challenge string        // WWW-Authenticate
	LoginURL  string        // where a person signs in for this resource
	Navigate  string        // where a page navigation is sent instead
	Wait      time.Duration // until it is worth trying again
	Cause     error         // for the log alone
}

// Error implements error; it is for logs.
func (r *Refusal) Error() string {
	if r.Cause != nil {
		return string(r.Reason) + ": " + r.Cause.Error()
	}
	return string(r.Reason)
}

// Unwrap gives the cause.
func (r *Refusal) Unwrap() error { return r.Cause }

func refuse(reason policy.Reason, cause error) *Refusal {
	return &Refusal{Reason: reason, Cause: cause}
}

// details are what a caller is told beyond the reason's code.
var details = map[policy.Reason]string{
	policy.TargetForm:          "the request target must be a path",
	policy.TargetLength:        "the request target is too long",
	policy.TargetCharacter:     "the request target has a character that is not allowed",
	policy.TargetEscape:        "the request target has an escape that is not allowed",
	policy.TargetSegment:       "the request target has a dot segment or an empty segment",
	policy.HeaderAmbiguous:     "a header that may be there once is there twice",
	policy.NoCredentials:       "sign in, or send an access token",
	policy.TokenInvalid:        "the access token is not valid",
	policy.TokenExpired:        "the access token has expired",
	policy.TokenRevoked:        "the access token was revoked",
	policy.SenderConstraint:    "the access token is bound to what its sender does not hold",
	policy.ProofInvalid:        "the DPoP proof is not right for this request",
	policy.SchemeUnknown:       "the Authorization scheme is not supported here",
	policy.SessionEnded:        "the session has ended, sign in again",
	policy.SignInTooOld:        "this endpoint asks for a more recent sign-in",
	policy.CSRF:                "a request that changes something must come from this origin",
	policy.OriginRefused:       "pages of this origin may not call the resource",
	policy.WrongAudience:       "the access token is not meant for this resource",
	policy.NotPermitted:        "the caller may not use this endpoint",
	policy.RuleDenied:          "a rule of this endpoint does not allow the call",
	policy.RuleFailed:          "a rule of this endpoint cannot be applied to the call",
	policy.BodyUnreadable:      "the body is not JSON that can be read in one way only",
	policy.UpgradeRefused:      "this endpoint does not allow protocol upgrades",
	policy.RateLimited:         "too many calls, try again later",
	policy.TooManyAtOnce:       "too many calls at once",
	policy.BodyTooLarge:        "the body is too large for this resource",
	policy.BodySlow:            "the body did not arrive",
	policy.AuthUnavailable:     "the session cannot be renewed right now, try again shortly",
	policy.StoreUnavailable:    "sessions cannot be looked up right now, try again shortly",
	policy.CatalogMissing:      "the service has no configuration yet, try again shortly",
	policy.UpstreamUnreachable: "the resource cannot be reached",
	policy.UpstreamTimeout:     "the resource did not answer in time",
	policy.UpstreamFailed:      "the resource broke off",
}

// problem is the answer's document.
type problem struct {
	httpserver.Problem
	LoginURL string `json:"login_url,omitempty"`
}

// Errors answers refusals. Other errors go on.
func Errors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		refusal, ok := err.(*Refusal) //nolint:errorlint // the proxy returns it unwrapped
		if !ok {
			return err
		}
		if refusal.Cause != nil {
			httpserver.NoteError(c, refusal)
		}
		if c.Response().Committed {
			return nil
		}
		return answer(c, refusal)
	}
}

func answer(c echo.Context, r *Refusal) error {
	status := r.Reason.Status()
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	if r.Navigate != "" {
		return c.Redirect(http.StatusSeeOther, r.Navigate)
	}
	if r.Challenge != "" {
		h.Set("WWW-Authenticate", r.Challenge)
	}
	if r.Wait > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((r.Wait+time.Second-1)/time.Second), 10))
	}
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", httpserver.RetryAfter)
	}
	if r.Reason == policy.BodyTooLarge || r.Reason == policy.BodySlow {
		h.Set("Connection", "close")
	}
	h.Set(echo.HeaderContentType, "application/problem+json")
	c.Response().WriteHeader(status)
	if c.Request().Method == http.MethodHead {
		return nil
	}
	title := http.StatusText(status)
	if title == "" {
		title = "Client Closed Request"
	}
	return c.Echo().JSONSerializer.Serialize(c, problem{
		Problem:  httpserver.Problem{Title: title, Status: status, Detail: details[r.Reason], Reason: string(r.Reason), RequestID: httpserver.RequestID(c)},
		LoginURL: r.LoginURL,
	}, "")
}

// unauthorized refuses a token (RFC 6750 section 3.1).
func (h *Handler) unauthorized(x *exchange, resource string, reason policy.Reason, cause error) *Refusal {
	r := refuse(reason, cause)
	if reason.Status() == http.StatusUnauthorized {
		code := "invalid_token"
		if reason == policy.SchemeUnknown {
			code = ""
		}
		r.Challenge = h.challenges(x, resource, code, "")
	}
	return r
}

// denied refuses a caller who is known but may not.
func (h *Handler) denied(x *exchange, reason policy.Reason) *Refusal {
	r := refuse(reason, nil)
	if !x.caller.bearer.Empty() && reason.Status() == http.StatusForbidden {
		r.Challenge = h.challenge(x.caller.scheme, x.route.resource.ID, "insufficient_scope")
	}
	return r
}

// challenge writes a WWW-Authenticate that names the resource's metadata (RFC
// 9728 section 5.1). A resource's id is a plain name of the catalog, so it needs
// no quoting.
func (h *Handler) challenge(scheme, resource, code string) string {
	if scheme == "" {
		scheme = schemeBearer
	}
	s := scheme + ` realm="` + resource + `"`
	if code != "" {
		s += `, error="` + code + `"`
	}
	return s + `, resource_metadata="` + h.d.PublicURL + metadataPath + resource + `"`
}

// signIn refuses a browser that has no live session: a page is sent to the
// sign-in and back, a script is told where that is.
func (h *Handler) signIn(r *http.Request, x *exchange, resource string, reason policy.Reason) *Refusal {
	refusal := refuse(reason, nil)
	refusal.Challenge = h.challenges(x, resource, "", "")
	presets := x.routes.presets[resource]
	if x.route != nil { // several tenants may have a resource of that name
		presets = slices.DeleteFunc(slices.Clone(presets), func(p *catalog.Preset) bool { return p.Owner != x.route.resource.Owner })
	}
	if len(presets) == 0 {
		return refusal
	}
	login := h.d.PublicURL + "/login/" + url.PathEscape(presets[0].ID)
	refusal.LoginURL = login
	if navigation(r) {
		refusal.Navigate = login
		if h.here(presets[0]) {
			refusal.Navigate += "?return_to=" + url.QueryEscape(r.RequestURI)
		}
	}
	return refusal
}

// stepUp asks for a sign-in as recent as the endpoint needs (RFC 9470 section
// 3): a page is sent there and back, a script and an API's caller are told.
func (h *Handler) stepUp(r *http.Request, x *exchange, reason policy.Reason) *Refusal {
	id := x.route.resource.ID
	age := strconv.FormatInt(int64(x.endpoint.StepUp.MaxAge.D(0)/time.Second), 10)
	refusal := refuse(reason, nil)
	if x.caller.session != nil {
		refusal = h.signIn(r, x, id, reason)
		if refusal.LoginURL != "" {
			refusal.LoginURL += "?max_age=" + age
		}
		if to, query, ok := strings.Cut(refusal.Navigate, "?"); ok {
			refusal.Navigate = to + "?max_age=" + age + "&" + query
		} else if to != "" {
			refusal.Navigate = to + "?max_age=" + age
		}
	}
	refusal.Challenge = h.challenge(x.caller.scheme, id, string(reason)) + `, max_age="` + age + `"`
	return refusal
}

// here tells whether a preset's pages are on this edge's origin, so that a
// path of ours can be returned to.
func (h *Handler) here(p *catalog.Preset) bool {
	return strings.HasPrefix(p.AfterLogin, "/") || p.AfterLogin == h.origin || strings.HasPrefix(p.AfterLogin, h.origin+"/")
}

// navigation tells whether a request is a person opening a page.
func navigation(r *http.Request) bool {
	if r.Method != http.MethodGet {
		return false
	}
	if mode := r.Header.Get("Sec-Fetch-Mode"); mode != "" {
		dest := r.Header.Get("Sec-Fetch-Dest")
		return mode == "navigate" && (dest == "" || dest == "document")
	}
	return strings.Contains(r.Header.Get("Accept"), "text/html")
}
