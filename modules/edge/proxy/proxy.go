package proxy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/metric"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/rules"
	"versola/modules/edge/limit"
	"versola/modules/edge/lru"
	"versola/modules/edge/policy"
	"versola/modules/edge/revocation"
	"versola/modules/edge/session"
	"versola/modules/edge/token"
	"versola/platform/clock"
	"versola/platform/dpop"
	"versola/platform/httpserver"
	"versola/platform/secret"
)

// prefix is where resources are mounted.
const prefix = "resources"

// Sessions finds browser sessions.
type Sessions interface {
	Find(ctx context.Context, preset *catalog.Preset, cookie string) (*session.Session, error)
	Token(ctx context.Context, s *session.Session) (secret.Text, error)
	EndRevoked(ctx context.Context, hash lru.Key)
}

// Deps are what the proxy needs.
type Deps struct {
	Catalog        *catalog.Holder
	EdgeID         string
	PublicURL      string // without a trailing slash
	Clock          clock.Clock
	Log            *slog.Logger
	Meter          metric.Meter
	Cookies        httpserver.Cookies
	Verifier       *token.Verifier
	Proofs         dpop.Guard
	Revoked        *revocation.Set
	Sessions       Sessions
	TrustedProxies []netip.Prefix
}

// Handler is the proxy.
type Handler struct {
	d       Deps
	origin  string // of this edge
	scheme  string
	host    string
	metrics *metrics
	proxy   *httputil.ReverseProxy

	forwardedTail string // what every Forwarded ends with

	current    atomic.Pointer[routes]
	mu         sync.Mutex // guards the compilation of current, and what follows
	transports map[reach]*http.Transport
	used       map[reach]bool // by current

	expressions policy.Expressions

	limits *limit.Limiter
}

// New makes the proxy. Errors: a public URL that does not parse, metrics that
// cannot be made.
func New(d Deps) (*Handler, error) {
	u, err := url.Parse(d.PublicURL)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("public url %q: not a URL", d.PublicURL)
	}
	m, err := newMetrics(d.Meter)
	if err != nil {
		return nil, err
	}
	h := &Handler{d: d, origin: u.Scheme + "://" + u.Host, scheme: u.Scheme, host: u.Host, metrics: m, transports: map[reach]*http.Transport{}, used: map[reach]bool{}, limits: limit.New(d.Clock.Now())}
	h.forwardedTail = `;host="` + u.Host + `";proto=` + u.Scheme
	h.proxy = h.reverseProxy()
	return h, nil
}

// routes is what the proxy knows of one catalog.
type routes struct {
	catalog  *catalog.Catalog
	table    *policy.Table
	byID     map[string][]*route // resources that this edge serves
	presets  map[string][]*catalog.Preset
	sessions map[string]struct{} // lower-case names of the presets' cookies
}

// route is the way to one resource.
type route struct {
	resource  *catalog.Resource
	transport *http.Transport
	patient   map[*catalog.EndpointSpec]*http.Transport // endpoints with a timeout of their own
	cors      *cors                                     // nil: no page of another origin
	bound     *bound                                    // of one caller; nil: none
	bounds    map[*catalog.EndpointSpec]*bound          // of endpoints with limits of their own
	rules     map[*catalog.EndpointSpec]*policy.Rules
	injected  map[string]struct{} // names of headers that rules set, folded
	base      string              // escaped path before every target, without a trailing slash
	basePath  string              // the same, decoded
}

// routes returns what was compiled of the current catalog, or nil.
func (h *Handler) routes() *routes {
	c := h.d.Catalog.Current()
	if c == nil {
		return nil
	}
	if r := h.current.Load(); r != nil && r.catalog == c {
		return r
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if r := h.current.Load(); r != nil && r.catalog == c {
		return r
	}
	clear(h.used)
	h.expressions.Next()
	r := h.compile(c)
	h.current.Store(r)
	h.retire()
	return r
}

func (h *Handler) compile(c *catalog.Catalog) *routes {
	table, refused := policy.Compile(c)
	for _, name := range refused {
		h.d.Log.Error("endpoint has an unusable method or path and is closed", "endpoint", name)
	}
	r := &routes{catalog: c, table: table, byID: map[string][]*route{}, presets: map[string][]*catalog.Preset{}, sessions: map[string]struct{}{}}
	presets := c.Presets(h.d.EdgeID)
	for _, p := range presets {
		r.sessions[strings.ToLower(h.d.Cookies.Name(session.CookieBase(p)))] = struct{}{}
	}
	for _, t := range c.Tenants() {
		if t.Edge != h.d.EdgeID {
			continue
		}
		for _, resource := range t.Resources() {
			r.byID[resource.ID] = append(r.byID[resource.ID], h.route(resource))
			for _, p := range presets {
				if p.Owner == t {
					r.presets[resource.ID] = append(r.presets[resource.ID], p)
				}
			}
		}
	}
	return r
}

func (h *Handler) route(r *catalog.Resource) *route {
	way := reachOf(r)
	patient := map[*catalog.EndpointSpec]*http.Transport{}
	for i := range r.Endpoints {
		if e := &r.Endpoints[i]; e.Timeout != 0 {
			slow := way
			slow.response = e.Timeout.D(way.response)
			patient[e] = h.transport(slow)
		}
	}
	compiled, names := h.rulesOf(r)
	return &route{
		resource: r, transport: h.transport(way), patient: patient, cors: corsOf(r.CORS), rules: compiled, injected: names,
		bound: boundOf(r.Limits, r.Tenant+"/"+r.ID), bounds: boundsOf(r),
		base:     strings.TrimSuffix(r.UpstreamURL.EscapedPath(), "/"),
		basePath: strings.TrimSuffix(r.UpstreamURL.Path, "/"),
	}
}

// exchange is one call on its way.
type exchange struct {
	start    time.Time
	sent     time.Time // handed to the transport; zero: never
	received time.Time
	answered time.Time

	routes     *routes
	candidates []*route // of that name
	route      *route
	preflight  bool // answered as such
	socket     bool // asks for a WebSocket, and may
	switched   bool // the upstream agreed
	endpoint   *catalog.EndpointSpec
	path       string        // as the client asked for it, below the public URL
	target     policy.Target // below the resource
	caller     caller
	url        *url.URL // upstream
	access     secret.Text
	reqID      string
	values     values
	cancel     context.CancelFunc // gives the upstream call up; nil: nobody does

	entered  []limit.Key  // to be left
	input    *rules.Input // nil: the endpoint has no rules
	injected []policy.Header
	read     io.ReadCloser // the body, where a rule has read it

	failure  error
	ended    atomic.Pointer[policy.Reason] // why it was given up after the upstream had begun
	tooLarge bool                          // the body passed the limit on its way
	bodyErr  error
}

// Resources handles every method of /resources/{resource}/{path...}.
func (h *Handler) Resources(c echo.Context) error {
	x := &exchange{start: clock.Monotonic()}
	var refusal *Refusal
	defer func() { // also when an answer is broken off
		h.leave(x)
		h.note(c, x, refusal)
	}()
	refusal = h.decide(c, x)
	if x.preflight {
		// refused or answered
	} else if h.shareAnswer(c, x); refusal == nil {
		refusal = h.forward(c, x)
	}
	if refusal != nil {
		return refusal
	}
	return nil
}

// decide takes a call through all steps before it is forwarded.
func (h *Handler) decide(c echo.Context, x *exchange) *Refusal {
	r := c.Request()
	target, reason := policy.Canonical(r.RequestURI)
	if reason != policy.Allowed {
		return refuse(reason, nil)
	}
	if len(target.Segments) < 2 || target.Segments[0] != prefix {
		return refuse(policy.ResourceUnknown, nil)
	}
	if x.routes = h.routes(); x.routes == nil {
		return refuse(policy.CatalogMissing, nil)
	}
	name := target.Segments[1]
	candidates := x.routes.byID[name]
	if len(candidates) == 0 {
		return refuse(policy.ResourceUnknown, nil)
	}
	x.candidates, x.path, x.target = candidates, target.Escaped, target.Below(2)
	if x.preflight = asksFirst(r, candidates); x.preflight {
		return answerPreflight(c, x)
	}
	// One tenant has a resource of that name, nearly always: then a call to
	// nothing costs no look at who calls.
	if len(candidates) == 1 {
		x.to(candidates[0], r.Method)
		if x.endpoint == nil {
			return refuse(policy.EndpointUnknown, nil)
		}
	}
	if refusal := h.identify(c, x, name, candidates); refusal != nil {
		return refusal
	}
	if reason := policy.May(x.caller.policy(), x.route.resource, x.endpoint); !reason.Passes() {
		return h.denied(x, reason)
	}
	if refusal := h.limited(c, x); refusal != nil {
		return refusal
	}
	if refusal := h.judge(c, x); refusal != nil {
		return refusal
	}
	if reason := policy.Recent(x.caller.policy(), x.endpoint, h.d.Clock.Now()); !reason.Passes() {
		return h.stepUp(r, x, reason)
	}
	if refusal := x.inject(); refusal != nil {
		return refusal
	}
	return h.upgrade(r, x)
}

// to sends the exchange to one of the candidates.
func (x *exchange) to(r *route, method string) {
	x.route = r
	x.endpoint = x.routes.table.Match(r.resource, method, x.target)
}

// transport is the one whose timeouts the endpoint asks for.
func (x *exchange) transport() *http.Transport {
	if x.endpoint.Timeout != 0 {
		return x.route.patient[x.endpoint]
	}
	return x.route.transport
}

// maxBody returns how many bytes a caller may send; 0: no limit.
func (x *exchange) maxBody() int64 {
	if x.endpoint.MaxBody > 0 {
		return x.endpoint.MaxBody
	}
	return x.route.resource.Upstream.MaxBody
}

// note writes the outcome to the log line and the metrics.
func (h *Handler) note(c echo.Context, x *exchange, refusal *Refusal) {
	reason := policy.Allowed
	switch {
	case refusal != nil:
		reason = refusal.Reason
	case x.ended.Load() != nil:
		reason = *x.ended.Load()
	case x.preflight:
		reason = policy.Preflight
	case x.endpoint != nil && x.endpoint.Public:
		reason = policy.Public
	}
	h.metrics.decided(reason)
	attrs := make([]slog.Attr, 0, 6)
	attrs = append(attrs, slog.String("reason", string(reason)))
	if x.route != nil {
		attrs = append(attrs, slog.String("tenant", x.route.resource.Tenant), slog.String("resource", x.route.resource.ID))
	}
	if x.endpoint != nil {
		attrs = append(attrs, slog.String("endpoint", x.endpoint.ID))
	}
	if claims := x.caller.claims; claims != nil {
		attrs = append(attrs, slog.String("client", claims.ClientID))
	}
	httpserver.Annotate(c, attrs...)
	if !x.sent.IsZero() && !x.received.IsZero() && !x.answered.IsZero() {
		h.metrics.took(x.sent.Sub(x.start) + x.answered.Sub(x.received))
	}
}
