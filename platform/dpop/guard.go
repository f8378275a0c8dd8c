package dpop

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"versola/platform/jose"
)

// Replay remembers used proofs for the whole deployment.
type Replay interface {
	// Claim tells whether an id is claimed for the first time within a scope;
	// it is remembered until it expires.
	Claim(ctx context.Context, scope, id string, expires time.Time) (fresh bool, err error)
}

// replayScope keeps proofs apart from whatever else a [Replay] remembers.
const replayScope = "dpop"

// TokenRefusal says what is wrong with how an access token was presented; "the
// access token " goes before it.
type TokenRefusal string

// Error implements error.
func (r TokenRefusal) Error() string { return "the access token " + string(r) }

// The refusals of a resource.
const (
	NeedsProof       TokenRefusal = "is bound to a key: it must be sent with the scheme DPoP and a proof"
	NotBound         TokenRefusal = "is not bound to a key: it must be sent with the scheme Bearer"
	OtherKey         TokenRefusal = "is bound to another key than the proof's"
	NoCertificate    TokenRefusal = "is bound to a client certificate, and none was presented"
	OtherCertificate TokenRefusal = "is bound to another client certificate"
)

// Longest is the most time that passes between a proof being accepted and its
// expiry: what a [Replay] has to know.
const Longest = MaxAge + MaxAhead

// Guard checks proofs and remembers that they were used.
type Guard struct{ Replay Replay }

// Once verifies the proof of a request and uses it up. Errors: a [Refusal], or
// a fault of the memory.
func (g Guard) Once(ctx context.Context, h http.Header, r Request) (*Proof, error) {
	proof, err := fromHeader(h, r)
	if err != nil {
		return nil, err
	}
	return proof, g.use(ctx, proof)
}

func fromHeader(h http.Header, r Request) (*Proof, error) {
	raw, err := FromHeader(h)
	if err != nil {
		return nil, err
	}
	return Verify(raw, r)
}

// errNoMemory is for a guard without a memory: it lets nobody through.
var errNoMemory = errors.New("there is no memory of used proofs")

func (g Guard) use(ctx context.Context, p *Proof) error {
	if g.Replay == nil {
		return errNoMemory
	}
	fresh, err := g.Replay.Claim(ctx, replayScope, p.ID, p.Expires)
	switch {
	case err != nil:
		return fmt.Errorf("remember proof: %w", err)
	case !fresh:
		return Replayed
	}
	return nil
}

// Presentation is how an access token was presented.
type Presentation struct {
	Scheme      string // of the Authorization header
	Bound       jose.Confirmation
	Certificate string // "x5t#S256" of the client certificate; empty: none was presented
	Request            // with the token
}

// Prove makes sure that who presents an access token holds what it is bound to
// (section 7, RFC 8705 section 3). The token's own claims decide what that is,
// not the scheme. Errors: a [TokenRefusal], a [Refusal], or a fault of the
// memory.
func (g Guard) Prove(ctx context.Context, h http.Header, p Presentation) error {
	switch {
	case p.Bound.X5T != "" && p.Certificate == "":
		return NoCertificate
	case p.Bound.X5T != "" && p.Certificate != p.Bound.X5T:
		return OtherCertificate
	case p.Bound.JKT == "" && IsScheme(p.Scheme):
		return NotBound
	case p.Bound.JKT == "":
		return nil
	case !IsScheme(p.Scheme):
		return NeedsProof
	}
	proof, err := fromHeader(h, p.Request)
	if err != nil {
		return err
	}
	if proof.Thumbprint != p.Bound.JKT {
		return OtherKey
	}
	return g.use(ctx, proof)
}

// IsScheme tells whether an authentication scheme is DPoP; schemes have no case
// (RFC 9110 section 11.1).
func IsScheme(name string) bool { return strings.EqualFold(name, Scheme) }

// List writes algorithms as the "algs" of a challenge (section 7.1).
func List(algs []jose.Algorithm) string {
	names := make([]string, len(algs))
	for i, a := range algs {
		names[i] = string(a)
	}
	return strings.Join(names, " ")
}
