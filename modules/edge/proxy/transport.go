package proxy

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"time"

	"versola/modules/central/catalog"
)

// Bounds of connections to upstreams.
const (
	// defaultConnect is how long connecting may take; within a data centre it
	// takes under a millisecond, and one lost packet costs a second.
	defaultConnect = 2 * time.Second
	// defaultResponse is how long an upstream may think before its answer
	// begins.
	defaultResponse = 30 * time.Second
	// idlePerHost keeps connections for as many parallel calls as a node
	// carries: opening one costs more than a call.
	idlePerHost = 512
	// idleTimeout is under the 60 s after which common servers close.
	idleTimeout = 50 * time.Second
	// maxResponseHeader bounds an upstream's header.
	maxResponseHeader = 256 << 10
)

// reach is how an upstream is reached; it tells transports apart. What one
// resource trusts must not let another's connections be reused.
type reach struct {
	connect, response time.Duration
	ca, serverName    string
}

func reachOf(r *catalog.Resource) reach {
	way := reach{connect: r.Upstream.ConnectTimeout.D(defaultConnect), response: r.Upstream.ResponseTimeout.D(defaultResponse)}
	if t := r.Upstream.TLS; t != nil {
		way.ca, way.serverName = t.CA, t.ServerName
	}
	return way
}

// transport returns the pooled transport of a way, and notes that it is in use.
// It takes no proxy from the environment, follows nothing and unpacks nothing.
// The caller holds h.mu.
func (h *Handler) transport(way reach) *http.Transport {
	h.used[way] = true
	if tr, ok := h.transports[way]; ok {
		return tr
	}
	tr := &http.Transport{
		DialContext:            (&net.Dialer{Timeout: way.connect, KeepAlive: 30 * time.Second}).DialContext,
		TLSClientConfig:        &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: authorities(way.ca), ServerName: way.serverName},
		TLSHandshakeTimeout:    way.connect,
		ResponseHeaderTimeout:  way.response,
		ExpectContinueTimeout:  time.Second,
		MaxIdleConns:           0, // bounded per host
		MaxIdleConnsPerHost:    idlePerHost,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxResponseHeader,
		DisableCompression:     true,
		ForceAttemptHTTP2:      true,
	}
	h.transports[way] = tr
	return tr
}

// authorities are the certificates that an upstream's is checked against; nil:
// the system's. Registration refuses what cannot be read; should it get here,
// nothing is trusted.
func authorities(ca string) *x509.CertPool {
	if ca == "" {
		return nil
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM([]byte(ca))
	return pool
}

// retire drops the transports that the current routes have no use for. Calls
// under way end undisturbed. The caller holds h.mu.
func (h *Handler) retire() {
	for way, tr := range h.transports {
		if !h.used[way] {
			delete(h.transports, way)
			tr.CloseIdleConnections()
		}
	}
}
