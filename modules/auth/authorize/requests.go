package authorize

import (
	"context"

	"versola/modules/auth/authorization"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
)

// Objects reads signed request objects. Errors: an [oauth.Error], or a fault.
type Objects interface {
	Read(ctx context.Context, t tenant.At, cl *catalog.Client, raw string, names []string) (oauth.Params, error)
}

// Requests validates authorization requests, whichever endpoint they come to.
type Requests struct{ Objects Objects }

// ValidatePushed validates a request that a client pushes. Errors: an
// [oauth.Error], or a fault.
func (v *Requests) ValidatePushed(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (*authorization.Request, error) {
	r, _, err := v.read(ctx, t, cl, p)
	return r, err
}

// validate validates a request that comes by the browser. An error with a
// request is for the client, one without for the person.
func (v *Requests) validate(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (*authorization.Request, error) {
	r, believed, err := v.read(ctx, t, cl, p)
	if err == nil && cl.PushedRequestRequired() {
		err = oauth.Refuse(oauth.InvalidRequest, "the request must be pushed: request_uri is missing")
	}
	if !believed {
		// Whatever the object says of where to go, it is not believed: the refusal
		// goes where a request without one would have gone.
		r = carrier(t, cl, p)
	}
	return r, err
}

// read validates a request, by what its object says where it has one; believed:
// it has none, or one that is the client's.
func (v *Requests) read(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (r *authorization.Request, believed bool, err error) {
	signed := p.Has("request")
	if signed {
		if p, err = v.object(ctx, t, cl, p); err != nil {
			return nil, false, err
		}
	}
	redirectURI, err := recipient(cl, p)
	if err != nil {
		return nil, true, err
	}
	r, err = parse(t, cl, redirectURI, p)
	if err == nil && cl.RequireSignedRequest && !signed {
		err = oauth.Refuse(oauth.InvalidRequest, "the request must be signed: request is missing")
	}
	return r, true, err
}

// object returns the parameters of a request's object.
func (v *Requests) object(ctx context.Context, t tenant.At, cl *catalog.Client, p oauth.Params) (oauth.Params, error) {
	if _, twice := p.Duplicate("request"); twice {
		return p, oauth.Refuse(oauth.InvalidRequest, "request was sent more than once")
	}
	if p.Has("request_uri") {
		return p, oauth.Refuse(oauth.InvalidRequest, "request was sent together with request_uri") // RFC 9101 section 5
	}
	return v.Objects.Read(ctx, t, cl, p.Get("request"), objectParameters)
}

// objectParameters are those that a request object may have.
var objectParameters = append([]string{"redirect_uri"}, known...)

// carrier returns what carries a refusal of a request whose object is not
// believed, or nil where there is nobody to carry it to.
func carrier(t tenant.At, cl *catalog.Client, p oauth.Params) *authorization.Request {
	redirectURI, err := recipient(cl, p)
	if err != nil {
		return nil
	}
	r, _ := begin(t, cl, redirectURI, p) // as much of it as is good
	return r
}
