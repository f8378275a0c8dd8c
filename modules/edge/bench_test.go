package edge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"syscall"
	"testing"
	"time"

	"versola/platform/dpop/dpoptest"
	"versola/platform/jose"
)

// The same call by the same client to the same upstream: through nothing but
// httputil.ReverseProxy, and through the edge with a session or token that was
// seen before. cpu-us/op has client, proxy and upstream; the difference between
// the rows is the edge's own.

func BenchmarkProxy_PlainReverseProxy(b *testing.B) {
	up := echoUpstream(b)
	target, err := url.Parse(up)
	must(b, err)
	proxy := &httputil.ReverseProxy{
		Rewrite:    func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:  &http.Transport{MaxIdleConnsPerHost: 512, DisableCompression: true},
		BufferPool: &pool{sync.Pool{New: func() any { return make([]byte, 32<<10) }}},
	}
	s := httptest.NewServer(proxy)
	defer s.Close()
	benchmark(b, s.URL+"/accounts", always(nil))
}

// pool gives the plain proxy the same advantage that the edge's has.
type pool struct{ p sync.Pool }

func (p *pool) Get() []byte  { return p.p.Get().([]byte) } //nolint:errcheck,forcetypeassert // it holds nothing else
func (p *pool) Put(b []byte) { p.p.Put(b) }                //nolint:staticcheck // a slice header is small change here

func BenchmarkProxy_CookieSession(b *testing.B) {
	w, e := benchWorld(b)
	br := newBrowser(b)
	br.signIn(w, e)
	benchmark(b, e.URL+accounts, always(http.Header{"Cookie": {sessionCookie + "=" + br.cookies[sessionCookie]}}))
}

func BenchmarkProxy_BearerToken(b *testing.B) {
	w, e := benchWorld(b)
	benchmark(b, e.URL+accounts, always(http.Header{"Authorization": {"Bearer " + w.auth.bearer(nil)}}))
}

// BenchmarkProxy_DPoPToken has the making of each call's proof in it too, some
// 0.1 ms; statements/op is what remembering proofs costs.
func BenchmarkProxy_DPoPToken(b *testing.B) {
	w, e := benchWorld(b)
	k := dpoptest.NewKey(b, jose.ES256)
	token := w.bound(k, nil)
	before := e.db.Statements()
	benchmark(b, e.URL+accounts, func() http.Header {
		return http.Header{"Authorization": {"DPoP " + token}, "Dpop": {w.proof(k, http.MethodGet, accounts, token)}}
	})
	b.ReportMetric(float64(e.db.Statements()-before)/float64(b.N), "statements/op")
}

// always gives each call the same header.
func always(h http.Header) func() http.Header { return func() http.Header { return h } }

func benchWorld(b *testing.B) (*world, *running) {
	w := newWorld(b)
	w.snapshot.Resources[0].Upstream.URL = echoUpstream(b)
	w.compile()
	return w, w.edge()
}

func echoUpstream(b *testing.B) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"accounts":[{"id":"1","balance":100}]}`)
	}))
	b.Cleanup(s.Close)
	return s.URL
}

func benchmark(b *testing.B, target string, header func() http.Header) {
	client := &http.Transport{MaxIdleConnsPerHost: 64}
	defer client.CloseIdleConnections()
	call := func() {
		r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, target, nil)
		must(b, err)
		for k, v := range header() {
			r.Header[k] = v
		}
		res, err := client.RoundTrip(r)
		must(b, err)
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK {
			b.Fatalf("status %d", res.StatusCode)
		}
	}
	call()
	b.ReportAllocs()
	before := cpu(b)
	b.SetParallelism(8)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			call()
		}
	})
	b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N), "cpu-us/op")
}

// cpu returns the processor time that this process has used.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	must(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
