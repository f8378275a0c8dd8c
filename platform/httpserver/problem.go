package httpserver

import (
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"
)

// Problem is a problem document (RFC 9457).
type Problem struct {
	Type   string `json:"type,omitempty"` // default about:blank
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail,omitempty"`
	// Reason is a stable code from a closed set, for programs.
	Reason    string `json:"reason,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	// Errors are what is wrong with the parts of a document.
	Errors []FieldError `json:"errors,omitempty"`
	// UsedBy names what refers to what was to be removed.
	UsedBy []Reference `json:"used_by,omitempty"`
	Cause  error       `json:"-"` // for the log alone
}

// FieldError is what is wrong with one part of a request's document.
type FieldError struct {
	Pointer string `json:"pointer"` // JSON pointer (RFC 6901); empty: the whole
	Detail  string `json:"detail"`
}

// Reference names a thing that refers to another, and by which member.
type Reference struct {
	Kind   string `json:"kind"`
	Tenant string `json:"tenant,omitempty"`
	ID     string `json:"id"`
	Field  string `json:"field,omitempty"`
}

// Error implements error.
func (p *Problem) Error() string {
	msg := p.Title
	if p.Reason != "" {
		msg += " (" + p.Reason + ")"
	}
	if p.Detail != "" {
		msg += ": " + p.Detail
	}
	if p.Cause != nil {
		msg += ": " + p.Cause.Error()
	}
	return msg
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// AsProblem classifies an error: a [Problem] and echo's own errors as they are,
// a passing condition as 503, everything else as 500 with nothing of its text.
func AsProblem(err error) *Problem {
	var p *Problem
	if errors.As(err, &p) {
		return p
	}
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return &Problem{Title: http.StatusText(http.StatusRequestEntityTooLarge), Status: http.StatusRequestEntityTooLarge, Cause: err}
	}
	if Unavailable(err) {
		return &Problem{Title: http.StatusText(http.StatusServiceUnavailable), Status: http.StatusServiceUnavailable,
			Detail: "a part of the service is unavailable, try again shortly", Cause: err}
	}
	var h *echo.HTTPError
	if errors.As(err, &h) {
		detail, _ := h.Message.(string)
		if detail == http.StatusText(h.Code) {
			detail = ""
		}
		return &Problem{Title: http.StatusText(h.Code), Status: h.Code, Detail: detail, Cause: h.Internal}
	}
	return &Problem{Title: http.StatusText(http.StatusInternalServerError), Status: http.StatusInternalServerError, Cause: err}
}

// WriteProblem answers with a problem document.
func WriteProblem(c echo.Context, err error) {
	p := *AsProblem(err)
	p.RequestID = RequestID(c)
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	if p.Status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", RetryAfter)
	}
	h.Set(echo.HeaderContentType, "application/problem+json")
	c.Response().WriteHeader(p.Status)
	if c.Request().Method != http.MethodHead {
		_ = c.Echo().JSONSerializer.Serialize(c, p, "")
	}
}
