package outbound_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"versola/platform/outbound"
)

func TestAllowed_OnlyThePublicInternetUnlessPrivateIsOpened(t *testing.T) {
	t.Parallel()
	const yes, no, private = "public", "never", "private"
	cases := map[string][]string{
		yes: {
			"8.8.8.8", "1.1.1.1", "100.63.255.255", "100.128.0.1", "172.15.0.1", "172.32.0.1", "192.0.1.1",
			"2606:4700::1111", "2a00:1450::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
		},
		private: {
			"127.0.0.1", "127.255.255.254", "::1", "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
			"100.64.0.1", "100.127.255.255", "fc00::1", "fdff::1",
			"::ffff:127.0.0.1", "::ffff:10.1.2.3", "64:ff9b::7f00:1", "64:ff9b::10.0.0.1",
		},
		no: {
			"0.0.0.0", "0.1.2.3", "::", "169.254.169.254", "::ffff:169.254.169.254", "64:ff9b::169.254.169.254",
			"fe80::1", "fe80::1%eth0", "fec0::1", "224.0.0.1", "239.255.255.250", "255.255.255.255", "240.0.0.1", "ff02::1",
			"192.0.0.1", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1",
			"::127.0.0.1", "::8.8.8.8", "64:ff9b:1::7f00:1", "2002:7f00:1::", "2002:808:808::", "2001::1", "2001:db8::1",
			"100::1", "3fff::1", "5f00::1", "fd00:ec2::254", "fd20:ce::254",
		},
	}
	for class, addrs := range cases {
		for _, text := range addrs {
			addr := netip.MustParseAddr(text)
			if got, want := outbound.Allowed(addr, false) == nil, class == yes; got != want {
				t.Errorf("%s (%s): allowed = %t, want %t", text, class, got, want)
			}
			if got, want := outbound.Allowed(addr, true) == nil, class != no; got != want {
				t.Errorf("%s (%s), private opened: allowed = %t, want %t", text, class, got, want)
			}
		}
	}
	if err := outbound.Allowed(netip.Addr{}, true); !errors.Is(err, outbound.ErrAddress) {
		t.Errorf("the zero address: %v", err)
	}
}

func TestClient_ChecksTheAddressThatANameResolvesTo(t *testing.T) {
	t.Parallel()
	reached := false
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached = true }))
	defer srv.Close()
	_, port, _ := net.SplitHostPort(srv.Listener.Addr().String())
	for _, host := range []string{"localhost", "127.0.0.1", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "2130706433", "0x7f.1", "127.1"} {
		_, err := get(t, outbound.New(outbound.Options{}), "http://"+host+":"+port+"/")
		if err == nil {
			t.Errorf("%s: reached", host)
		}
		// Other spellings of an address are names, and resolve to nothing or to
		// an address that is checked.
		var dns *net.DNSError
		if !errors.Is(err, outbound.ErrAddress) && !errors.As(err, &dns) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if reached {
		t.Error("the server was called")
	}
}

func TestClient_ReachesPrivateAddressesWhenOpened(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "here") }))
	defer srv.Close()
	body, err := get(t, outbound.New(outbound.Options{AllowPrivate: true}), srv.URL)
	if err != nil || body != "here" {
		t.Errorf("got %q, %v", body, err)
	}
}

func TestClient_ChecksTheAddressAgainOnARedirect(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/latest/meta-data/", http.StatusFound))
	defer srv.Close()
	_, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, MaxRedirects: 3}), srv.URL)
	if !errors.Is(err, outbound.ErrAddress) {
		t.Errorf("got %v, want ErrAddress", err)
	}
}

func TestClient_FollowsNoRedirectUnlessTold(t *testing.T) {
	t.Parallel()
	calls := 0
	var srv *httptest.Server
	srv = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls++
		http.Redirect(w, r, srv.URL+"/again", http.StatusFound)
	}))
	defer srv.Close()
	resp, err := do(t, outbound.New(outbound.Options{AllowPrivate: true}), srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusFound || calls != 1 {
		t.Errorf("status %d after %d calls, want the redirect itself", resp.StatusCode, calls)
	}
	calls = 0
	if _, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, MaxRedirects: 2}), srv.URL); !errors.Is(err, outbound.ErrRedirect) {
		t.Errorf("endless redirects: %v", err)
	}
	if calls != 3 {
		t.Errorf("%d calls for at most 2 redirects", calls)
	}
}

func TestClient_IsNotLedFromHTTPSToHTTP(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	srv := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	defer srv.Close()
	_, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, MaxRedirects: 3, TLS: trust(srv)}), srv.URL)
	if !errors.Is(err, outbound.ErrRedirect) {
		t.Errorf("got %v, want ErrRedirect", err)
	}
}

func TestClient_BoundsTheAnswer(t *testing.T) {
	t.Parallel()
	const limit = 1000
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Query().Get("n"))
		switch r.URL.Path {
		case "/stated":
			w.Header().Set("Content-Length", strconv.Itoa(n))
		case "/chunked":
			w.(http.Flusher).Flush()
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, strings.Repeat("x", n))
			_ = z.Close()
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("x", n))
	}))
	defer srv.Close()
	c := outbound.New(outbound.Options{AllowPrivate: true, MaxBody: limit})
	for _, path := range []string{"/stated", "/chunked", "/gzip"} {
		body, err := get(t, c, srv.URL+path+"?n=1000")
		if err != nil || len(body) != limit {
			t.Errorf("%s at the limit: %d bytes, %v", path, len(body), err)
		}
		for _, n := range []string{"1001", "5000", "200000"} {
			body, err := get(t, c, srv.URL+path+"?n="+n)
			if !errors.Is(err, outbound.ErrTooLarge) || len(body) > limit {
				t.Errorf("%s of %s bytes: %d bytes, %v", path, n, len(body), err)
			}
		}
	}
}

func TestClient_EndsASlowAnswer(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.(http.Flusher).Flush()
		<-release
	}))
	defer srv.Close()
	defer close(release)
	_, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, Timeout: 50 * time.Millisecond}), srv.URL)
	var u interface{ Timeout() bool }
	if !errors.As(err, &u) || !u.Timeout() {
		t.Errorf("got %v, want a timeout", err)
	}
}

func TestClient_KeepsNoCookies(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Cookies()) > 0 {
			t.Error("a cookie came back")
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
	}))
	defer srv.Close()
	c := outbound.New(outbound.Options{AllowPrivate: true})
	for range 2 {
		if _, err := get(t, c, srv.URL); err != nil {
			t.Fatal(err)
		}
	}
}

func TestClient_UsesNoProxyFromTheEnvironment(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	_, err := get(t, outbound.New(outbound.Options{}), "http://proxied.invalid/")
	var dns *net.DNSError
	if !errors.As(err, &dns) {
		t.Errorf("got %v, want the name itself to be looked up", err)
	}
}

func TestClient_SpeaksNoOldTLS(t *testing.T) {
	t.Parallel()
	srv := httptest.NewUnstartedServer(http.NotFoundHandler())
	srv.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10} // what the client must refuse
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.StartTLS()
	defer srv.Close()
	base := trust(srv)
	base.MinVersion = tls.VersionTLS10 // a base must not lower the floor
	if _, err := get(t, outbound.New(outbound.Options{AllowPrivate: true, TLS: base}), srv.URL); err == nil {
		t.Error("TLS 1.1 was spoken")
	}
}

func trust(srv *httptest.Server) *tls.Config {
	pool := x509.NewCertPool()
	pool.AddCert(srv.Certificate())
	return &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

func do(t *testing.T, c *http.Client, address string) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, &url.Error{Op: "parse", URL: address, Err: err}
	}
	return c.Do(r)
}

func get(t *testing.T, c *http.Client, address string) (string, error) {
	t.Helper()
	resp, err := do(t, c, address)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}
