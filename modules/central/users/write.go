package users

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/admin/access"
	"versola/modules/central/admin/document"
	"versola/modules/central/admin/request"
	"versola/modules/central/audit"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/id"
)

// Bounds of a new password, as package password holds them: told here with the
// member's name, before anything is hashed.
const (
	minPassword = 8
	maxPassword = 256
)

// create answers POST .../users.
func (a *API) create(c echo.Context) error {
	directory, cat, err := a.directory(c)
	if err != nil {
		return err
	}
	raw, err := body(c, "application/json")
	if err != nil {
		return err
	}
	tree, err := parse(raw)
	if err != nil {
		return err
	}
	var d creation
	if err := decode(tree, &d); err != nil {
		return err
	}
	now := a.d.Clock.Now()
	n, problems := d.New(directory, now, a.d.Adopt)
	problems = append(problems, a.checkPlace(&d.person, directory)...)
	problems = append(problems, checkRoles(cat, directory, nil, n.Roles)...)
	if d.Password != "" {
		switch length := len([]rune(d.Password)); {
		case d.PasswordHash != "":
			problems = append(problems, user.Problem{Pointer: "/password", Detail: "stands beside a password_hash"})
		case length < minPassword || length > maxPassword:
			problems = append(problems, user.Problem{Pointer: "/password", Detail: fmt.Sprintf("has %d to %d characters", minPassword, maxPassword)})
		}
	}
	if len(problems) > 0 {
		return invalid(problems)
	}
	if err := mayGive(c, n.Roles); err != nil {
		return err
	}
	if d.Password != "" {
		if n.PasswordHash, err = a.d.Hasher.Hash(c.Request().Context(), d.Password); err != nil {
			return fmt.Errorf("hash password: %w", err)
		}
	}
	u, err := a.insert(c, cat, n)
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", c.Request().URL.Path+"/"+u.ID.String())
	return answer(c, http.StatusCreated, u)
}

// insert creates a person and returns them as they are now.
func (a *API) insert(c echo.Context, cat *catalog.Catalog, n user.New) (*user.User, error) {
	ctx, u := c.Request().Context(), (*user.User)(nil)
	err := pgx.BeginFunc(ctx, a.d.DB, func(tx pgx.Tx) error {
		created, err := a.d.Users.Create(ctx, tx, n)
		if errors.Is(err, user.ErrTaken) {
			fields, err := a.d.Users.TakenFields(ctx, tx, n)
			if err != nil {
				return err
			}
			return taken(fields...)
		}
		if err != nil {
			return err
		}
		if u, err = a.d.Users.Lock(ctx, tx, n.Directory, created); err != nil {
			return err
		}
		return a.record(c, tx, cat, u, "user.created", differences(&user.User{}, u), nil)
	})
	return u, err
}

// checkPlace refuses a document that says to be of another directory.
func (a *API) checkPlace(d *person, directory string) []user.Problem {
	if d.Directory != "" && d.Directory != directory {
		return []user.Problem{{Pointer: "/directory", Detail: "is not that of the path"}}
	}
	return nil
}

// mayGive tells whether the caller may give these roles, take them away, or act
// on an account that has them.
func mayGive(c echo.Context, roles map[string][]string) error {
	who := access.From(c)
	for tenant, names := range roles {
		if err := who.MayGive(tenant, names); err != nil {
			return access.Refused(err)
		}
	}
	return nil
}

// act locks the person of the path, lets work change them, and records it, all
// in one transaction. Who acts must hold what the person's roles reach.
func (a *API) act(c echo.Context, work func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error) error {
	directory, cat, err := a.directory(c)
	if err != nil {
		return err
	}
	who, err := userID(c)
	if err != nil {
		return err
	}
	ctx := c.Request().Context()
	return pgx.BeginFunc(ctx, a.d.DB, func(tx pgx.Tx) error {
		u, err := a.d.Users.Lock(ctx, tx, directory, who)
		if err != nil {
			return storeError(err)
		}
		if err := mayGive(c, u.Roles); err != nil {
			return err
		}
		return work(ctx, tx, cat, u)
	})
}

// record appends to the audit log; it is the last thing of a transaction.
func (a *API) record(c echo.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User, action string, changes []audit.FieldChange, detail map[string]string) error {
	e := entry(c, action, tenantOf(cat, u.Directory))
	e.Object = &audit.Object{Kind: "user", Tenant: e.Tenant, ID: u.ID.String()}
	e.User, e.Changes, e.Detail = u.ID.String(), changes, detail
	return a.d.Audit.Append(c.Request().Context(), tx, e)
}

func entry(c echo.Context, action, tenant string) audit.Entry {
	actor := audit.ActorOf(access.Actor(c))
	e := audit.Entry{Action: action, Actor: actor, Tenant: tenant, RequestID: httpserver.RequestID(c)}
	if addr := httpserver.ClientAddr(c); addr.IsValid() {
		e.Address = addr.String()
	}
	return e
}

// tenantOf names the one tenant of a directory, whose administrators see the
// entry; a shared directory's entries are seen from everywhere alone.
func tenantOf(cat *catalog.Catalog, directory string) string {
	if list := tenants(cat, directory); len(list) == 1 {
		return list[0].ID
	}
	return ""
}

// replace answers PUT .../users/{user}.
func (a *API) replace(c echo.Context) error {
	raw, err := body(c, "application/json")
	if err != nil {
		return err
	}
	tree, err := parse(raw)
	if err != nil {
		return err
	}
	return a.change(c, func(*user.User) (any, error) { return tree, nil })
}

// update answers PATCH .../users/{user}, a merge patch (RFC 7396).
func (a *API) update(c echo.Context) error {
	raw, err := body(c, mergePatch)
	if err != nil {
		return err
	}
	patch, err := parse(raw)
	if err != nil {
		return err
	}
	if _, ok := patch.(map[string]any); !ok {
		return invalid([]user.Problem{{Detail: "is not an object"}})
	}
	return a.change(c, func(u *user.User) (any, error) {
		b, err := encode(viewOf(u))
		if err != nil {
			return nil, err
		}
		current, err := document.Parse(b)
		if err != nil {
			return nil, fmt.Errorf("read back: %w", err)
		}
		return document.Merge(current, patch), nil
	})
}

// change writes what a document says; next makes it from the person as they
// are. Nothing is written where nothing differs.
func (a *API) change(c echo.Context, next func(u *user.User) (any, error)) error {
	expected, err := request.IfMatch(c)
	if err != nil {
		return err
	}
	var after *user.User
	err = a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		if err := expected.Check(u.Version); err != nil {
			return err
		}
		tree, err := next(u)
		if err != nil {
			return err
		}
		was := *u
		if err := a.take(c, cat, u, tree); err != nil {
			return err
		}
		after = u
		changes := differences(&was, u)
		if len(changes) == 0 {
			return nil
		}
		if err := a.d.Users.Update(ctx, tx, u, a.d.Clock.Now()); err != nil {
			return storeError(err)
		}
		action := "user.updated"
		if was.Status != u.Status {
			action = map[user.Status]string{user.Disabled: "user.disabled", user.Active: "user.enabled"}[u.Status]
		}
		if action == "user.disabled" {
			if _, err := a.d.Sessions.EndAll(ctx, tx, cat, u.Directory, u.ID); err != nil {
				return err
			}
		}
		return a.record(c, tx, cat, u, action, changes, nil)
	})
	if err != nil {
		return err
	}
	return answer(c, http.StatusOK, after)
}

// take reads and checks a document and writes it onto u.
func (a *API) take(c echo.Context, cat *catalog.Catalog, u *user.User, tree any) error {
	var d person
	if err := decode(tree, &d); err != nil {
		return err
	}
	n, problems := d.New(u.Directory, a.d.Clock.Now(), a.d.Adopt)
	problems = append(problems, a.checkPlace(&d, u.Directory)...)
	problems = append(problems, checkRoles(cat, u.Directory, u.Roles, n.Roles)...)
	if d.ID != nil && *d.ID != u.ID {
		problems = append(problems, user.Problem{Pointer: "/id", Detail: "cannot be changed"})
	}
	if d.PasswordHash != "" {
		problems = append(problems, user.Problem{Pointer: "/password_hash", Detail: "is for creation alone; reset the password"})
	}
	if !d.CreatedAt.IsZero() {
		problems = append(problems, user.Problem{Pointer: "/created_at", Detail: "cannot be changed"})
	}
	if len(problems) > 0 {
		return invalid(problems)
	}
	if err := mayGive(c, n.Roles); err != nil {
		return err
	}
	apply(u, n)
	return nil
}

// remove answers DELETE .../users/{user}.
func (a *API) remove(c echo.Context) error {
	expected, err := request.IfMatch(c)
	if err != nil {
		return err
	}
	err = a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		if err := expected.Check(u.Version); err != nil {
			return err
		}
		if _, err := a.d.Sessions.EndAll(ctx, tx, cat, u.Directory, u.ID); err != nil {
			return err
		}
		if err := a.d.Users.Delete(ctx, tx, u.ID); err != nil {
			return storeError(err)
		}
		return a.record(c, tx, cat, u, "user.deleted", nil, nil)
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// sessionID reads the session of the path.
func sessionID(c echo.Context) (id.UUID, error) {
	s, err := id.ParseUUID(c.Param("session"))
	if err != nil {
		return id.Nil, notFound("session")
	}
	return s, nil
}
