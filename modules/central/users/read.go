package users

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/user"
	"versola/modules/central/admin/request"
	"versola/modules/central/audit"
	"versola/platform/id"
)

// list answers GET .../users.
func (a *API) list(c echo.Context) error {
	directory, _, err := a.directory(c)
	if err != nil {
		return err
	}
	params := request.Parameters(c)
	f, err := filter(params)
	if err != nil {
		return err
	}
	page, err := a.d.Users.List(c.Request().Context(), directory, f, request.Limit(params, defaultPage), params["after"])
	if err != nil {
		return storeError(err)
	}
	answer := struct {
		Items     []view `json:"items"`
		Total     int64  `json:"total"`
		Estimated bool   `json:"total_estimated,omitempty"`
		Next      string `json:"next,omitempty"`
	}{[]view{}, page.Total, page.Estimated, page.Next}
	for _, u := range page.Users {
		answer.Items = append(answer.Items, viewOf(u))
	}
	return c.JSON(http.StatusOK, answer)
}

func filter(params map[string]string) (user.Filter, error) {
	f := user.Filter{Query: params["q"], Status: user.Status(params["status"])}
	if _, given := params["status"]; given && f.Status != user.Active && f.Status != user.Disabled {
		return f, request.BadParameter("status", "is active or disabled")
	}
	if role, given := params["role"]; given {
		var ok bool
		if f.Tenant, f.Role, ok = strings.Cut(role, ":"); !ok || f.Tenant == "" || f.Role == "" || len(role) > 256 || !printable(role) {
			return f, request.BadParameter("role", "is a tenant and a role: demo:reader")
		}
	}
	for name, at := range map[string]*time.Time{"created_from": &f.CreatedFrom, "created_before": &f.CreatedBefore} {
		text, given := params[name]
		if !given {
			continue
		}
		var err error
		if *at, err = time.Parse(time.RFC3339, text); err != nil || at.Year() < 1970 || at.Year() > 9999 {
			return f, request.BadParameter(name, "is a time such as 2026-11-30T12:00:00Z")
		}
	}
	return f, nil
}

func printable(s string) bool {
	return strings.ToValidUTF8(s, "") == s && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// get answers GET .../users/{user}.
func (a *API) get(c echo.Context) error {
	u, err := a.user(c)
	if err != nil {
		return err
	}
	if request.NoneMatch(c, request.ETag(u.Version)) {
		c.Response().Header().Set("ETag", request.ETag(u.Version))
		return c.NoContent(http.StatusNotModified)
	}
	return answer(c, http.StatusOK, u)
}

func answer(c echo.Context, status int, u *user.User) error {
	c.Response().Header().Set("ETag", request.ETag(u.Version))
	return c.JSON(status, viewOf(u))
}

// user reads the person of the path.
func (a *API) user(c echo.Context) (*user.User, error) {
	directory, _, err := a.directory(c)
	if err != nil {
		return nil, err
	}
	who, err := userID(c)
	if err != nil {
		return nil, err
	}
	u, err := a.d.Users.In(c.Request().Context(), directory, who)
	if err != nil {
		return nil, storeError(err)
	}
	return u, nil
}

// sessionView is a sign-in as the API shows it.
type sessionView struct {
	ID        id.UUID   `json:"id"`
	AuthTime  time.Time `json:"auth_time"`
	ACR       string    `json:"acr,omitempty"`
	AMR       []string  `json:"amr"`
	CreatedAt time.Time `json:"created_at"`
	SeenAt    time.Time `json:"seen_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Clients   []string  `json:"clients"` // "tenant/client"
}

// sessions answers GET .../sessions.
func (a *API) sessions(c echo.Context) error {
	u, err := a.user(c)
	if err != nil {
		return err
	}
	living, err := a.d.Sessions.Living(c.Request().Context(), u.ID)
	if err != nil {
		return err
	}
	items := []sessionView{}
	for _, s := range living {
		items = append(items, sessionView{ID: s.ID, AuthTime: s.AuthTime.UTC(), ACR: s.ACR, AMR: s.AMR, CreatedAt: s.CreatedAt.UTC(),
			SeenAt: s.SeenAt.UTC(), ExpiresAt: s.ExpiresAt.UTC(), Clients: s.Clients})
	}
	return c.JSON(http.StatusOK, map[string]any{"items": items})
}

// factorView is a factor as the API shows it: never what it is proven with.
type factorView struct {
	ID        string     `json:"id"`
	Imported  bool       `json:"imported,omitempty"`
	ChangedAt time.Time  `json:"changed_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

// factors answers GET .../factors.
func (a *API) factors(c echo.Context) error {
	u, err := a.user(c)
	if err != nil {
		return err
	}
	list, err := a.d.Users.Factors(c.Request().Context(), u.ID)
	if err != nil {
		return err
	}
	items := []factorView{}
	for _, f := range list {
		v := factorView{ID: f.ID, Imported: f.Imported, ChangedAt: f.ChangedAt.UTC()}
		if !f.ExpiresAt.IsZero() {
			at := f.ExpiresAt.UTC()
			v.ExpiresAt = &at
		}
		items = append(items, v)
	}
	return c.JSON(http.StatusOK, map[string]any{"items": items})
}

// events answers GET .../events: the entries of the audit log that concern the
// person, newest first.
func (a *API) events(c echo.Context) error {
	directory, _, err := a.directory(c)
	if err != nil {
		return err
	}
	who, err := userID(c)
	if err != nil {
		return err
	}
	u, err := a.d.Users.ByID(c.Request().Context(), who)
	if err == nil && u.Directory != directory {
		return notFound("user")
	}
	if err != nil {
		return storeError(err)
	}
	params := request.Parameters(c)
	n := request.Limit(params, defaultPage)
	var before int64
	if text, given := params["after"]; given {
		if before, err = strconv.ParseInt(text, 10, 64); err != nil || before < 1 {
			return request.BadParameter("after", "is not the \"next\" of a page of this list")
		}
	}
	page, err := a.d.Audit.Page(c.Request().Context(), audit.Filter{User: who.String()}, before, n+1)
	if err != nil {
		return err
	}
	answer := struct {
		Items []audit.Stored `json:"items"`
		Next  string         `json:"next,omitempty"`
	}{Items: page}
	if len(page) > n {
		answer.Items = page[:n]
		answer.Next = strconv.FormatInt(page[n-1].Seq, 10)
	}
	if answer.Items == nil {
		answer.Items = []audit.Stored{}
	}
	return c.JSON(http.StatusOK, answer)
}
