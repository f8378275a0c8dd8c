package admin

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/catalog"
	"versola/modules/central/change"
	"versola/platform/httpserver"
)

func problem(status int, reason, detail string) *httpserver.Problem {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

func notFound(r catalog.Ref) error {
	return problem(http.StatusNotFound, "not_found", fmt.Sprintf("there is no such %s", r.Kind))
}

func invalid(problems document.Problems) error {
	p := problem(http.StatusUnprocessableEntity, "invalid", "the document is not valid")
	for _, one := range problems {
		p.Errors = append(p.Errors, httpserver.FieldError{Pointer: one.Pointer, Detail: one.Detail})
	}
	return p
}

// readDocument reads the request's document, which must have a media type.
func readDocument(c echo.Context, mediaType string) (any, error) {
	given, _, err := mime.ParseMediaType(c.Request().Header.Get(echo.HeaderContentType))
	if err != nil || given != mediaType {
		c.Response().Header().Set("Accept", mediaType)
		return nil, problem(http.StatusUnsupportedMediaType, "media_type", "the body is "+mediaType)
	}
	raw, err := io.ReadAll(c.Request().Body) // the listener bounds it
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	tree, err := document.Parse(raw)
	var problems document.Problems
	switch {
	case errors.As(err, &problems):
		return nil, invalid(problems)
	case err != nil:
		return nil, problem(http.StatusBadRequest, "not_json", "the body "+err.Error())
	}
	return tree, nil
}

// tags reads a list of entity tags (RFC 9110 section 8.8.3). Nothing of a list
// that is not one.
func tags(values []string) []string {
	var out []string
	for rest := strings.TrimSpace(strings.Join(values, ",")); rest != ""; {
		weak := ""
		if after, ok := strings.CutPrefix(rest, "W/"); ok {
			weak, rest = "W/", after
		}
		if rest[:min(1, len(rest))] == "*" {
			out, rest = append(out, "*"), rest[1:]
		} else {
			end := -1
			if len(rest) > 1 && rest[0] == '"' {
				end = strings.IndexByte(rest[1:], '"')
			}
			if end < 0 {
				return nil
			}
			out, rest = append(out, weak+rest[:end+2]), rest[end+2:]
		}
		rest = strings.TrimLeft(rest, " \t")
		if rest == "" {
			break
		}
		if rest[0] != ',' {
			return nil
		}
		rest = strings.TrimLeft(rest, ", \t")
	}
	return out
}

// matches is the weak comparison of If-None-Match (RFC 9110 section 13.1.2).
func matches(values []string, tag string) bool {
	return slices.ContainsFunc(tags(values), func(t string) bool { return t == "*" || strings.TrimPrefix(t, "W/") == tag })
}

// ifMatch returns the version that the request changes; 0: whatever is there.
// The comparison is the strong one (RFC 9110 section 13.1.1).
func (a *API) ifMatch(c echo.Context, r catalog.Ref) (int64, error) {
	values := c.Request().Header.Values("If-Match")
	if len(values) == 0 {
		return 0, problem(http.StatusPreconditionRequired, "if_match_missing", "If-Match with the ETag of what is changed is needed")
	}
	given := tags(values)
	if len(given) == 0 {
		return 0, problem(http.StatusBadRequest, "if_match_invalid", "If-Match is not a list of entity tags")
	}
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return 0, err
	}
	e, ok := v.Get(r)
	switch {
	case !ok:
		return 0, notFound(r)
	case slices.Contains(given, "*"):
		return 0, nil
	case slices.Contains(given, etag(e.Version)):
		return e.Version, nil
	}
	return 0, conflict()
}

func conflict() error {
	return problem(http.StatusPreconditionFailed, "changed", "somebody else has changed it: read it again")
}

// changeError turns what the engine refuses into the answer. r is what the
// request is about.
func changeError(err error, r catalog.Ref) error {
	var used *change.InUse
	var wrong *change.Invalid
	switch {
	case errors.Is(err, change.ErrConflict):
		return conflict()
	case errors.Is(err, change.ErrExists):
		return problem(http.StatusConflict, "exists", fmt.Sprintf("there is a %s of this id already", r.Kind))
	case errors.Is(err, change.ErrNotFound):
		return notFound(r)
	case errors.As(err, &used):
		p := problem(http.StatusConflict, "in_use", used.Error())
		for _, u := range used.By {
			p.UsedBy = append(p.UsedBy, httpserver.Reference{Kind: u.By.Kind, Tenant: u.By.Tenant, ID: u.By.ID, Field: u.Field})
		}
		return p
	case errors.As(err, &wrong):
		p := problem(http.StatusUnprocessableEntity, "invalid", "the configuration would not be valid")
		for _, one := range wrong.Problems {
			e := httpserver.FieldError{Pointer: one.Pointer(), Detail: one.Message}
			if one.Of != r {
				// What another entity says is no member of this document.
				e = httpserver.FieldError{Detail: one.String()}
			}
			p.Errors = append(p.Errors, e)
		}
		return p
	}
	return access.Refused(err)
}

// parameters reads the query, in which each known parameter may stand once. A
// misspelt filter would show more than was asked for.
func parameters(c echo.Context, known ...string) (map[string]string, error) {
	if strings.Contains(c.Request().URL.RawQuery, ";") {
		return nil, problem(http.StatusBadRequest, "parameter", "the query has a semicolon")
	}
	out := map[string]string{}
	for name, values := range c.QueryParams() {
		switch {
		case !slices.Contains(known, name):
			return nil, badParameter(name, "is not known")
		case len(values) > 1:
			return nil, badParameter(name, "stands there twice")
		}
		out[name] = values[0]
	}
	return out, nil
}

func badParameter(name, detail string) error {
	return problem(http.StatusBadRequest, "parameter", fmt.Sprintf("the parameter %.40q %s", name, detail))
}

// pageSize reads "limit".
func pageSize(params map[string]string) (int, error) {
	text, ok := params["limit"]
	if !ok {
		return defaultPage, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxPage {
		return 0, badParameter("limit", fmt.Sprintf("is a number from 1 to %d", maxPage))
	}
	return n, nil
}
