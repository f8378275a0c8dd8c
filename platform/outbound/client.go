package outbound

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"
)

// Bounds of every client.
const (
	// DefaultTimeout bounds a whole exchange where the caller sets none: long
	// enough for a slow service, short enough not to pile up.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxBody is the largest answer where the caller sets none: key sets
	// and JSON documents are some KiB.
	DefaultMaxBody = 1 << 20
	// connectTimeout is for one address, so that a dead one leaves time for the
	// next.
	connectTimeout = 3 * time.Second
	// maxHeaderBytes bounds the header of an answer.
	maxHeaderBytes = 32 << 10
	// idleTimeout closes kept connections before common servers do.
	idleTimeout = 30 * time.Second
	// maxIdle and maxIdlePerHost bound the kept connections: these are
	// occasional calls to many hosts.
	maxIdle        = 64
	maxIdlePerHost = 4
)

// Errors of an exchange; they arrive wrapped in a url.Error.
var (
	// ErrTooLarge reports an answer over the limit, when its body is read or
	// its length is stated.
	ErrTooLarge = errors.New("the answer is too large")
	// ErrRedirect reports a redirect too many, or one from https to http.
	ErrRedirect = errors.New("redirect is not followed")
)

// Options describes a client.
type Options struct {
	AllowPrivate bool          // loopback, private and shared networks may be reached
	Timeout      time.Duration // of a whole exchange, body included; 0: [DefaultTimeout]
	MaxBody      int64         // bytes of an answer after decompression; 0: [DefaultMaxBody]
	// MaxRedirects is how many redirects are followed. 0: none, and the
	// redirect itself is the answer.
	MaxRedirects int
	// TLS is the base of the TLS configuration (roots, client certificates);
	// nil: the system's roots. Versions below 1.2 are never spoken.
	TLS *tls.Config
}

// New makes a client. It is safe for concurrent use and keeps connections, so
// one per purpose is made at start and shared.
func New(o Options) *http.Client {
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxBody <= 0 {
		o.MaxBody = DefaultMaxBody
	}
	return &http.Client{
		Timeout:       o.Timeout,
		CheckRedirect: redirects(o.MaxRedirects),
		Transport:     &limited{next: transport(o), max: o.MaxBody},
	}
}

func transport(o Options) *http.Transport {
	dialer := &net.Dialer{
		Timeout: connectTimeout,
		// Control runs after the name was resolved, on each address that is
		// tried, right before the connection is made.
		Control: func(_, address string, _ syscall.RawConn) error {
			peer, err := netip.ParseAddrPort(address)
			if err != nil {
				return fmt.Errorf("%w: %q", ErrAddress, address)
			}
			return Allowed(peer.Addr(), o.AllowPrivate)
		},
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if o.TLS != nil {
		config = o.TLS.Clone()
		config.MinVersion = max(config.MinVersion, tls.VersionTLS12)
	}
	return &http.Transport{
		Proxy:                  nil, // a proxy would connect for us, past the check
		DialContext:            dialer.DialContext,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    o.Timeout,
		ResponseHeaderTimeout:  o.Timeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxIdleConnsPerHost:    maxIdlePerHost,
		ForceAttemptHTTP2:      true,
	}
}

func redirects(most int) func(*http.Request, []*http.Request) error {
	return func(r *http.Request, via []*http.Request) error {
		if most <= 0 {
			return http.ErrUseLastResponse
		}
		if len(via) > most {
			return fmt.Errorf("%w: more than %d", ErrRedirect, most)
		}
		if r.URL.Scheme != "https" && via[len(via)-1].URL.Scheme == "https" {
			return fmt.Errorf("%w: from https to %s", ErrRedirect, r.URL.Scheme)
		}
		return nil
	}
}

// limited bounds the size of answers.
type limited struct {
	next *http.Transport
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (l *limited) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.ContentLength > l.max && r.Method != http.MethodHead {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, resp.ContentLength, l.max)
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: l.max}
	return resp, nil
}

// CloseIdleConnections makes http.Client.CloseIdleConnections reach the
// transport.
func (l *limited) CloseIdleConnections() { l.next.CloseIdleConnections() }

// boundedBody fails once more than left bytes came.
type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader. Errors: [ErrTooLarge].
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, ErrTooLarge
	}
	// One byte more than allowed tells an answer at the limit from one over it.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		return n - 1, ErrTooLarge
	}
	return n, err
}
