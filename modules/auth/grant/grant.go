package grant

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/labstack/echo/v4"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"versola/modules/auth/client"
	"versola/modules/auth/event"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/auth/token"
	"versola/modules/central/catalog"
	"versola/platform/httpserver"
	"versola/platform/jose"
)

// Grant turns a request of an authenticated client into tokens. Errors: an
// [oauth.Error], or a fault of the database.
type Grant interface {
	// Issue answers one request with tokens that are bound to its sender.
	Issue(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params, bound jose.Confirmation) (*token.Response, error)
	// Parameters are those that the grant reads, for the check of doubled ones.
	Parameters() []string
}

// Constraint says what the tokens of a request are bound to: a key or a
// certificate that its sender holds. Errors: as of [Grant].
type Constraint interface {
	Bind(c echo.Context, t tenant.At, cl *catalog.Client, path string) (jose.Confirmation, error)
}

// Path of the endpoint, below the issuer.
const Path = "/token" //nolint:gosec // a path, not a credential

// Endpoint is the token endpoint.
type Endpoint struct {
	grants   map[string]Grant
	clients  *client.Authenticator
	minter   *token.Minter
	sender   Constraint
	events   event.Sink
	names    []string
	counter  metric.Int64Counter
	outcomes map[outcome]metric.MeasurementOption
}

type outcome struct{ grant, result string }

// Results of a request, as the metric names them.
const (
	issued  = "issued"
	refused = "refused"
	failed  = "failed"
)

// New makes the endpoint from its grants by grant_type; clients authenticates
// who asks, minter is what they sign with, sender what binds their tokens, and events hears of refusals that
// have an [event.Cause].
func New(grants map[string]Grant, clients *client.Authenticator, minter *token.Minter, sender Constraint, events event.Sink, meter metric.Meter) (*Endpoint, error) {
	counter, err := meter.Int64Counter("versola.auth.token.requests",
		metric.WithDescription("Answers of the token endpoint, by grant type and outcome."))
	if err != nil {
		return nil, fmt.Errorf("make token counter: %w", err)
	}
	e := &Endpoint{grants: grants, clients: clients, minter: minter, sender: sender, events: events, counter: counter, outcomes: map[outcome]metric.MeasurementOption{}}
	for name := range grants {
		e.names = append(e.names, name)
	}
	slices.Sort(e.names)
	for _, name := range append([]string{"other"}, e.names...) {
		for _, result := range []string{issued, refused, failed} {
			e.outcomes[outcome{name, result}] = metric.WithAttributeSet(
				attribute.NewSet(attribute.String("grant_type", name), attribute.String("outcome", result)))
		}
	}
	return e, nil
}

// Types returns the supported grant types, ordered.
func (e *Endpoint) Types() []string { return e.names }

// Handle answers POST /token.
func (e *Endpoint) Handle(c echo.Context) error {
	name, response, err := e.answer(c)
	result := issued
	if err != nil {
		result = failed
		if _, ok := oauth.AsError(err); ok {
			result = refused
		}
		if cause, ok := errors.AsType[*event.Cause](err); ok {
			e.events.Take(cause.Event.From(c))
		}
	}
	ctx := c.Request().Context()
	e.counter.Add(ctx, 1, e.outcomes[outcome{name, result}])
	if err != nil {
		return err
	}
	return oauth.JSON(c, response)
}

// answer returns the grant type as the metric names it, and the answer.
func (e *Endpoint) answer(c echo.Context) (string, *token.Response, error) {
	name, r, t := "other", c.Request(), tenant.Of(c)
	p, err := oauth.ReadForm(r)
	if err != nil {
		return name, nil, err
	}
	cl, err := e.clients.Authenticate(t, r, p)
	if err != nil {
		return name, nil, err
	}
	httpserver.Annotate(c, slog.String("tenant", t.ID), slog.String("client", cl.ID))
	if _, twice := p.Duplicate("grant_type"); twice {
		return name, nil, oauth.Refuse(oauth.InvalidRequest, "grant_type was sent more than once")
	}
	if !p.Has("grant_type") {
		return name, nil, oauth.Refuse(oauth.InvalidRequest, "grant_type is missing")
	}
	g, ok := e.grants[p.Get("grant_type")]
	if !ok {
		return name, nil, oauth.Refuse(oauth.UnsupportedGrantType, "grant_type is not one that this server supports")
	}
	name = p.Get("grant_type")
	httpserver.Annotate(c, slog.String("grant_type", name))
	if !cl.HasGrant(name) {
		return name, nil, oauth.Refuse(oauth.UnauthorizedClient, "the client is not registered for this grant_type")
	}
	if twice, ok := p.Duplicate(g.Parameters()...); ok {
		return name, nil, oauth.Refuse(oauth.InvalidRequest, "%s was sent more than once", twice)
	}
	if err := e.minter.Check(t, cl); err != nil {
		return name, nil, err
	}
	bound, err := e.sender.Bind(c, t, cl, Path)
	if err != nil {
		return name, nil, err
	}
	response, err := g.Issue(r.Context(), t, cl, p, bound)
	return name, response, err
}
