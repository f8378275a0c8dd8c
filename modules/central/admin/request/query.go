package request

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/labstack/echo/v4"

	"versola/platform/httpserver"
)

func problem(status int, reason, detail string) *httpserver.Problem {
	return &httpserver.Problem{Title: http.StatusText(status), Status: status, Reason: reason, Detail: detail}
}

// BadParameter is the answer to a parameter of the query that is refused.
func BadParameter(name, detail string) error {
	return problem(http.StatusBadRequest, "parameter", fmt.Sprintf("the parameter %.40q %s", name, detail))
}

// Query returns the query of a request. One that is malformed is refused:
// [url.URL.Query] would leave out the pair that it cannot read.
func Query(c echo.Context) (url.Values, error) {
	values, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		p := problem(http.StatusBadRequest, "parameter", "the query has a semicolon or a percent sign that encodes nothing")
		p.Cause = err
		return nil, p
	}
	return values, nil
}

// Parameters returns the query of a request in which each of the known
// parameters may stand once.
func Parameters(c echo.Context, known ...string) (map[string]string, error) {
	values, err := Query(c)
	if err != nil {
		return nil, err
	}
	out := make(map[string]string, len(values))
	for name, v := range values {
		switch {
		case !slices.Contains(known, name):
			return nil, BadParameter(name, "is not known")
		case len(v) > 1:
			return nil, BadParameter(name, "stands there twice")
		}
		out[name] = v[0]
	}
	return out, nil
}

// Limit reads the size of a page, the parameter "limit": usual where it is
// absent, at most largest.
func Limit(params map[string]string, usual, largest int) (int, error) {
	text, ok := params["limit"]
	if !ok {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > largest {
		return 0, BadParameter("limit", fmt.Sprintf("is a number from 1 to %d", largest))
	}
	return n, nil
}
