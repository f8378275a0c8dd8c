package oauth

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"
)

// Error codes (RFC 6749 sections 4.1.2.1 and 5.2, RFC 6750, OpenID Connect
// Core section 3.1.2.6).
const (
	InvalidRequest          = "invalid_request"
	InvalidClient           = "invalid_client"
	InvalidGrant            = "invalid_grant"
	InvalidScope            = "invalid_scope"
	InvalidToken            = "invalid_token"
	InsufficientScope       = "insufficient_scope"
	UnauthorizedClient      = "unauthorized_client"
	UnsupportedGrantType    = "unsupported_grant_type"
	UnsupportedResponseType = "unsupported_response_type"
	AccessDenied            = "access_denied"
	ServerError             = "server_error"
	TemporarilyUnavailable  = "temporarily_unavailable"
	LoginRequired           = "login_required"
	InteractionRequired     = "interaction_required"
	ConsentRequired         = "consent_required"
	RequestNotSupported     = "request_not_supported"
	RequestURINotSupported  = "request_uri_not_supported"
	InvalidRequestURI       = "invalid_request_uri"
	InvalidRequestObject    = "invalid_request_object"
	InvalidDPoPProof        = "invalid_dpop_proof" // RFC 9449 section 12.2
	UseDPoPNonce            = "use_dpop_nonce"     // RFC 9449 section 12.2
)

// Error is a refusal: a code and a description for the developer of the client,
// and a cause for the log.
type Error struct {
	Code        string
	Description string // printable ASCII without quotes or backslashes (RFC 6749 section 5.2)
	Status      int    // 0: 400, or 401 for invalid_client
	Cause       error  // for the log alone
	// Scheme, when set, is answered as WWW-Authenticate.
	Scheme string
}

// Refuse makes an [Error].
func Refuse(code, format string, args ...any) *Error {
	return &Error{Code: code, Description: fmt.Sprintf(format, args...)}
}

// Because attaches the private cause.
func (e *Error) Because(err error) *Error {
	e.Cause = err
	return e
}

// Error implements error; it is for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return e.Code + ": " + e.Description + ": " + e.Cause.Error()
	}
	return e.Code + ": " + e.Description
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// HTTPStatus returns the status of the answer.
func (e *Error) HTTPStatus() int {
	switch {
	case e.Status != 0:
		return e.Status
	case e.Code == InvalidClient, e.Code == InvalidToken:
		return http.StatusUnauthorized
	case e.Code == InsufficientScope:
		return http.StatusForbidden
	case e.Code == ServerError:
		return http.StatusInternalServerError
	case e.Code == TemporarilyUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusBadRequest
}

// AsError finds an [Error] in err's chain.
func AsError(err error) (*Error, bool) {
	var e *Error
	ok := errors.As(err, &e)
	return e, ok
}

// NoStore marks an answer as not to be kept by anyone.
func NoStore(h http.Header) {
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
}

// JSON writes a 200 answer that is not to be stored.
func JSON(c echo.Context, body any) error {
	NoStore(c.Response().Header())
	return c.JSON(http.StatusOK, body)
}

// Params are the parameters of a request, each at most once.
type Params struct{ values url.Values }

// ReadForm reads a form-encoded POST body. Parameters in the query of a POST
// count as not sent: they end up in logs (RFC 6749 section 2.3.1). Errors:
// invalid_request.
func ReadForm(r *http.Request) (Params, error) {
	ct, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(ct), "application/x-www-form-urlencoded") {
		return Params{}, Refuse(InvalidRequest, "the request body must be application/x-www-form-urlencoded")
	}
	if err := r.ParseForm(); err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			return Params{}, &Error{Code: InvalidRequest, Description: "the request body is too large", Status: http.StatusRequestEntityTooLarge, Cause: err}
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return Params{}, &Error{Code: InvalidRequest, Description: "the request body did not arrive in time", Status: http.StatusRequestTimeout, Cause: err}
		}
		return Params{}, Refuse(InvalidRequest, "the request body is not well-formed").Because(err)
	}
	return counted(r.PostForm)
}

// Read reads the parameters of an endpoint that a browser comes to by either
// method: a POST's from its form, a GET's from the query. Errors:
// invalid_request.
func Read(r *http.Request) (Params, error) {
	if r.Method == http.MethodPost {
		return ReadForm(r)
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return Params{}, Refuse(InvalidRequest, "the query is not well-formed").Because(err)
	}
	return counted(q)
}

// ParamsOf makes parameters of values that came in another way.
func ParamsOf(values url.Values) Params { return Params{values} }

// maxParameters bounds a request's parameters, with repetitions: all that any
// specification has for one endpoint are under thirty.
const maxParameters = 100

func counted(values url.Values) (Params, error) {
	n := 0
	for _, v := range values {
		n += len(v)
	}
	if n > maxParameters {
		return Params{}, Refuse(InvalidRequest, "the request has more than %d parameters", maxParameters)
	}
	return Params{values}, nil
}

// Duplicate returns the first parameter that was sent more than once. Which are
// looked at is the caller's: an unknown parameter is ignored.
func (p Params) Duplicate(names ...string) (string, bool) {
	for _, n := range names {
		if len(p.values[n]) > 1 {
			return n, true
		}
	}
	return "", false
}

// Get returns a parameter; one without a value counts as not sent (RFC 6749
// section 3.1).
func (p Params) Get(name string) string { return p.values.Get(name) }

// AddQuery returns an address with v added to its query, which stays as it is
// written (RFC 6749 section 3.1.2). The address has no fragment.
func AddQuery(address string, v url.Values) string {
	switch {
	case strings.HasSuffix(address, "?"):
		return address + v.Encode()
	case strings.Contains(address, "?"):
		return address + "&" + v.Encode()
	}
	return address + "?" + v.Encode()
}

// Has tells whether a parameter was sent with a value.
func (p Params) Has(name string) bool { return p.values.Get(name) != "" }

// Sent tells whether a parameter was sent at all, be it without a value.
func (p Params) Sent(name string) bool { return len(p.values[name]) > 0 }

// ParseScope splits a scope parameter (RFC 6749 section 3.3): tokens of
// printable ASCII without quote and backslash, separated by single spaces;
// duplicates are dropped. Errors: invalid_scope.
func ParseScope(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	var scopes []string
	for token := range strings.SplitSeq(text, " ") {
		if token == "" {
			return nil, Refuse(InvalidScope, "scope must be names separated by single spaces")
		}
		for i := range len(token) {
			if c := token[i]; c < 0x21 || c > 0x7e || c == '"' || c == '\\' {
				return nil, Refuse(InvalidScope, "scope contains a character that is not allowed")
			}
		}
		if !slices.Contains(scopes, token) {
			scopes = append(scopes, token)
		}
	}
	return scopes, nil
}
