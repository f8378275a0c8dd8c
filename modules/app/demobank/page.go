package demobank

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"net/http"
	"net/url"
)

//go:embed app/index.html
var pageHTML []byte

//go:embed app/app.js
var pageScript []byte

//go:embed app/app.css
var pageStyle []byte

func mountPage(mux *http.ServeMux, issuer string) {
	formTargets := "'self'"
	if u, err := url.Parse(issuer); err == nil && u.Host != "" {
		formTargets += " " + u.Scheme + "://" + u.Host
	}
	policy := "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; form-action " + formTargets +
		"; base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
	mux.Handle("GET /app/{$}", file(pageHTML, "text/html; charset=utf-8", policy))
	mux.Handle("GET /app/app.js", file(pageScript, "text/javascript; charset=utf-8", policy))
	mux.Handle("GET /app/app.css", file(pageStyle, "text/css; charset=utf-8", policy))
}

// file answers with one of the page's files, which browsers ask for again only
// to hear that it is unchanged.
func file(content []byte, contentType, policy string) http.Handler {
	sum := sha256.Sum256(content)
	tag := `"` + hex.EncodeToString(sum[:8]) + `"`
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Type", contentType)
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", tag)
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(content)
	})
}
