package edge_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"versola/modules/central/catalog"
)

// socketUpstream says back what it hears after a handshake.
func socketUpstream(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "websocket" {
			_, _ = io.WriteString(w, "plain")
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nX-Subject: " + r.Header.Get("X-Versola-Subject") +
			"\r\nSet-Cookie: versola_edge_demo=planted\r\n\r\n")
		_ = rw.Flush()
		_, _ = io.Copy(conn, rw)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// socket is one side of an open connection.
type socket struct {
	net.Conn
	*bufio.Reader
	*http.Response
}

// open sends a handshake; more are header lines.
func open(t *testing.T, e *running, more ...string) *socket {
	t.Helper()
	conn, err := net.Dial("tcp", e.Listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	must(t, conn.SetDeadline(time.Now().Add(20*time.Second))) //nolint:forbidigo // a socket's deadline is real time
	_, err = io.WriteString(conn, "GET /resources/bank/stream HTTP/1.1\r\nHost: edge.test\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"+strings.Join(more, "\r\n")+"\r\n\r\n")
	must(t, err)
	r := bufio.NewReader(conn)
	res, err := http.ReadResponse(r, nil)
	must(t, err)
	return &socket{conn, r, res}
}

// says sends a word and waits for it to come back.
func (s *socket) says(t *testing.T, word string) {
	t.Helper()
	_, err := io.WriteString(s.Conn, word)
	must(t, err)
	got := make([]byte, len(word))
	if _, err := io.ReadFull(s.Reader, got); err != nil || string(got) != word {
		t.Fatalf("said %q, heard %q, %v", word, got, err)
	}
}

// closed waits for the other side to hang up.
func (s *socket) closed(t *testing.T, why string) {
	t.Helper()
	if n, err := io.Copy(io.Discard, s.Reader); err != nil && strings.Contains(err.Error(), "timeout") {
		t.Errorf("%s: still open, %d octets, %v", why, n, err)
	}
}

func socketWorld(t *testing.T) (*world, *running) {
	w := newWorld(t)
	w.snapshot.Resources[0].Upstream.URL = socketUpstream(t)
	w.rule("stream", func(e *catalog.EndpointSpec) { e.Websocket = true })
	return w, w.edge()
}

func TestSocket_OpensWhereAllowedAndCarriesBothWays(t *testing.T) {
	t.Parallel()
	w, e := socketWorld(t)
	token := "Authorization: Bearer " + w.auth.bearer(nil)
	s := open(t, e, token, "Upgrade: websocket", "X-Versola-Subject: root")
	if s.StatusCode != http.StatusSwitchingProtocols || s.Response.Header.Get("X-Subject") != subject || s.Response.Header.Get("Set-Cookie") != "" {
		t.Fatalf("%d %v", s.StatusCode, s.Response.Header)
	}
	s.says(t, "hello")
	s.says(t, strings.Repeat("long ", 10_000))
	for name, c := range map[string]struct {
		lines  []string
		status int
	}{
		"nobody":           {[]string{"Upgrade: websocket"}, http.StatusUnauthorized},
		"another protocol": {[]string{token, "Upgrade: tls/1.0"}, http.StatusNotImplemented},
		"two protocols":    {[]string{token, "Upgrade: websocket, tls/1.0"}, http.StatusNotImplemented},
		"two headers":      {[]string{token, "Upgrade: websocket", "Upgrade: tls/1.0"}, http.StatusNotImplemented},
		"a call like any":  {[]string{token}, http.StatusOK},
		"not permitted":    {[]string{"Authorization: Bearer " + w.auth.bearer(func(c map[string]any) { c["roles"] = []string{} }), "Upgrade: websocket"}, http.StatusForbidden},
	} {
		if s := open(t, e, c.lines...); s.StatusCode != c.status {
			t.Errorf("%s: %d", name, s.StatusCode)
		}
	}
	w.rule("stream", func(e *catalog.EndpointSpec) { e.Websocket = false })
	if s := open(t, e, token, "Upgrade: websocket"); s.StatusCode != http.StatusNotImplemented {
		t.Errorf("at an endpoint that does not allow it: %d", s.StatusCode)
	}
}

// A page of any site can open a WebSocket, and the browser adds the cookie.
func TestSocket_PageOfAnotherSiteCannotOpenOneWithTheCookie(t *testing.T) {
	t.Parallel()
	w, e := socketWorld(t)
	b := newBrowser(t)
	b.signIn(w, e)
	cookie := "Cookie: " + sessionCookie + "=" + b.cookies[sessionCookie]
	for origin, status := range map[string]int{
		publicURL: http.StatusSwitchingProtocols, "https://evil.example": http.StatusForbidden, "null": http.StatusForbidden, page: http.StatusForbidden, "": http.StatusForbidden,
	} {
		lines := []string{cookie, "Upgrade: websocket"}
		if origin != "" {
			lines = append(lines, "Origin: "+origin)
		}
		if s := open(t, e, lines...); s.StatusCode != status {
			t.Errorf("from %q: %d, want %d", origin, s.StatusCode, status)
		}
	}
	w.shared(true)
	if s := open(t, e, cookie, "Upgrade: websocket", "Origin: "+page); s.StatusCode != http.StatusSwitchingProtocols {
		t.Errorf("from a listed page: %d", s.StatusCode)
	}
}

func TestSocket_ClosesWhenItsCallerLosesAccess(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(w *world, e *running, b *browser){
		"the session is revoked": func(w *world, _ *running, _ *browser) { w.auth.revoke("session", "sid-1") },
		"a logout": func(_ *world, e *running, b *browser) {
			b.do(http.MethodPost, e.URL+"/logout/demo", nil, "Sec-Fetch-Site", "same-origin")
		},
		"the role loses it": func(w *world, _ *running, _ *browser) {
			w.snapshot.Permissions[0].Endpoints = []string{"bank:list"}
			w.compile()
		},
		"the endpoint": func(w *world, _ *running, _ *browser) {
			w.rule("stream", func(e *catalog.EndpointSpec) { e.Websocket = false })
		},
		"a rule": func(w *world, _ *running, _ *browser) { w.allow("stream", "false") },
		"the client is disabled": func(w *world, _ *running, _ *browser) {
			w.snapshot.Clients[0].Disabled = true
			w.compile()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, e := socketWorld(t)
			b := newBrowser(t)
			b.signIn(w, e)
			s := open(t, e, "Cookie: "+sessionCookie+"="+b.cookies[sessionCookie], "Upgrade: websocket", "Origin: "+publicURL)
			s.says(t, "hello")
			lose(w, e, b)
			s.closed(t, name)
		})
	}
}

// A token ends what it opened; a session is refreshed and goes on.
func TestSocket_LivesAsLongAsWhatOpenedIt(t *testing.T) {
	t.Parallel()
	w, e := socketWorld(t)
	b := newBrowser(t)
	b.signIn(w, e)
	byToken := open(t, e, "Authorization: Bearer "+w.auth.bearer(nil), "Upgrade: websocket")
	byCookie := open(t, e, "Cookie: "+sessionCookie+"="+b.cookies[sessionCookie], "Upgrade: websocket", "Origin: "+publicURL)
	byToken.says(t, "hello")
	byCookie.says(t, "hello")
	w.clock.Advance(6 * time.Minute)
	byToken.closed(t, "the token has expired")
	eventually(t, "the session to be refreshed", func() bool {
		n := 0
		w.auth.set(func() { n = w.auth.refreshes })
		return n > 0
	})
	byCookie.says(t, "still here")
}
