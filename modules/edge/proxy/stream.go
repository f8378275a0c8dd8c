package proxy

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/edge/policy"
	"versola/platform/clock"
	"versola/platform/httpserver"
)

// Bounds of a stream: there is none on how long one may take as a whole, but
// it has to move.
const (
	// writeTimeout is how long a client may take to accept what is written,
	// at most 32 KiB: the slowest network takes seconds, and who reads nothing
	// at all must not hold an upstream's connection.
	writeTimeout = 60 * time.Second
	// smallAnswer is what net/http buffers (2 KiB): an answer of one such piece
	// waits for no client, and is spared the deadline.
	smallAnswer = 2 << 10
	// rearmAfter keeps a fast stream from setting a deadline for each piece.
	rearmAfter = 5 * time.Second
)

// writer carries the answer to the client. It notes when the answer begins,
// gives each piece a deadline, and lets informational answers (RFC 9110 section
// 15.2) pass by echo's response, which takes the first header for the last.
type writer struct {
	res      *echo.Response
	x        *exchange
	control  *http.ResponseController
	own      http.Header   // what the edge has set besides the request id; nil: nothing
	informed bool          // an informational answer has passed
	timeout  time.Duration // of one piece
	begun    bool
	armed    time.Time
}

// newWriter makes the writer of an exchange.
func newWriter(res *echo.Response, x *exchange) *writer {
	w := &writer{res: res, x: x, control: http.NewResponseController(res), timeout: writeTimeout}
	if h := res.Header(); len(h) > 1 {
		w.own = h.Clone()
	}
	return w
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.res.Header() }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	h := w.res.Header()
	if status >= 100 && status < 200 && status != http.StatusSwitchingProtocols {
		// The upstream's header was added to ours, and no filter has seen it;
		// after this the proxy empties the whole map.
		w.informed = true
		w.x.routes.filterAnswer(h)
		w.setID(h)
		w.res.Writer.WriteHeader(status)
		return
	}
	if w.informed {
		for name, values := range w.own {
			h[name] = append(values, h[name]...)
		}
		w.setID(h)
	}
	w.x.answered = clock.Monotonic()
	w.res.WriteHeader(status)
}

func (w *writer) setID(h http.Header) {
	if w.x.reqID != "" {
		h["X-Request-Id"] = []string{w.x.reqID}
	}
}

// Write implements http.ResponseWriter.
func (w *writer) Write(b []byte) (int, error) {
	if w.begun || len(b) > smallAnswer {
		if now := clock.Monotonic(); w.armed.IsZero() || now.Sub(w.armed) > rearmAfter {
			w.armed = now
			_ = w.control.SetWriteDeadline(now.Add(w.timeout))
		}
	}
	w.begun = true
	return w.res.Write(b)
}

// Unwrap serves http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.res }

// finish lets the connection's next request begin without a deadline. Of an
// answer that breaks off, the client gets what there is before its connection
// closes: it tells a truncated answer from none. It must be deferred.
func (w *writer) finish() {
	if v := recover(); v != nil {
		_ = w.control.SetWriteDeadline(clock.Monotonic().Add(w.timeout))
		_ = w.control.Flush()
		panic(v)
	}
	if !w.armed.IsZero() {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

// body counts what a client sends against the resource's limit, and ends it
// when nothing comes any more.
type body struct {
	io.ReadCloser
	x       *exchange
	control *http.ResponseController
	left    int64
	limited bool
	timeout time.Duration // of one piece
	armed   time.Time
}

// newBody makes the body of an exchange.
func newBody(b io.ReadCloser, x *exchange, control *http.ResponseController) *body {
	limit := x.maxBody()
	return &body{ReadCloser: b, x: x, control: control, left: limit, limited: limit > 0, timeout: httpserver.BodyTimeout}
}

var errTooLarge = errors.New("the body is over the resource's limit")

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if now := clock.Monotonic(); b.armed.IsZero() || now.Sub(b.armed) > rearmAfter {
		b.armed = now
		_ = b.control.SetReadDeadline(now.Add(b.timeout))
	}
	n, err := b.ReadCloser.Read(p)
	if b.limited {
		if b.left -= int64(n); b.left < 0 {
			b.x.tooLarge = true
			return 0, errTooLarge
		}
	}
	switch {
	case err == nil:
	case errors.Is(err, io.EOF):
		// The connection is watched for a client that hangs up from here on:
		// a deadline would look like one.
		_ = b.control.SetReadDeadline(time.Time{})
	default:
		b.x.bodyErr = err
	}
	return n, err
}

// bodyReason tells why a body did not arrive.
func bodyReason(err error) policy.Reason {
	var slow interface{ Timeout() bool }
	if errors.As(err, &slow) && slow.Timeout() {
		return policy.BodySlow
	}
	return policy.ClientGone
}

// buffers lends copy buffers.
type buffers struct{ pool sync.Pool }

// Get implements httputil.BufferPool.
func (b *buffers) Get() []byte { return b.pool.Get().(*[bufferSize]byte)[:] } //nolint:errcheck,forcetypeassert // it holds nothing else

// Put implements httputil.BufferPool.
func (b *buffers) Put(p []byte) { b.pool.Put((*[bufferSize]byte)(p)) }
