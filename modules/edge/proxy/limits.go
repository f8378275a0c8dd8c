package proxy

import (
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog"
	"versola/modules/edge/limit"
	"versola/modules/edge/policy"
	"versola/platform/httpserver"
)

// network is how many bits of an IPv6 address name a caller: a subscriber is
// given a network of at least that size, and picks addresses in it freely.
const network = 64

// bound is a limit, ready to be asked.
type bound struct {
	what       string
	rate       limit.Rate // Burst 0: any
	concurrent int64      // 0: any
}

func boundOf(s *catalog.LimitSpec, what string) *bound {
	if s == nil {
		return nil
	}
	b := &bound{what: what, concurrent: s.Concurrent}
	if s.Requests > 0 {
		b.rate = limit.Rate{Every: max(s.Per.D(0)/time.Duration(s.Requests), 1), Burst: s.Requests}
		if s.Burst > 0 {
			b.rate.Burst = s.Burst
		}
	}
	return b
}

// boundsOf are the limits of endpoints; the caller keeps nil for none.
func boundsOf(r *catalog.Resource) (bounds map[*catalog.EndpointSpec]*bound) {
	for i := range r.Endpoints {
		e := &r.Endpoints[i]
		if e.Limits == nil {
			continue
		}
		if bounds == nil {
			bounds = map[*catalog.EndpointSpec]*bound{}
		}
		bounds[e] = boundOf(e.Limits, r.Tenant+"/"+r.ID+":"+e.ID)
	}
	return bounds
}

// limited counts the call under the limits of its endpoint and its resource.
func (h *Handler) limited(c echo.Context, x *exchange) *Refusal {
	own := x.route.bounds[x.endpoint]
	if own == nil && x.route.bound == nil {
		return nil
	}
	who := limit.Key{Who: address(c)}
	if claims := x.caller.claims; claims != nil {
		who.Client, who.Who = claims.ClientID, claims.Subject
	}
	for _, b := range []*bound{own, x.route.bound} {
		if b == nil {
			continue
		}
		who.What = b.what
		if b.concurrent > 0 {
			if !h.limits.Enter(who, b.concurrent) {
				return &Refusal{Reason: policy.TooManyAtOnce, Wait: time.Second}
			}
			x.entered = append(x.entered, who)
		}
		if b.rate.Burst > 0 {
			if wait, ok := h.limits.Take(who, b.rate, h.d.Clock.Now()); !ok {
				return &Refusal{Reason: policy.RateLimited, Wait: wait}
			}
		}
	}
	return nil
}

// leave ends what limited began.
func (h *Handler) leave(x *exchange) {
	for _, k := range x.entered {
		h.limits.Leave(k)
	}
}

// address names a caller who is nobody else.
func address(c echo.Context) string {
	addr := httpserver.ClientAddr(c)
	if !addr.Is6() {
		return addr.String()
	}
	return netip.PrefixFrom(addr.WithZone(""), network).Masked().String()
}
