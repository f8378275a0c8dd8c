package page

import (
	"fmt"
	"html/template"
	"log/slog"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/platform/httpserver"
)

// Problem is an error that a person sees. Text is for them, Cause for the log.
type Problem struct {
	Status int
	Title  string
	Text   string
	Reason string // stable code from a closed set
	Retry  string // path on this edge to try again at; empty: none
	Cause  error
}

// Error implements error; it is for logs.
func (p *Problem) Error() string {
	if p.Cause != nil {
		return p.Reason + ": " + p.Cause.Error()
	}
	return p.Reason
}

// Unwrap gives the cause.
func (p *Problem) Unwrap() error { return p.Cause }

// policy lets a page load its style sheet, and nothing else; what its form may
// reach is added to it.
const policy = "default-src 'none'; style-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action "

// formPolicy is where the sign-out form may end. Browsers hold the redirects
// behind a form to it: those go on to auth and to the preset's own page, which
// may be other origins, so it is the scheme that is held.
func formPolicy(publicURL string) string {
	if strings.HasPrefix(publicURL, "https://") {
		return "'self' https:"
	}
	return "'self' http: https:"
}

// StylePath is where [Style] is served.
const StylePath = "/assets/edge.css"

const style = `:root{color-scheme:light dark}
body{font:1rem/1.5 system-ui,sans-serif;margin:0;display:grid;place-items:center;min-height:100vh}
main{max-width:26rem;padding:1.5rem;text-align:center}
h1{font-size:1.35rem;margin:0 0 .75rem}
a.act,button{display:inline-block;margin-top:1rem;padding:.6rem 1.4rem;border:0;border-radius:.5rem;background:#2451c8;color:#fff;font:inherit;text-decoration:none;cursor:pointer}
small{display:block;margin-top:2rem;opacity:.7}
`

// Style serves the style sheet of the pages.
func Style(c echo.Context) error {
	c.Response().Header().Set("Cache-Control", "public, max-age=3600")
	return c.Blob(http.StatusOK, "text/css; charset=utf-8", []byte(style))
}

var pages = template.Must(template.New("page").Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{.Title}}</title><link rel="stylesheet" href="` + StylePath + `"></head>
<body><main><h1>{{.Title}}</h1><p>{{.Text}}</p>
{{- if .Retry}}<a class="act" href="{{.Retry}}">Try again</a>{{end}}
{{- if .Post}}<form method="post" action="{{.Post}}"><button type="submit">Sign out</button></form>{{end}}
{{- if .RequestID}}<small>Reference: {{.RequestID}}</small>{{end}}
</main></body></html>
`))

type view struct{ Title, Text, Retry, Post, RequestID, FormAction string }

func write(c echo.Context, status int, v view) error {
	var b strings.Builder
	if err := pages.Execute(&b, v); err != nil {
		return fmt.Errorf("render page: %w", err)
	}
	h := c.Response().Header()
	if v.FormAction == "" {
		v.FormAction = "'none'"
	}
	h.Set("Content-Security-Policy", policy+v.FormAction)
	h.Set("X-Content-Type-Options", "nosniff")
	// Not no-referrer: under it a browser sends the form's Origin as "null".
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if status == http.StatusServiceUnavailable {
		h.Set("Retry-After", httpserver.RetryAfter)
	}
	return c.HTML(status, b.String())
}

// Confirm asks whether to sign out, with a form that posts to path on the edge
// of publicURL.
func Confirm(c echo.Context, publicURL, path string) error {
	return write(c, http.StatusOK, view{
		Title: "Sign out?", Text: "Another site asks to sign you out. Do you want that?", Post: path, FormAction: formPolicy(publicURL),
	})
}

// Errors makes the errors of a handler into pages.
func Errors(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		err := next(c)
		if err == nil || c.Response().Committed {
			return err
		}
		httpserver.NoteError(c, err)
		p := classify(err)
		httpserver.Annotate(c, slog.String("reason", p.Reason))
		return write(c, p.Status, view{Title: p.Title, Text: p.Text, Retry: p.Retry, RequestID: httpserver.RequestID(c)})
	}
}

func classify(err error) *Problem {
	if p, ok := err.(*Problem); ok { //nolint:errorlint // only an unwrapped one is meant for people
		return p
	}
	h := httpserver.AsProblem(err)
	p := &Problem{Status: h.Status, Title: "Something went wrong", Text: "The request could not be handled. Please try again later.", Reason: "internal"}
	switch {
	case h.Status == http.StatusServiceUnavailable:
		p.Title, p.Text, p.Reason = "Temporarily unavailable", "A part of the service cannot be reached. Please try again in a moment.", "unavailable"
	case h.Status < http.StatusInternalServerError:
		p.Title, p.Text, p.Reason = h.Title, h.Detail, "refused"
	}
	return p
}
