package admin

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/admin/request"
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

// ifMatch returns the version that the request changes; 0: whatever is there.
func (a *API) ifMatch(c echo.Context, r catalog.Ref) (int64, error) {
	expected, err := request.IfMatch(c)
	if err != nil {
		return 0, err
	}
	v, err := a.Engine.View(c.Request().Context())
	if err != nil {
		return 0, err
	}
	e, ok := v.Get(r)
	switch {
	case !ok:
		return 0, notFound(r)
	case expected.Any():
		return 0, nil
	}
	return e.Version, expected.Check(e.Version)
}

// changeError turns what the engine refuses into the answer. r is what the
// request is about.
func changeError(err error, r catalog.Ref) error {
	var used *change.InUse
	var wrong *change.Invalid
	switch {
	case errors.Is(err, change.ErrConflict):
		return request.Conflict()
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
