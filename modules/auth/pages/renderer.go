package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"mime"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/auth/tenant"
	"versola/modules/central/catalog/texts"
	"versola/platform/httpserver"
)

//go:embed templates/*.html
var templateFiles embed.FS

//go:embed assets/*
var assetFiles embed.FS

// assetsPath is where static files are, at the issuer's root: one address for
// all tenants, so that a browser keeps one copy.
const assetsPath = "/assets/"

// forever is for addresses whose content never changes.
const forever = "public, max-age=31536000, immutable"

// Renderer renders pages. It is safe for concurrent use.
type Renderer struct {
	templates map[string]*template.Template
	assets    map[string]asset // by public name
	names     map[string]string
	secure    bool // served on https
}

type asset struct {
	contentType string
	body        []byte
}

// New prepares all pages. publicURL is the issuer; on https the pages tell
// browsers to stay there.
func New(publicURL string) (*Renderer, error) {
	r := &Renderer{templates: map[string]*template.Template{}, assets: map[string]asset{}, names: map[string]string{},
		secure: strings.HasPrefix(publicURL, "https://")}
	if err := r.loadAssets(); err != nil {
		return nil, err
	}
	entries, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, fmt.Errorf("list templates: %w", err)
	}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name == "layout" {
			continue
		}
		t, err := template.New("layout.html").ParseFS(templateFiles, "templates/layout.html", path.Join("templates", e.Name()))
		if err != nil {
			return nil, fmt.Errorf("parse page %s: %w", name, err)
		}
		r.templates[name] = t
	}
	return r, nil
}

func (r *Renderer) loadAssets() error {
	entries, err := assetFiles.ReadDir("assets")
	if err != nil {
		return fmt.Errorf("list assets: %w", err)
	}
	for _, e := range entries {
		body, err := assetFiles.ReadFile(path.Join("assets", e.Name()))
		if err != nil {
			return fmt.Errorf("read asset: %w", err)
		}
		sum := sha256.Sum256(body)
		ext := path.Ext(e.Name())
		public := strings.TrimSuffix(e.Name(), ext) + "." + hex.EncodeToString(sum[:6]) + ext
		r.assets[public] = asset{mime.TypeByExtension(ext), body}
		r.names[e.Name()] = assetsPath + public
	}
	return nil
}

// Mount registers the static files and the style sheets of themes on a
// tenant's group.
func (r *Renderer) Mount(g *echo.Group) {
	g.GET(assetsPath+":file", r.asset)
	g.HEAD(assetsPath+":file", r.asset)
	g.GET(themesPath+":file", sheet)
	g.HEAD(themesPath+":file", sheet)
}

func (r *Renderer) asset(c echo.Context) error {
	a, ok := r.assets[c.Param("file")]
	if !ok {
		return echo.ErrNotFound
	}
	h := c.Response().Header()
	h.Set("Cache-Control", forever)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	return c.Blob(http.StatusOK, a.contentType, a.body)
}

// View is a page to be rendered.
type View struct {
	Status              int    // 0: 200
	Name                string // the template
	Title               string // key of the text
	Locales             []string
	Client              string   // the client's name for people
	PolicyURI, TermsURI string   // of the client; empty: no link
	Theme               string   // of the client; empty: the tenant's
	Logo                string   // of the client; empty: the theme's, or the product's mark
	Targets             []string // where forms of the page may redirect to
	Frames              []string // what the page shows of others, unseen

	// Forms post to Base + "/" + path with these.
	Base    string // /login/{handle}, with the tenant's prefix
	CSRF    string
	Version int

	Error     string   // key of the text; empty: none
	ErrorArgs []string // pairs
	Data      any      // the template's own

	// Set by Render.
	Locale    string
	RequestID string
	CSS, JS   string
	ThemeCSS  string // address of the theme's style sheet; empty: none
	texts     *texts.Texts
}

// T returns a text in the page's language; templates call it.
func (v View) T(key string, pairs ...any) string {
	args := make([]string, len(pairs))
	for i, p := range pairs {
		args[i] = fmt.Sprint(p)
	}
	return v.texts.Get(v.Locale, key, args...)
}

// ErrorText returns the error in the page's language, or "".
func (v View) ErrorText() string {
	if v.Error == "" {
		return ""
	}
	return v.texts.Get(v.Locale, v.Error, v.ErrorArgs...)
}

// wordsOf returns the words of a request's tenant, or the product's where the
// request is of none.
func wordsOf(c echo.Context) *texts.Texts {
	if t, ok := tenant.Lookup(c); ok {
		return t.Texts
	}
	return texts.Product()
}

// Locale returns the language of the pages of a request.
func (r *Renderer) Locale(c echo.Context, uiLocales []string) string {
	return wordsOf(c).Locale(uiLocales, c.Request().Header.Get("Accept-Language"))
}

// Render writes a page.
func (r *Renderer) Render(c echo.Context, v View) error {
	t, ok := r.templates[v.Name]
	if !ok {
		return fmt.Errorf("render page: no template %q", v.Name)
	}
	v.texts, v.Locale = wordsOf(c), r.Locale(c, v.Locales)
	v.RequestID, v.CSS, v.JS = httpserver.RequestID(c), r.names["page.css"], r.names["page.js"]
	if v.Status == 0 {
		v.Status = http.StatusOK
	}
	dress(c, &v)
	var b bytes.Buffer
	if err := t.Execute(&b, v); err != nil {
		return fmt.Errorf("render page %s: %w", v.Name, err)
	}
	r.headers(c.Response().Header(), v.Targets, v.Frames, v.Logo)
	return c.HTMLBlob(v.Status, b.Bytes())
}

func (r *Renderer) headers(h http.Header, targets, frames []string, logo string) {
	h.Set("Content-Security-Policy", policy(targets, frames, logo))
	h.Set("Cache-Control", "no-store")
	h.Set("Pragma", "no-cache")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=()")
	h.Add("Vary", "Accept-Language")
	if r.secure {
		h.Set("Strict-Transport-Security", "max-age=63072000; includeSubDomains")
	}
}

// policy returns the content security policy of a page whose forms may end, by
// redirects, at targets, and which shows frames and a logo, if any.
func policy(targets, frames []string, logo string) string {
	form := "form-action 'self'"
	for _, t := range targets {
		if s := formSource(t); s != "" && !strings.Contains(form+" ", " "+s+" ") {
			form += " " + s
		}
	}
	var frame string
	for _, f := range frames {
		if s := originSource(f); !strings.Contains(frame+" ", s+" ") {
			frame += s
		}
	}
	if frame != "" {
		frame = "frame-src" + frame + "; "
	}
	return frame + "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:" + originSource(logo) + "; font-src 'self'; base-uri 'none'; frame-ancestors 'none'; " + form
}

// formSource returns the source expression of an address (CSP Level 3 section
// 2.3.1). Browsers hold the whole chain of redirects behind a form to the
// policy, and where a client sends the browser on from its own redirect URI is
// not ours to know: so it is the scheme and not the origin. A client on plain
// http is on a developer's machine.
func formSource(target string) string {
	u, err := url.Parse(target)
	switch {
	case err != nil || u.Scheme == "":
		return ""
	case u.Scheme == "http":
		return "http: https:"
	}
	// url.Parse lets a scheme be letters, digits and "+-." only.
	return u.Scheme + ":"
}

// originSource returns the origin of an address of the web, after a space.
func originSource(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || strings.ContainsAny(u.Host, " ;,'\"") {
		return ""
	}
	return " " + u.Scheme + "://" + u.Host
}

// failure is the data of the page "failure".
type failure struct {
	Lead, Code, Description string
}

// Error writes the page of a refusal: a friendly text, and code and description
// for the developer. An empty code shows none.
func (r *Renderer) Error(c echo.Context, status int, code, description string) error {
	v := View{Status: status, Name: "failure", Title: "failure.title", Data: failure{"failure.lead", code, description}}
	switch status {
	case http.StatusServiceUnavailable, http.StatusTooManyRequests:
		v.Title, v.Data = "busy.title", failure{"busy.lead", code, description}
	case http.StatusNotFound:
		v.Title, v.Data = "missing.title", failure{"missing.lead", code, description}
	}
	v.Locales = strings.Fields(c.QueryParam("ui_locales"))
	return r.Render(c, v)
}

// Notice writes a page that only tells something; name is the prefix of its
// texts ("gone", "foreign", "cookies", "form").
func (r *Renderer) Notice(c echo.Context, status int, name string, locales []string) error {
	return r.Render(c, View{Status: status, Name: "failure", Title: name + ".title", Locales: locales, Data: failure{Lead: name + ".lead"}})
}

// WriteError answers err with a page: a passing condition as 503 with
// Retry-After, echo's errors by their status, everything else as 500 with
// nothing of its text.
func (r *Renderer) WriteError(c echo.Context, err error) error {
	p := httpserver.AsProblem(err)
	h := c.Response().Header()
	if p.Status == http.StatusServiceUnavailable && h.Get("Retry-After") == "" {
		h.Set("Retry-After", httpserver.RetryAfter)
	}
	return r.Error(c, p.Status, "", "")
}

// SignedOut writes the page after a logout that leads nowhere else.
func (r *Renderer) SignedOut(c echo.Context) error {
	return r.Render(c, View{Name: "signed_out", Title: "signed_out.title", Locales: strings.Fields(c.QueryParam("ui_locales"))})
}

// signingOut is the data of the page "signing_out". Onward is an address that is
// registered with the client, of whatever scheme, or empty.
type signingOut struct {
	Frames []string
	Onward template.URL
}

// SigningOut writes the page that opens the frames of clients and then goes
// onward, if that is anywhere.
func (r *Renderer) SigningOut(c echo.Context, frames []string, onward string) error {
	return r.Render(c, View{Name: "signing_out", Title: "signed_out.title", Locales: strings.Fields(c.QueryParam("ui_locales")), Frames: frames,
		Data: signingOut{frames, template.URL(onward)}}) //nolint:gosec // registration refuses schemes that run anything
}

// ConfirmLogout writes the page that asks whether to sign out. Its form posts
// hidden and csrf (as "csrf") to the tenant's /logout; who wants to stay just
// leaves.
func (r *Renderer) ConfirmLogout(c echo.Context, csrf string, hidden url.Values) error {
	prefix := ""
	if t, ok := tenant.Lookup(c); ok {
		prefix = t.PathPrefix
	}
	v := View{Name: "logout", Title: "logout.title", CSRF: csrf, Base: prefix, Locales: strings.Fields(hidden.Get("ui_locales")), Data: hidden}
	if to := hidden.Get("post_logout_redirect_uri"); to != "" {
		v.Targets = []string{to}
	}
	return r.Render(c, v)
}

// onward is the data of the page "forward".
type onward struct {
	Action string
	Fields url.Values
}

// Forward writes the page whose form posts fields to a client's address: by
// itself, or where the browser runs no script by the person's hand.
func (r *Renderer) Forward(c echo.Context, action string, fields url.Values, locales []string) error {
	return r.Render(c, View{Name: "forward", Title: "forward.title", Locales: locales, Targets: []string{action}, Data: onward{action, fields}})
}

// SetRetryAfter tells a client when to come back.
func SetRetryAfter(c echo.Context, seconds int) {
	c.Response().Header().Set("Retry-After", strconv.Itoa(seconds))
}
