package users

import (
	"context"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/catalog"
)

// Bounds of a temporary password.
const (
	// temporaryBytes is 100 bits in 20 characters: it may be read out and typed.
	temporaryBytes = 13
	temporaryChars = 20
	temporaryGroup = 5
	// DefaultTemporary leaves a weekend to use it; the bounds keep it from being
	// useless or a permanent one.
	DefaultTemporary = 72 * time.Hour
	MinTemporary     = 10 * time.Minute
	MaxTemporary     = 30 * 24 * time.Hour
)

// readable is base32 in the alphabet of Crockford: no two characters of it look
// alike.
var readable = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// reset says how a password is reset.
type reset struct {
	// ExpiresIn is how long the temporary password works, such as "72h".
	ExpiresIn catalog.Duration `json:"expires_in,omitempty"`
	// KeepPassword leaves the permanent password valid beside the temporary one.
	KeepPassword bool `json:"keep_password,omitempty"`
	// KeepSessions leaves the person signed in where they are.
	KeepSessions bool `json:"keep_sessions,omitempty"`
}

// resetPassword answers POST .../password: a temporary password, shown once,
// that the person must replace when they use it.
func (a *API) resetPassword(c echo.Context) error {
	var r reset
	if err := optional(c, &r); err != nil {
		return err
	}
	ttl := r.ExpiresIn.D(DefaultTemporary)
	if ttl < MinTemporary || ttl > MaxTemporary {
		return invalid([]user.Problem{{Pointer: "/expires_in", Detail: fmt.Sprintf("is %s to %s", MinTemporary, MaxTemporary)}})
	}
	plain, err := NewTemporary(a.d.Random)
	if err != nil {
		return err
	}
	// Before the person is locked: hashing takes its time.
	hash, err := a.d.Hasher.Hash(c.Request().Context(), plain)
	if err != nil {
		return fmt.Errorf("hash password: %w", err)
	}
	now := a.d.Clock.Now()
	ends := now.Add(ttl)
	err = a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		if err := a.d.Users.SetTemporaryPassword(ctx, tx, u.ID, hash, ends, now); err != nil {
			return err
		}
		if !r.KeepPassword {
			if err := a.d.Users.RemoveFactor(ctx, tx, u.ID, user.FactorPassword); err != nil && !errors.Is(err, user.ErrNotFound) {
				return err
			}
		}
		if !r.KeepSessions {
			if _, err := a.d.Sessions.EndAll(ctx, tx, cat, u.Directory, u.ID); err != nil {
				return err
			}
		}
		return a.record(c, tx, cat, u, "user.password_reset", nil, map[string]string{
			"keep_password": strconv.FormatBool(r.KeepPassword), "keep_sessions": strconv.FormatBool(r.KeepSessions), "expires_at": ends.UTC().Format(time.RFC3339)})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{"temporary_password": plain, "expires_at": ends.UTC().Truncate(time.Second)})
}

// NewTemporary makes a temporary password: four groups of five characters.
func NewTemporary(random io.Reader) (string, error) {
	b := make([]byte, temporaryBytes)
	if _, err := io.ReadFull(random, b); err != nil {
		return "", fmt.Errorf("read random bytes: %w", err)
	}
	text := readable.EncodeToString(b)[:temporaryChars]
	var groups []string
	for i := 0; i < temporaryChars; i += temporaryGroup {
		groups = append(groups, text[i:i+temporaryGroup])
	}
	return strings.Join(groups, "-"), nil
}

// endSessions answers DELETE .../sessions: the person is signed out everywhere,
// and every refresh token and access token of theirs ends, offline access too.
func (a *API) endSessions(c echo.Context) error {
	n := 0
	err := a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) (err error) {
		if n, err = a.d.Sessions.EndAll(ctx, tx, cat, u.Directory, u.ID); err != nil {
			return err
		}
		return a.record(c, tx, cat, u, "user.sessions_ended", nil, map[string]string{"sessions": strconv.Itoa(n)})
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]int{"ended": n})
}

// endSession answers DELETE .../sessions/{session}.
func (a *API) endSession(c echo.Context) error {
	s, err := sessionID(c)
	if err != nil {
		return err
	}
	err = a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		ended, err := a.d.Sessions.EndOne(ctx, tx, cat, u.Directory, u.ID, s)
		if err != nil {
			return err
		}
		if !ended {
			return notFound("session")
		}
		return a.record(c, tx, cat, u, "user.session_ended", nil, map[string]string{"session": s.String()})
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// removeFactor answers DELETE .../factors/{factor}.
func (a *API) removeFactor(c echo.Context) error {
	factor := c.Param("factor")
	err := a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) error {
		if err := a.d.Users.RemoveFactor(ctx, tx, u.ID, factor); err != nil {
			if errors.Is(err, user.ErrNotFound) {
				return notFound("factor")
			}
			return err
		}
		return a.record(c, tx, cat, u, "user.factor_removed", nil, map[string]string{"factor": factor})
	})
	if err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// resetLimits answers DELETE .../limits: attempts at codes and passwords are
// forgotten, and a rest ends.
func (a *API) resetLimits(c echo.Context) error {
	var n int64
	err := a.act(c, func(ctx context.Context, tx pgx.Tx, cat *catalog.Catalog, u *user.User) (err error) {
		if n, err = a.d.Limits.Reset(ctx, tx, u.Directory, u.Identifiers()); err != nil {
			return err
		}
		return a.record(c, tx, cat, u, "user.limits_reset", nil, nil)
	})
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]int64{"reset": n})
}
