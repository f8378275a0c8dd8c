package proxy

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"versola/modules/central/catalog/rules"
	"versola/modules/edge/policy"
	"versola/modules/edge/session"
)

// watchEvery is how often an open WebSocket is asked about: a logout ends
// access within a second, and a question is answered from memory.
const watchEvery = 500 * time.Millisecond

// upgrade refuses protocol upgrades, but for a WebSocket at an endpoint that
// allows them. One to HTTP/2 is an offer that may be ignored (RFC 9110 section
// 7.8). A page of any site can open a WebSocket, and the browser adds the
// cookie: with a session the handshake must come from where a change may.
func (h *Handler) upgrade(r *http.Request, x *exchange) *Refusal {
	values := r.Header["Upgrade"]
	if len(values) == 0 {
		return nil
	}
	if len(values) == 1 && strings.EqualFold(values[0], "h2c") {
		r.Header.Del("Upgrade")
		return nil
	}
	if !x.endpoint.Websocket || r.Method != http.MethodGet || len(values) != 1 || !strings.EqualFold(values[0], "websocket") {
		return refuse(policy.UpgradeRefused, nil)
	}
	if x.caller.session != nil && !h.sameOrigin(r.Header) && !shared([]*route{x.route}, r.Header) {
		return refuse(policy.CSRF, nil)
	}
	x.socket = true
	return nil
}

// watcher asks again and again whether an open WebSocket may stay.
type watcher struct {
	h       *Handler
	x       *exchange
	caller  caller
	request rules.Request
	decided *routes // the last catalog that the decision was made on
}

// watch closes a WebSocket whose caller lost what let them open it. It ends
// with the context.
func (h *Handler) watch(ctx context.Context, c echo.Context, x *exchange) {
	w := &watcher{h: h, x: x, caller: x.caller, request: h.input(c, x).Request, decided: x.routes}
	go func() {
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if reason := w.still(ctx); !reason.Passes() && ctx.Err() == nil {
				x.end(reason)
				return
			}
		}
	}()
}

// still decides whether the connection may go on, as if it were opened now. A
// sign-in that has become old does not end it: it was recent when it had to be.
func (w *watcher) still(ctx context.Context) policy.Reason {
	claims := w.caller.claims
	if w.caller.session != nil {
		if reason := w.renew(ctx); reason != policy.Allowed {
			return reason
		}
	} else if claims != nil && !w.h.d.Clock.Now().Before(claims.ExpiresAt) {
		return policy.TokenExpired
	}
	if w.caller.claims != nil {
		if _, revoked := w.h.d.Revoked.Revoked(w.caller.claims); revoked {
			return policy.TokenRevoked
		}
	}
	routes := w.h.routes()
	if routes == w.decided && claims == w.caller.claims {
		return policy.Allowed
	}
	if reason := w.decide(routes); reason != policy.Allowed {
		return reason
	}
	w.decided = routes
	return policy.Allowed
}

// renew looks for the session, which refreshes its tokens when they are due.
// While that cannot be done, the connection lives as long as the last token.
func (w *watcher) renew(ctx context.Context) policy.Reason {
	if _, there := w.h.d.Catalog.Current().Preset(w.h.d.EdgeID, w.caller.preset.ID); !there {
		return policy.SessionEnded
	}
	s, err := w.h.d.Sessions.Find(ctx, w.caller.preset, w.caller.cookie)
	switch {
	case err == nil:
		w.caller.session, w.caller.claims = s, s.Claims
	case errors.Is(err, session.ErrNone):
		return policy.SessionEnded
	case w.h.d.Clock.Now().Before(w.caller.session.AccessEnd):
	case errors.Is(err, session.ErrAuth):
		return policy.AuthUnavailable
	default:
		return policy.StoreUnavailable
	}
	return policy.Allowed
}

// decide makes the decision on a later catalog, or for later claims.
func (w *watcher) decide(routes *routes) policy.Reason {
	if w.caller.claims != nil {
		may, reason := callerOf(routes.catalog, w.caller.claims)
		if reason != policy.Allowed {
			return reason
		}
		w.caller.may = may
	}
	for _, route := range routes.byID[w.x.route.resource.ID] {
		if route.resource.Tenant != w.x.route.resource.Tenant {
			continue
		}
		e := routes.table.Match(route.resource, http.MethodGet, w.x.target)
		if e == nil || !e.Websocket {
			return policy.EndpointUnknown
		}
		if reason := policy.May(w.caller.policy(), route.resource, e); !reason.Passes() {
			return reason
		}
		request := w.request
		request.Template, request.Time = e.Path, w.h.d.Clock.Now()
		reason, _ := policy.Satisfied(route.rules[e], &rules.Input{Token: claimed(w.caller.claims), Request: request})
		return reason
	}
	return policy.ResourceUnknown
}

// end gives up an exchange that has begun, and notes why.
func (x *exchange) end(reason policy.Reason) {
	x.ended.CompareAndSwap(nil, &reason)
	x.cancel()
}
