package preset

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/page"
	"versola/modules/edge/provider"
	"versola/modules/edge/session"
	"versola/platform/clock"
	"versola/platform/httpserver"
	"versola/platform/id"
	"versola/platform/postgres"
	"versola/platform/secret"
)

const (
	// BrowserCookie is the base name of the cookie that binds logins to the
	// browser that started them.
	BrowserCookie = "versola_edge_login"
	// slack is how much longer than auth's own conversation a login may take.
	slack = time.Minute
	// maxPassed bounds a parameter that is passed on to auth.
	maxPassed = 1024
)

// Redeemer exchanges authorization codes.
type Redeemer interface {
	Redeem(ctx context.Context, p *catalog.Preset, code provider.Code) (provider.Tokens, error)
}

// Sessions stores the sessions of those who signed in.
type Sessions interface {
	Create(ctx context.Context, p *catalog.Preset, t provider.Tokens, oldCookie string) (cookie string, ttl time.Duration, err error)
}

// Deps are what the handlers need.
type Deps struct {
	DB       *postgres.DB
	Catalog  *catalog.Holder
	EdgeID   string
	Keys     []secret.Key
	Clock    clock.Clock
	Random   io.Reader
	Cookies  httpserver.Cookies
	Redeemer Redeemer
	Sessions Sessions
}

// Handler signs browsers in.
type Handler struct {
	d    Deps
	keys *secret.Keyring
}

// New makes the handlers. Errors: unusable keys.
func New(d Deps) (*Handler, error) {
	keys, err := secret.NewKeyring(d.Keys, "edge/login")
	if err != nil {
		return nil, fmt.Errorf("make login keyring: %w", err)
	}
	return &Handler{d, keys}, nil
}

// pending is what a login keeps sealed until it completes.
type pending struct {
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	ReturnTo string `json:"r,omitempty"`
	MaxAge   *int64 `json:"m,omitempty"`
}

func sealContext(state []byte) string { return "edge_login/" + hex.EncodeToString(state) }

// find returns a preset of this edge.
func (h *Handler) find(name string) (*catalog.Preset, error) {
	current := h.d.Catalog.Current()
	if current == nil {
		return nil, &page.Problem{Status: http.StatusServiceUnavailable, Title: "Starting up",
			Text: "The service has no configuration yet. Please try again in a moment.", Reason: "catalog_missing"}
	}
	p, ok := current.Preset(h.d.EdgeID, name)
	if !ok {
		return nil, &page.Problem{Status: http.StatusNotFound, Title: "Not found", Text: "There is no such sign-in here.", Reason: "preset_unknown"}
	}
	return p, nil
}

const insertSQL = `
INSERT INTO edge.login (state_hash, browser_hash, tenant_id, preset_id, sealed, created_at, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7)`

// Login handles GET /login/{preset}.
func (h *Handler) Login(c echo.Context) error {
	p, err := h.find(c.Param("preset"))
	if err != nil {
		return err
	}
	asked, err := readLogin(c.QueryParams())
	if err != nil {
		return err
	}
	browser := h.d.Cookies.Get(c.Request(), BrowserCookie)
	if _, ok := session.Hash(browser); !ok {
		browser = id.NewHandle(h.d.Random)
	}
	state := id.NewHandle(h.d.Random)
	keep := pending{Nonce: id.NewHandle(h.d.Random), Verifier: id.NewHandle(h.d.Random), ReturnTo: asked.returnTo, MaxAge: asked.maxAge}
	plain, err := json.Marshal(keep)
	if err != nil {
		return fmt.Errorf("encode login: %w", err)
	}
	stateHash, now := secret.Hash(state), h.d.Clock.Now()
	ttl := p.Owner.LoginTTL() + slack
	_, err = h.d.DB.Exec(c.Request().Context(), insertSQL, stateHash, secret.Hash(browser), p.Owner.ID, p.ID,
		h.keys.Seal(plain, sealContext(stateHash)), now, now.Add(ttl))
	if err != nil {
		return fmt.Errorf("store login: %w", err)
	}
	h.d.Cookies.Set(c.Response(), BrowserCookie, browser, ttl)
	q := asked.passed
	q.Set("response_type", "code")
	q.Set("client_id", p.Client)
	q.Set("redirect_uri", p.RedirectURI)
	q.Set("scope", scope(p))
	q.Set("state", state)
	q.Set("nonce", keep.Nonce)
	q.Set("code_challenge", challenge(keep.Verifier))
	q.Set("code_challenge_method", "S256")
	return redirect(c, provider.AuthorizeURL(p.Owner)+"?"+q.Encode())
}

// scope always has openid: a session needs an ID token.
func scope(p *catalog.Preset) string {
	scopes := strings.Join(p.Scopes, " ")
	for _, s := range p.Scopes {
		if s == "openid" {
			return scopes
		}
	}
	return strings.TrimSpace("openid " + scopes)
}

// challenge is the S256 code challenge of a verifier (RFC 7636 section 4.2).
func challenge(verifier string) string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

type loginRequest struct {
	returnTo string
	maxAge   *int64
	passed   url.Values // to auth
}

func readLogin(q url.Values) (loginRequest, error) {
	asked := loginRequest{passed: url.Values{}}
	for name, values := range q {
		if len(values) != 1 {
			return loginRequest{}, badLogin("The parameter %q is there twice.", name)
		}
		value := values[0]
		switch name {
		case "return_to":
			to, ok := ReturnPath(value)
			if !ok {
				return loginRequest{}, badLogin("The parameter %q is not a path of this site.", name)
			}
			asked.returnTo = to
		case "max_age":
			seconds, err := strconv.ParseInt(value, 10, 64)
			if err != nil || seconds < 0 {
				return loginRequest{}, badLogin("The parameter %q is not a number of seconds.", name)
			}
			asked.maxAge = &seconds
			asked.passed.Set(name, strconv.FormatInt(seconds, 10))
		case "acr_values", "prompt", "login_hint", "ui_locales":
			if len(value) > maxPassed || strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				return loginRequest{}, badLogin("The parameter %q is not usable.", name)
			}
			asked.passed.Set(name, value)
		}
	}
	return asked, nil
}

func badLogin(format, name string) error {
	return &page.Problem{Status: http.StatusBadRequest, Title: "This link does not work", Text: fmt.Sprintf(format, name), Reason: "login_parameter"}
}

const claimSQL = `
DELETE FROM edge.login WHERE state_hash = $1 AND browser_hash = $2 AND expires_at > $3
RETURNING tenant_id, preset_id, sealed`

// Complete handles GET /complete.
func (h *Handler) Complete(c echo.Context) error {
	ctx := c.Request().Context()
	a, err := readAnswer(c.QueryParams())
	if err != nil {
		return err
	}
	p, login, err := h.claim(c, a.state)
	if err != nil {
		return err
	}
	httpserver.Annotate(c, slog.String("preset", p.ID), slog.String("tenant", p.Owner.ID))
	// The issuer comes first: with another's answer nothing else of it counts
	// (RFC 9207 section 2.4).
	if a.issuer != p.Owner.Issuer {
		return h.fail(c, p, "invalid_issuer", fmt.Errorf("answer of issuer %q", a.issuer))
	}
	if a.err != "" {
		return h.fail(c, p, a.err, nil)
	}
	if a.code == "" {
		return h.fail(c, p, "invalid_response", errors.New("answer without a code"))
	}
	tokens, err := h.d.Redeemer.Redeem(ctx, p, provider.Code{
		Code: a.code, Verifier: secret.Text(login.Verifier), Nonce: login.Nonce, MaxAge: login.MaxAge,
	})
	switch {
	case errors.Is(err, provider.ErrGrant):
		return h.fail(c, p, "invalid_grant", err)
	case errors.Is(err, provider.ErrAnswer):
		return h.fail(c, p, "invalid_response", err)
	case err != nil:
		return unavailable(p, login, err)
	}
	base := session.CookieBase(p)
	cookie, ttl, err := h.d.Sessions.Create(ctx, p, tokens, h.d.Cookies.Get(c.Request(), base))
	if err != nil {
		return unavailable(p, login, err)
	}
	h.d.Cookies.Set(c.Response(), base, cookie, ttl)
	return redirect(c, destination(p, login.ReturnTo))
}

// claim takes the login that belongs to a state and this browser; it works
// once.
func (h *Handler) claim(c echo.Context, state string) (*catalog.Preset, pending, error) {
	spent := &page.Problem{Status: http.StatusBadRequest, Title: "This sign-in is over",
		Text:   "It was completed already, took too long, or was started in another browser. Please start again from the application.",
		Reason: "login_unknown"}
	browser := h.d.Cookies.Get(c.Request(), BrowserCookie)
	if browser == "" {
		return nil, pending{}, spent
	}
	stateHash := secret.Hash(state)
	var tenant, preset string
	var sealed []byte
	err := h.d.DB.QueryRow(c.Request().Context(), claimSQL, stateHash, secret.Hash(browser), h.d.Clock.Now()).Scan(&tenant, &preset, &sealed)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, pending{}, spent
	case err != nil:
		return nil, pending{}, fmt.Errorf("claim login: %w", err)
	}
	plain, err := h.keys.Open(sealed, sealContext(stateHash))
	if err != nil {
		return nil, pending{}, fmt.Errorf("open login: %w", err)
	}
	var login pending
	if err := json.Unmarshal(plain, &login); err != nil {
		return nil, pending{}, fmt.Errorf("read login: %w", err)
	}
	p, err := h.find(preset)
	if err != nil {
		return nil, pending{}, err
	}
	if p.Owner.ID != tenant {
		return nil, pending{}, spent
	}
	return p, login, nil
}

// answer is an authorization response (RFC 6749 section 4.1.2).
type answer struct{ state, issuer, code, err string }

func readAnswer(q url.Values) (answer, error) {
	bad := func(text string) error {
		return &page.Problem{Status: http.StatusBadRequest, Title: "This sign-in cannot be completed", Text: text, Reason: "answer_malformed"}
	}
	for _, name := range []string{"state", "iss", "code", "error"} {
		if len(q[name]) > 1 {
			return answer{}, bad(fmt.Sprintf("The parameter %q is there twice.", name))
		}
	}
	a := answer{state: q.Get("state"), issuer: q.Get("iss"), code: q.Get("code"), err: q.Get("error")}
	if a.state == "" {
		return answer{}, bad(`The parameter "state" is missing. Please start again from the application.`)
	}
	if a.err != "" && !errorCode(a.err) {
		a.err = "server_error"
	}
	return a, nil
}

// errorCode tells whether s looks like a registered error code: nothing else is
// handed on to the application.
func errorCode(s string) bool {
	if len(s) > 64 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return (r < 'a' || r > 'z') && r != '_' })
}

// fail sends the browser back to the application with an error code.
func (h *Handler) fail(c echo.Context, p *catalog.Preset, code string, cause error) error {
	httpserver.Annotate(c, slog.String("reason", "login_failed"), slog.String("oauth_error", code))
	if cause != nil {
		httpserver.NoteError(c, cause)
	}
	return redirect(c, failure(p, code))
}

// unavailable offers to start over: the session at auth stands, so it takes one
// click and no new sign-in.
func unavailable(p *catalog.Preset, login pending, cause error) error {
	retry := "/login/" + url.PathEscape(p.ID)
	if login.ReturnTo != "" {
		retry += "?return_to=" + url.QueryEscape(login.ReturnTo)
	}
	return &page.Problem{Status: http.StatusServiceUnavailable, Title: "Signing in is not possible right now",
		Text: "A part of the service cannot be reached. Nothing is lost: please try again in a moment.", Reason: "login_unavailable", Retry: retry, Cause: cause}
}

func redirect(c echo.Context, to string) error {
	h := c.Response().Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	return c.Redirect(http.StatusSeeOther, to)
}
