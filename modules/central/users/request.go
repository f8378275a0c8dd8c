package users

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/admin/document"
	"versola/modules/central/admin/request"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/id"
)

// maxDocument bounds the document of a person; the largest that is valid has
// about 40 KiB.
const maxDocument = 128 << 10

// defaultPage is the size of a page that does not name its own.
const defaultPage = 50

func problem(status int, reason, detail string, cause error) *httpserver.Problem {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail, Cause: cause}
}

// invalid is the answer to a document with problems.
func invalid(problems []user.Problem) error {
	p := problem(http.StatusUnprocessableEntity, "invalid", "the document is not valid", nil)
	for _, e := range problems {
		p.Errors = append(p.Errors, httpserver.FieldError{Pointer: e.Pointer, Detail: e.Detail})
	}
	return p
}

func notFound(what string) error {
	return problem(http.StatusNotFound, "not_found", "there is no such "+what, nil)
}

// directory returns the directory of the path and the catalog that has it.
func (a *API) directory(c echo.Context) (string, *catalog.Catalog, error) {
	name, cat := c.Param("directory"), a.d.Catalog.Current()
	if len(tenants(cat, name)) == 0 {
		return "", nil, notFound("user directory")
	}
	return name, cat, nil
}

// tenants returns the tenants of a directory.
func tenants(cat *catalog.Catalog, directory string) []*catalog.Tenant {
	return slices.DeleteFunc(cat.Tenants(), func(t *catalog.Tenant) bool { return t.Directory != directory })
}

func userID(c echo.Context) (id.UUID, error) {
	u, err := id.ParseUUID(c.Param("user"))
	if err != nil {
		return id.Nil, notFound("user")
	}
	return u, nil
}

// body reads a request's document; an absent one is empty.
func body(c echo.Context, mediaType string) ([]byte, error) {
	raw, err := io.ReadAll(io.LimitReader(c.Request().Body, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read body: %w", err)
	}
	if len(raw) > maxDocument {
		return nil, problem(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("a document has at most %d bytes", maxDocument), nil)
	}
	if len(raw) == 0 {
		return nil, nil
	}
	if got, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err != nil || got != mediaType && (mediaType == mergePatch || got != "application/json") {
		return nil, problem(http.StatusUnsupportedMediaType, "media_type", "the body must be "+mediaType, err)
	}
	return raw, nil
}

// mergePatch is the media type of RFC 7396.
const mergePatch = "application/merge-patch+json"

// taken is the answer where identifiers are someone else's.
func taken(fields ...string) error {
	p := problem(http.StatusConflict, "taken", "an identifier is someone else's", nil)
	for _, f := range fields {
		p.Errors = append(p.Errors, httpserver.FieldError{Pointer: "/" + f, Detail: "is someone else's"})
	}
	return p
}

// storeError turns the errors of the store into answers.
func storeError(err error) error {
	var t *user.Taken
	switch {
	case errors.As(err, &t):
		return taken(t.Field)
	case errors.Is(err, user.ErrNotFound):
		return notFound("user")
	case errors.Is(err, user.ErrCursor):
		return request.BadParameter("after", "is "+err.Error())
	case errors.Is(err, user.ErrQuery):
		return request.BadParameter("q", err.Error())
	}
	return err
}

// optional reads a JSON body into a request whose members all have defaults; an
// absent body leaves them.
func optional(c echo.Context, into any) error {
	raw, err := body(c, "application/json")
	if err != nil || raw == nil {
		return err
	}
	tree, err := parse(raw)
	if err != nil {
		return err
	}
	return decode(tree, into)
}

// parse reads a body as JSON.
func parse(raw []byte) (any, error) {
	tree, err := document.Parse(raw)
	var problems document.Problems
	switch {
	case errors.As(err, &problems):
		return nil, unreadable(problems)
	case err != nil:
		return nil, problem(http.StatusBadRequest, "not_json", "the body "+err.Error(), err)
	}
	return tree, nil
}

// decode fills into from what parse returned.
func decode(tree, into any) error {
	var problems document.Problems
	if err := document.Decode(tree, into); errors.As(err, &problems) {
		return unreadable(problems)
	} else if err != nil {
		return err
	}
	return nil
}

func unreadable(problems document.Problems) error {
	list := make([]user.Problem, len(problems))
	for i, p := range problems {
		list[i] = user.Problem{Pointer: p.Pointer, Detail: p.Detail}
	}
	return invalid(list)
}

// encode marshals what is known to marshal.
func encode(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return b, nil
}
