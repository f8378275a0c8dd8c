package requestobject

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"versola/modules/auth/client"
	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/jose"
)

// Bounds of request objects.
const (
	// maxObject bounds what is read before anything is proven: what a request
	// may carry by itself, in base64 and with a signature.
	maxObject = 24 << 10
	// maxLifetime is the longest that an object is good for (FAPI 2.0 Message
	// Signing section 5.3.1).
	maxLifetime = time.Hour
)

// types are what the header may say that the object is; none is as good (RFC
// 9101 section 10.8, OpenID Connect Core section 6.1).
var types = []string{"", "oauth-authz-req+jwt", "JWT"}

// structured are the parameters that may be JSON in an object, where they are
// JSON in a text elsewhere (RFC 9101 section 4, RFC 9396 section 5).
var structured = []string{"claims", "authorization_details", "registration"}

// Keys finds keys of clients; tells whether one passes. Errors: such that
// [client.Refused] knows, where there are none to be had; or a fault.
type Keys interface {
	Any(ctx context.Context, cl *catalog.Client, passes func(jose.PublicKey) bool) (bool, error)
}

// Reader reads request objects. It is safe for concurrent use.
type Reader struct {
	Clock clock.Clock
	Keys  Keys
}

// Read returns those parameters of a client's object that have one of names.
// Errors: an [oauth.Error], request_not_supported or invalid_request_object; or a
// fault.
func (x *Reader) Read(ctx context.Context, t tenant.At, cl *catalog.Client, raw string, names []string) (oauth.Params, error) {
	if cl.RequestObjectAlg == "" {
		return oauth.Params{}, oauth.Refuse(oauth.RequestNotSupported, "the client is not registered for request objects: request is not supported")
	}
	if len(raw) > maxObject {
		return oauth.Params{}, refuse("is longer than %d bytes", maxObject)
	}
	parsed, err := jose.Parse(raw)
	if err != nil {
		return oauth.Params{}, refuse("is not a signed JWT").Because(err)
	}
	claims, err := jose.Members(parsed.Payload)
	if err != nil {
		return oauth.Params{}, refuse("has claims that are no JSON object with distinct members").Because(err)
	}
	if err := x.signed(ctx, cl, parsed); err != nil {
		return oauth.Params{}, err
	}
	if err := x.check(t, cl, claims); err != nil {
		return oauth.Params{}, err
	}
	return parameters(claims, names)
}

// refuse says what is wrong with an object.
func refuse(format string, args ...any) *oauth.Error {
	return oauth.Refuse(oauth.InvalidRequestObject, "the request object "+format, args...)
}

// signed makes sure that the client has signed the object.
func (x *Reader) signed(ctx context.Context, cl *catalog.Client, parsed jose.Parsed) error {
	if !jose.IsType(parsed.Header.Typ, types...) {
		return refuse("has another typ than oauth-authz-req+jwt")
	}
	if string(parsed.Header.Alg) != cl.RequestObjectAlg {
		return refuse("is not signed by the client's request_object_signing_alg").Because(fmt.Errorf("alg is %.32q", parsed.Header.Alg))
	}
	ok, err := x.Keys.Any(ctx, cl, func(k jose.PublicKey) bool {
		return (parsed.Header.Kid == "" || parsed.Header.Kid == k.ID) && parsed.Signed(k)
	})
	switch {
	case client.Refused(err):
		return refuse("cannot be verified: the client's keys cannot be had").Because(err)
	case err != nil:
		return err
	case !ok:
		return refuse("is not signed by a key of the client")
	}
	return nil
}

// check makes sure that an object is by and for whom it should be, and of now.
func (x *Reader) check(t tenant.At, cl *catalog.Client, claims map[string]json.RawMessage) error {
	for _, name := range []string{"request", "request_uri"} {
		if _, inside := claims[name]; inside {
			return refuse("has %s inside", name)
		}
	}
	for _, name := range []string{"iss", "client_id"} {
		if value, ok := jose.Text(claims[name]); !ok || value != cl.ID {
			return refuse("has an %s that is not the client_id", name)
		}
	}
	if sub, ok := jose.Text(claims["sub"]); ok && sub == cl.ID {
		return refuse("has the client_id as sub, as a client assertion has")
	}
	if audience, _, ok := jose.Texts(claims["aud"]); !ok || !slices.Contains(audience, t.Issuer) {
		return refuse("has an aud without the issuer")
	}
	return x.times(t, claims)
}

// times checks exp, nbf and iat.
func (x *Reader) times(t tenant.At, claims map[string]json.RawMessage) error {
	now := x.Clock.Now()
	period, err := jose.ReadPeriod(claims, now, client.Skew)
	if err != nil {
		return refuse("%s", err)
	}
	if t.Profile == catalog.ProfileFAPI2 && period.NotBefore.IsZero() {
		return refuse("has no nbf")
	}
	from := now
	for _, begin := range []time.Time{period.NotBefore, period.Issued} {
		if !begin.IsZero() && begin.Before(from) {
			from = begin
		}
	}
	if period.Expires.Sub(from) > maxLifetime+client.Skew {
		return refuse("is good for more than an hour: exp is too long after nbf or iat")
	}
	return nil
}

// parameters turns claims into parameters: texts as they are, numbers as they are
// written, and JSON where that may be one. Claims of no parameter are left out.
func parameters(claims map[string]json.RawMessage, names []string) (oauth.Params, error) {
	values := url.Values{}
	for _, name := range names {
		raw, ok := claims[name]
		if !ok {
			continue
		}
		value, ok := parameter(name, raw)
		if !ok {
			return oauth.Params{}, refuse("has a %s of a wrong type", name)
		}
		values.Set(name, value)
	}
	return oauth.ParamsOf(values), nil
}

func parameter(name string, raw json.RawMessage) (string, bool) {
	switch c := raw[0]; {
	case c == '"':
		return jose.Text(raw)
	case c == '-' || c >= '0' && c <= '9':
		return string(raw), name == "max_age" // the only parameter that is a number
	case c == '{' || c == '[':
		var compact bytes.Buffer
		err := json.Compact(&compact, raw)
		return compact.String(), err == nil && slices.Contains(structured, name)
	}
	return "", false
}
