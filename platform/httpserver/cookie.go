package httpserver

import (
	"net/http"
	"strings"
	"time"
)

// Cookies writes the cookies of one public URL. On https they are Secure and
// their names carry the __Host- prefix (RFC 6265bis), which ties them to this
// very host; on the plain http of a laptop neither is possible for every
// client, and production refuses plain http.
type Cookies struct{ secure bool }

// NewCookies makes the cookies of a public URL.
func NewCookies(publicURL string) Cookies {
	return Cookies{secure: strings.HasPrefix(publicURL, "https://")}
}

// Name returns the name under which base is kept.
func (k Cookies) Name(base string) string {
	if k.secure {
		return "__Host-" + base
	}
	return base
}

// Get returns a cookie's value, or "". Where it was sent twice, something
// planted one of them, so neither counts.
func (k Cookies) Get(r *http.Request, base string) string {
	value, seen, name := "", false, k.Name(base)
	for _, c := range r.Cookies() {
		if c.Name == name {
			if seen && value != c.Value {
				return ""
			}
			value, seen = c.Value, true
		}
	}
	return value
}

// Set writes a cookie; maxAge 0 makes it end with the browser's session.
func (k Cookies) Set(w http.ResponseWriter, base, value string, maxAge time.Duration) {
	http.SetCookie(w, &http.Cookie{Name: k.Name(base), Value: value, Path: "/", HttpOnly: true, Secure: k.secure,
		SameSite: http.SameSiteLaxMode, MaxAge: int(maxAge.Seconds())})
}

// Clear removes a cookie.
func (k Cookies) Clear(w http.ResponseWriter, base string) {
	http.SetCookie(w, &http.Cookie{Name: k.Name(base), Path: "/", HttpOnly: true, Secure: k.secure,
		SameSite: http.SameSiteLaxMode, MaxAge: -1})
}
