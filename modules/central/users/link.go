package users

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
)

// Bounds of a reset link's life: long enough to be opened, too short to be found
// in an old mailbox.
const (
	defaultLink = time.Hour
	minLink     = 10 * time.Minute
	maxLink     = 24 * time.Hour
)

// Links makes one-time links by which people set a new password: *reset.Links.
type Links interface {
	// Show returns a link at a tenant's address, and when it ends.
	Show(ctx context.Context, tx pgx.Tx, t *catalog.Tenant, u *user.User, ttl time.Duration) (address string, ends time.Time, err error)
	// Send sends one to the person: to the address of a kind, or to the one that
	// suits best. Errors: user.ErrChannel, *user.Throttled.
	Send(ctx context.Context, tx pgx.Tx, t *catalog.Tenant, u *user.User, kind user.Kind, ttl time.Duration) (to user.Identifier, ends time.Time, err error)
}

// linkRequest says what link is made.
type linkRequest struct {
	// Tenant is the one at whose address the link is; needed where several
	// share the directory.
	Tenant string `json:"tenant,omitempty"`
	// ExpiresIn is how long the link works, such as "1h".
	ExpiresIn catalog.Duration `json:"expires_in,omitempty"`
}

// sendRequest says what link is sent, and how.
type sendRequest struct {
	linkRequest
	Channel user.Kind `json:"channel,omitempty"` // phone or email
}

// showLink answers POST .../password-reset: a link, shown once.
func (a *API) showLink(c echo.Context) error {
	var r linkRequest
	if err := optional(c, &r); err != nil {
		return err
	}
	if err := invalidOrNil(r.problems()); err != nil {
		return err
	}
	var address string
	var ends time.Time
	err := a.withLink(c, r, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, t *catalog.Tenant, u *user.User) (err error) {
		if address, ends, err = a.d.Links.Show(ctx, tx, t, u, r.ExpiresIn.D(defaultLink)); err != nil {
			return err
		}
		return a.record(c, tx, cat, u, "user.password_link_made", nil, map[string]string{"at_tenant": t.ID, "expires_at": ends.UTC().Format(time.RFC3339)})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"link": address, "expires_at": ends.UTC().Truncate(time.Second)})
}

// sendLink answers POST .../password-reset:send: a link to the person, which
// nobody else is shown.
func (a *API) sendLink(c echo.Context) error {
	var r sendRequest
	if err := optional(c, &r); err != nil {
		return err
	}
	problems := r.problems()
	if r.Channel != "" && r.Channel != user.KindEmail && r.Channel != user.KindPhone {
		problems = append(problems, user.Problem{Pointer: "/channel", Detail: "is email or phone"})
	}
	if err := invalidOrNil(problems); err != nil {
		return err
	}
	if !a.d.Sends {
		return problem(http.StatusConflict, "no_provider", "this deployment sends no messages (auth.otp.provider); make a link and hand it over yourself", nil)
	}
	var to user.Identifier
	var ends time.Time
	err := a.withLink(c, r.linkRequest, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, t *catalog.Tenant, u *user.User) (err error) {
		if to, ends, err = a.d.Links.Send(ctx, tx, t, u, r.Channel, r.ExpiresIn.D(defaultLink)); err != nil {
			return sendError(c, err)
		}
		return a.record(c, tx, cat, u, "user.password_link_sent", nil,
			map[string]string{"at_tenant": t.ID, "to": to.Masked(), "expires_at": ends.UTC().Format(time.RFC3339)})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusAccepted, map[string]any{"channel": to.Kind, "sent_to": to.Masked(), "expires_at": ends.UTC().Truncate(time.Second)})
}

func (r *linkRequest) problems() []user.Problem {
	if ttl := r.ExpiresIn.D(defaultLink); ttl < minLink || ttl > maxLink {
		return []user.Problem{{Pointer: "/expires_in", Detail: fmt.Sprintf("is %s to %s", minLink, maxLink)}}
	}
	return nil
}

func invalidOrNil(problems []user.Problem) error {
	if len(problems) == 0 {
		return nil
	}
	return invalid(problems)
}

// withLink does work for a person who may sign in, at the tenant of the link.
func (a *API) withLink(c echo.Context, r linkRequest, work func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, t *catalog.Tenant, u *user.User) error) error {
	return a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		t, err := linkTenant(cat, u.Directory, r.Tenant)
		if err != nil {
			return err
		}
		if u.Status != user.Active {
			return problem(http.StatusConflict, "disabled", "the person is disabled; a new password would be of no use", nil)
		}
		return work(ctx, tx, cat, t, u)
	})
}

// linkTenant returns the tenant at whose address a link is.
func linkTenant(cat *catalog.Catalog, directory, name string) (*catalog.Tenant, error) {
	all := tenants(cat, directory)
	if name == "" && len(all) == 1 {
		return all[0], nil
	}
	for _, t := range all {
		if t.ID == name {
			return t, nil
		}
	}
	detail := "is no tenant with this user directory"
	if name == "" {
		detail = "is needed: several tenants have this user directory"
	}
	return nil, invalid([]user.Problem{{Pointer: "/tenant", Detail: detail}})
}

func sendError(c echo.Context, err error) error {
	var throttled *user.Throttled
	switch {
	case errors.Is(err, user.ErrChannel):
		return problem(http.StatusConflict, "no_channel", "the person has no such address to be written to", err)
	case errors.As(err, &throttled):
		c.Response().Header().Set("Retry-After", strconv.Itoa(max(1, int(math.Ceil(throttled.RetryAfter.Seconds())))))
		return problem(http.StatusTooManyRequests, "throttled", "enough links were sent to the person within the last hour", err)
	}
	return err
}
