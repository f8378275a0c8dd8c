package login

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/authorization"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/id"
	"versola/platform/secret"
)

// Start begins a sign-in for an authorization request and sends the browser to
// its first page: one statement. Errors: [authorization.Spent], where the request
// was pushed and has been answered.
func (e *Engine) Start(c echo.Context, t tenant.At, cl *catalog.Client, r *authorization.Request) error {
	if !storable(r.State, r.Nonce, r.CodeChallenge, strings.Join(r.Scopes, " "), strings.Join(r.ACRValues, " ")) {
		return e.respond.Error(c, t, r, oauth.Refuse(oauth.InvalidRequest, "a parameter is not text"))
	}
	if !storable(append(r.UILocales, r.LoginHint)...) {
		r.UILocales, r.LoginHint = nil, ""
	}
	request, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode authorization request: %w", err)
	}
	st, err := json.Marshal(state{Tries: map[string]int{}, Input: keepable(r.LoginHint)})
	if err != nil {
		return fmt.Errorf("encode conversation: %w", err)
	}
	browser := e.cookies.Get(c.Request(), browserCookie)
	if browser == "" || len(browser) > maxCookie {
		browser = id.NewHandle(e.d.Random)
		e.cookies.Set(c.Response(), browserCookie, browser, browserCookieAge)
	}
	v := &visit{c: c, t: t, now: e.d.Clock.Now(), handle: id.Short(e.d.Random, handleBytes)}
	tag, err := e.d.DB.Exec(c.Request().Context(), insertConversation, r.Pushed, v.now.Add(t.LoginTTL()), secret.Hash(v.handle), t.ID, cl.ID,
		secret.Hash(browser), request, st, v.now)
	if err != nil {
		return fmt.Errorf("begin conversation: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return authorization.Spent()
	}
	return v.goTo("identifier")
}

// storable tells whether texts survive a jsonb column unchanged: it holds
// neither invalid UTF-8 nor U+0000.
func storable(texts ...string) bool {
	for _, s := range texts {
		if !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			return false
		}
	}
	return true
}
