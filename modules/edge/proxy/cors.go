package proxy

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/policy"
)

// defaultPreflight is how long a browser may remember a preflight's answer
// where the resource does not say: long enough to spare most, short enough
// that a page taken off the list is out within minutes.
const defaultPreflight = 10 * time.Minute

// cors are the pages that may call a resource, and what they may send and
// read, as the answers say it.
type cors struct {
	origins     map[string]struct{} // as browsers send them
	credentials bool
	allow       string // Access-Control-Allow-Headers
	expose      string
	maxAge      string // seconds
}

func corsOf(s *catalog.CORSSpec) *cors {
	if s == nil {
		return nil
	}
	c := &cors{
		origins: set(s.Origins...), credentials: s.Credentials, allow: strings.Join(s.Headers, ", "), expose: strings.Join(s.Expose, ", "),
		maxAge: strconv.FormatInt(int64(s.MaxAge.D(defaultPreflight)/time.Second), 10),
	}
	delete(c.origins, "null") // every sandboxed page has that one
	return c
}

// allows tells whether pages of an origin may call.
func (c *cors) allows(origin string) bool {
	if c == nil {
		return false
	}
	_, ok := c.origins[origin]
	return ok
}

// origin returns the one Origin of a request, or "".
func origin(h http.Header) string {
	if values := h["Origin"]; len(values) == 1 {
		return values[0]
	}
	return ""
}

// asksFirst tells whether a request is a browser's question to a resource that
// answers them (Fetch standard, CORS-preflight fetch). It carries neither
// cookie nor token.
func asksFirst(r *http.Request, candidates []*route) bool {
	if r.Method != http.MethodOptions || len(r.Header["Origin"]) == 0 || len(r.Header["Access-Control-Request-Method"]) == 0 {
		return false
	}
	return slices.ContainsFunc(candidates, func(c *route) bool { return c.cors != nil })
}

// answerPreflight answers for the first candidate that lets pages of the
// origin call the path by the method they mean to.
func answerPreflight(c echo.Context, x *exchange) *Refusal {
	r, header := c.Request(), c.Response().Header()
	header["Vary"] = append(header["Vary"], "Origin", "Access-Control-Request-Method", "Access-Control-Request-Headers")
	asked := r.Header["Access-Control-Request-Method"]
	if len(asked) > 1 || len(r.Header["Origin"]) > 1 {
		return refuse(policy.HeaderAmbiguous, nil)
	}
	reason, from := policy.OriginRefused, origin(r.Header)
	for _, candidate := range x.candidates {
		if !candidate.cors.allows(from) {
			continue
		}
		methods := x.routes.table.Methods(candidate.resource, x.target)
		if !slices.Contains(methods, asked[0]) {
			reason = policy.EndpointUnknown
			continue
		}
		x.to(candidate, asked[0])
		candidate.cors.mark(header, from)
		header.Set("Access-Control-Allow-Methods", strings.Join(methods, ", "))
		header.Set("Access-Control-Max-Age", candidate.cors.maxAge)
		if candidate.cors.allow != "" {
			header.Set("Access-Control-Allow-Headers", candidate.cors.allow)
		}
		c.Response().WriteHeader(http.StatusNoContent)
		return nil
	}
	return refuse(reason, nil)
}

// mark lets a page of an origin read the answer.
func (c *cors) mark(header http.Header, origin string) {
	header.Set("Access-Control-Allow-Origin", origin)
	if c.credentials {
		header.Set("Access-Control-Allow-Credentials", "true")
	}
}

// shareAnswer lets the page that called read the answer, a refusal as well,
// where the resource lists its origin. Before the resource is certain, any
// that bears the name will do: what it then reads is a refusal.
func (h *Handler) shareAnswer(c echo.Context, x *exchange) {
	candidates := x.candidates
	if x.route != nil {
		candidates = []*route{x.route}
	}
	from := origin(c.Request().Header)
	for _, candidate := range candidates {
		if candidate.cors == nil {
			continue
		}
		header := c.Response().Header()
		if !slices.Contains(header["Vary"], "Origin") {
			header["Vary"] = append(header["Vary"], "Origin") // also for who sent none: caches keep them apart
		}
		if !candidate.cors.allows(from) {
			continue
		}
		candidate.cors.mark(header, from)
		if candidate.cors.expose != "" {
			header.Set("Access-Control-Expose-Headers", candidate.cors.expose)
		}
		return
	}
}

// removeCORS takes out of an upstream's header what the edge says itself.
func removeCORS(h http.Header) {
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			delete(h, name)
		}
	}
}
