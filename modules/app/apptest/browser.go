package apptest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Browser keeps cookies, follows redirects and submits forms.
type Browser struct {
	t      testing.TB
	Client *http.Client
	// Last is the page that was loaded last.
	Last *Page
	// StopAt, when set, ends a chain of redirects at an address with that
	// prefix (a relying party's callback that no server answers).
	StopAt string
}

// Page is a loaded page.
type Page struct {
	Status int
	URL    *url.URL
	Header http.Header
	Body   string
	// Location is where a stopped redirect would have gone.
	Location string
}

// NewBrowser returns a browser without any cookies.
func NewBrowser(t testing.TB) *Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	b := &Browser{t: t}
	b.Client = &http.Client{Jar: jar, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
		if b.StopAt != "" && strings.HasPrefix(r.URL.String(), b.StopAt) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	return b
}

// Open navigates to an address.
func (b *Browser) Open(address string) *Page {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	return b.Do(r)
}

// HasCookie tells whether the browser would send a cookie of that name to an
// address.
func (b *Browser) HasCookie(address, name string) bool {
	b.t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		b.t.Fatal(err)
	}
	return slices.ContainsFunc(b.Client.Jar.Cookies(u), func(c *http.Cookie) bool { return c.Name == name })
}

// Do sends a request with the browser's cookies.
func (b *Browser) Do(r *http.Request) *Page {
	b.t.Helper()
	resp, err := b.Client.Do(r)
	if err != nil {
		b.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatalf("%s %s: %v", r.Method, r.URL, err)
	}
	b.Last = &Page{Status: resp.StatusCode, URL: resp.Request.URL, Header: resp.Header, Body: string(body), Location: resp.Header.Get("Location")}
	return b.Last
}

// Submit fills in and submits the form of the last page that has all the given
// fields; its hidden and prefilled fields go along.
func (b *Browser) Submit(fields map[string]string) *Page {
	b.t.Helper()
	return b.SubmitTo("", fields)
}

// SubmitTo is [Browser.Submit] of the form whose action ends with a suffix.
func (b *Browser) SubmitTo(suffix string, fields map[string]string) *Page {
	b.t.Helper()
	form, ok := b.findForm(suffix, fields)
	if !ok {
		b.t.Fatalf("no form with fields %v and action %q on %s (status %d):\n%s", fields, suffix, b.Last.URL, b.Last.Status, b.Last.Body)
	}
	for k, v := range fields {
		form.values.Set(k, v)
	}
	action, err := b.Last.URL.Parse(form.action)
	if err != nil {
		b.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, action.String(), strings.NewReader(form.values.Encode()))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Accept", "text/html")
	r.Header.Set("Origin", b.Last.URL.Scheme+"://"+b.Last.URL.Host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Sec-Fetch-Mode", "navigate")
	return b.Do(r)
}

type form struct {
	action string
	values url.Values
}

func (b *Browser) findForm(suffix string, fields map[string]string) (form, bool) {
	root, err := html.Parse(strings.NewReader(b.Last.Body))
	if err != nil {
		b.t.Fatal(err)
	}
	for n := range root.Descendants() {
		if n.Type != html.ElementNode || n.Data != "form" {
			continue
		}
		f := form{action: attr(n, "action"), values: url.Values{}}
		for in := range n.Descendants() {
			if in.Type == html.ElementNode && in.Data == "input" && attr(in, "name") != "" && attr(in, "type") != "submit" {
				f.values.Set(attr(in, "name"), attr(in, "value"))
			}
		}
		has := strings.HasSuffix(f.action, suffix)
		for k := range fields {
			has = has && f.values.Has(k)
		}
		if has {
			return f, true
		}
	}
	return form{}, false
}

func attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}
