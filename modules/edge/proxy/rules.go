package proxy

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"net/textproto"
	"strings"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/central/catalog/rules"
	"versola/modules/edge/policy"
	"versola/modules/edge/token"
	"versola/platform/httpserver"
)

// maxRuleBody bounds the body that an expression reads, and with it the memory
// that calls under way hold: the documents that a decision is made on are some
// KiB.
const maxRuleBody = 256 << 10

// judge asks the endpoint's rules, and notes the headers that they set.
func (h *Handler) judge(c echo.Context, x *exchange) *Refusal {
	r := x.route.rules[x.endpoint]
	if r == nil {
		return nil
	}
	x.input = h.input(c, x)
	if r.NeedsBody() {
		if refusal := x.readBody(c); refusal != nil {
			return refusal
		}
	}
	if reason, err := policy.Satisfied(r, x.input); !reason.Passes() {
		return refuse(reason, err)
	}
	return nil
}

// inject evaluates the headers that the endpoint's rules set.
func (x *exchange) inject() *Refusal {
	if x.input == nil {
		return nil
	}
	headers, reason, err := policy.Injected(x.route.rules[x.endpoint], x.input)
	if !reason.Passes() {
		return refuse(reason, err)
	}
	x.injected = headers
	return nil
}

// input is what expressions are told of a call.
func (h *Handler) input(c echo.Context, x *exchange) *rules.Input {
	r := c.Request()
	return &rules.Input{
		Token: claimed(x.caller.claims),
		Request: rules.Request{
			Method: r.Method, Path: x.target.Decoded(), Template: x.endpoint.Path, Segments: x.target.Segments, RawQuery: x.target.Query,
			Header: r.Header, Visible: visible, Address: httpserver.ClientAddr(c).String(), Time: h.d.Clock.Now(),
		},
	}
}

func claimed(c *token.Claims) rules.Token {
	if c == nil {
		return rules.Token{}
	}
	return rules.Token{
		Issuer: c.Issuer, Subject: c.Subject, ClientID: c.ClientID, Tenant: c.Tenant, ID: c.ID, SessionID: c.SessionID, GrantID: c.GrantID,
		Scope: c.Scope, ACR: c.ACR, Audience: c.Audience, AMR: c.AMR, Roles: c.Roles,
		AuthTime: c.AuthTime, IssuedAt: c.IssuedAt, ExpiresAt: c.ExpiresAt, Person: !c.Service(),
	}
}

// visible tells whether expressions may see a header: what the upstream will
// get, but for cookies.
func visible(name string) bool { return name != "Cookie" && passes(name) }

// readBody reads the body for the expressions, once, and leaves it to be
// forwarded octet by octet. What is not JSON is no body to them.
func (x *exchange) readBody(c echo.Context) *Refusal {
	r := c.Request()
	if r.Body == nil || r.Body == http.NoBody || !isJSON(r.Header) {
		return nil
	}
	limit := int64(maxRuleBody)
	if own := x.maxBody(); own > 0 {
		limit = min(limit, own)
	}
	if r.ContentLength > limit {
		return refuse(policy.BodyTooLarge, nil)
	}
	from := newBody(r.Body, x, http.NewResponseController(c.Response()))
	from.left, from.limited = limit, true
	raw, err := io.ReadAll(from)
	switch {
	case x.tooLarge:
		return refuse(policy.BodyTooLarge, nil)
	case err != nil:
		return refuse(bodyReason(err), err)
	}
	x.read = replay{bytes.NewReader(raw), r.Body}
	if len(raw) == 0 {
		return nil
	}
	if x.input.Request.Body, err = rules.Body(raw); err != nil {
		return refuse(policy.BodyUnreadable, err)
	}
	return nil
}

// replay is a body that was read before.
type replay struct {
	io.Reader
	io.Closer
}

// isJSON tells whether a body says that it is JSON, as it stands: a coding
// would hide it.
func isJSON(h http.Header) bool {
	types := h["Content-Type"]
	if len(types) != 1 || len(h["Content-Encoding"]) > 0 {
		return false
	}
	kind, parameters, err := mime.ParseMediaType(types[0])
	if err != nil || kind != "application/json" && !strings.HasSuffix(kind, "+json") {
		return false
	}
	charset, ok := parameters["charset"]
	return !ok || strings.EqualFold(charset, "utf-8")
}

// rulesOf compiles the rules of a resource's endpoints, and returns the names
// that they set, folded as [fold] does. The caller holds h.mu.
func (h *Handler) rulesOf(r *catalog.Resource) (of map[*catalog.EndpointSpec]*policy.Rules, names map[string]struct{}) {
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		compiled, err := h.expressions.Rules(e)
		if err != nil {
			h.d.Log.Error("endpoint has an unusable expression and is closed", "endpoint", r.Tenant+"/"+r.ID+":"+e.ID, "error", err)
		}
		if compiled == nil {
			continue
		}
		if of == nil {
			of, names = map[*catalog.EndpointSpec]*policy.Rules{}, map[string]struct{}{}
		}
		of[e] = compiled
		for _, in := range e.Inject {
			names[strings.ToLower(in.Header)] = struct{}{}
		}
	}
	return of, names
}

// setInjected sets the headers of rules.
func (x *exchange) setInjected(out http.Header) {
	for _, i := range x.injected {
		x.values.set(out, textproto.CanonicalMIMEHeaderKey(i.Name), i.Value)
	}
}
