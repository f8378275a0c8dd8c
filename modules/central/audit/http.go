package audit

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/admin/request"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

// Bounds of a list.
const (
	defaultLimit = 50
	maxLimit     = 200
	// maxFilter bounds each parameter: as long as what an entry holds.
	maxFilter = maxText
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
	q, err := readQuery(c, within, true)
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
	q, err := readQuery(c, within, false)
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

func readQuery(c echo.Context, within []string, paged bool) (query, error) {
	params, err := request.Query(c)
	if err != nil {
		return query{}, err
	}
	return parseQuery(params, within, paged)
}

// parseQuery reads the parameters strictly: one that is misspelt would show
// more than was asked for.
func parseQuery(params url.Values, within []string, paged bool) (query, error) {
	q := query{limit: defaultLimit}
	var wrong []httpserver.FieldError
	fail := func(name, detail string) {
		wrong = append(wrong, httpserver.FieldError{Detail: "parameter " + name + ": " + detail})
	}
	texts := map[string]*string{"action": &q.Action, "actor": &q.Actor, "tenant": &q.Tenant, "user": &q.User,
		"object_kind": &q.ObjectKind, "object_id": &q.ObjectID, "request_id": &q.RequestID}
	times := map[string]*time.Time{"from": &q.From, "to": &q.To}
	for name, values := range params {
		value := values[0]
		switch text, at := texts[name], times[name]; {
		case len(values) > 1:
			fail(name, "is given more than once")
		case len(value) > maxFilter || strings.ContainsRune(value, 0) || strings.ToValidUTF8(value, "") != value:
			fail(name, fmt.Sprintf("is not a text of at most %d bytes", maxFilter))
		case text != nil:
			*text = value
		case at != nil:
			var err error
			if *at, err = time.Parse(time.RFC3339Nano, value); err != nil || at.Year() < 1 {
				fail(name, "is not a time such as 2026-01-31T12:00:00Z")
			}
		case name == "limit" && paged:
			var err error
			if q.limit, err = strconv.Atoi(value); err != nil || q.limit < 1 || q.limit > maxLimit {
				fail(name, fmt.Sprintf("is not a number from 1 to %d", maxLimit))
			}
		case name == "after" && paged:
			var err error
			if q.after, err = strconv.ParseInt(value, 10, 64); err != nil || q.after < 1 {
				fail(name, "is not the next of a page")
			}
		default:
			fail(name, "is not known")
		}
	}
	q.Within = within
	if within != nil && q.Tenant != "" && !slices.Contains(within, q.Tenant) {
		return q, &httpserver.Problem{Title: http.StatusText(http.StatusForbidden), Status: http.StatusForbidden, Reason: "not_permitted", Detail: "the role is limited to another tenant"}
	}
	if len(wrong) > 0 {
		slices.SortFunc(wrong, func(a, b httpserver.FieldError) int { return strings.Compare(a.Detail, b.Detail) })
		return q, &httpserver.Problem{Title: http.StatusText(http.StatusBadRequest), Status: http.StatusBadRequest, Reason: "invalid_query", Detail: wrong[0].Detail, Errors: wrong}
	}
	return q, nil
}
