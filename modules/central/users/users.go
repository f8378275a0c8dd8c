package users

import (
	"context"
	"io"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// Sessions ends and lists sign-ins: *logout.Ender.
type Sessions interface {
	// EndAll ends every session, refresh family and token of a person.
	EndAll(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID id.UUID) (sessions int, err error)
	EndOne(ctx context.Context, tx pgx.Tx, c *catalog.Catalog, directory string, userID, sessionID id.UUID) (ended bool, err error)
	Living(ctx context.Context, userID id.UUID) ([]user.Session, error)
}

// Limits forgets attempts: *throttle.Keys.
type Limits interface {
	Reset(ctx context.Context, tx pgx.Tx, directory string, identifiers []user.Identifier) (int64, error)
}

// Hasher hashes passwords: *password.Hasher.
type Hasher interface {
	Hash(ctx context.Context, plain string) (string, error)
}

// Log is the audit log: *audit.Log.
type Log interface {
	Append(ctx context.Context, tx pgx.Tx, entries ...audit.Entry) error
	Page(ctx context.Context, f audit.Filter, before int64, limit int) ([]audit.Stored, error)
}

// Deps is what the API works with.
type Deps struct {
	DB       *postgres.DB
	Users    *user.Store
	Catalog  *catalog.Holder
	Sessions Sessions
	Limits   Limits // nil: they cannot be reset here, the process has no key of theirs
	Hasher   Hasher
	Links    Links // nil: there are none to be made
	Sends    bool  // messages to people are sent: there is a provider
	// Adopt checks a password hash of another system: password.Adopt.
	Adopt  func(hash string) (string, error)
	Audit  Log
	Clock  clock.Clock
	Random io.Reader // makes temporary passwords
}

// API administers people.
type API struct{ d Deps }

// New makes the API.
func New(d Deps) *API { return &API{d} }

// ImportRoute is the route whose body is a stream of any length: its handler
// bounds lines and waiting itself (see httpserver.Options.StreamRoutes).
const ImportRoute = "/v1/directories/:directory/users\\:import"

// Handlers are the handlers by operationId. The router authenticates and
// authorizes before them (see admin/access).
func (a *API) Handlers() map[string]echo.HandlerFunc {
	handlers := map[string]echo.HandlerFunc{
		"list-users":                 a.list,
		"create-user":                a.create,
		"import-users":               a.imports,
		"get-user":                   a.get,
		"replace-user":               a.replace,
		"update-user":                a.update,
		"delete-user":                a.remove,
		"reset-user-password":        a.resetPassword,
		"list-user-sessions":         a.sessions,
		"create-user-password-reset": a.showLink,
		"send-user-password-reset":   a.sendLink,
		"end-user-sessions":          a.endSessions,
		"end-user-session":           a.endSession,
		"list-user-factors":          a.factors,
		"remove-user-factor":         a.removeFactor,
		"reset-user-limits":          a.resetLimits,
		"list-user-events":           a.events,
	}
	if a.d.Limits == nil {
		delete(handlers, "reset-user-limits")
	}
	if a.d.Links == nil {
		delete(handlers, "create-user-password-reset")
		delete(handlers, "send-user-password-reset")
	}
	return handlers
}
