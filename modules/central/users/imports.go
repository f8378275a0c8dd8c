package users

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
)

// Bounds of an import.
const (
	// maxReported is how many lines the answer tells of; all are counted.
	maxReported = 10_000
	// importStall is how long a sender may stay silent.
	importStall = 30 * time.Second
)

// imports answers POST .../users:import, lines of JSON as user.Document. The
// answer comes at the end, so that a sender that reads only then is not stuck.
func (a *API) imports(c echo.Context) error {
	directory, cat, err := a.directory(c)
	if err != nil {
		return err
	}
	if got, _, err := mime.ParseMediaType(c.Request().Header.Get("Content-Type")); err != nil || got != "application/x-ndjson" {
		return problem(http.StatusUnsupportedMediaType, "media_type", "the body must be application/x-ndjson", err)
	}
	who, ctx := access.From(c), c.Request().Context()
	answer := struct {
		user.Summary
		Reports []user.Line `json:"reports"` // in the order of lines
		LeftOff int64       `json:"reports_left_off,omitempty"`
	}{Reports: []user.Line{}}
	in := Importer{Users: a.d.Users, Audit: a.d.Audit, Adopt: a.d.Adopt, Clock: a.d.Clock}
	answer.Summary, err = in.Run(ctx, cat, directory, stream(c), entry(c, "", ""), func(n *user.New) []user.Problem {
		var problems []user.Problem
		for tenant, roles := range n.Roles {
			if err := who.MayGive(tenant, roles); err != nil {
				problems = append(problems, user.Problem{Pointer: document.Join("/roles", tenant), Detail: "nobody grants more than they hold: " + err.Error()})
			}
		}
		return problems
	}, func(l user.Line) {
		if len(answer.Reports) == maxReported {
			answer.LeftOff++
			return
		}
		answer.Reports = append(answer.Reports, l)
	})
	var broken *readError
	switch {
	case errors.As(err, &broken):
		return problem(http.StatusBadRequest, "broken_off", fmt.Sprintf("the body broke off; %d lines are settled, send it again", answer.Lines), broken.cause)
	case err != nil:
		return err
	}
	return c.JSON(http.StatusOK, answer)
}

// Importer imports people into a directory.
type Importer struct {
	Users *user.Store
	Audit Log
	Adopt func(hash string) (string, error) // password.Adopt
	Clock clock.Clock
}

// Run imports lines (see user.Store.Import). by says who does it, for the audit
// log, which has an entry for each batch; may, where given, tells which roles
// they may not give; report is told of lines that created nobody. Errors:
// [ErrDirectory], the reader's, the database's.
func (i *Importer) Run(ctx context.Context, cat *catalog.Catalog, directory string, in io.Reader, by audit.Entry, may func(n *user.New) []user.Problem,
	report func(user.Line)) (user.Summary, error) {
	if len(tenants(cat, directory)) == 0 {
		return user.Summary{}, ErrDirectory
	}
	return i.Users.Import(ctx, in, user.ImportOptions{
		Directory: directory, Now: i.Clock.Now, Adopt: i.Adopt, Report: report,
		Check: func(n *user.New) []user.Problem {
			problems := checkRoles(cat, directory, nil, n.Roles)
			if may != nil {
				problems = append(problems, may(n)...)
			}
			return problems
		},
		Record: func(ctx context.Context, tx pgx.Tx, created []id.UUID) error {
			e := by
			e.Action, e.Tenant = "users.imported", tenantOf(cat, directory)
			e.Detail = map[string]string{"directory": directory, "created": strconv.Itoa(len(created)), "first": created[0].String()}
			return i.Audit.Append(ctx, tx, e)
		},
	})
}

// ErrDirectory reports a user directory that no tenant has.
var ErrDirectory = errors.New("no tenant has this user directory")

// readError tells a sender's fault from the database's.
type readError struct{ cause error }

func (e *readError) Error() string { return "read body: " + e.cause.Error() }

// bodyStream is a request's body whose sender may not stall.
type bodyStream struct {
	in      io.Reader
	control *http.ResponseController
}

func stream(c echo.Context) *bodyStream {
	return &bodyStream{c.Request().Body, http.NewResponseController(c.Response())}
}

// Read implements io.Reader.
func (b *bodyStream) Read(p []byte) (int, error) {
	// Not supported means a call within the process: no network to wait for.
	_ = b.control.SetReadDeadline(clock.System{}.Now().Add(importStall))
	n, err := b.in.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = &readError{err}
	}
	return n, err
}
