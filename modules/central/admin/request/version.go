package request

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

// ETag returns the entity tag of a version.
func ETag(version int64) string { return `"` + strconv.FormatInt(version, 10) + `"` }

// Conflict is the answer to a change of a version that is no longer there.
func Conflict() error {
	return problem(http.StatusPreconditionFailed, "changed", "somebody else has changed it: read it again")
}

// Expected are the entity tags of If-Match.
type Expected []string

// IfMatch reads the condition of a change, which must have one.
func IfMatch(c echo.Context) (Expected, error) {
	values := c.Request().Header.Values("If-Match")
	if len(values) == 0 {
		return nil, problem(http.StatusPreconditionRequired, "if_match_missing", "If-Match with the ETag of what is changed is needed")
	}
	given := tags(values)
	if len(given) == 0 {
		return nil, problem(http.StatusBadRequest, "if_match_invalid", "If-Match is not a list of entity tags")
	}
	return given, nil
}

// Any tells whether whatever is there may be changed.
func (e Expected) Any() bool { return slices.Contains(e, "*") }

// Check refuses a version that is none of those expected. The comparison is the
// strong one (RFC 9110 section 13.1.1): a weak tag equals none.
func (e Expected) Check(version int64) error {
	if e.Any() || slices.Contains(e, ETag(version)) {
		return nil
	}
	return Conflict()
}

// NoneMatch tells whether If-None-Match has the tag, by the weak comparison
// (RFC 9110 section 13.1.2).
func NoneMatch(c echo.Context, tag string) bool {
	return slices.ContainsFunc(tags(c.Request().Header.Values("If-None-Match")), func(t string) bool {
		return t == "*" || strings.TrimPrefix(t, "W/") == tag
	})
}

// tags reads a list of entity tags (RFC 9110 section 8.8.3), or "*" alone.
// Nothing of a list that is not one.
func tags(values []string) []string {
	rest := strings.Trim(strings.Join(values, ","), " \t")
	if rest == "*" {
		return []string{"*"}
	}
	var out []string
	for rest != "" {
		opaque, weak := strings.CutPrefix(rest, "W/")
		if opaque == "" || opaque[0] != '"' {
			return nil
		}
		end := strings.IndexByte(opaque[1:], '"')
		if end < 0 {
			return nil
		}
		tag := opaque[:end+2]
		rest = strings.TrimLeft(opaque[end+2:], " \t")
		if weak {
			tag = "W/" + tag
		}
		out = append(out, tag)
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
