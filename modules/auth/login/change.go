package login

import (
	"errors"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/factor"
	"versola/modules/auth/pages"
	"versola/modules/auth/password"
)

// changePage is the data of the page "change".
type changePage struct {
	Address string
	Min     int
}

func (e *Engine) changePage(v *visit) pages.View {
	page := e.view(v)
	page.Name, page.Title, page.Error = "change", "change.title", v.conversation.State.Error
	policy := password.PolicyOf(v.t.Tenant)
	page.ErrorArgs = policy.Args()
	page.Data = changePage{v.conversation.State.Identifier.Value, policy.Min}
	return page
}

// showChange answers GET password/change.
func (e *Engine) showChange(c echo.Context) error {
	v, err := e.enterVisit(c)
	if v == nil {
		return err
	}
	if next := e.next(v); next != "password/change" {
		return v.goTo(next)
	}
	return e.d.Pages.Render(c, e.changePage(v)) //nolint:wrapcheck // says what it is
}

// change answers POST password/change: a new password, and the sign-in is
// finished.
func (e *Engine) change(c echo.Context) error {
	v, err := e.arrive(c)
	if v == nil {
		return err
	}
	ctx := c.Request().Context()
	conv, subject, err := e.loadSubject(ctx, v.hash, v.t.Directory)
	if err != nil {
		return err
	}
	if ok, err := e.admit(v, conv); !ok {
		return err
	}
	if next := e.next(v); next != "password/change" || v.version != conv.Version {
		return v.goTo(next)
	}
	if proven := conv.State.Proven.Password; proven == nil || !proven.Set.Equal(subject.TemporaryPasswordSet) {
		return e.unproven(v, conv.Version)
	}
	chosen := v.form.Get("new_password")
	problem, hash, err := e.newPassword(v, subject, chosen)
	if err != nil {
		return err
	}
	if problem != "" {
		if err := e.patch(ctx, v.hash, conv.Version, v.now, map[string]any{"error": problem}); err != nil {
			return err
		}
		return v.goTo("password/change")
	}
	return e.finish(v, finish{version: conv.Version, user: subject.ID, amr: conv.State.Proven.AMR, proof: chosen,
		password: conv.State.Proven.Password, chosenHash: hash})
}

// newPassword judges and hashes a chosen password; problem is the key of the
// text to show.
func (e *Engine) newPassword(v *visit, subject factor.Subject, chosen string) (problem, hash string, err error) {
	ctx := v.c.Request().Context()
	if problem := password.PolicyOf(v.t.Tenant).Problem(chosen); problem != "" {
		return problem, "", nil
	}
	if subject.TemporaryPasswordHash != "" {
		same, _, err := e.d.Hasher.Verify(ctx, subject.TemporaryPasswordHash, chosen)
		if err != nil && !errors.Is(err, password.ErrFormat) {
			return "", "", err //nolint:wrapcheck // says what it is
		}
		if same {
			return "error.new_password_same", "", nil
		}
	}
	hash, err = e.d.Hasher.Hash(ctx, chosen)
	return "", hash, err //nolint:wrapcheck // says what it is
}
