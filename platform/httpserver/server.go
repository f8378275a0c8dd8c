package httpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"runtime/debug"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"versola/platform/clock"
	"versola/platform/id"
	"versola/platform/postgres"
)

// Bounds of every listener.
const (
	// readHeaderTimeout ends a connection that sends its header drop by drop.
	readHeaderTimeout = 10 * time.Second
	// BodyTimeout ends a request whose body comes drop by drop: a form of a few
	// KiB takes seconds on the slowest network. On a listener without a limit
	// on bodies, a handler that streams one moves the deadline as it arrives;
	// what nobody reads is bound by it too.
	BodyTimeout = 30 * time.Second
	// idleTimeout keeps a connection for reuse longer than common load
	// balancers do (60 s), so that the balancer closes first and no request is
	// lost in between.
	idleTimeout = 90 * time.Second
	// maxHeaderBytes leaves room for large cookies and tokens and no more.
	maxHeaderBytes = 32 << 10
	// DefaultMaxBody is the largest body where a listener sets none: forms and
	// JSON documents of identity are a few KiB.
	DefaultMaxBody = 256 << 10
	// DrainTimeout is how long shutdown waits for requests in flight: half of
	// the 15 s that a whole shutdown may take.
	DrainTimeout = 7500 * time.Millisecond
)

// Options describes a listener.
type Options struct {
	Name           string // "auth", "edge" ...: in logs and metrics
	Addr           string // host:port
	Log            *slog.Logger
	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	MaxBody        int64          // bytes; 0: DefaultMaxBody; negative: no limit
	// StreamRoutes are the templates of routes whose handlers bound the body and
	// the wait for it themselves.
	StreamRoutes []string
	// HandleError turns an error of a handler into an answer; nil:
	// [WriteProblem]. It is called once per failed request.
	HandleError func(c echo.Context, err error)
	// Observe, when set, hears of every finished request.
	Observe func(ctx context.Context, o Observation)
}

// Observation is a finished request, for a metric.
type Observation struct {
	Listener string
	Route    string // the route's template, never the path
	Method   string
	Status   int
	Duration time.Duration
}

// Server is one listener.
type Server struct {
	Echo *echo.Echo
	o    Options
	http *http.Server
	ln   net.Listener
	// bodyTimeout is the constant, but in tests.
	bodyTimeout time.Duration
	// stop ends the context behind Stopping.
	stopping context.Context //nolint:containedctx // it is the listener's life, not a request's
	stop     context.CancelFunc
}

type stoppingKey struct{}

// Stopping returns a channel that is closed when the listener that a request
// came by begins to shut down: a long poll answers then, so that draining does
// not wait for it. It is nil (never ready) for a request that came by none.
func Stopping(ctx context.Context) <-chan struct{} {
	if s, ok := ctx.Value(stoppingKey{}).(context.Context); ok {
		return s.Done()
	}
	return nil
}

// New makes a listener's router with the common middleware.
func New(o Options) *Server {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.Logger.SetOutput(discard{})
	s := &Server{Echo: e, o: o, bodyTimeout: BodyTimeout}
	s.stopping, s.stop = context.WithCancel(context.Background())
	e.IPExtractor = func(r *http.Request) string { return clientAddr(r, o.TrustedProxies) }
	e.HTTPErrorHandler = func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		if o.HandleError != nil {
			o.HandleError(c, err)
			return
		}
		WriteProblem(c, err)
	}
	e.Use(s.observe, s.recover, s.limitBody)
	s.http = &http.Server{
		Handler:           e,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context {
			return context.WithValue(context.Background(), stoppingKey{}, s.stopping)
		},
	}
	return s
}

// Listen opens the address, so that a taken port is an error before anything
// else starts. A host of "localhost" listens on both loopback addresses.
func (s *Server) Listen(ctx context.Context) error {
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.o.Addr)
	if err != nil {
		return fmt.Errorf("open %s listener on %s: %w", s.o.Name, s.o.Addr, err)
	}
	s.ln = ln
	return nil
}

// Addr returns the address that Listen opened.
func (s *Server) Addr() net.Addr { return s.ln.Addr() }

// Serve answers until Shutdown.
func (s *Server) Serve() error {
	if err := s.http.Serve(s.ln); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve %s: %w", s.o.Name, err)
	}
	return nil
}

// Shutdown stops accepting, waits for requests in flight for up to
// [DrainTimeout], then closes what is left.
func (s *Server) Shutdown(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), DrainTimeout)
	defer cancel()
	s.stop()
	switch err := s.http.Shutdown(ctx); {
	case err == nil:
		return nil
	case !errors.Is(err, context.DeadlineExceeded):
		return errors.Join(fmt.Errorf("drain %s: %w", s.o.Name, err), s.http.Close())
	}
	// A client that takes its time is no fault of this process.
	s.o.Log.WarnContext(ctx, "cutting off requests that did not finish", "listener", s.o.Name, "waited", DrainTimeout)
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.o.Name, err)
	}
	return nil
}

// Close ends the listener and its connections at once.
func (s *Server) Close() error {
	s.stop()
	if err := s.http.Close(); err != nil {
		return fmt.Errorf("close %s: %w", s.o.Name, err)
	}
	return nil
}

// Fields that a handler adds to its request's log line.
type logFields struct{ attrs []slog.Attr }

const (
	requestIDKey = "versola.request_id"
	fieldsKey    = "versola.log_fields"
	errorKey     = "versola.error"
)

// RequestMessage is the message of the log line of a request.
const RequestMessage = "request"

// RequestID returns the request's id, which is in its log line, in the answer's
// X-Request-Id and on error pages.
func RequestID(c echo.Context) string {
	v, _ := c.Get(requestIDKey).(string)
	return v
}

// Annotate adds an attribute to the request's log line (client, tenant,
// outcome): never a token, code, password or full phone number.
func Annotate(c echo.Context, attrs ...slog.Attr) {
	if f, ok := c.Get(fieldsKey).(*logFields); ok {
		f.attrs = append(f.attrs, attrs...)
	}
}

// NoteError gives the private cause of an answer to the request's log line; the
// one place that turns errors into answers calls it.
func NoteError(c echo.Context, err error) { c.Set(errorKey, err) }

func (s *Server) observe(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		start := clock.Monotonic()
		rid := id.Short(rand.Reader, 12)
		fields := &logFields{}
		c.Set(requestIDKey, rid)
		c.Set(fieldsKey, fields)
		c.Response().Header().Set(echo.HeaderXRequestID, rid)
		// Deferred: an answer that is broken off ends in a panic, and has its
		// line as well.
		defer func() { s.finish(c, rid, fields, clock.Since(start)) }()
		if err := next(c); err != nil {
			NoteError(c, err)
			c.Error(err)
		}
		return nil
	}
}

func (s *Server) finish(c echo.Context, rid string, fields *logFields, took time.Duration) {
	ctx, status := c.Request().Context(), c.Response().Status
	route := c.Path()
	if route == "" {
		route = "(none)"
	}
	if s.o.Observe != nil {
		s.o.Observe(ctx, Observation{Listener: s.o.Name, Route: route, Method: method(c.Request().Method), Status: status, Duration: took})
	}
	level := slog.LevelInfo
	if status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	if !s.o.Log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 8+len(fields.attrs))
	attrs = append(attrs, slog.String("request_id", rid), slog.String("listener", s.o.Name), slog.String("method", method(c.Request().Method)),
		slog.String("route", route), slog.Int("status", status), slog.Duration("duration", took))
	attrs = append(attrs, fields.attrs...)
	if err, ok := c.Get(errorKey).(error); ok && err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	s.o.Log.LogAttrs(ctx, level, RequestMessage, attrs...)
}

// method keeps metric labels and the log to a closed set.
func method(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "OTHER"
}

func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			v := recover()
			if v == nil {
				return
			}
			if v == http.ErrAbortHandler { //nolint:errorlint // compared as net/http does
				panic(v)
			}
			err = fmt.Errorf("panic: %v\n%s", v, debug.Stack())
		}()
		return next(c)
	}
}

func (s *Server) limitBody(next echo.HandlerFunc) echo.HandlerFunc {
	limit := s.o.MaxBody
	if limit == 0 {
		limit = DefaultMaxBody
	}
	return func(c echo.Context) error {
		if slices.Contains(s.o.StreamRoutes, c.Path()) {
			return next(c)
		}
		r := c.Request()
		if limit >= 0 && r.ContentLength > limit {
			c.Response().Header().Set("Connection", "close")
			return echo.NewHTTPError(http.StatusRequestEntityTooLarge, fmt.Sprintf("the body is over %d bytes", limit))
		}
		if r.ContentLength != 0 {
			// Not supported means a call within the process: no network to wait for.
			_ = http.NewResponseController(c.Response()).SetReadDeadline(clock.System{}.Now().Add(s.bodyTimeout))
		}
		if limit >= 0 {
			r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
		}
		return next(c)
	}
}

// Unavailable tells whether err is a passing condition of a part that the
// request needs: the answer is 503 with Retry-After.
func Unavailable(err error) bool {
	return postgres.Unavailable(err) || errors.Is(err, os.ErrDeadlineExceeded)
}

// RetryAfter is what a 503 tells clients to wait, in seconds.
const RetryAfter = "2"

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
