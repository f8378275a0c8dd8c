package policy

import "net/http"

// Reason says why a call passed or was refused. The set is closed: it labels a
// metric.
type Reason string

// The reasons.
const (
	Allowed Reason = "allowed" // by a role or permission
	Public  Reason = "public"  // the endpoint needs no caller
	// Preflight: a browser's question was answered (204).
	Preflight Reason = "preflight"

	// 400: the target cannot be read in one way only.
	TargetForm      Reason = "target_form"      // absolute-form, asterisk or authority
	TargetLength    Reason = "target_length"    // longer than any honest one
	TargetCharacter Reason = "target_character" // control, space, backslash, ";", "#", non-ASCII
	TargetEscape    Reason = "target_escape"    // malformed, doubled, or of a separator
	TargetSegment   Reason = "target_segment"   // dot segment or empty segment
	HeaderAmbiguous Reason = "header_ambiguous" // a header that decides came twice
	BodyUnreadable  Reason = "body_unreadable"  // a rule reads the body, and it is no clear JSON

	// 401
	NoCredentials    Reason = "no_credentials"
	TokenInvalid     Reason = "token_invalid"
	TokenExpired     Reason = "token_expired"
	TokenRevoked     Reason = "token_revoked"
	SenderConstraint Reason = "sender_constraint" // the token is bound to what its sender does not hold
	ProofInvalid     Reason = "proof_invalid"     // of a bound token (RFC 9449)
	SchemeUnknown    Reason = "scheme_unknown"    // Authorization is neither Bearer nor DPoP
	SessionEnded     Reason = "session_ended"
	ClientDisabled   Reason = "client_disabled"
	SignInTooOld     Reason = "insufficient_user_authentication" // RFC 9470 section 3

	// 403
	CSRF           Reason = "csrf"
	OriginRefused  Reason = "origin_not_allowed" // a preflight of a page that the resource does not list
	WrongTenant    Reason = "wrong_tenant"
	WrongAudience  Reason = "wrong_audience"
	NotPermitted   Reason = "not_permitted"
	RuleDenied     Reason = "rule_denied"         // the endpoint's allow is false
	RuleFailed     Reason = "rule_failed"         // an expression could not be evaluated
	UpgradeRefused Reason = "upgrade_not_allowed" // 501

	// 404
	ResourceUnknown Reason = "resource_unknown"
	EndpointUnknown Reason = "endpoint_unknown"

	// 429
	RateLimited   Reason = "rate_limited"
	TooManyAtOnce Reason = "too_many_at_once"

	// 413 and 5xx
	BodyTooLarge        Reason = "body_too_large"
	BodySlow            Reason = "body_timeout" // 408: the body did not arrive
	AuthUnavailable     Reason = "auth_unavailable"
	StoreUnavailable    Reason = "store_unavailable"
	CatalogMissing      Reason = "catalog_missing"
	UpstreamUnreachable Reason = "upstream_unreachable"
	UpstreamTimeout     Reason = "upstream_timeout"
	UpstreamFailed      Reason = "upstream_failed"
	UpstreamIdle        Reason = "upstream_idle" // it stopped in the middle of its answer
	ClientGone          Reason = "client_gone"   // nobody is left to answer
)

// statusClientGone is what the log shows of a call whose caller hung up
// (nginx's code; nobody receives it).
const statusClientGone = 499

var statuses = map[Reason]int{
	Allowed: http.StatusOK, Public: http.StatusOK, Preflight: http.StatusNoContent,
	TargetForm: http.StatusBadRequest, TargetLength: http.StatusBadRequest, TargetCharacter: http.StatusBadRequest,
	TargetEscape: http.StatusBadRequest, TargetSegment: http.StatusBadRequest, HeaderAmbiguous: http.StatusBadRequest, BodyUnreadable: http.StatusBadRequest,
	NoCredentials: http.StatusUnauthorized, TokenInvalid: http.StatusUnauthorized, TokenExpired: http.StatusUnauthorized,
	TokenRevoked: http.StatusUnauthorized, SenderConstraint: http.StatusUnauthorized, ProofInvalid: http.StatusUnauthorized, SchemeUnknown: http.StatusUnauthorized,
	SessionEnded: http.StatusUnauthorized, ClientDisabled: http.StatusUnauthorized, SignInTooOld: http.StatusUnauthorized,
	CSRF: http.StatusForbidden, OriginRefused: http.StatusForbidden, WrongTenant: http.StatusForbidden, WrongAudience: http.StatusForbidden, NotPermitted: http.StatusForbidden,
	RuleDenied: http.StatusForbidden, RuleFailed: http.StatusForbidden,
	UpgradeRefused:  http.StatusNotImplemented,
	ResourceUnknown: http.StatusNotFound, EndpointUnknown: http.StatusNotFound,
	RateLimited: http.StatusTooManyRequests, TooManyAtOnce: http.StatusTooManyRequests,
	BodyTooLarge:    http.StatusRequestEntityTooLarge,
	BodySlow:        http.StatusRequestTimeout,
	AuthUnavailable: http.StatusServiceUnavailable, StoreUnavailable: http.StatusServiceUnavailable, CatalogMissing: http.StatusServiceUnavailable,
	UpstreamUnreachable: http.StatusBadGateway, UpstreamFailed: http.StatusBadGateway, UpstreamTimeout: http.StatusGatewayTimeout,
	UpstreamIdle: http.StatusGatewayTimeout,
	ClientGone:   statusClientGone,
}

// Reasons lists the whole set.
func Reasons() []Reason {
	out := make([]Reason, 0, len(statuses))
	for r := range statuses {
		out = append(out, r)
	}
	return out
}

// Status returns the HTTP status of an answer with this reason.
func (r Reason) Status() int {
	if s, ok := statuses[r]; ok {
		return s
	}
	return http.StatusInternalServerError
}

// Passes tells whether the call may go on.
func (r Reason) Passes() bool { return r == Allowed || r == Public }
