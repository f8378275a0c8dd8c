package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/request"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

const (
	// defaultLimit is the size of a page that does not name its own.
	defaultLimit = 50
	// exportWrite bounds how long an export waits for its reader to take a page.
	exportWrite = 30 * time.Second
)

// HandleList answers GET /v1/audit: a page of entries, newest first.
//
//	from, to        RFC 3339, to exclusive
//	action          one action, or a prefix such as "client."
//	actor           the actor's id
//	tenant, user    whom it concerns
//	object_kind, object_id, request_id
//	limit, after    paging: after is the "next" of the page before
//
// The caller is authorized already; within restricts to tenants, nil: to none.
func (l *Log) HandleList(c echo.Context, within []string) error {
	q, err := readQuery(c, within)
	if err != nil {
		return err
	}
	page, err := l.Page(c.Request().Context(), q.Filter, q.after, q.limit+1)
	if err != nil {
		return err
	}
	answer := struct {
		Items []Stored `json:"items"`
		Next  string   `json:"next,omitempty"`
	}{Items: page}
	if len(page) > q.limit {
		answer.Items = page[:q.limit]
		answer.Next = strconv.FormatInt(page[q.limit-1].Seq, 10)
	}
	if answer.Items == nil {
		answer.Items = []Stored{}
	}
	return c.JSON(http.StatusOK, answer)
}

// HandleEntry answers GET /v1/audit/{seq}; the path parameter is "seq".
func (l *Log) HandleEntry(c echo.Context, within []string) error {
	seq, err := strconv.ParseInt(c.Param("seq"), 10, 64)
	if err == nil {
		var e Stored
		if e, err = l.Entry(c.Request().Context(), Filter{Within: within}, seq); err == nil {
			return c.JSON(http.StatusOK, e)
		}
	}
	if errors.Is(err, ErrNotFound) || errors.Is(err, strconv.ErrSyntax) || errors.Is(err, strconv.ErrRange) {
		return &httpserver.Problem{Title: http.StatusText(http.StatusNotFound), Status: http.StatusNotFound, Reason: "not_found", Detail: "there is no such audit entry", Cause: err}
	}
	return err
}

// HandleExport answers GET /v1/audit:export with every entry that the filter
// of [Log.HandleList] selects, oldest first, one JSON document a line. The
// export is an entry of the log itself.
func (l *Log) HandleExport(c echo.Context, within []string, by Actor) error {
	q, err := readQuery(c, within)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	e := Entry{Action: "audit.exported", Actor: by, Tenant: q.Tenant, RequestID: httpserver.RequestID(c), Detail: map[string]string{"filter": c.QueryString()}}
	if addr := httpserver.ClientAddr(c); addr.IsValid() {
		e.Address = addr.String()
	}
	if len(within) == 1 {
		e.Tenant = within[0] // so that its administrators see it
	}
	if err := l.Write(ctx, e); err != nil {
		return err
	}
	w := c.Response()
	w.Header().Set(echo.HeaderContentType, "application/x-ndjson")
	w.Header().Set("Content-Disposition", `attachment; filename="audit.ndjson"`)
	control, lines := http.NewResponseController(w), json.NewEncoder(w)
	n := 0
	return l.Export(ctx, q.Filter, func(s Stored) error {
		if n++; n%exportPage == 1 {
			// Whoever stops reading does not keep a page in memory for ever.
			if err := control.SetWriteDeadline(clock.Monotonic().Add(exportWrite)); err != nil && !errors.Is(err, http.ErrNotSupported) {
				return fmt.Errorf("set write deadline: %w", err)
			}
		}
		return lines.Encode(s)
	})
}

type query struct {
	Filter
	limit int
	after int64
}

// readQuery reads the parameters; their kinds and bounds are the document's
// (see request.Described).
func readQuery(c echo.Context, within []string) (query, error) {
	params := request.Parameters(c)
	q := query{limit: request.Limit(params, defaultLimit), Filter: Filter{Within: within,
		Action: params["action"], Actor: params["actor"], Tenant: params["tenant"], User: params["user"],
		ObjectKind: params["object_kind"], ObjectID: params["object_id"], RequestID: params["request_id"]}}
	for name, at := range map[string]*time.Time{"from": &q.From, "to": &q.To} {
		if text, given := params[name]; given {
			var err error
			if *at, err = time.Parse(time.RFC3339, text); err != nil {
				return q, request.BadParameter(name, "is not a time")
			}
		}
	}
	if text, given := params["after"]; given {
		var err error
		if q.after, err = strconv.ParseInt(text, 10, 64); err != nil || q.after < 1 {
			return q, request.BadParameter("after", "is not the next of a page")
		}
	}
	if within != nil && q.Tenant != "" && !slices.Contains(within, q.Tenant) {
		return q, &httpserver.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Reason: "not_permitted", Detail: "the role is limited to another tenant"}
	}
	return q, nil
}
