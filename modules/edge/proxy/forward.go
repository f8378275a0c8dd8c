package proxy

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/edge/policy"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/httpserver"
)

// Bounds of upstream calls.
const (
	// flushWithin bounds how long a piece of an answer of known length is held
	// back, for an upstream that dawdles. Answers of unknown length and events
	// are flushed at once whatever this says. At once for all would cost each
	// small answer a goroutine and a second write.
	flushWithin = 50 * time.Millisecond
	// bufferSize is that of io.Copy.
	bufferSize = 32 << 10
)

type exchangeKey struct{}

func (h *Handler) reverseProxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite:        h.rewrite,
		Transport:      roundTripper{},
		FlushInterval:  flushWithin,
		BufferPool:     &buffers{sync.Pool{New: func() any { return new([bufferSize]byte) }}},
		ModifyResponse: modify,
		ErrorLog:       slog.NewLogLogger(h.d.Log.Handler(), slog.LevelDebug),
		ErrorHandler: func(_ http.ResponseWriter, r *http.Request, err error) {
			exchangeOf(r).failure = err
		},
	}
}

func exchangeOf(r *http.Request) *exchange {
	return r.Context().Value(exchangeKey{}).(*exchange) //nolint:errcheck,forcetypeassert // forward put it there
}

// forward carries the call out; what fails before an answer began is returned.
func (h *Handler) forward(c echo.Context, x *exchange) *Refusal {
	r := c.Request()
	resource := x.route.resource
	u := resource.UpstreamURL
	x.url = &url.URL{
		Scheme: u.Scheme, Host: u.Host, Path: x.route.basePath + x.target.Decoded(), RawPath: x.route.base + x.target.Escaped,
		RawQuery: x.target.Query, ForceQuery: x.target.HasQuery && x.target.Query == "",
	}
	if x.url.EscapedPath() != x.url.RawPath {
		return refuse(policy.TargetEscape, errors.New("another path would be forwarded than was matched"))
	}
	if resource.Upstream.ForwardToken && x.caller.claims != nil {
		x.access = x.caller.bearer
		if x.caller.session != nil {
			access, err := h.d.Sessions.Token(r.Context(), x.caller.session)
			if err != nil {
				return refuse(policy.StoreUnavailable, err)
			}
			x.access = access
		}
	}
	x.reqID = httpserver.RequestID(c)
	if limit := x.maxBody(); limit > 0 && r.ContentLength > limit {
		return refuse(policy.BodyTooLarge, nil)
	}
	ctx := context.WithValue(r.Context(), exchangeKey{}, x)
	if resource.Upstream.IdleTimeout != 0 || x.socket {
		ctx, x.cancel = context.WithCancel(ctx)
		defer x.cancel()
	}
	if x.socket {
		h.watch(ctx, c, x)
	}
	r = r.WithContext(ctx)
	w := newWriter(c.Response(), x)
	defer w.finish()
	if x.read != nil {
		r.Body = x.read
	} else if r.Body != nil && r.Body != http.NoBody {
		r.Body = newBody(r.Body, x, w.control)
	}
	h.proxy.ServeHTTP(w, r)
	if x.failure == nil {
		if x.socket && x.switched {
			c.Response().Status, c.Response().Committed = http.StatusSwitchingProtocols, true // the proxy wrote past it
		}
		return nil
	}
	return x.classify(r.Context())
}

// classify tells what went wrong on the way to the upstream.
func (x *exchange) classify(ctx context.Context) *Refusal {
	var network net.Error
	var dial *net.OpError
	switch err := x.failure; {
	case x.tooLarge:
		return refuse(policy.BodyTooLarge, nil)
	case x.bodyErr != nil:
		return refuse(bodyReason(x.bodyErr), err)
	case ctx.Err() != nil:
		return refuse(policy.ClientGone, err)
	case errors.As(err, &network) && network.Timeout():
		return refuse(policy.UpstreamTimeout, err)
	case errors.As(err, &dial) && dial.Op == "dial":
		return refuse(policy.UpstreamUnreachable, err)
	default:
		return refuse(policy.UpstreamFailed, err)
	}
}

// rewrite makes the upstream request. Hop-by-hop headers, and those that the
// client's Connection names, are gone already: what is set here stays.
func (h *Handler) rewrite(p *httputil.ProxyRequest) {
	x := exchangeOf(p.In)
	out := p.Out
	out.URL, out.Host = x.url, x.url.Host
	x.route.filterHeaders(out.Header)
	x.routes.filterCookies(out.Header)
	x.caller.identity(&x.values, out.Header)
	h.forwarded(&x.values, p.In, out.Header)
	if x.reqID != "" {
		x.values.set(out.Header, "X-Request-Id", x.reqID)
	}
	if !x.access.Empty() {
		scheme := schemeBearer
		if x.caller.scheme == dpop.Scheme { // not to be taken for one that anybody may use
			scheme = dpop.Scheme
		}
		x.values.set(out.Header, "Authorization", scheme+" "+x.access.Reveal())
	}
	x.setInjected(out.Header)
}

// roundTripper takes each call to its resource's transport and notes when the
// upstream had it.
type roundTripper struct{}

// RoundTrip implements http.RoundTripper.
func (roundTripper) RoundTrip(r *http.Request) (*http.Response, error) {
	x := exchangeOf(r)
	x.sent = clock.Monotonic()
	res, err := x.transport().RoundTrip(r)
	x.received = clock.Monotonic()
	return res, err
}

func modify(res *http.Response) error {
	x := exchangeOf(res.Request)
	x.routes.filterAnswer(res.Header)
	if x.route.resource.CORS != nil {
		removeCORS(res.Header)
	}
	x.switched = res.StatusCode == http.StatusSwitchingProtocols
	if idle := x.route.resource.Upstream.IdleTimeout; idle != 0 && !x.switched {
		res.Body = newPatience(res.Body, x, idle.D(0))
	}
	return nil
}
