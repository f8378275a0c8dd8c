package request

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"versola/modules/central/openapi"
	"versola/platform/httpserver"
)

func problem(status int, reason, detail string) *httpserver.Problem {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

// BadParameter is the answer to a parameter of the query that is refused.
func BadParameter(name, detail string) error {
	return problem(http.StatusBadRequest, "parameter", fmt.Sprintf("the parameter %.40q %s", name, detail))
}

const paramsKey = "versola.admin.params"

// Described reads the query of an operation as the OpenAPI document describes
// it, for [Parameters]. Whatever is not described, stands there twice or has
// no value of its kind is refused: left out, it would show or change more than
// was asked for.
func Described(op openapi.Operation) echo.MiddlewareFunc {
	known := make(map[string]openapi.Parameter, len(op.Query))
	for _, p := range op.Query {
		known[p.Name] = p
	}
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			params, err := read(c.Request().URL.RawQuery, known)
			if err != nil {
				return err
			}
			c.Set(paramsKey, params)
			return next(c)
		}
	}
}

func read(query string, known map[string]openapi.Parameter) (map[string]string, error) {
	// [url.URL.Query] would leave out the pair that it cannot read.
	values, err := url.ParseQuery(query)
	if err != nil {
		p := problem(http.StatusBadRequest, "parameter", "the query has a semicolon or a percent sign that encodes nothing")
		p.Cause = err
		return nil, p
	}
	out := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		p, ok := known[name]
		v := values[name]
		switch {
		case !ok:
			return nil, BadParameter(name, "is not known")
		case len(v) > 1:
			return nil, BadParameter(name, "stands there twice")
		}
		if err := p.Check(v[0]); err != nil {
			return nil, BadParameter(name, err.Error())
		}
		out[name] = v[0]
	}
	return out, nil
}

// Parameters returns the query of a request that went through [Described].
func Parameters(c echo.Context) map[string]string {
	params, _ := c.Get(paramsKey).(map[string]string)
	return params
}

// Limit returns the size of a page, the parameter "limit", whose bounds are the
// document's; usual where it is absent.
func Limit(params map[string]string, usual int) int {
	n, err := strconv.Atoi(params["limit"])
	if err != nil {
		return usual
	}
	return n
}
