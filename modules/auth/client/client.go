package client

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"versola/modules/auth/oauth"
	"versola/modules/auth/tenant"
	"versola/modules/central/catalog"
	"versola/platform/clock"
	"versola/platform/secret"
)

// Parameters are the body parameters that this package reads, for the check of
// doubled ones.
func Parameters() []string {
	return []string{"client_id", "client_secret", "client_assertion", "client_assertion_type"}
}

// challenge is what a refused Basic client is told.
const challenge = `Basic realm="versola", charset="UTF-8"`

// maxBasic bounds an Authorization header: an id and a secret are under 1 KiB
// together, and every byte may take three.
const maxBasic = 8 << 10

// presented is what a request says about who calls.
type presented struct {
	id        string
	secret    string
	assertion *assertion
	method    catalog.AuthMethod
}

// Authenticator makes clients prove who they are. It is safe for concurrent
// use.
type Authenticator struct {
	Clock     clock.Clock
	Used      Replay // remembers assertions for [Longest]
	Keys      *Keys
	TokenPath string // of the token endpoint, below the issuer
	path      string // of the endpoint that is called, where it is not that
}

// At returns the authenticator of another endpoint, whose address is an audience
// of assertions too (RFC 9126 section 2).
func (a *Authenticator) At(path string) *Authenticator {
	at := *a
	at.path = path
	return &at
}

// Methods are those that clients may authenticate by.
func (a *Authenticator) Methods() []catalog.AuthMethod {
	return []catalog.AuthMethod{catalog.AuthBasic, catalog.AuthPost, catalog.AuthSecretJWT, catalog.AuthPrivateKeyJWT, catalog.AuthNone}
}

// refusal is why a client is refused: for the log alone.
type refusal string

// Error implements error.
func (r refusal) Error() string { return string(r) }

// Refused tells whether an error says that what a client sent cannot be believed,
// and not that something of ours does not work.
func Refused(err error) bool {
	_, refused := errors.AsType[refusal](err)
	return refused
}

// failed is what a refused client is told, whatever the cause.
func failed(cause error) *oauth.Error {
	return oauth.Refuse(oauth.InvalidClient, "client authentication failed").Because(cause)
}

// Authenticate returns the client that made a request. Errors: an
// [oauth.Error] with invalid_client, or invalid_request where the request uses
// several methods at once; or a fault of the memory of assertions.
func (a *Authenticator) Authenticate(t tenant.At, r *http.Request, p oauth.Params) (*catalog.Client, error) {
	got, err := read(r, p)
	if err != nil {
		return nil, err
	}
	cl, _ := t.Client(got.id)
	err = a.prove(r, t, cl, got)
	if cause, ok := errors.AsType[refusal](err); ok {
		e := failed(cause)
		if got.method == catalog.AuthBasic {
			e.Scheme = challenge
		}
		return nil, e
	}
	if err != nil {
		return nil, err
	}
	return cl, nil
}

func read(r *http.Request, p oauth.Params) (presented, error) {
	if name, twice := p.Duplicate(Parameters()...); twice {
		return presented{}, oauth.Refuse(oauth.InvalidRequest, "%s was sent more than once", name)
	}
	headers := r.Header.Values("Authorization")
	if p.Has("client_assertion") || p.Has("client_assertion_type") {
		if len(headers) > 0 || p.Has("client_secret") {
			return presented{}, severalMethods()
		}
		return readAssertion(p)
	}
	switch len(headers) {
	case 0:
	case 1:
		return fromHeader(headers[0], p)
	default:
		return presented{}, oauth.Refuse(oauth.InvalidRequest, "the Authorization header was sent more than once")
	}
	got := presented{id: p.Get("client_id"), secret: p.Get("client_secret"), method: catalog.AuthNone}
	if got.id == "" {
		return presented{}, oauth.Refuse(oauth.InvalidClient, "client_id is missing")
	}
	if got.secret != "" {
		got.method = catalog.AuthPost
	}
	return got, nil
}

func fromHeader(header string, p oauth.Params) (presented, error) {
	user, password, err := ParseBasic(header)
	if err != nil {
		return presented{}, &oauth.Error{Code: oauth.InvalidClient, Scheme: challenge, Cause: err,
			Description: "the Authorization header must be Basic with the form-urlencoded client id and secret"}
	}
	if p.Has("client_secret") {
		return presented{}, severalMethods()
	}
	// Naming the client a second time is no second method, if it is the same.
	if p.Has("client_id") && p.Get("client_id") != user {
		return presented{}, oauth.Refuse(oauth.InvalidRequest, "client_id is not the client of the Authorization header")
	}
	return presented{id: user, secret: password, method: catalog.AuthBasic}, nil
}

func severalMethods() error {
	return oauth.Refuse(oauth.InvalidRequest, "more than one client authentication method was used")
}

// errBasic is the cause of every refused header; it repeats nothing of it.
var errBasic = errors.New("malformed basic credentials")

// ParseBasic reads a Basic Authorization header strictly: canonical base64 of
// two form-urlencoded values in printable ASCII, separated by a colon (RFC 6749
// section 2.3.1, RFC 7617 section 2).
func ParseBasic(header string) (user, password string, err error) {
	scheme, rest, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") || len(rest) > maxBasic || strings.ContainsAny(rest, "\r\n") {
		return "", "", errBasic
	}
	raw, err := base64.StdEncoding.Strict().DecodeString(rest)
	if err != nil {
		return "", "", errBasic
	}
	for _, c := range raw {
		if c < 0x20 || c > 0x7e {
			return "", "", errBasic
		}
	}
	u, pw, ok := strings.Cut(string(raw), ":")
	if !ok {
		return "", "", errBasic
	}
	if user, err = url.QueryUnescape(u); err != nil || user == "" {
		return "", "", errBasic
	}
	if password, err = url.QueryUnescape(pw); err != nil {
		return "", "", errBasic
	}
	return user, password, nil
}

// decoy stands for the secrets of a client that does not exist, so that
// refusing it takes the work of refusing one that does.
var decoy = []secret.Text{"no client has this secret"}

// prove makes sure that what was presented proves the client; cl may be nil. A
// secret is compared in any case, so that the time tells nothing. Errors: a
// [refusal], or a fault of the memory of assertions.
func (a *Authenticator) prove(r *http.Request, t tenant.At, cl *catalog.Client, got presented) error {
	right := true
	if got.method == catalog.AuthBasic || got.method == catalog.AuthPost {
		secrets := decoy
		if cl != nil {
			secrets = cl.Secrets
		}
		right = matches(secrets, got.secret)
	}
	switch {
	case cl == nil:
		return refusal("unknown client")
	case cl.Disabled:
		return refusal("disabled client")
	case cl.AuthMethod != got.method:
		return refusal("the client authenticates by " + string(cl.AuthMethod) + ", not " + string(got.method))
	case !right:
		return refusal("wrong secret")
	case got.assertion != nil:
		return a.asserted(r.Context(), t, cl, got.assertion)
	}
	return nil
}

// matches compares with every secret, whichever fits. Hashing first makes the
// comparison take the same time for every length.
func matches(secrets []secret.Text, given string) bool {
	want, found := sha256.Sum256([]byte(given)), 0
	for _, s := range secrets {
		have := sha256.Sum256([]byte(s.Reveal()))
		found |= subtle.ConstantTimeCompare(have[:], want[:])
	}
	return found == 1 && given != ""
}
